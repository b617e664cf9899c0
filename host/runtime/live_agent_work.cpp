// What is due in a live agent, and what its instance may ask about schedules, the queue and managed
// fibers.
#include "base/stop_point.hpp"
#include "json/json_scanner.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

namespace hearth::runtime {

// ---- delivery -----------------------------------------------------------------------------------

bool LiveAgent::dispatch(bool may_recover) {
  std::optional<DueWork> due;
  try {
    due = work_.next(may_recover);
    if (due) commit_now();  // it counts as begun also if it takes the process with it
  } catch (const StorageError& failure) {  // agent boundary
    storage_failed(failure.what());
  }
  if (broken_) return false;
  if (!due) {
    if (dirty()) schedule_flush();  // what was left out has its next time
    return false;
  }
  if (due->kind == EventKind::kFiberRecovered) stop_point("fiber.attempt.committed");
  if (due->kind == EventKind::kSchedule) stop_point("schedule.claim.committed");
  if (due->kind == EventKind::kQueueItem) stop_point("queue.claim.committed");
  if (due->kind == EventKind::kFiberSettled) stop_point("managed.tell.committed");
  if (due->step) report(*due->step, due->id, due->name);
  const auto [id, call] = calls_.emplace();
  ++work_calls_;
  call.kind = due->kind;
  // The event's own: the call may be over, and gone, while the instance still looks at them.
  const std::string name = due->name;
  const std::string body = std::exchange(due->body, {});
  AgentEvent event;
  event.kind = due->kind;
  event.call = id;
  event.name = name;
  event.body = body;
  event.deadline_ms = static_cast<std::uint64_t>(due->timeout.count());
  call.work = std::make_unique<DueWork>(std::move(*due));
  accept_call(id, event);
  return true;
}

void LiveAgent::end_work(const DueWork& work, const Result<std::string_view>& outcome) {
  try {
    work_.ended(work, outcome);
  } catch (const StorageError& failure) {  // agent boundary
    storage_failed(failure.what());
  }
}

void LiveAgent::recovery_continued(std::string_view fiber_id) {
  work_.continued(fiber_id);
  calls_.for_each([&](CallId id, Call& call) {
    (void)id;
    if (!call.work || call.work->kind != EventKind::kFiberRecovered || call.work->id != fiber_id)
      return;
    services_.loop().cancel_timer(call.deadline);
    call.deadline = 0;
    call.work->timeout = {};
  });
  slot_.look();  // somebody may be waiting for its permit
}

std::optional<Error> LiveAgent::work_refusal() const {
  if (shutting_) return Error{Errc::kClosing, "the agent is being evicted"};
  if (in_transaction()) {
    // A commit would end the plugin's transaction under its hands, and a rollback would undo what
    // memory takes for done.
    return Error{Errc::kInvalidArgument, "not while a transaction of the agent's own is open"};
  }
  return std::nullopt;
}

// ---- hearth.schedule/1 --------------------------------------------------------------------------

Result<durable::Schedules::Created> LiveAgent::create_schedule(
    const durable::ScheduleRequest& request) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  auto made = work_.schedules().create(request);
  if (made.has_error()) return made;
  using Type = durable::ScheduleType;
  const bool once = request.type == Type::kDelay || request.type == Type::kAt;
  if (made->created) report(DurableEvent::kScheduleCreate, made->id, request.callback);
  if (once && request.idempotent == durable::Idempotent::kByType &&
      slot_.state() == AgentState::kWaking)
    work_.warn_of_duplicates(request.callback);
  return made;
}

Result<std::string> LiveAgent::get_schedule(std::string_view id) {
  return work_.schedules().get(id);
}

Result<std::string> LiveAgent::list_schedules(const durable::ScheduleFilter& filter) {
  return work_.schedules().list(filter);
}

Result<void> LiveAgent::cancel_schedule(std::string_view id) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  auto outcome = work_.schedules().cancel(id);
  if (outcome) report(DurableEvent::kScheduleCancel, id);
  return outcome;
}

