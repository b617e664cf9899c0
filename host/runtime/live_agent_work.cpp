// What is due in a live agent: how it is delivered, and what becomes of it.
#include "base/stop_point.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

namespace hearth::runtime {

bool LiveAgent::dispatch(bool may_recover) {
  std::optional<extensions::DueWork> due;
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
  if (due->step) work_.report(*due->step, due->id, due->name);
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
  call.work = std::make_unique<extensions::DueWork>(std::move(*due));
  accept_call(id, event);
  return true;
}

void LiveAgent::end_work(const extensions::DueWork& work, const Result<std::string_view>& outcome) {
  try {
    work_.ended(work, outcome);
  } catch (const StorageError& failure) {  // agent boundary
    storage_failed(failure.what());
  }
}

// Its hook may take as long as it likes.
void LiveAgent::fiber_continued(std::string_view id) {
  work_.continued(id);
  calls_.for_each([&](CallId /*id*/, Call& call) {
    if (!call.work || call.work->kind != EventKind::kFiberRecovered || call.work->id != id) return;
    services_.loop().cancel_timer(call.deadline);
    call.deadline = 0;
    call.work->timeout = {};
  });
  owner_.look();  // somebody may be waiting for its permit
}

}  // namespace hearth::runtime
