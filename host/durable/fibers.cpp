#include "durable/fibers.hpp"

#include "durable/retry_policy.hpp"

#include <utility>

namespace hearth::durable {

namespace {

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
    : clock_(clock),
      random_(random),
      settings_(settings),
      jobs_(database),
      ends_(database, jobs_, table_, clock, random, settings_),
      recovery_(jobs_, table_, turns_, ends_, runs_, clock, random, settings_),
      records_(jobs_, table_, ends_, recovery_, clock, settings_) {}

void Fibers::load(bool has_code) {
  if (!jobs_.exists()) return;
  jobs_.release(JobKind::kFiber, now_ms());
  jobs_.restart_waits(JobKind::kFiber, now_ms(), has_code);
  recovery_.load();
  ends_.load();
}

Wake Fibers::wake() const {
  const JobLine<Job>& line = recovery_.line();
  Wake wake;
  wake.working = runs_.size() > 0 || !line.claimed().empty();
  wake.at_ms = line.moment();
  for (const auto& [id, job] : line.claimed())
    wake.at_ms = earliest(wake.at_ms, std::optional(job.next_at_ms));
  wake.needs_person = jobs_.needs_person();
  return wake;
}

// ---- start --------------------------------------------------------------------------------------

Result<Fibers::Started> Fibers::start(const FiberRequest& request) {
  if (auto checked = check_fiber(request, settings_.max_json_bytes); checked.has_error())
    return checked.error();
  if (!request.parent.empty() && !table_.is_open(request.parent))
    return Error{Errc::kNotFound, "the fiber that this one would belong to is over"};
  recovery_.line().follow_clock();
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
  FiberChange found = recovery_.change_of(*std::move(job));
  return Started{.id = std::move(found.id), .record = std::move(found.record)};
}

Result<void> Fibers::may_run() const {
  if (runs_.size() < settings_.max_running) return {};
  return Error{Errc::kLimitExceeded, "too many fibers run in this agent"};
}

Result<Fibers::Started> Fibers::begin(const FiberRequest& request, const Job* replaced) {
  if (!replaced) {
    if (auto room = ends_.make_room(); room.has_error()) return room.error();
  }
  if (auto may = may_run(); may.has_error()) return may.error();
  // Only after the checks: a rejected request does not change the old record.
  if (replaced) ends_.erase(*replaced);
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
  ends_.added();
  if (!started.is_parked) started.fiber = runs_.add(std::move(job), now_ms());
  return started;
}

// The caller has the code for the fiber, so no hook is offered it. Nothing begins if it runs
// already, must wait, or is beyond a bound of P7 or P8.
Result<Fibers::Started> Fibers::take_up(Job job) {
  const bool was_offered = recovery_.line().is_claimed(job.id);
  const auto due_at = job.due_at_ms;
  const bool is_due = job.state == JobState::kWaiting && due_at &&
                      (*due_at <= now_ms() || is_next_version(*due_at)) &&
                      recovery_.line().why_given_up(job).empty();
  Started started{.id = job.id};
  if (was_offered || is_due) {
    if (auto may = may_run(); may.has_error()) return may.error();
    const bool was_pending = is_pending(job);
    if (auto offered = recovery_.line().take(job.id)) {
      job = *std::move(offered);
    } else {
      recovery_.claim(job);
    }
    started.fiber = go_on(job);
    started.was_there = true;
    started.was_offered = was_offered;
    if (!was_pending) turns_.recovers(job);
    job = *runs_.find_running(started.fiber);
  }
  started.record = recovery_.change_of(std::move(job)).record;
  return started;
}

Result<FiberHandle> Fibers::resume(std::string_view id) {
  if (auto may = may_run(); recovery_.line().is_claimed(id) && may.has_error()) return may.error();
  auto job = recovery_.line().take(id);
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
  recovery_.write(job);
  ends_.may_have_values(job.id);
  return runs_.add(std::move(job), now_ms());
}

// ---- work ---------------------------------------------------------------------------------------

Result<std::string> Fibers::stash(FiberHandle fiber, std::string_view json) {
  const auto found = runs_.all().find(fiber);
  if (found == runs_.all().end()) return has_ended();
  if (json.size() > settings_.max_snapshot_bytes) {
    return Error{Errc::kLimitExceeded, "the checkpoint is larger than " +
                                           std::to_string(settings_.max_snapshot_bytes) + " bytes"};
  }
  Job& job = found->second;
  ends_.drop_values(job.id);
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
  recovery_.write(job);
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
  const Job* const found = runs_.find_running(fiber);
  if (found == nullptr) return has_ended();
  return table_.mark(found->seq, mark);
}

Result<FiberChange> Fibers::settle(FiberHandle fiber, FiberStatus status, std::string_view body,
                                   bool is_final) {
  if (status != FiberStatus::kCompleted && status != FiberStatus::kError &&
      status != FiberStatus::kAborted)
    return bad_request("work ends as completed, with an error, or aborted");
  const Job* const found = runs_.find_running(fiber);
  if (found == nullptr) return has_ended();
  Job job = *found;
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
  return recovery_.settle(std::move(job), outcome);
}

Result<FiberChange> Fibers::settle(FiberHandle fiber, std::string_view outcome_json) {
  const Job* const found = runs_.find_running(fiber);
  if (found == nullptr) return has_ended();
  auto outcome = parse_outcome(outcome_json, settings_.max_json_bytes);
  if (outcome.has_error()) return outcome.error();
  if (outcome->status == FiberStatus::kInterrupted)
    return bad_request("work ends as completed, with an error, or aborted");
  Job job = *found;
  if (outcome->status == FiberStatus::kError) ++job.failures;
  return recovery_.settle(std::move(job), *outcome);
}

// The work has failed, and is retried later. This is no crash: the attempts are reset, and the next
// start does not count as a recovery.
FiberChange Fibers::postpone(Job job, std::string_view error) {
  recovery_.line().follow_clock();
  runs_.end(job.id);
  job.attempts = job.interruptions = job.fatal_attempts = 0;
  if (!job.is_turn()) give_back_recovery(job);
  job.status = to_string(FiberStatus::kPending);
  job.next_at_ms =
      now_ms() + back_off(job.failures, job.retry.base, job.retry.cap, random_).count();
  job.wait(now_ms());
  jobs_.put(job.seq, JobPart::kError, cut_job_error(error));
  recovery_.write(job);
  return table_.change_of(std::move(job));
}

Result<FiberChange> Fibers::wait_for_code(FiberHandle fiber) {
  const Job* const found = runs_.find_running(fiber);
  if (found == nullptr) return has_ended();
  Job job = *found;
  runs_.end(job.id);
  recovery_.put_aside(job);
  return table_.change_of(std::move(job));
}

}  // namespace hearth::durable