Result<void> LiveAgent::pause_schedule(std::string_view id, bool paused) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  return work_.schedules().pause(id, paused);
}

Result<void> LiveAgent::retry_schedule(std::string_view id) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  return work_.schedules().retry(id);
}

// ---- hearth.queue/1 -----------------------------------------------------------------------------

Result<std::string> LiveAgent::push_item(const durable::QueueRequest& request) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  auto pushed = work_.queue().push(request);
  if (pushed.has_error()) return pushed.error();
  report(DurableEvent::kQueueCreate, pushed->id, request.callback);
  return std::move(pushed->record);
}

Result<std::string> LiveAgent::get_item(std::string_view id) {
  return work_.queue().get(id);
}

Result<std::string> LiveAgent::list_items(const durable::QueueFilter& filter) {
  return work_.queue().list(filter);
}

Result<void> LiveAgent::remove_item(std::string_view id) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  return work_.queue().remove(id);
}

Result<std::uint64_t> LiveAgent::remove_items(const durable::QueueFilter& filter) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  return work_.queue().remove_all(filter);
}

Result<void> LiveAgent::retry_item(std::string_view id) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  return work_.queue().retry(id);
}

// ---- hearth.managed_fibers/1 --------------------------------------------------------------------

Result<durable::ManagedFibers::Started> LiveAgent::start_managed(
    const durable::ManagedRequest& request) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  auto started = work_.managed().start(request);
  if (started.has_error() || started->fiber == 0) return started;
  const std::string name(request.name);  // may lie in a row that the commit ends
  stop_point("managed.start.written");
  commit_now();  // the record is on disk before the work's first instruction
  stop_point("managed.start.committed");
  report(DurableEvent::kFiberRunStarted, started->id, name);
  return started;
}

Result<std::uint64_t> LiveAgent::resume_managed(std::string_view id) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  const auto fiber = work_.managed().resume(id);
  if (fiber.has_error()) return fiber.error();
  const std::string its_id(id);  // may lie in a row that the commit ends
  stop_point("managed.resume.written");
  commit_now();
  stop_point("managed.resume.committed");
  recovery_continued(its_id);
  return *fiber;
}

Result<std::string> LiveAgent::settle_managed(std::uint64_t fiber, durable::FiberStatus status,
                                              std::string_view body) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  auto change = work_.managed().settle(fiber, status, body);
  if (change.has_error()) return change.error();
  stop_point("managed.settle.written");
  stops_at_commit_.add("managed.settle.committed");
  using Status = durable::FiberStatus;
  report(status == Status::kCompleted ? DurableEvent::kFiberRunCompleted
         : status == Status::kAborted ? DurableEvent::kFiberCancelled
                                      : DurableEvent::kFiberRunFailed,
         change->id, status == Status::kCompleted ? std::string_view() : body);
  return std::move(change->record);
}

Result<std::string> LiveAgent::inspect_managed(std::string_view id, std::string_view key) {
  return work_.managed().inspect(id, key);
}

Result<std::string> LiveAgent::list_managed(const durable::ManagedFilter& filter) {
  return work_.managed().list(filter);
}

Result<void> LiveAgent::cancel_managed(std::string_view id, std::string_view key,
                                       std::string_view reason) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  const auto change = work_.managed().cancel(id, key, reason);
  if (change.has_error()) return change.error();
  stop_point("managed.cancel.written");
  stops_at_commit_.add("managed.cancel.committed");
  report(DurableEvent::kFiberCancelled, change->id, reason);
  return {};
}

Result<void> LiveAgent::resolve_managed(std::string_view id, std::string_view outcome) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  const auto change = work_.managed().resolve(id, outcome);
  if (change.has_error()) return change.error();
  return {};
}

Result<void> LiveAgent::retry_managed(std::string_view id) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  return work_.managed().retry(id);
}

Result<std::uint64_t> LiveAgent::remove_managed(const durable::ManagedFilter& filter) {
  if (auto refusal = work_refusal()) return std::move(*refusal);
  return work_.managed().remove(filter);
}

}  // namespace hearth::runtime
