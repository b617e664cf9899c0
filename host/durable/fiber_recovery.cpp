#include "durable/fiber_recovery.hpp"

#include "base/assert.hpp"
#include "durable/retry_policy.hpp"

#include <algorithm>
#include <ranges>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace hearth::durable {

namespace {

std::int64_t wait_after(int failures, const FiberSettings& settings, Random& random) {
  return back_off(failures, settings.retry_base, settings.retry_cap, random).count();
}

}  // namespace

FiberRecovery::FiberRecovery(Jobs& jobs, FiberTable& table, FiberTurns& turns, FiberEnds& ends,
                             FiberRuns& runs, const Clock& clock, Random& random,
                             const FiberSettings& settings)
    : jobs_(jobs),
      table_(table),
      turns_(turns),
      ends_(ends),
      runs_(runs),
      clock_(clock),
      random_(random),
      settings_(settings),
      line_(clock, *this, JobLine<Job>::kUnbounded, ClockRule::kSetBack, settings.max_crashes) {}

void FiberRecovery::load() {
  jobs_.each_waiting(JobKind::kFiber, [this](const Job& job) {
    if (job.started_at_ms)
      left_over_.push_back({job.id, job.name, !job.has_failed && !is_pending(job)});
    return true;
  });
}

void FiberRecovery::follow(std::int64_t jump_ms) {
  if (jobs_.exists()) jobs_.shift(JobKind::kFiber, jump_ms);
}

void FiberRecovery::write(const Job& job) {
  jobs_.update(job);
  line_.changed();
}

FiberNow FiberRecovery::now_of(std::string_view id) const {
  if (runs_.row_of(id) != kNoFiber) return FiberNow::kRuns;
  return line_.is_claimed(id) ? FiberNow::kRecovers : FiberNow::kNothing;
}

std::optional<Job> FiberRecovery::first_until(std::int64_t until_ms) {
  for (; !plan_.empty(); plan_.pop_front()) {
    auto job = jobs_.find(JobKind::kFiber, plan_.front());
    if (job && job->state == JobState::kWaiting && job->due_at_ms && *job->due_at_ms <= until_ms)
      return job;
  }
  return jobs_.first_due(JobKind::kFiber);
}

std::string FiberRecovery::next_due_id() {
  if (!line_.due()) return {};
  const auto job = first_until(now_ms() - line_.jump());
  return job ? job->id : std::string();
}

void FiberRecovery::give_up(Job& job, std::string_view why) {
  const std::string error = cut_job_error(why);
  jobs_.put(job.seq, JobPart::kLastError, error);
  job.has_failed = true;
  turns_.given_up(job, error);
  (void)settle(job, {.status = FiberStatus::kError, .error = error}, true);
}

void FiberRecovery::claim(Job& job) {
  const int doublings = job.interruptions / kInterruptionsPerDoubling;
  const int failures = failed_attempts(job) + 1 + doublings;
  job.next_at_ms = now_ms() + wait_after(failures, settings_, random_);
  ++job.attempts;
  ++job.interruptions;  // until its end
  if (is_counted(job)) ++job.claims;
  job.claim(now_ms());
  write(job);
}

std::optional<Interrupted> FiberRecovery::begin() {
  const std::optional<Job> job = line_.claim();
  if (!job) return std::nullopt;
  return Interrupted{job->id,
                     job->seq,
                     job->name,
                     jobs_.document(job->seq, JobPart::kSnapshot),
                     job->created_at_ms,
                     job->attempts,
                     is_pending(*job)};
}

Offered FiberRecovery::offer(FiberRow row) {
  auto job = jobs_.find(row);
  HEARTH_ASSERT(job, "a fiber without a row is recovered");
  const bool was_interrupted = !is_pending(*job);
  if (was_interrupted) turns_.recovers(*job);
  const char* reason = was_interrupted ? "interrupted" : job->failures > 0 ? "retry" : "lane";
  return {change_of(*std::move(job)).record, reason};
}

