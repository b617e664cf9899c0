// The work of a live agent: when it must be awake for it, how work that is due is delivered and
// ends, and how its code hears of its operations.
#include "base/stop_point.hpp"
#include "extensions/call.hpp"
#include "extensions/fibers.hpp"
#include "extensions/operations.hpp"
#include "extensions/work_spans.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

namespace hearth::runtime {

durable::Wake LiveAgent::wake() const {
  if (work_waits_for_room_) return services_.alarms.known(parts_.key);
  durable::Wake wake = work_.wake();
  wake.working = wake.working || extensions().keeps_alive();
  return wake;
}

void LiveAgent::commit_now() {
  if (!broken_) commit();
  if (broken_) throw StorageError(*broken_);  // nothing is written any more
}

void LiveAgent::report_left_over() {
  for (const durable::LeftOver& fiber : work_.fibers().recovery().take_left_over()) {
    using extensions::DurableEvent;
    const UnderSpan under(code_, span_of_left_over(fiber.id));
    if (fiber.was_running)
      work_.reports().add(DurableEvent::kFiberRunInterrupted, fiber.id, fiber.name);
    work_.reports().add(DurableEvent::kFiberRecoveryDetected, fiber.id, fiber.name);
  }
}

// The span under which the fiber was begun, not the one of the start that finds it.
LiveAgent::Span LiveAgent::span_of_left_over(std::string_view fiber) {
  Span span;
  guard([&] { span = extensions::read_span(work_.reports().trace_of_fiber(fiber)); });
  return span;
}

// The agent's own work and notifications take turns.
bool LiveAgent::dispatch(bool may_recover, bool may_notify) {
  notice_comes_first_ = !notice_comes_first_;
  const bool has_begun = notice_comes_first_ ? send_notice(may_notify) || begin_work(may_recover)
                                             : begin_work(may_recover) || send_notice(may_notify);
  // Work that was given up or put off was written too, and so was a clock that was set.
  if (!has_begun && !broken_ && dirty()) schedule_flush();
  return has_begun;
}

bool LiveAgent::send_notice(bool may_notify) {
  std::optional<durable::NoticeDelivery> due;
  try {
    if (ports().agents != nullptr) due = work_.dispatch().next_notice(may_notify);
    if (due) commit_now();                 // it counts as begun even if it crashes the process
  } catch (const StorageError& failure) {  // agent boundary
    write_failed(failure);
  }
  if (broken_ || !due) return false;
  stop_point("notice.claim.committed");
  const std::string notice = due->id;
  operations_.send_notice(notice,
                          ports().agents->call(extensions::call_of(parts_.key, std::move(*due))));
  return true;
}

// Takes over the work of an earlier process. On a full disk what that writes cannot be committed:
// it is undone, so that the agent can be read, and made again by the next instance.
void LiveAgent::load_work(bool has_code) {
  work_.load(services_.crashed.take(parts_.key), services_.alarms.known(parts_.key).needs_person,
             has_code);
  if (!database_.dirty() || services_.data.has_room()) return;
  database_.roll_back();
  work_waits_for_room_ = true;
}

// From a full disk on no work begins until there is room (AgentSlot::pump): a claim that fails
// breaks the agent.
void LiveAgent::write_failed(const StorageError& failure) {
  if (dynamic_cast<const DiskFull*>(&failure) != nullptr) services_.data.note_full();
  storage_failed(failure.what());
}

void LiveAgent::notice_ended(const OperationNews& news) {
  guard([&] {
    work_.dispatch().notice_ended(news.notice,
                                  extensions::notice_outcome(news.outcome, news.flags));
  });
  leave();
  parts_.look();
}

bool LiveAgent::begin_work(bool may_recover) {
  std::optional<extensions::DueWork> due;
  try {
    due = work_.dispatch().next(may_recover);
    if (due) commit_now();                 // it counts as begun even if it crashes the process
  } catch (const StorageError& failure) {  // agent boundary
    write_failed(failure);
  }
  if (broken_) return false;
  extensions::tell_clients_of_turns(clients_, work_);
  if (!due) return false;
  if (due->kind == EventKind::kFiberRecovered) stop_point("fiber.attempt.committed");
  if (due->kind == EventKind::kSchedule) stop_point("schedule.claim.committed");
  if (due->kind == EventKind::kQueueItem) stop_point("queue.claim.committed");
  if (due->kind == EventKind::kFiberSettled) stop_point("managed.tell.committed");
  if (due->kind == EventKind::kOperationUnknown)
    extensions::tell_clients_of_unknown(clients_, *due);
  const Span span = span_of(due->trace);
  if (due->step) {
    const UnderSpan under(code_, span);
    work_.reports().add(*due->step, due->id, due->name);
  }
  const auto [id, call] = calls_.begin(due->kind, span);
  // The event has its own copies: the call may be over, and gone, while the instance still reads
  // them.
  const std::string name = due->name;
  const std::string body = std::exchange(due->body, {});
  AgentEvent event;
  event.kind = due->kind;
  event.call = id;
  event.name = name;
  event.body = body;
  event.deadline_ms = static_cast<std::uint64_t>(due->timeout.count());
  call.timeout = due->timeout;
  call.due = services_.loop.clock().steady_now() + due->timeout;
  calls_.begin_work(call, std::move(*due));
  accept_call(event);
  return true;
}

void LiveAgent::ended(const Call& call, const Result<std::string_view>& outcome) {
  if (call.kind == EventKind::kStart && outcome) {
    phase_ = AgentPhase::kRunning;
    report_left_over();
  }
  if (!call.work) return;
  const UnderSpan under(code_, call.span);
  guard([&] {
    work_.dispatch().ended(*call.work, outcome);
    auto* const spans = extensions().find<extensions::WorkSpans>();
    if (spans != nullptr && call.kind == EventKind::kFiberRecovered) spans->end_aborted();
    extensions::tell_clients_of_turns(clients_, work_);
  });
}

WorkMark LiveAgent::work_of(CallId id) const {
  const Call* const call = calls_.find(id);
  if (call == nullptr) return {};
  if (call->work) return {call->work->row};
  return call->origin ? call->origin->work : WorkMark();
}

void LiveAgent::works_for(durable::FiberHandle fiber, CallId call) {
  if (!instance_) return;  // the instance is being made, and no fiber runs
  code_.tells_work();
  does(fiber != 0 ? WorkMark{work_.fibers().runs().row_of(fiber)} : work_of(call));
  code_.go_on_under(span_of_run(fiber));
}

// Of the run of this fiber; none: it is not recorded.
extensions::Span LiveAgent::span_of_run(durable::FiberHandle fiber) {
  auto* const spans = extensions().find<extensions::WorkSpans>();
  const durable::Job* const job =
      spans != nullptr ? work_.fibers().runs().find_running(fiber) : nullptr;
  return job != nullptr ? spans->span_of(extensions::SpannedWork::kFiber, job->id)
                        : extensions::Span();
}

// The hook of a continued fiber has no time limit.
void LiveAgent::fiber_continued(std::string_view id) {
  work_.recovery().continued(id);
  calls_.for_each([&](CallId /*id*/, Call& call) {
    if (!call.work || call.work->kind != EventKind::kFiberRecovered || call.work->id != id) return;
    calls_.disarm_deadline(call);
    call.work->timeout = {};
  });
  parts_.look();  // another agent may wait for the permit
}

// ---- operations ---------------------------------------------------------------------------------

void LiveAgent::tell(OperationNews news) {
  if (shutting() || broken_ || !instance_) return;
  if (!news.notice.empty()) {
    news.ended.reset();
    return notice_ended(news);
  }
  const bool is_kept = guard([&] {
    if (news.remote != nullptr) news.remote->telling(news.outcome, news.is_final, news.flags);
  });
  if (!is_kept) return leave();
  news.ended.reset();  // the code may begin another operation in its place
  OperationResult result{.outcome = std::string_view(),
                         .operation = news.of.operation,
                         .token = news.of.token,
                         .is_final = news.is_final,
                         .flags = news.flags};
  if (news.outcome.has_error()) {
    result.outcome = news.outcome.error();
  } else {
    result.outcome = std::string_view(*news.outcome);
  }
  {
    const auto entry = enter_code(news.of.call, news.of.span, news.of.method);
    if (news.of.work) does(news.of.work);
    code_.begin_cause(news.of.state_cause);
    instance_->on_result(result);
  }
  leave();
}

}  // namespace hearth::runtime
