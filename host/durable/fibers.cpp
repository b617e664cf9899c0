#include "durable/fibers.hpp"

#include "base/assert.hpp"
#include "durable/fiber_counts.hpp"
#include "durable/record_page.hpp"
#include "json/json_text.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

namespace hearth::durable {

namespace {

constexpr std::size_t kMostRecordsListed = 100;
constexpr std::size_t kRecordsListedByDefault = 50;
constexpr std::size_t kMostRemoved = 500;
constexpr std::size_t kRemovedByDefault = 100;
constexpr std::size_t kRecordsSweptAtOnce = 100;  // a millisecond's work
// The same time as for the crashes of a class (plugins/versions/version_facts.hpp).
constexpr std::int64_t kProvenAfterMs = std::int64_t{5} * 60'000;

Error bad_request(std::string why) {
  return Error{Errc::kInvalidArgument, std::move(why)};
}

Error has_ended() {
  return Error{Errc::kNotFound, "the fiber has ended"};
}

std::optional<std::string> none_if_empty(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return std::string(text);
}

}  // namespace

Fibers::Fibers(storage::AgentDatabase& database, const Clock& clock, Random& random,
               const FiberSettings& settings)
    : jobs_(database),
      table_(jobs_),
      turns_(jobs_),
      clock_(clock),
      random_(random),
      settings_(settings),
      tellings_(database, clock, random,
                {.kind = JobKind::kTelling,
                 .noun = "telling",
                 .lane = Lane::kKey,
                 .at_once = kMostTelling,
                 .most_dead = 0},
                settings.max_crashes),
      count_(jobs_, JobKind::kFiber),
      line_(clock, *this, JobLine<Job>::kUnbounded, ClockRule::kSetBack, settings.max_crashes) {}

void Fibers::load(bool has_code) {
  if (!jobs_.exists()) return;
  jobs_.release(JobKind::kFiber, now_ms());
  jobs_.restart_waits(JobKind::kFiber, now_ms(), has_code);
  jobs_.each("WHERE kind = 2 AND state = 0 AND started_at IS NOT NULL ORDER BY due_at, seq", {},
             [this](const Job& job) {
               left_over_.push_back({job.id, job.name, !job.has_failed && !is_pending(job)});
               return true;
             });
  has_settled_ = jobs_.has_any(JobKind::kFiber);  // an earlier instance may have settled them
  tellings_.load();
}

void Fibers::close() {
  line_.close();
}

void Fibers::write(const Job& job) {
  jobs_.update(job);
  line_.changed();
}

// ---- start --------------------------------------------------------------------------------------

Result<Fibers::Started> Fibers::start(const FiberRequest& request) {
  if (auto checked = check_fiber(request, settings_.max_json_bytes); checked.has_error())
    return checked.error();
  if (!request.parent.empty() && !table_.is_open(request.parent))
    return Error{Errc::kNotFound, "the fiber that this one would belong to is over"};
  line_.follow_clock();
  auto named = table_.find_named(request.id, request.key);
  if (named.has_error()) return named.error();
  std::optional<Job>& job = *named;
  if (!job) return begin(request, nullptr);

  const bool is_settled = job->ended_at_ms.has_value();
  const bool has_failed = is_settled && job->status != "completed";
  if ((is_settled && request.policy == SettledKey::kReplace) ||
      (has_failed && request.policy == SettledKey::kReplaceFailed))
    return begin(request, &*job);
  const std::string input = jobs_.document(job->seq, JobPart::kInput).value_or("null");
  if (job->name != request.name ||
      !same_json(input, request.input.empty() ? "null" : request.input))
    return Error{Errc::kConflict, "a fiber of this id or key has another name or input"};
  // Without this check, a caller that uses only the key would start the fiber a second time. (A new
  // id with a known key is fine: the caller made it for this attempt.)
  if (!request.key.empty() && request.key != job->key)
    return Error{Errc::kConflict, "the fiber of this id has another key, or none"};
  if (is_settled && request.policy == SettledKey::kReject)
    return Error{Errc::kConflict, "a fiber of this id or key is settled already"};
  if (request.take_up && !is_settled) return take_up(*std::move(job));
  FiberChange found = change_of(*std::move(job));
  return Started{.id = std::move(found.id), .record = std::move(found.record)};
}

Result<void> Fibers::make_room() {
  while (!count_.below(settings_.max_records)) {
    if (!sweep()) return Error{Errc::kLimitExceeded, "this agent has too many fibers on record"};
  }
  return {};
}

Result<void> Fibers::may_run() const {
  if (running_.size() < settings_.max_running) return {};
  return Error{Errc::kLimitExceeded, "too many fibers run in this agent"};
}

Result<Fibers::Started> Fibers::begin(const FiberRequest& request, const Job* replaced) {
  if (!replaced) {
    if (auto room = make_room(); room.has_error()) return room.error();
  }
  if (auto may = may_run(); may.has_error()) return may.error();
  // Only after the checks: a rejected request does not change the old record.
  if (replaced) erase(*replaced);
  Job job;
  job.kind = JobKind::kFiber;
  job.id = request.id.empty() ? make_uuid(random_) : std::string(request.id);
  job.name = request.name;
  job.key = none_if_empty(request.key);
  job.created_at_ms = now_ms();
  job.status = to_string(FiberStatus::kPending);
  job.type = type_of(request);
  job.parent = none_if_empty(request.parent);
  job.retry = retry_of(request).value();
  job.lane = none_if_empty(request.lane);
  if (request.is_turn) turns_.begins();
  // The caller gets a receipt: the fiber is accepted, and about to begin.
  FiberRecord record{.job = job,
                     .status = FiberStatus::kPending,
                     .input = none_if_empty(request.input),
                     .metadata = none_if_empty(request.metadata)};
  Started started{.id = job.id, .record = record_json(record)};
  started.is_parked = table_.is_taken(job.lane);
  if (started.is_parked) {
    jobs_.insert(job);
    started.record.insert(started.record.size() - 1, R"(,"accepted":true)");
  } else {
    job.started_at_ms = job.created_at_ms;
    job.status = to_string(FiberStatus::kRunning);
    job.claim(now_ms());
    jobs_.insert(job);
  }
  if (record.input) jobs_.put(job.seq, JobPart::kInput, record.input);
  if (record.metadata) jobs_.put(job.seq, JobPart::kMetadata, record.metadata);
  if (request.resets_by_progress) jobs_.put(job.seq, JobPart::kResets, "");
  count_.added();
  if (!started.is_parked) started.fiber = add_running(std::move(job));
  return started;
}

// The caller has the code for the fiber, so no hook is offered it. Nothing begins if it runs
// already, must wait, or is beyond a bound of P7 or P8.
Result<Fibers::Started> Fibers::take_up(Job job) {
  const bool was_offered = line_.is_claimed(job.id);
  const auto due_at = job.due_at_ms;
  const bool is_due = job.state == JobState::kWaiting && due_at &&
                      (*due_at <= now_ms() || is_next_version(*due_at)) &&
                      line_.why_given_up(job).empty();
  Started started{.id = job.id};
  if (was_offered || is_due) {
    if (auto may = may_run(); may.has_error()) return may.error();
    const bool was_pending = is_pending(job);
    if (auto offered = line_.take(job.id)) {
      job = *std::move(offered);
    } else {
      claim(job);
    }
    started.fiber = go_on(job);
    started.was_there = true;
    started.was_offered = was_offered;
    if (!was_pending) turns_.recovers(job);
    job = running_.at(started.fiber);
  }
  started.record = change_of(std::move(job)).record;
  return started;
}

Result<FiberHandle> Fibers::resume(std::string_view id) {
  if (auto may = may_run(); is_recovering(id) && may.has_error()) return may.error();
  auto job = line_.take(id);
  if (!job) return Error{Errc::kNotFound, "no fiber of this id is being recovered"};
  return go_on(*std::move(job));
}

// An interrupted fiber runs again, or a parked one for the first time.
FiberHandle Fibers::go_on(Job job) {
  if (!job.started_at_ms) {
    job.started_at_ms = now_ms();
    job.attempts = job.interruptions = job.claims = 0;
    job.next_at_ms = 0;
  }
  job.status = to_string(FiberStatus::kRunning);
  job.claim(now_ms());
  write(job);
  parents_.insert(job.id);  // an earlier instance may have left values of its children
  return add_running(std::move(job));
}

FiberHandle Fibers::add_running(Job job) {
  const FiberHandle handle = ++last_handle_;
  handles_.emplace(job.id, handle);
  job.runs_since_ms = now_ms();
  running_.emplace(handle, std::move(job));
  return handle;
}

Job Fibers::end_running(std::map<FiberHandle, Job>::iterator running) {
  Job job = std::move(running->second);
  handles_.erase(job.id);
  running_.erase(running);
  return job;
}

const Job* Fibers::find_running(FiberHandle fiber) const {
  const auto found = running_.find(fiber);
  return found == running_.end() ? nullptr : &found->second;
}

std::optional<std::int64_t> Fibers::runs_since_ms() const {
  std::optional<std::int64_t> oldest;
  for (const auto& [handle, job] : running_)
    oldest = earliest(oldest, std::optional(job.runs_since_ms));
  return oldest;
}

FiberRow Fibers::row_of(FiberHandle fiber) const {
  const auto running = running_.find(fiber);
  return running == running_.end() ? kNoFiber : running->second.seq;
}

FiberRow Fibers::row_of(std::string_view id) const {
  if (const auto handle = handles_.find(id); handle != handles_.end())
    return row_of(handle->second);
  const auto recovering = line_.claimed().find(id);
  return recovering == line_.claimed().end() ? kNoFiber : recovering->second.seq;
}

// ---- work ---------------------------------------------------------------------------------------

Result<std::string> Fibers::stash(FiberHandle fiber, std::string_view json) {
  const auto found = running_.find(fiber);
  if (found == running_.end()) return has_ended();
  if (json.size() > settings_.max_snapshot_bytes) {
    return Error{Errc::kLimitExceeded, "the checkpoint is larger than " +
                                           std::to_string(settings_.max_snapshot_bytes) + " bytes"};
  }
  Job& job = found->second;
  if (parents_.erase(job.id) > 0) remove_children(job.id);
  // The checkpoint that the fiber was recovered from is no progress. If it counted as such, a fiber
  // that dies right after it would be tried for ever.
  if (job.attempts > 0 && jobs_.document(job.seq, JobPart::kSnapshot) == json) return job.id;
  jobs_.put(job.seq, JobPart::kSnapshot, json);
  const bool has_reset = reset_retries(job);
  const bool is_proven = job.fatal_attempts > 0 && now_ms() - job.runs_since_ms >= kProvenAfterMs;
  if (job.attempts == 0 && !is_proven && job.next_at_ms == 0 && !job.has_failed && !has_reset)
    return job.id;
  if (std::exchange(job.has_failed, false)) jobs_.put(job.seq, JobPart::kLastError, std::nullopt);
  job.attempts = job.interruptions = 0;
  if (is_proven) job.fatal_attempts = 0;
  job.next_at_ms = 0;
  write(job);
  return job.id;
}

// After progress. False: there was nothing to reset.
bool Fibers::reset_retries(Job& job) {
  const bool has_recovered = job.is_turn() && job.claims > 0;
  if (job.failures == 0 && !has_recovered) return false;
  if (!jobs_.document(job.seq, JobPart::kResets)) return false;
  job.failures = 0;
  if (has_recovered) job.claims = 0;
  return true;
}

Result<bool> Fibers::once(FiberHandle fiber, std::string_view mark) {
  const auto found = running_.find(fiber);
  if (found == running_.end()) return has_ended();
  return table_.mark(found->second.seq, mark);
}

Result<FiberChange> Fibers::settle(FiberHandle fiber, FiberStatus status, std::string_view body,
                                   bool is_final) {
  if (status != FiberStatus::kCompleted && status != FiberStatus::kError &&
      status != FiberStatus::kAborted)
    return bad_request("work ends as completed, with an error, or aborted");
  const auto found = running_.find(fiber);
  if (found == running_.end()) return has_ended();
  Job job = found->second;
  FiberOutcome outcome{.status = status};
  if (status == FiberStatus::kCompleted) {
    if (auto checked = check_fiber_json("result", body, settings_.max_json_bytes);
        checked.has_error())
      return checked.error();
    outcome.result = none_if_empty(body);
  } else {
    outcome.error = cut_job_error(body);
  }
  if (status == FiberStatus::kError && ++job.failures <= job.retry.max_attempts && !is_final)
    return postpone(std::move(job), body);
  return settle_as(std::move(job), outcome);
}

Result<FiberChange> Fibers::settle(FiberHandle fiber, std::string_view outcome_json) {
  const auto found = running_.find(fiber);
  if (found == running_.end()) return has_ended();
  auto outcome = parse_outcome(outcome_json, settings_.max_json_bytes);
  if (outcome.has_error()) return outcome.error();
  if (outcome->status == FiberStatus::kInterrupted)
    return bad_request("work ends as completed, with an error, or aborted");
  Job job = found->second;
  if (outcome->status == FiberStatus::kError) ++job.failures;
  return settle_as(std::move(job), *outcome);
}

// The work has failed, and is retried later. This is no crash: the attempts are reset, and the next
// start does not count as a recovery.
FiberChange Fibers::postpone(Job job, std::string_view error) {
  line_.follow_clock();
  forget(job.id);
  job.attempts = job.interruptions = job.fatal_attempts = 0;
  if (!job.is_turn()) give_back_recovery(job);
  job.status = to_string(FiberStatus::kPending);
  job.next_at_ms =
      now_ms() + back_off(job.failures, job.retry.base, job.retry.cap, random_).count();
  job.wait(now_ms());
  jobs_.put(job.seq, JobPart::kError, cut_job_error(error));
  write(job);
  return change_of(std::move(job));
}

Result<FiberChange> Fibers::wait_for_code(FiberHandle fiber) {
  const auto found = running_.find(fiber);
  if (found == running_.end()) return has_ended();
  Job job = end_running(found);
  put_aside(job);
  return change_of(std::move(job));
}

bool Fibers::unknown(std::string_view id) {
  auto job = line_.take(id);
  if (!job) return false;
  put_aside(*job);
  return true;
}

void Fibers::put_aside(Job& job) {
  give_back_attempt(job);
  job.next_at_ms = 0;
  job.state = JobState::kWaiting;
  job.due_at_ms = kNextVersion;
  write(job);
}

void Fibers::give_back(Job& job) {
  if (job.attempts == 0 && job.claims == 0) return;
  give_back_attempt(job);
  job.next_at_ms = 0;
  write(job);
}

// Recovering fibers stay claimed, so that wake() says that work was interrupted.
void Fibers::interrupt_on_purpose() {
  for (auto& [handle, job] : running_) give_back(job);
  for (Job job : std::views::values(line_.claimed())) {
    give_back(job);
    line_.hold(std::move(job));
  }
}

// ---- ends ---------------------------------------------------------------------------------------

FiberChange Fibers::settle_as(Job job, const FiberOutcome& outcome, bool dead) {
  FiberChange change = settle_alone(std::move(job), outcome, dead);
  if (outcome.status == FiberStatus::kAborted) abort_inner(change, outcome);
  return change;
}

FiberChange Fibers::settle_alone(Job job, const FiberOutcome& outcome, bool dead) {
  const bool had_ended = job.ended_at_ms.has_value();
  job.status = to_string(outcome.status);
  job.dead = dead;
  job.ended_at_ms = now_ms();
  job.next_at_ms = 0;
  job.interruptions = job.fatal_attempts = 0;
  job.keep.reset();
  job.state = JobState::kSettled;
  job.due_at_ms.reset();
  FiberRecord record = table_.with_documents(job);
  record.status = outcome.status;
  record.result = outcome.result;
  record.error = outcome.error;
  record.reason = outcome.reason;
  if (outcome.snapshot) record.snapshot = outcome.snapshot;
  if (outcome.metadata) record.metadata = outcome.metadata;
  FiberChange change{job.id, job.seq, outcome.status, record_json(record)};
  // Only now, for the values above may be too large for the memory that is left.
  if (had_ended) {
    tell_no_more(job.id);
  } else {
    forget(job.id);
  }
  has_settled_ = true;
  const bool goes = job.is_brief() && !dead;
  const bool is_needed = job.parent && table_.is_open(*job.parent);
  parents_.erase(job.id);
  if (goes && !is_needed) {
    erase(job);
  } else {
    // The parent may have written a checkpoint while this one ran.
    if (is_needed) parents_.insert(*job.parent);
    // A fiber that may be revived needs the values of its children.
    if (!waits_for_decision(job)) remove_children(job.id);
    table_.put_outcome(job.seq, outcome);
    write(job);
    if (!goes) tell(job.id);
  }
  table_.pass_lane(job.lane, now_ms());
  line_.changed();
  return change;
}

void Fibers::abort_inner(FiberChange& outer, const FiberOutcome& outcome) {
  table_.add_open(outer.id, outer.inner);
  if (outer.inner.empty()) return;
  std::string ids;
  for (std::size_t next = 0; next < outer.inner.size(); ++next) {
    const std::string id = outer.inner[next];
    if (auto job = table_.find(id)) {
      const FiberOutcome inner{.status = FiberStatus::kAborted, .error = outcome.error};
      (void)settle_alone(*std::move(job), inner, false);
    }
    table_.add_open(id, outer.inner);
    ids += next == 0 ? "" : ",";
    append_json_string(ids, id);
  }
  outer.record.pop_back();
  outer.record += R"(,"inner":[)" + ids + "]}";
}

void Fibers::forget(const std::string& id) {
  std::erase_if(left_over_, [&id](const LeftOver& each) { return each.id == id; });
  line_.changed();
  if (const auto handle = handles_.find(id); handle != handles_.end()) {
    end_running(running_.find(handle->second));
  } else {
    line_.take(id);
  }
}

void Fibers::erase(const Job& job) {
  jobs_.erase(job.seq);
  if (job.ended_at_ms && (job.dead || !job.is_brief())) tell_no_more(job.id);
  remove_children(job.id);
  line_.changed();
  count_.removed(1);
}

void Fibers::remove_children(std::string_view parent) {
  if (table_.remove_children(parent)) count_.removed_some();
}

Result<FiberChange> Fibers::cancel(std::string_view id, std::string_view key,
                                   std::string_view reason) {
  auto job = table_.find_one(id, key);
  if (job.has_error()) return job.error();
  if (job->ended_at_ms) return Error{Errc::kNotFound, "this fiber is settled already"};
  return settle_as(*std::move(job),
                   {.status = FiberStatus::kAborted, .error = cut_job_error(reason)});
}

Result<FiberChange> Fibers::resolve(std::string_view id, std::string_view outcome_json,
                                    Decides who) {
  auto job = table_.find_one(id, "");
  if (job.has_error()) return job.error();
  if (!may_decide(*job, who))
    return Error{Errc::kNotFound, "this fiber is neither interrupted nor dead"};
  if (outcome_json.empty()) return bad_request("an outcome is needed to resolve a fiber");
  auto outcome = parse_outcome(outcome_json, settings_.max_json_bytes);
  if (outcome.has_error()) return outcome.error();
  return settle_as(*std::move(job), *outcome);
}

Result<void> Fibers::retry(std::string_view id, Decides who) {
  auto job = table_.find_one(id, "");
  if (job.has_error()) return job.error();
  if (!may_decide(*job, who))
    return Error{Errc::kNotFound, "this fiber is neither interrupted nor dead"};
  tell_no_more(job->id);
  for (const JobPart part :
       {JobPart::kResult, JobPart::kError, JobPart::kLastError, JobPart::kPassed, JobPart::kReason})
    jobs_.put(job->seq, part, std::nullopt);
  // An open one that is due has its lane.
  const bool is_parked = job->ended_at_ms && table_.is_taken(job->lane);
  if (!job->ended_at_ms) job->next_at_ms = 0;
  if (job->ended_at_ms || !is_pending(*job)) job->status = to_string(FiberStatus::kRecovering);
  job->dead = job->has_failed = false;
  job->attempts = job->claims = job->failures = job->interruptions = job->fatal_attempts = 0;
  job->ended_at_ms.reset();
  job->keep.reset();
  job->wait(now_ms());
  if (is_parked) job->due_at_ms.reset();
  write(*job);
  return {};
}

// ---- records ------------------------------------------------------------------------------------

FiberRecord Fibers::record_of(Job job) {
  FiberRecord record = table_.with_documents(std::move(job));
  const Job& row = record.job;
  if (row.ended_at_ms) {
    // An unknown word was not written by this server. The fiber then counts as interrupted.
    record.status = fiber_status(row.status.value_or("")).value_or(FiberStatus::kInterrupted);
  } else if (handles_.contains(row.id)) {
    record.status = FiberStatus::kRunning;
  } else {
    const bool recovers = is_recovering(row.id);
    record.status = is_pending(row) && !recovers ? FiberStatus::kPending : FiberStatus::kRecovering;
    if (recovers) return record;
    record.next_at_ms = row.next_at_ms;
    record.waits_for_code = row.waits_for_code();
  }
  return record;
}

FiberChange Fibers::change_of(Job job) {
  const FiberRecord record = record_of(std::move(job));
  return {record.job.id, record.job.seq, record.status, record_json(record)};
}

Result<std::string> Fibers::inspect(std::string_view id, std::string_view key) {
  auto job = table_.find_one(id, key);
  if (job.has_error()) return job.error();
  return change_of(*std::move(job)).record;
}

Result<std::string> Fibers::list(const FiberFilter& filter) {
  if (filter.limit > kMostRecordsListed) return bad_request("a page has at most 100 records");
  RecordPage page(filter.limit == 0 ? kRecordsListedByDefault : filter.limit);
  const auto listed = table_.each(filter, [&](Job& job) {
    const FiberRecord record = record_of(std::move(job));
    const auto bit = static_cast<std::uint32_t>(record.status);
    if (filter.statuses != 0 && (bit & filter.statuses) == 0) return true;
    return page.add(record_json(record));
  });
  if (listed.has_error()) return listed.error();
  return page.take();
}

Result<std::uint64_t> Fibers::remove(const FiberFilter& filter) {
  if (filter.limit > kMostRemoved) return bad_request("at most 500 records are removed at once");
  FiberFilter bounded = filter;
  if (bounded.limit == 0) bounded.limit = kRemovedByDefault;
  const std::vector<Job> gone = table_.to_remove(bounded);
  for (const Job& job : gone) erase(job);
  return gone.size();
}

bool Fibers::sweep() {
  std::size_t erased = 0;
  for (const auto& [keep, how_long] : {std::pair("completed", settings_.keep_completed),
                                       std::pair("failed", settings_.keep_failed)}) {
    for (const Job& job : jobs_.expired(keep, now_ms() - how_long.count(), kRecordsSweptAtOnce)) {
      erase(job);
      if (job.dead) expired_.push_back(job.id);
      ++erased;
    }
  }
  return erased > 0;
}

}  // namespace hearth::durable