std::vector<Interrupted> FiberRecovery::due_list() {
  std::unordered_map<std::string_view, std::size_t> ranks;
  for (const std::string& id : plan_) ranks.emplace(id, ranks.size());
  std::vector<Job> due;
  jobs_.each_waiting(JobKind::kFiber, [&, until_ms = now_ms() - line_.jump()](Job& job) {
    if (*job.due_at_ms > until_ms) return false;
    if (line_.why_given_up(job).empty()) due.push_back(std::move(job));
    return true;
  });
  std::ranges::sort(due, {}, [&](const Job& job) {
    const auto rank = ranks.find(job.id);
    return std::tuple(rank == ranks.end() ? ranks.size() : rank->second, job.due_at_ms, job.seq);
  });
  std::vector<Interrupted> listed;
  listed.reserve(due.size());
  for (const Job& job : due)
    listed.push_back(
        {job.id, job.seq, job.name, std::nullopt, job.created_at_ms, job.attempts + 1});
  return listed;
}

bool FiberRecovery::claim_uncounted(std::string_view id) {
  auto job = table_.find(id);
  if (!job || job->state != JobState::kWaiting) return false;
  if (!job->due_at_ms || *job->due_at_ms > now_ms()) return false;
  job->claim(now_ms());
  write(*job);
  line_.hold(*std::move(job));
  return true;
}

Result<FiberChange> FiberRecovery::recovered(std::string_view id, std::string_view outcome_json) {
  const auto recovering = line_.claimed().find(id);
  if (recovering == line_.claimed().end())
    return Error{Errc::kNotFound, "the fiber was resumed or settled in the meantime"};
  auto outcome = parse_outcome(outcome_json, settings_.max_json_bytes);
  if (outcome.has_error()) return outcome.error();
  return settle(recovering->second, *outcome);
}

FiberRecovery::Failure FiberRecovery::failed(std::string_view id, std::string_view error,
                                             bool is_final) {
  line_.follow_clock();
  std::optional<Job> job = line_.take(id);
  if (!job) return {};  // it runs again, or is settled
  job->interruptions = std::max(0, job->interruptions - 1);
  if (is_final || failed_attempts(*job) >= settings_.max_attempts) {
    give_up(*job, error);
    return Failure{true, now_ms()};
  }
  job->next_at_ms = now_ms() + wait_after(failed_attempts(*job), settings_, random_);
  job->has_failed = true;
  job->wait(now_ms());
  jobs_.put(job->seq, JobPart::kLastError, cut_job_error(error));
  write(*job);
  return Failure{false, job->next_at_ms};
}

// ---- what ends elsewhere ------------------------------------------------------------------------

bool FiberRecovery::unknown(std::string_view id) {
  auto job = line_.take(id);
  if (!job) return false;
  put_aside(*job);
  return true;
}

void FiberRecovery::put_aside(Job& job) {
  give_back_attempt(job);
  job.next_at_ms = 0;
  job.state = JobState::kWaiting;
  job.due_at_ms = kNextVersion;
  write(job);
}

void FiberRecovery::give_back(Job& job) {
  if (job.attempts == 0 && job.claims == 0) return;
  give_back_attempt(job);
  job.next_at_ms = 0;
  write(job);
}

// Recovering fibers stay claimed, so that wake() says that work was interrupted.
void FiberRecovery::interrupt_on_purpose() {
  for (auto& [handle, job] : runs_.all()) give_back(job);
  for (Job job : std::views::values(line_.claimed())) {
    give_back(job);
    line_.hold(std::move(job));
  }
}

FiberChange FiberRecovery::settle(Job job, const FiberOutcome& outcome, bool dead) {
  const auto forget = [this](const std::string& id) {
    std::erase_if(left_over_, [&id](const LeftOver& each) { return each.id == id; });
    runs_.end(id);
    line_.take(id);
    line_.changed();
  };
  FiberChange change = ends_.settle(std::move(job), outcome, dead, forget);
  line_.changed();
  return change;
}

}  // namespace hearth::durable
