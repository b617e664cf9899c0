#include "extensions/work_dispatch.hpp"

#include "json/json_scanner.hpp"

#include <array>
#include <utility>

namespace hearth::extensions {
namespace {

constexpr int kSweepsAtOnce = 10;
constexpr std::chrono::minutes kSweepEvery{1};
constexpr std::string_view kWasDead = "dead for as long as fibers.keep_failed, and removed";

// Returns by value, because error() gives a copy.
std::string error_text(const Result<std::string_view>& outcome) {
  return outcome ? std::string() : outcome.error().message;
}

// What the code is missing; `name`: of the callback.
std::string missing_text(const std::string& name, const Result<std::string_view>& outcome) {
  return is_missing(outcome) ? name : name + ": " + error_text(outcome);
}

std::string name_in(std::string_view record) {
  std::array wanted = {WantedMember{"name", {}}};
  // The record's values may be nested as deep as is allowed: one more level is too deep.
  if (!scan_unbounded_json_object(record, wanted) || wanted[0].json.empty()) return {};
  return decode_json_string(wanted[0].json);
}

}  // namespace

WorkDispatch::WorkDispatch(const storage::AgentKey& agent, const Clock& clock,
                           const ClassSettings& settings, WorkKinds& kinds, WorkRecovery& recovery,
                           WorkReports& reports, StopPointsAtCommit& stops)
    : agent_(agent),
      clock_(clock),
      settings_(settings),
      kinds_(kinds),
      recovery_(recovery),
      reports_(reports),
      stops_(stops) {}

// ---- what is due --------------------------------------------------------------------------------

std::optional<DueWork> WorkDispatch::next(bool may_recover) {
  constexpr unsigned kKinds = 5;
  for (unsigned tried = 0; tried < kKinds; ++tried) {
    turn_ = (turn_ + 1) % kKinds;
    std::optional<DueWork> work;
    if (turn_ == 0) work = next_run();
    if (turn_ == 1) work = next_item();
    if (turn_ == 2) work = next_to_tell();
    if (turn_ == 3) work = next_unknown();
    if (turn_ == 4 && may_recover) work = recovery_.next();
    if (work) return work;
  }
  sweep();
  return std::nullopt;
}

std::optional<DueWork> WorkDispatch::next_run() {
  auto* const schedules = kinds_.find<durable::Schedules>();
  if (schedules == nullptr) return std::nullopt;
  auto run = schedules->runs().begin_due();
  reports_.add_notes();
  if (!run) return std::nullopt;
  stop_point("schedule.claim.written");
  return DueWork{.kind = EventKind::kSchedule,
                 .id = run->id,
                 .run = run->run,
                 .row = run->row,
                 .name = std::move(run->callback),
                 .body = std::move(run->body),
                 .timeout = settings_.schedules.timeout,
                 .step = DurableEvent::kScheduleExecute,
                 .trace = kinds_.jobs().trace_of(durable::JobKind::kSchedule, run->id)};
}

std::optional<DueWork> WorkDispatch::next_item() {
  auto* const queue = kinds_.find<durable::Queue>();
  if (queue == nullptr) return std::nullopt;
  auto item = queue->begin_next();
  reports_.add_notes();
  if (!item) return std::nullopt;
  stop_point("queue.claim.written");
  std::string body = durable::Queue::body_of(*item);
  return DueWork{.kind = EventKind::kQueueItem,
                 .id = item->id,
                 .row = item->seq,
                 .name = std::move(item->name),
                 .body = std::move(body),
                 .timeout = settings_.queue.timeout,
                 .trace = kinds_.jobs().trace_of(durable::JobKind::kItem, item->id)};
}

std::optional<DueWork> WorkDispatch::next_to_tell() {
  durable::FiberEnds& ends = kinds_.fibers().ends();
  auto change = ends.next_untold();
  reports_.add(DurableEvent::kFiberNeverTold, ends.tellings().take_given_up());
  if (!change) return std::nullopt;
  stop_point("managed.tell.written");
  std::string name = name_in(change->record);
  return DueWork{.kind = EventKind::kFiberSettled,
                 .id = change->id,
                 .row = change->row,
                 .name = std::move(name),
                 .body = std::move(change->record),
                 .timeout = settings_.fibers.recovery_timeout,
                 .trace = reports_.trace_of_fiber(change->id)};
}

std::optional<DueWork> WorkDispatch::next_unknown() {
  auto* const operations = kinds_.find<durable::Operations>();
  if (operations == nullptr) return std::nullopt;
  operations->give_up_lost(kinds_.fibers().ends().take_settled());
  reports_.add_operations();
  auto unknown = operations->unknown().next_untold();
  if (!unknown) return std::nullopt;
  return DueWork{.kind = EventKind::kOperationUnknown,
                 .id = std::move(unknown->id),
                 .row = kOperationRows + unknown->row,
                 .name = std::move(unknown->kind),
                 .body = std::move(unknown->record),
                 .timeout = settings_.fibers.recovery_timeout};
}

// Removes expired records in small portions, when no other work is due.
void WorkDispatch::sweep() {
  if (clock_.steady_now() < next_sweep_) return;
  next_sweep_ = clock_.steady_now() + kSweepEvery;
  for (int portion = 0; portion < kSweepsAtOnce && kinds_.fibers().ends().sweep(); ++portion) {
  }
  for (const std::string& id : kinds_.fibers().ends().take_expired())
    reports_.add(DurableEvent::kFiberExpired, id, kWasDead);
  if (auto* const operations = kinds_.find<durable::Operations>()) operations->sweep();
}

// ---- what becomes of it -------------------------------------------------------------------------

void WorkDispatch::ended(const DueWork& work, const Result<std::string_view>& outcome) {
  switch (work.kind) {
    case EventKind::kSchedule: return run_ended(work, outcome);
    case EventKind::kQueueItem: return item_ended(work, outcome);
    case EventKind::kFiberSettled:
      return kinds_.fibers().ends().told(work.id, outcome ||
                                                      has_code(outcome, Errc::kUnsupported) ||
                                                      has_code(outcome, Errc::kFinal));
    case EventKind::kOperationUnknown:
      return kinds_.get<durable::Operations>().unknown().told(
          work.id, outcome || is_missing(outcome) || has_code(outcome, Errc::kFinal));
    case EventKind::kFibersRecovered: return recovery_.plan_ended(outcome);
    case EventKind::kFiberRecovered: return recovery_.offer_ended(work, outcome);
    default: return;
  }
}

void WorkDispatch::run_ended(const DueWork& work, const Result<std::string_view>& outcome) {
  using Next = durable::ScheduleEnd::Next;
  if (has_code(outcome, Errc::kUnreadable)) reports_.note_unreadable();
  const durable::ScheduleEnd end = kinds_.get<durable::Schedules>().runs().ended(
      work.run, how_ended(outcome), error_text(outcome));
  stop_point("schedule.end.written");
  stops_.add("schedule.end.committed");
  if (end.next == Next::kMissing) {
    reports_.add(DurableEvent::kScheduleMissingCallback, work.id, missing_text(work.name, outcome));
  } else if (end.next == Next::kRetry) {
    reports_.add(DurableEvent::kScheduleRetry, work.id, error_text(outcome));
  } else if (!outcome) {
    reports_.add(DurableEvent::kScheduleError, work.id, error_text(outcome));
  }
  reports_.add_notes();
}

void WorkDispatch::item_ended(const DueWork& work, const Result<std::string_view>& outcome) {
  using Next = durable::TryEnd;
  if (has_code(outcome, Errc::kUnreadable)) reports_.note_unreadable();
  const Next end =
      kinds_.get<durable::Queue>().ended(work.id, how_ended(outcome), error_text(outcome)).next;
  stop_point("queue.end.written");
  stops_.add("queue.end.committed");
  if (end == Next::kRetry) reports_.add(DurableEvent::kQueueRetry, work.id, error_text(outcome));
  if (end == Next::kWaitsForCode)
    reports_.add(DurableEvent::kQueueMissingCallback, work.id, missing_text(work.name, outcome));
  if (end == Next::kDead) {
    reports_.add(DurableEvent::kQueueError, work.id, error_text(outcome));
    reports_.add(DurableEvent::kQueueDead, work.id, error_text(outcome));
  }
}

// ---- calls --------------------------------------------------------------------------------------

std::optional<durable::NoticeDelivery> WorkDispatch::next_alarm() {
  auto* const alarms = kinds_.find<durable::Alarms>();
  if (alarms == nullptr) return std::nullopt;
  auto alarm = alarms->begin_next();
  reports_.add_notes();
  if (!alarm) return std::nullopt;
  return durable::NoticeDelivery{
      .id = std::move(alarm->id),
      .row = alarm->seq,
      .notice = {.agent_class = agent_.agent_class,
                 .name = agent_.name,
                 .method = std::move(alarm->name),
                 .arguments = alarm->input.empty() ? "[]" : std::move(alarm->input),
                 .trace = {}},
      .is_alarm = true,
      .timeout = settings_.object_call_timeout};
}

void WorkDispatch::alarm_ended(std::string_view id, const durable::NoticeOutcome& outcome) {
  using Next = durable::TryEnd;
  const bool failed = !outcome.delivered || !outcome.error.empty();
  const std::string_view error =
      failed && outcome.error.empty() ? "the call failed" : std::string_view(outcome.error);
  const durable::TryOutcome how = !failed              ? durable::TryOutcome::kDone
                                  : outcome.needs_code ? durable::TryOutcome::kNeedsCode
                                  : outcome.is_final   ? durable::TryOutcome::kHopeless
                                                       : durable::TryOutcome::kFailed;
  const Next next = kinds_.get<durable::Alarms>().ended(id, how, error).next;
  stop_point("alarm.end.written");
  stops_.add("alarm.end.committed");
  if (next == Next::kDone) reports_.add(DurableEvent::kAlarmDone, id);
  if (next == Next::kRetry || next == Next::kWaitsForCode)
    reports_.add(DurableEvent::kAlarmRetry, id, error);
  if (next == Next::kDead) reports_.add(DurableEvent::kAlarmDead, id, error);
}

std::optional<durable::NoticeDelivery> WorkDispatch::next_notification() {
  auto* const notices = kinds_.find<durable::Notices>();
  if (notices == nullptr) return std::nullopt;
  auto notice = notices->next_delivery();
  reports_.add_notes();
  if (!notice) return notice;
  stop_point("notice.claim.written");
  reports_.trace_notice(notice->id, notice->notice.trace);
  return notice;
}

std::optional<durable::NoticeDelivery> WorkDispatch::next_notice(bool may_notify) {
  if (!may_notify) return next_alarm();
  alarm_comes_first_ = !alarm_comes_first_;
  auto next = alarm_comes_first_ ? next_alarm() : next_notification();
  if (!next) next = alarm_comes_first_ ? next_notification() : next_alarm();
  return next;
}

void WorkDispatch::notice_ended(std::string_view id, const durable::NoticeOutcome& outcome) {
  const auto* const alarms = kinds_.find<durable::Alarms>();
  if (alarms != nullptr && alarms->runs(id)) return alarm_ended(id, outcome);
  auto* const notices = kinds_.find<durable::Notices>();
  if (notices == nullptr) return;  // it was an alarm that was removed meanwhile
  using Next = durable::TryEnd;
  const auto how = outcome.delivered ? durable::TryOutcome::kDone : durable::TryOutcome::kFailed;
  const Next next = notices->ended(id, how, outcome.error).next;
  stop_point("notice.end.written");
  stops_.add("notice.end.committed");
  if (next == Next::kRetry) reports_.add(DurableEvent::kNotifyRetry, id, outcome.error);
  if (next == Next::kDead) reports_.add(DurableEvent::kNotifyDead, id, outcome.error);
  if (next == Next::kDone)
    reports_.add(
        outcome.error.empty() ? DurableEvent::kNotifyDelivered : DurableEvent::kNotifyRefused, id,
        outcome.error);
  reports_.trace_notice(std::string(id), {});
}

}  // namespace hearth::extensions
