#include <hearth/call.hpp>
#include <hearth/detail/activation.hpp>
#include <hearth/fetch.hpp>
#include <hearth/retry.hpp>

namespace hearth::detail {

namespace {

// Inside a catch block.
Failure describe_failure() noexcept {
  try {
    throw;
  } catch (const SqlError& error) {
    const bool is_limit = error.code() == HEARTH_E_LIMIT;
    return {HEARTH_E_PLUGIN, error.what(), error.sql(), is_limit ? HEARTH_E_LIMIT : 0};
  } catch (const CallError& error) {  // the limits of another agent
    return {HEARTH_E_PLUGIN, error.what()};
  } catch (const FetchError& error) {  // limits of a request, such as an answer that is too long
    return {HEARTH_E_PLUGIN, error.what()};
  } catch (const HostError& error) {
    const bool is_told = error.code() == HEARTH_E_LIMIT || error.code() == HEARTH_E_CONFLICT ||
                         error.code() == HEARTH_E_FORBIDDEN;
    return {HEARTH_E_PLUGIN, error.what(), {}, is_told ? error.code() : 0};
  } catch (const Error& error) {
    return {error.code() < 0 ? error.code() : HEARTH_E_PLUGIN, error.what()};
  } catch (const Json::exception& error) {
    return {HEARTH_E_PLUGIN, std::string(json_error_text(error))};
  } catch (const std::exception& error) {
    return {HEARTH_E_PLUGIN, error.what()};
  } catch (...) {
    return {};
  }
}

}  // namespace

Failure current_failure() noexcept {
  Failure failure = describe_failure();
  failure.is_final = is_final(std::current_exception());
  return failure;
}

bool emit_part(Activation& activation, std::uint64_t call, std::string_view part,
               std::string_view doing) {
  const hearth_status status =
      activation.host()->emit(activation.host(), activation.id(), call, slice(part));
  if (status == HEARTH_E_GONE || status == HEARTH_E_CLOSING) return false;
  activation.check(status, doing);
  return true;
}

void OwnWork::answer() noexcept {
  try {
    task_.take();
  } catch (...) {
    activation().tell_error(name_);
    activation().log(HEARTH_LOG_ERROR, std::string(name_) + " failed: " + current_failure().text);
  }
}

void Activation::complete_with_exception(const Context& context) noexcept {
  const Failure failure = current_failure();
  // An answer of the author if a caller reads it. An event that is delivered again has no caller.
  const bool is_answer = failure.status != HEARTH_E_PLUGIN && !context.unheard && !context.retried;
  if (!is_answer) tell_error(context.handler);
  // For events that are delivered again these statuses mean that the class has nothing to call. But
  // it had, and that threw.
  const bool misleading = failure.status == HEARTH_E_NOT_FOUND || failure.status == HEARTH_E_GONE ||
                          failure.status == HEARTH_E_UNSUPPORTED;
  hearth_status status = failure.status;
  if (context.retried && misleading) status = HEARTH_E_PLUGIN;
  if (context.is_method && failure.of_host != 0) status = failure.of_host;
  if (context.retried && failure.is_final) status = HEARTH_E_FINAL;
  const hearth_status told =
      host()->complete(host(), id_, context.call, status, slice(failure.text));
  // If a caller gets the failure, the host logs the text; the SQL is only for the log.
  const std::string sql = failure.sql.empty() ? std::string() : " in SQL: " + failure.sql;
  if (context.unheard) {
    log(HEARTH_LOG_ERROR, std::string(context.handler) + " failed: " + failure.text + sql);
  } else if (told == HEARTH_E_GONE) {
    log(HEARTH_LOG_ERROR,
        std::string(context.handler) + " failed after its answer: " + failure.text + sql);
  } else if (!sql.empty()) {
    log(HEARTH_LOG_ERROR, "failed" + sql);
  }
}

std::string Activation::last_error(hearth_status status, std::string_view doing) const {
  hearth_bytes text = {nullptr, 0};
  if (host()->last_error(host(), id_, &text) == HEARTH_OK && text.len != 0)
    return std::string(view(text));
  return std::string(doing) + ": " + std::string(status_name(status));
}

void Activation::complete(std::uint64_t call, hearth_status status,
                          std::string_view body) const noexcept {
  // GONE is normal; after INVALID and LIMIT the host has answered the caller itself.
  static_cast<void>(host()->complete(host(), id_, call, status, slice(body)));
}

std::string& Activation::answer_buffer() {
  if (answer_.capacity() > kKeptAnswer) answer_ = std::string();
  answer_.clear();
  return answer_;
}

void Activation::keep(std::unique_ptr<Root> root) {
  const std::uint64_t call = root->context().call;
  root->came_as(++last_root_);
  roots_[call] = std::move(root);
}

void Activation::cancel(std::uint64_t call) {
  task_watch = nullptr;  // tasks that it had not awaited yet are destroyed with it
  roots_.erase(call);
  task_watch = this;
}

void Activation::drop_fibers() noexcept {
  task_watch = nullptr;  // tasks that they had not awaited yet are destroyed with them
  while (!dropped_.empty()) {
    const auto dropped = fibers_.find(dropped_.back());
    dropped_.pop_back();
    if (dropped == fibers_.end()) continue;
    const std::unique_ptr<Root> root = std::move(dropped->second);
    fibers_.erase(dropped);
    std::erase(finished_, root.get());
    works_for(root->context());
  }
  task_watch = this;
}

void Activation::reap() noexcept {
  while (!finished_.empty() || !released_.empty() || !dropped_.empty()) {
    if (!dropped_.empty()) {
      drop_fibers();
      continue;
    }
    if (finished_.empty()) {
      Waiter* const waiter = released_.front();
      released_.erase(released_.begin());
      waiter->resume();
      continue;
    }
    Root* const root = finished_.back();
    finished_.pop_back();
    const Context ended = root->context();
    works_for(ended);
    root->answer();
    if (ended.fiber != 0)
      fibers_.erase(ended.fiber);
    else
      roots_.erase(ended.call);
  }
}

hearth_status Activation::submit(std::uint32_t operation, hearth_bytes request,
                                 PendingOperation& pending, std::uint64_t& token,
                                 std::uint64_t& host_id) {
  return submit_with(pending, token, [&](std::uint64_t its_token) {
    return host()->submit(host(), id_, operation, request, its_token, &host_id);
  });
}

void Activation::on_result(const hearth_result& result) {
  const auto found = pending_.find(result.token);
  if (found == pending_.end()) return;  // forgotten, or a post()
  PendingOperation* const pending = found->second;
  if ((result.flags & HEARTH_RESULT_FINAL) == 0) {
    const Entry entry(*this, pending->context());
    pending->on_part(result);
    return;
  }
  pending_.erase(found);
  const Entry entry(*this, pending->context());
  pending->on_result(result);
}

void Activation::warn_once(const std::string& text) {
  if (warned_.size() >= kMostWarnings || !warned_.insert(text).second) return;
  log(HEARTH_LOG_WARN, text);
}

void Activation::never_awaited() noexcept {
  log(HEARTH_LOG_ERROR,
      "misuse: a Task was made and never awaited, so its code has not run: co_await it, or give "
      "the work to start_fiber()");
}

}  // namespace hearth::detail
