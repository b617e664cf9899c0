#include <hearth/detail/fiber_start.hpp>
#include <hearth/retry.hpp>
#include <hearth/timeout.hpp>

namespace hearth::detail {

void fiber_settled(Activation& activation, const FiberRecord& record) {
  activation.kept_work().erase(record.id);
  auto& waiters = activation.settled_waiters();
  const auto [first, last] = waiters.equal_range(record.id);
  for (auto each = first; each != last; ++each) each->second->settled(record);
  waiters.erase(first, last);
}

std::optional<FiberRecord> find_record(const Activation& activation, std::string_view id,
                                       std::string_view key) {
  hearth_bytes record = {nullptr, 0};
  const hearth_status status =
      fiber_table(activation)
          .inspect(activation.host(), activation.id(), slice(id), slice(key), &record);
  if (!found(activation, status, "inspect fiber")) return std::nullopt;
  return read_fiber(parse_record(view(record)));
}

void tell_waiters(Activation& activation) {
  auto& waiters = activation.settled_waiters();
  for (auto each = waiters.begin(); each != waiters.end();) {
    const std::string id = each->first;
    const auto next = waiters.upper_bound(id);
    if (const auto record = find_record(activation, id, {}); !record) {
      for (auto waiter = each; waiter != next; ++waiter) waiter->second->gone();
      waiters.erase(each, next);
    } else if (record->settled()) {
      fiber_settled(activation, *record);
    }
    each = next;
  }
}

namespace {

Task<FiberRecord> settled_record(Activation& activation, std::string id) {
  SettledAwaiter settled(activation, std::move(id));
  co_return co_await settled;
}

}  // namespace

Task<FiberRecord> wait_settled(Activation& activation, std::string id,
                               std::chrono::milliseconds timeout) {
  return with_timeout(activation, settled_record(activation, std::move(id)), timeout);
}

bool SettledAwaiter::await_ready() {
  auto record = find_record(activation_, id_, {});
  if (!record) throw Error(HEARTH_E_NOT_FOUND, "no fiber has this id");
  record_ = std::move(*record);
  return record_.settled();
}

// Settles with the turn of the work's last writes. A result that is no JSON, or too large for the
// host, is a failure of the work.
void FiberRoot::settle() noexcept {
  Activation& live = activation();
  const auto settle_as = [&](std::uint32_t status, const std::string& body, hearth_bytes& record) {
    return fiber_table(live).settle(live.host(), live.id(), fiber_.row_.handle, status,
                                    slice(std::string_view(body)), &record);
  };
  hearth_bytes record = {nullptr, 0};
  hearth_status status = HEARTH_OK;
  if (!error_) {
    try {
      status = settle_as(HEARTH_FIBER_COMPLETED, result(), record);
      if (status == HEARTH_E_INVALID || status == HEARTH_E_LIMIT)
        throw Error(status, live.last_error(status, "store the result"));
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  if (error_) {
    const std::string outcome = outcome_of_failure();
    if (!outcome.empty()) status = settle_as(HEARTH_FIBER_OUTCOME, outcome, record);
    // (Invalid: the reason is too long.)
    if (outcome.empty() || status == HEARTH_E_INVALID)
      status = settle_as(kind_of_failure(), why(), record);
  }
  settled_before_ = status == HEARTH_E_GONE;
  if (settled_before_) return;
  if (status < 0)
    return live.log(HEARTH_LOG_ERROR, live.last_error(status, "settle fiber " + fiber_.name()));
  record_ = read_fiber(parse_record(view(record)));
  if (record_->settled()) return fiber_settled(live, *record_);
  if (record_->waits_for_code) return;
  if (auto kept = keep()) live.kept_work()[record_->id] = std::move(kept);
}

// Of a Final with a reason; empty: another failure.
std::string FiberRoot::outcome_of_failure() const noexcept {
  try {
    std::rethrow_exception(error_);
  } catch (const Final& end) {
    if (end.reason().empty()) return {};
    try {
      return outcome_text(FiberOutcome::failed(why(), end.reason()));
    } catch (...) {
      return {};  // its text is not UTF-8
    }
  } catch (...) {
    return {};
  }
}

std::uint32_t FiberRoot::kind_of_failure() noexcept {
  const auto ended_with = [](bool is_last) -> std::uint32_t {
    if (is_last) return HEARTH_FIBER_FINAL_ERROR;
    return HEARTH_FIBER_ERROR;
  };
  try {
    std::rethrow_exception(error_);
  } catch (const Unreadable&) {
    return HEARTH_FIBER_NEEDS_CODE;
  } catch (const Final&) {
    return HEARTH_FIBER_FINAL_ERROR;
  } catch (const std::exception& error) {
    const ShouldRetry should_retry = should_retry_of(activation(), fiber_.name());
    if (should_retry == nullptr) return ended_with(is_final(error_));
    try {
      const auto record = find_record(activation(), fiber_.id(), {});
      const int next_attempt = (record ? record->failures : 0) + 2;
      return ended_with(!should_retry(error, next_attempt));
    } catch (...) {
      return HEARTH_FIBER_ERROR;
    }
  } catch (...) {
    return HEARTH_FIBER_ERROR;
  }
}

hearth_fiber_filter to_fiber_filter(const FiberFilter& filter) {
  hearth_fiber_filter wanted = {};
  wanted.struct_size = sizeof wanted;
  for (const FiberStatus status : filter.statuses)
    wanted.statuses |= static_cast<std::uint32_t>(status);
  wanted.name = slice(std::string_view(filter.name));
  if (filter.before) wanted.before_ms = filter.before->time_since_epoch().count();
  wanted.after = slice(std::string_view(filter.after));
  wanted.limit = filter.limit;
  wanted.dead = filter.dead ? 1 : 0;
  return wanted;
}

EndAwaiter::~EndAwaiter() {
  activation_.withdraw(*this);
  FiberRoot* const fiber = find_fiber(activation_, number_);
  if (fiber && fiber->ended() && !waiting_)
    activation_.fibers().erase(number_);  // it ended at once
  else if (fiber)
    fiber->wait(nullptr);
}

bool EndAwaiter::await_ready() {
  if (const auto& record = fiber_.record(); record && record->status == FiberStatus::kAborted)
    cancelled_ = record;
  return fiber_.ended() || cancelled_;
}

void EndAwaiter::await_suspend(std::coroutine_handle<> waiting) noexcept {
  context_ = activation_.context();
  waiting_ = waiting;
  fiber_.wait(this);
}

}  // namespace hearth::detail
