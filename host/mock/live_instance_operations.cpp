// Operations that an agent of a mock host submits.
#include "extensions/abi_status.hpp"
#include "extensions/call.hpp"
#include "extensions/call_rules.hpp"
#include "mock/live_instance.hpp"

#include <hearth/ext/offload.h>

#include <thread>
#include <utility>

namespace hearth::mock {
namespace {

Error no_such_operation() {
  return Error{Errc::kNotFound, "no such operation"};
}

}  // namespace

// ---- operations ---------------------------------------------------------------------------------

Result<extensions::OperationId> LiveInstance::submit(std::uint32_t operation,
                                                     std::string_view request,
                                                     std::uint64_t token) {
  if (instance_ == nullptr)
    return Error{Errc::kForbidden, "operations begin after create, in START or later"};
  if (operations_.size() >= extensions::kMaxOperations)
    return Error{Errc::kLimitExceeded, "too many operations in flight"};
  const hearth_class& definition = parts_.definition;
  const bool runs_jobs = HEARTH_HAS(&definition, hearth_class, get_extension) &&
                         definition.get_extension(&definition, HEARTH_EXT_OFFLOAD) != nullptr;
  const auto read = extensions::read_operation(operation, request, runs_jobs);
  if (read.has_error()) return read.error();
  using enum extensions::OperationKind;
  const std::uint64_t number = read->number;
  // (Call 0 means all data that the agent has sent; a test has that at once.)
  if (read->kind == kDrain && number != 0 && !calls_.contains(number))
    return Error{Errc::kNotFound, "no such call"};
  if (read->kind == kDrainClient && parts_.clients.find(number) == nullptr)
    return Error{Errc::kNotFound, "no such client"};
  const bool left = read->kind == kDrain && number != 0 && calls_[number].event.abandoned &&
                    calls_[number].event.abandoned();
  extensions::ConnectionId client = read->kind == kDrainClient ? number : 0;
  if (read->kind == kDrain && number != 0 && !left) client = calls_[number].event.connection;
  operations_[++last_operation_] = {
      .operation = operation,
      .token = token,
      .due = parts_.world.clock.steady_now() +
             std::chrono::milliseconds(read->kind == kSleep ? number : 0),
      .client = client,
      .job = read->kind == kOffload ? number : 0,
      .status = left ? HEARTH_E_GONE : HEARTH_OK,
      .state_cause = works_for_fiber_ ? nullptr : state_cause_};
  return last_operation_;
}

Result<extensions::OperationId> LiveInstance::submit(
    std::uint32_t operation, std::unique_ptr<extensions::RemoteOperation> remote,
    std::uint64_t token) {
  if (instance_ == nullptr)
    return Error{Errc::kForbidden, "operations begin after create, in START or later"};
  if (migrating_)
    return Error{Errc::kForbidden, "nothing leaves an agent while its data are migrated"};
  if (operations_.size() >= extensions::kMaxOperations)
    return Error{Errc::kLimitExceeded, "too many operations in flight"};
  Operation& added = operations_[++last_operation_];
  added.operation = operation;
  added.token = token;
  added.due = SteadyTime::max();  // no timer: its results come from outside
  if (!works_for_fiber_) added.state_cause = state_cause_;
  added.remote = std::make_shared<Remote>();
  added.remote->operation = std::move(remote);
  return last_operation_;
}

Result<void> LiveInstance::credit(extensions::OperationId id, std::uint64_t bytes) {
  const auto found = operations_.find(id);
  if (found == operations_.end() || !found->second.notice.empty()) return no_such_operation();
  if (!found->second.remote) return Error{Errc::kUnsupported, "the operation has no parts"};
  found->second.remote->operation->credit(bytes);
  return {};
}

void LiveInstance::Remote::part(std::string body, std::uint32_t flags) {
  told.push_back({std::move(body), flags});
}

void LiveInstance::Remote::end(Result<std::string> outcome, std::uint32_t flags) {
  told.push_back({std::move(outcome), flags | HEARTH_RESULT_FINAL});
}

// The writes of the agent's code are committed by now: none of it is on the stack.
bool LiveInstance::start_remote() {
  for (const auto& [id, operation] : operations_) {
    if (!operation.remote || std::exchange(operation.remote->started, true)) continue;
    operation.remote->operation->start(*operation.remote);
    return true;
  }
  return false;
}

bool LiveInstance::deliver_remote() {
  for (const auto& [id, each] : operations_) {
    if (!each.remote || each.remote->told.empty()) continue;
    Operation operation = each;
    const Remote::Told told = std::move(operation.remote->told.front());
    operation.remote->told.pop_front();
    const bool is_end = (told.flags & HEARTH_RESULT_FINAL) != 0;
    if (is_end) operations_.erase(id);
    if (!operation.notice.empty()) {
      if (is_end)
        work_.notice_ended(operation.notice, extensions::notice_outcome(told.body, told.flags));
      end_turn();
      return true;
    }
    operation.remote->operation->telling(told.body, is_end, told.flags);
    state_cause_ = operation.state_cause;
    operation.remote.reset();  // so that a cancel() by the code ends it at once
    const bool ok = told.body.has_value();
    const std::string body = ok ? told.body.value() : told.body.error().message;
    deliver_result(operation.operation, operation.token,
                   ok ? hearth_status{HEARTH_OK}
                      : extensions::to_status(told.body.error().code,
                                              extensions::missing_of(operation.operation)),
                   body, told.flags);
    return true;
  }
  return false;
}

Result<void> LiveInstance::cancel(extensions::OperationId id) {
  const auto found = operations_.find(id);
  if (found == operations_.end() || !found->second.notice.empty()) return no_such_operation();
  const Operation operation = found->second;
  operations_.erase(found);
  if (operation.operation == HEARTH_OP_OFFLOAD && !operation.over)
    static_cast<void>(call_job(operation.job, 1));
  return {};
}

// Runs on a thread that is not the agent's.
hearth_status LiveInstance::call_job(std::uint64_t job, std::uint32_t cancelled) {
  const auto* const table = static_cast<const hearth_offload_v1*>(
      parts_.definition.get_extension(&parts_.definition, HEARTH_EXT_OFFLOAD));
  hearth_status status = HEARTH_OK;
  std::thread([&] { status = table->run(job, cancelled); }).join();
  return status;
}

bool LiveInstance::run_job() {
  if (parts_.world.hold_offload) return false;
  for (auto& [id, operation] : operations_) {
    if (operation.operation != HEARTH_OP_OFFLOAD || operation.over) continue;
    operation.over = true;
    operation.status = call_job(operation.job, 0) == HEARTH_OK ? HEARTH_OK : HEARTH_E_PLUGIN;
    return true;
  }
  return false;
}

// Null: it has left, or is being closed.
const Client* LiveInstance::open_client(extensions::ConnectionId id) const {
  const Client* const found = parts_.clients.find_client(id);
  return found != nullptr && found->seen->open ? found : nullptr;
}

// It reads nothing. A client that has left is not waited for.
bool LiveInstance::is_held(extensions::ConnectionId client) const {
  const Client* const found = open_client(client);
  return found != nullptr && found->seen->held;
}

// Delivers the result of the operation that is due first.
bool LiveInstance::deliver_result() {
  const SteadyTime now = parts_.world.clock.steady_now();
  auto first = operations_.end();
  for (auto each = operations_.begin(); each != operations_.end(); ++each) {
    const Operation& operation = each->second;
    // A drain is due at once: the clients of a test read without delay, unless they are held.
    const bool due = operation.operation == HEARTH_OP_OFFLOAD
                         ? operation.over
                         : operation.due <= now && !is_held(operation.client);
    if (due && (first == operations_.end() || operation.due < first->second.due)) first = each;
  }
  if (first == operations_.end()) return false;
  const Operation operation = first->second;
  operations_.erase(first);
  state_cause_ = operation.state_cause;
  const bool left = operation.client != 0 && open_client(operation.client) == nullptr;
  deliver_result(operation.operation, operation.token, left ? HEARTH_E_GONE : operation.status);
  return true;
}

void LiveInstance::deliver_result(std::uint32_t operation, std::uint64_t token,
                                  hearth_status status, std::string_view body,
                                  std::uint32_t flags) {
  hearth_result result = {};
  result.struct_size = sizeof result;
  result.flags = flags;
  result.status = status;
  result.operation = operation;
  result.token = token;
  LentBytes lent;
  result.body = lent.lend(body);
  works_for_fiber_ = false;
  parts_.definition.on_result(instance_, &result);
  state_cause_.reset();
  leave();
}

void LiveInstance::deliver_post(std::uint64_t token) {
  deliver_result(HEARTH_OP_POST, token, HEARTH_OK);
}

}  // namespace hearth::mock
