#include "extensions/durable_work.hpp"

#include "extensions/agent_context.hpp"
#include "json/json_scanner.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::extensions {
namespace {

constexpr std::size_t kMaxWarned = 100;
constexpr int kSweepsAtOnce = 10;
constexpr std::chrono::minutes kSweepEvery{1};
constexpr std::string_view kWasDead = "dead for as long as fibers.keep_failed, and removed";
constexpr std::chrono::milliseconds kLookAgain{1'000};  // at due work that cannot begin

// Returns by value, because error() gives a copy.
std::string error_text(const Result<std::string_view>& outcome) {
  return outcome ? std::string() : outcome.error().message;
}

bool has_code(const Result<std::string_view>& outcome, Errc code) {
  return outcome.has_error() && outcome.error().code == code;
}

// The class has no such callback.
bool is_missing(const Result<std::string_view>& outcome) {
  return has_code(outcome, Errc::kNotFound) || has_code(outcome, Errc::kUnsupported);
}

// This version of the class cannot do it: another one may.
bool needs_code(const Result<std::string_view>& outcome) {
  return is_missing(outcome) || has_code(outcome, Errc::kUnreadable);
}

durable::TryOutcome how_ended(const Result<std::string_view>& outcome) {
  using durable::TryOutcome;
  if (outcome) return TryOutcome::kDone;
  if (needs_code(outcome)) return TryOutcome::kNeedsCode;
  return has_code(outcome, Errc::kFinal) ? TryOutcome::kHopeless : TryOutcome::kFailed;
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

DurableWork::DurableWork(storage::AgentDatabase& database, const storage::AgentKey& agent,
                         const Clock& clock, Random& random, const ClassSettings& settings,
                         DurableEvents& events, StopPointsAtCommit& stops)
    : database_(database),
      agent_(agent),
      clock_(clock),
      random_(random),
      settings_(settings),
      events_(events),
      stops_(stops),
      jobs_(database),
      fibers_(database, clock, random, settings.fibers),
      parts_{&fibers_, &fibers_.ends().tellings()} {}

// ---- life ---------------------------------------------------------------------------------------

void DurableWork::load(const std::optional<durable::EndedProcess>& ended, bool needed_person,
                       bool has_code) {
  has_code_ = has_code;
  needed_person_ = needed_person;
  if (!database_.exists() || !jobs_.exists()) return;
  if (ended) {
    plans_singly_ = is_of_fibers(*ended);
    jobs_.count_crash(*ended);
  }
  fibers_.load(has_code);
  if (jobs_.has_any(durable::JobKind::kSchedule)) schedules();
  if (jobs_.has_any(durable::JobKind::kItem)) queue();
  if (jobs_.has_any(durable::JobKind::kNotice)) notices();
  if (jobs_.has_any(durable::JobKind::kAlarm)) alarms();
  durable::Operations ledger(database_, fibers_, clock_, random_, settings_.operations);
  if (ledger.exists()) {
    if (ended) ledger.count_crash(*ended);
    operations();
  }
  report_notes();
}

bool DurableWork::is_of_fibers(const durable::EndedProcess& ended) {
  if (!ended.row || *ended.row == kSeveralRows) return true;
  const auto job = jobs_.find(*ended.row);
  return job && job->kind == durable::JobKind::kFiber;
}

void DurableWork::close() {
  needed_person_ = wake().needs_person;
  is_closed_ = true;
  try {
    if (needed_person_ && !database_.broken()) needed_person_ = jobs_.any_needs_person();
  } catch (const StorageError&) {  // NOLINT(bugprone-empty-catch): the index may say so in vain
  }
  for (durable::WorkPart* part : parts_) part->close();
}

void DurableWork::interrupt_on_purpose() {
  for (durable::WorkPart* part : parts_) part->interrupt_on_purpose();
}

template <class Part, class... More>
Part& DurableWork::made(std::unique_ptr<Part>& part, More&&... more) {
  if (!part) {
    part = std::make_unique<Part>(database_, std::forward<More>(more)...);
    parts_.push_back(part.get());
    if constexpr (requires { part->load(has_code_); }) {
      part->load(has_code_);
    } else {
      part->load();
    }
  }
  return *part;
}

durable::Schedules& DurableWork::schedules() {
  return made(schedules_, clock_, random_, settings_.schedules, settings_.fibers.max_crashes);
}

durable::Queue& DurableWork::queue() {
  return made(queue_, clock_, random_, settings_.queue, settings_.fibers.max_crashes);
}

durable::Notices& DurableWork::notices() {
  return made(notices_, clock_, random_, settings_.fibers.max_crashes);
}

durable::Alarms& DurableWork::alarms() {
  return made(alarms_, clock_, random_, settings_.alarms, settings_.fibers.max_crashes);
}

durable::Operations& DurableWork::operations() {
  const bool is_new = !operations_;
  made(operations_, fibers_, clock_, random_, settings_.operations);
  if (is_new) report_operations();
  return *operations_;
}

void DurableWork::checkpointed(std::string_view fiber_id) {
  if (operations_) operations_->checkpointed(fiber_id);
}

void DurableWork::sent_elsewhere() {
  if (operations_) operations_->sent_elsewhere();
}

void DurableWork::cancelled(OperationId operation) {
  if (operations_) operations_->cancelled(operation);
}

void DurableWork::warn_of_duplicates(std::string_view callback) {
  if (!warned_) warned_ = std::make_unique<std::vector<std::string>>();
  if (warned_->size() >= kMaxWarned || std::ranges::find(*warned_, callback) != warned_->end())
    return;
  warned_->emplace_back(callback);
  report(DurableEvent::kScheduleDuplicateWarning, "",
         "\"" + std::string(callback) +
             "\" is scheduled anew at each start of the agent; set whether it is idempotent");
}

// ---- what is due --------------------------------------------------------------------------------

void DurableWork::keep_trace(durable::JobKind kind, std::string_view id, std::string_view trace) {
  if (!trace.empty()) jobs_.keep_trace(kind, id, trace);
}

Result<void> DurableWork::waits_for_person(std::string_view what, std::string_view key) {
  using durable::JobKind;
  const auto known = jobs_.find(JobKind::kQuestion, key);
  if (known ? known->name == what : what.empty()) return {};
  if (known) jobs_.erase(known->seq);
  if (what.empty()) {
    needed_person_ = jobs_.any_needs_person();
    jobs_.note_person(false);
    return {};
  }
  if (!known && jobs_.count(JobKind::kQuestion) >= kMostQuestions)
    return Error{Errc::kLimitExceeded, "the agent waits for 16 persons already"};
  durable::Job question{.kind = JobKind::kQuestion,
                        .state = durable::JobState::kDead,
                        .id = std::string(key),
                        .name = std::string(what),
                        .created_at_ms = now_ms()};
  jobs_.insert(question);
  question.dead = true;
  jobs_.update(question);
  return {};
}

std::string DurableWork::trace_of(const DueWork& work) {
  using durable::JobKind;
  switch (work.kind) {
    case EventKind::kSchedule: return jobs_.trace_of(JobKind::kSchedule, work.id);
    case EventKind::kQueueItem: return jobs_.trace_of(JobKind::kItem, work.id);
    case EventKind::kFiberSettled:
    case EventKind::kFiberRecovered: return trace_of_fiber(work.id);
    default: return {};  // a plan, or an operation
  }
}

std::string DurableWork::trace_of_fiber(std::string_view id) {
  return jobs_.trace_of(durable::JobKind::kFiber, id);
}

std::string DurableWork::trace_of(DurableEvent event, std::string_view id) {
  using durable::JobKind;
  const auto sent = notice_traces_.find(id);
  if (sent != notice_traces_.end()) return sent->second;
  const std::string_view subject = traits_of(event).subject;
  if (subject == "fiber") return trace_of_fiber(id);
  if (subject == "schedule") return jobs_.trace_of(JobKind::kSchedule, id);
  if (subject == "item") return jobs_.trace_of(JobKind::kItem, id);
  return {};
}

std::optional<DueWork> DurableWork::next(bool may_recover) {
  std::optional<DueWork> work = next_of_any(may_recover);
  if (work) work->trace = trace_of(*work);
  return work;
}

std::optional<DueWork> DurableWork::next_of_any(bool may_recover) {
  constexpr unsigned kKinds = 5;
  for (unsigned tried = 0; tried < kKinds; ++tried) {
    turn_ = (turn_ + 1) % kKinds;
    std::optional<DueWork> work;
    if (turn_ == 0) work = next_run();
    if (turn_ == 1) work = next_item();
    if (turn_ == 2) work = next_to_tell();
    if (turn_ == 3) work = next_unknown();
    if (turn_ == 4 && may_recover) work = next_recovery();
    if (work) return work;
  }
  sweep();
  return std::nullopt;
}

std::optional<DueWork> DurableWork::next_run() {
  if (!schedules_) return std::nullopt;
  auto run = schedules_->begin_due();
  report_notes();
  if (!run) return std::nullopt;
  stop_point("schedule.claim.written");
  return DueWork{.kind = EventKind::kSchedule,
                 .id = std::move(run->id),
                 .run = run->run,
                 .row = run->row,
                 .name = std::move(run->callback),
                 .body = std::move(run->body),
                 .timeout = settings_.schedules.timeout,
                 .step = DurableEvent::kScheduleExecute};
}

std::optional<DueWork> DurableWork::next_item() {
  if (!queue_) return std::nullopt;
  auto item = queue_->begin_next();
  report_notes();
  if (!item) return std::nullopt;
  stop_point("queue.claim.written");
  std::string body = durable::Queue::body_of(*item);
  return DueWork{.kind = EventKind::kQueueItem,
                 .id = std::move(item->id),
                 .row = item->seq,
                 .name = std::move(item->name),
                 .body = std::move(body),
                 .timeout = settings_.queue.timeout};
}

std::optional<DueWork> DurableWork::next_to_tell() {
  auto change = fibers_.ends().next_untold();
  report_given_up(&fibers_.ends().tellings(), DurableEvent::kFiberNeverTold);
  if (!change) return std::nullopt;
  stop_point("managed.tell.written");
  std::string name = name_in(change->record);
  return DueWork{.kind = EventKind::kFiberSettled,
                 .id = std::move(change->id),
                 .row = change->row,
                 .name = std::move(name),
                 .body = std::move(change->record),
                 .timeout = settings_.fibers.recovery_timeout};
}

std::optional<DueWork> DurableWork::next_unknown() {
  if (!operations_) return std::nullopt;
  const bool fibers_have_ended = fibers_.ends().take_settled();
  if (fibers_have_ended || operations_->has_lost()) {
    operations_->give_up_lost();
    report_operations();
  }
  auto unknown = operations_->next_untold();
  if (!unknown) return std::nullopt;
  return DueWork{.kind = EventKind::kOperationUnknown,
                 .id = std::move(unknown->id),
                 .row = kOperationRows + unknown->row,
                 .name = std::move(unknown->kind),
                 .body = std::move(unknown->record),
                 .timeout = settings_.fibers.recovery_timeout};
}

// Removes expired records in small portions, when no other work is due.
void DurableWork::sweep() {
  if (clock_.steady_now() < next_sweep_) return;
  next_sweep_ = clock_.steady_now() + kSweepEvery;
  for (int portion = 0; portion < kSweepsAtOnce && fibers_.ends().sweep(); ++portion) {
  }
  for (const std::string& id : fibers_.ends().take_expired())
    report(DurableEvent::kFiberExpired, id, kWasDead);
  if (operations_) operations_->sweep();
}

bool DurableWork::due() const {
  if (operations_ && fibers_.ends().has_settled()) return true;
  return std::ranges::any_of(
      parts_, [this](const durable::WorkPart* part) { return part != &fibers_ && part->due(); });
}

bool DurableWork::recovery_due() const {
  if (planning_ || offers_.size() >= parallel_) return false;
  return held_ || fibers_.due();
}

bool DurableWork::empty() const {
  return parts_.size() == 2 && !fibers_.ends().has_settled() && wake().none();
}

durable::Wake DurableWork::wake() const {
  durable::Wake wake;
  for (const durable::WorkPart* part : parts_) wake = either(wake, part->wake());
  wake.needs_person =
      needed_person_ || ((wake.needs_person || jobs_.needs_person()) && !is_closed_);
  return wake;
}

std::optional<std::int64_t> DurableWork::next_look_ms() const {
  const std::int64_t now = now_ms();
  std::optional<std::int64_t> at;
  for (const durable::WorkPart* part : parts_) {
    std::optional<std::int64_t> its = part->wake().at_ms;
    if (!its && part != &fibers_ && part->due()) its = now;
    if (its && *its <= now) {
      // The past moment may be of a fiber whose hook still runs. It hides the later moment of
      // another fiber that could begin beside it.
      const bool waits_for_permit =
          part == &fibers_ && (offers_.empty() || offers_.size() >= parallel_);
      its = waits_for_permit ? std::nullopt : std::optional(now + kLookAgain.count());
    }
    at = durable::earliest(at, its);
  }
  return at;
}

// ---- what becomes of it -------------------------------------------------------------------------

void DurableWork::ended(const DueWork& work, const Result<std::string_view>& outcome) {
  switch (work.kind) {
    case EventKind::kSchedule: return run_ended(work, outcome);
    case EventKind::kQueueItem: return item_ended(work, outcome);
    case EventKind::kFiberSettled:
      return fibers_.ends().told(work.id, outcome || has_code(outcome, Errc::kUnsupported) ||
                                              has_code(outcome, Errc::kFinal));
    case EventKind::kOperationUnknown:
      return operations_->told(work.id,
                               outcome || is_missing(outcome) || has_code(outcome, Errc::kFinal));
    case EventKind::kFibersRecovered: return plan_ended(outcome);
    case EventKind::kFiberRecovered: return offer_ended(work, outcome);
    default: return;
  }
}

void DurableWork::run_ended(const DueWork& work, const Result<std::string_view>& outcome) {
  using Next = durable::ScheduleEnd::Next;
  note_unreadable(outcome);
  const durable::ScheduleEnd end =
      schedules_->ended(work.run, how_ended(outcome), error_text(outcome));
  stop_point("schedule.end.written");
  stops_.add("schedule.end.committed");
  if (end.next == Next::kMissing) {
    report(DurableEvent::kScheduleMissingCallback, work.id, missing_text(work.name, outcome));
  } else if (end.next == Next::kRetry) {
    report(DurableEvent::kScheduleRetry, work.id, error_text(outcome));
  } else if (!outcome) {
    report(DurableEvent::kScheduleError, work.id, error_text(outcome));
  }
  report_notes();
}

void DurableWork::item_ended(const DueWork& work, const Result<std::string_view>& outcome) {
  using Next = durable::TryEnd;
  note_unreadable(outcome);
  const Next end = queue_->ended(work.id, how_ended(outcome), error_text(outcome)).next;
  stop_point("queue.end.written");
  stops_.add("queue.end.committed");
  if (end == Next::kRetry) report(DurableEvent::kQueueRetry, work.id, error_text(outcome));
  if (end == Next::kWaitsForCode)
    report(DurableEvent::kQueueMissingCallback, work.id, missing_text(work.name, outcome));
  if (end == Next::kDead) {
    report(DurableEvent::kQueueError, work.id, error_text(outcome));
    report(DurableEvent::kQueueDead, work.id, error_text(outcome));
  }
}

void DurableWork::note_unreadable(const Result<std::string_view>& outcome) {
  is_unreadable_ = is_unreadable_ || has_code(outcome, Errc::kUnreadable);
}

std::optional<durable::NoticeDelivery> DurableWork::next_alarm() {
  if (!alarms_) return std::nullopt;
  auto alarm = alarms_->begin_next();
  report_notes();
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

void DurableWork::alarm_ended(std::string_view id, const durable::NoticeOutcome& outcome) {
  using Next = durable::TryEnd;
  const bool failed = !outcome.delivered || !outcome.error.empty();
  const std::string_view error =
      failed && outcome.error.empty() ? "the call failed" : std::string_view(outcome.error);
  const durable::TryOutcome how = !failed              ? durable::TryOutcome::kDone
                                  : outcome.needs_code ? durable::TryOutcome::kNeedsCode
                                  : outcome.is_final   ? durable::TryOutcome::kHopeless
                                                       : durable::TryOutcome::kFailed;
  const Next next = alarms_->ended(id, how, error).next;
  stop_point("alarm.end.written");
  stops_.add("alarm.end.committed");
  if (next == Next::kDone) report(DurableEvent::kAlarmDone, id);
  if (next == Next::kRetry || next == Next::kWaitsForCode)
    report(DurableEvent::kAlarmRetry, id, error);
  if (next == Next::kDead) report(DurableEvent::kAlarmDead, id, error);
}

std::optional<durable::NoticeDelivery> DurableWork::next_notification() {
  if (!notices_) return std::nullopt;
  auto notice = notices_->next_delivery();
  report_notes();
  if (!notice) return notice;
  stop_point("notice.claim.written");
  notice_traces_[notice->id] = notice->notice.trace;
  return notice;
}

std::optional<durable::NoticeDelivery> DurableWork::next_notice(bool may_notify) {
  if (!may_notify) return next_alarm();
  alarm_comes_first_ = !alarm_comes_first_;
  auto next = alarm_comes_first_ ? next_alarm() : next_notification();
  if (!next) next = alarm_comes_first_ ? next_notification() : next_alarm();
  return next;
}

void DurableWork::notice_ended(std::string_view id, const durable::NoticeOutcome& outcome) {
  if (alarms_ && alarms_->runs(id)) return alarm_ended(id, outcome);
  if (!notices_) return;  // it was an alarm that was removed meanwhile
  using Next = durable::TryEnd;
  const auto how = outcome.delivered ? durable::TryOutcome::kDone : durable::TryOutcome::kFailed;
  const Next next = notices_->ended(id, how, outcome.error).next;
  stop_point("notice.end.written");
  stops_.add("notice.end.committed");
  if (next == Next::kRetry) report(DurableEvent::kNotifyRetry, id, outcome.error);
  if (next == Next::kDead) report(DurableEvent::kNotifyDead, id, outcome.error);
  if (next == Next::kDone)
    report(outcome.error.empty() ? DurableEvent::kNotifyDelivered : DurableEvent::kNotifyRefused,
           id, outcome.error);
  if (const auto sent = notice_traces_.find(id); sent != notice_traces_.end())
    notice_traces_.erase(sent);
}

// ---- reports ------------------------------------------------------------------------------------

void DurableWork::report_notes() {
  using What = durable::Schedules::Note::What;
  if (schedules_) {
    for (const auto& note : schedules_->take_notes()) {
      const std::string detail =
          "\"" + note.callback + "\", " + std::to_string(note.count) + " times";
      switch (note.what) {
        case What::kMissed: report(DurableEvent::kScheduleMissed, note.id, detail); break;
        case What::kOverlapped:
          report(DurableEvent::kScheduleMissed, note.id, detail + ": the last run was not over");
          break;
        case What::kDead: report(DurableEvent::kScheduleDead, note.id, note.reason); break;
        case What::kPutOff:
          report(DurableEvent::kScheduleError, note.id,
                 note.reason + ": it is kept and looked at again");
          break;
        case What::kManyDue:
          report(DurableEvent::kScheduleDuplicateWarning, note.id, detail + " due at once");
          break;
      }
    }
  }
  report_given_up(notices_, DurableEvent::kNotifyDead);
  report_given_up(alarms_, DurableEvent::kAlarmDead);
  report_given_up(queue_, DurableEvent::kQueueDead);
}

template <class Part>
void DurableWork::report_given_up(const Part& part, DurableEvent event) {
  if (!part) return;
  for (const durable::GivenUp& job : part->take_given_up()) report(event, job.id, job.why);
}

void DurableWork::report_operations() {
  if (!operations_) return;
  for (const durable::OperationChange& each : operations_->take_changes()) {
    events_.operation_changed(agent_.agent_class, each.kind, each.state);
    if (each.state != durable::OperationState::kUnknown) continue;
    report(DurableEvent::kOperationUnknown, each.id,
           each.kind + ": " + durable::UnknownOperation::warning(each.id));
  }
}

void DurableWork::report(DurableEvent event, std::string_view id, std::string_view detail) {
  std::string trace;
  LineOrigin whose;
  if (calls_ != nullptr && events_.is_logged(event)) {
    whose = calls_->current();
    trace = calls_->trace();
    try {
      if (trace.empty()) trace = trace_of(event, id);
    } catch (const StorageError&) {
      trace.clear();  // the line matters more; the next read or write will throw too
    }
  }
  whose.agent_class = agent_.agent_class;
  whose.agent = agent_.name;
  whose.trace = trace;
  events_.report(event, whose, id, detail);
}

}  // namespace hearth::extensions
