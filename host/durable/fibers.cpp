#include "durable/fibers.hpp"

#include "base/assert.hpp"
#include "base/utf8.hpp"
#include "durable/back_off.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <unordered_map>
#include <utility>

namespace hearth::durable {

using storage::Param;

namespace {

constexpr std::size_t kMaxFiberNameBytes = 256;
// The same time as for the crashes of a class (plugins/versions/version_facts.hpp).
constexpr std::int64_t kProvenAfterMs = std::int64_t{5} * 60'000;

// Whether the next run or offer of the fiber counts in Job::claims. The first run or a retry of a
// turn does not: retries have a bound of their own, and clients see the numbers of recoveries.
bool is_counted(const Job& job) {
  return !job.is_turn() || job.status != "pending";
}

// Takes back the count of a recovery that is no fault of the work.
void give_back_recovery(Job& job) {
  if (is_counted(job)) job.claims = std::max(0, job.claims - 1);
}

void give_back_attempt(Job& job) {
  job.attempts = std::max(0, job.attempts - 1);
  job.interruptions = std::max(0, job.interruptions - 1);
  give_back_recovery(job);
}

// Recoveries since the last progress that failed or crashed.
int failed_attempts(const Job& job) {
  return job.attempts - job.interruptions;
}

}  // namespace

Fibers::Fibers(storage::AgentDatabase& database, const Clock& clock, Random& random,
               FiberSettings settings)
    : jobs_(database),
      clock_(clock),
      random_(random),
      settings_(settings),
      line_(clock, *this, JobLine<Job>::kUnbounded, ClockRule::kSetBack, settings.max_crashes) {}

void Fibers::load() {
  if (!jobs_.exists()) return;
  has_rows_ = true;
  jobs_.release(JobKind::kManaged, JobState::kWaiting, now_ms());
  jobs_.restart_waits(JobKind::kManaged, JobState::kWaiting, now_ms());
  jobs_.each("WHERE kind = 2 AND state = 0 AND started_at IS NOT NULL ORDER BY due_at, seq", {},
             [this](const Job& job) {
               const bool was_running = !job.has_failed && job.status != "pending";
               left_over_.push_back(LeftOver{job.id, job.name, was_running});
               return true;
             });
}

void Fibers::close() {
  line_.close();
}

std::map<FiberHandle, Job>::iterator Fibers::find_running(std::string_view id) {
  const auto handle = handles_.find(id);
  return handle == handles_.end() ? running_.end() : running_.find(handle->second);
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

// A fiber that is not over, whether it runs or not.
std::optional<Job> Fibers::find_open(std::string_view id) {
  auto job = jobs_.find(JobKind::kManaged, id);
  if (job && job->ended_at_ms) job.reset();
  return job;
}

FiberHandle Fibers::add_running(Job job) {
  const FiberHandle handle = ++last_handle_;
  handles_.emplace(job.id, handle);
  job.status = "running";
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

// Writes only the columns of Fibers, none of the record's.
void Fibers::write(const Job& job) {
  jobs_.run(
      "UPDATE cf_agents_jobs SET state = ?2, due_at = ?3, next_at = ?4, attempts = ?5, claims = "
      "?6, "
      "has_failed = ?7, dead = max(dead, ?8), ended_at = ?9, keep = ?10, fatal_attempts = ?11, "
      "set_at = ?12, interruptions = ?13 WHERE seq = ?1",
      std::array{Param(job.seq), Param(static_cast<std::int64_t>(job.state)),
                 storage::nullable(job.due_at_ms), Param(job.next_at_ms),
                 Param(std::int64_t{job.attempts}), Param(std::int64_t{job.claims}),
                 Param(std::int64_t{job.has_failed}), Param(std::int64_t{job.dead}),
                 storage::nullable(job.ended_at_ms), storage::nullable(job.keep),
                 Param(std::int64_t{job.fatal_attempts}), Param(job.set_at_ms),
                 Param(std::int64_t{job.interruptions})});
  forget_moment();
}

// ---- work ---------------------------------------------------------------------------------------

Result<std::string> Fibers::stash(FiberHandle fiber, std::string_view json) {
  const auto found = running_.find(fiber);
  if (found == running_.end()) return Error{Errc::kNotFound, "the fiber has ended"};
  if (json.size() > settings_.max_snapshot_bytes) {
    return Error{Errc::kLimitExceeded, "the checkpoint is larger than " +
                                           std::to_string(settings_.max_snapshot_bytes) + " bytes"};
  }
  Job& job = found->second;
  // The checkpoint that the fiber was recovered from is no progress. If it counted as such, a fiber
  // that dies right after it would be tried for ever.
  if (job.attempts > 0 && jobs_.document(job.seq, JobPart::kSnapshot) == json) return job.id;
  jobs_.put(job.seq, JobPart::kSnapshot, json);
  reset_retries(job);
  const bool is_proven = job.fatal_attempts > 0 && now_ms() - job.runs_since_ms >= kProvenAfterMs;
  if (job.attempts == 0 && !is_proven && job.next_at_ms == 0 && !job.has_failed) return job.id;
  if (std::exchange(job.has_failed, false)) jobs_.put(job.seq, JobPart::kLastError, std::nullopt);
  job.attempts = job.interruptions = 0;
  if (is_proven) job.fatal_attempts = 0;
  job.next_at_ms = 0;
  write(job);
  return job.id;
}

// After progress.
void Fibers::reset_retries(Job& job) {
  const bool has_recovered = job.is_turn() && job.claims > 0;
  if (job.failures == 0 && !has_recovered) return;
  if (!jobs_.document(job.seq, JobPart::kResets)) return;
  job.failures = 0;
  if (has_recovered) job.claims = 0;
  jobs_.run("UPDATE cf_agents_jobs SET failures = 0, claims = ?2 WHERE seq = ?1",
            std::array{Param(job.seq), Param(std::int64_t{job.claims})});
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

// ---- recovery -----------------------------------------------------------------------------------

void Fibers::follow(std::int64_t jump_ms) {
  if (!has_rows_) return;
  jobs_.shift(JobKind::kManaged, JobState::kWaiting, jump_ms);
}

std::optional<Job> Fibers::first_waiting() const {
  return jobs_.first_due(JobKind::kManaged, JobState::kWaiting);
}

std::optional<std::int64_t> Fibers::first_moment() {
  if (!has_rows_) return std::nullopt;
  const auto job = first_waiting();
  return job ? job->due_at_ms : std::nullopt;
}

std::optional<Job> Fibers::next_due() {
  return next_to_offer();
}

std::optional<Job> Fibers::next_to_offer() const {
  if (!line_.due()) return std::nullopt;
  for (; !plan_.empty(); plan_.pop_front()) {
    auto job = jobs_.find(JobKind::kManaged, plan_.front());
    if (job && job->state == JobState::kWaiting && job->due_at_ms && *job->due_at_ms <= until_ms())
      return job;
  }
  return first_waiting();
}

std::string Fibers::next_due_id() const {
  const auto job = next_to_offer();
  return job ? job->id : std::string();
}

std::string_view Fibers::why_given_up(const Job& job) const {
  if (job.is_turn() && is_counted(job) && job.claims >= settings_.max_turn_recoveries)
    return "recovered as often as fibers.max_turn_recoveries allows, and interrupted once more";
  if (failed_attempts(job) >= settings_.max_attempts)
    return "interrupted again and again without progress";
  if (settings_.max_recoveries > 0 && job.claims >= settings_.max_recoveries)
    return "recovered as often as fibers.max_recoveries allows, and interrupted once more";
  return {};
}

void Fibers::give_up(Job& job, std::string_view why) {
  job.state = JobState::kDead;
  job.due_at_ms.reset();
  job.has_failed = true;
  job.next_at_ms = 0;
  jobs_.put(job.seq, JobPart::kLastError, why);
  write(job);
}

std::chrono::milliseconds Fibers::wait_after(int failures) const {
  return back_off(failures, settings_.retry_base, settings_.retry_cap, random_);
}

void Fibers::claim(Job& job) {
  const int doublings = job.interruptions / kInterruptionsPerDoubling;
  job.next_at_ms = now_ms() + wait_after(failed_attempts(job) + 1 + doublings).count();
  ++job.attempts;
  ++job.interruptions;  // until its end
  if (is_counted(job)) ++job.claims;
  job.claim(now_ms());
  write(job);
}

std::optional<Interrupted> Fibers::begin_recovery() {
  const std::optional<Job> job = line_.claim();
  if (!job) return std::nullopt;
  return Interrupted{job->id, job->name, jobs_.document(job->seq, JobPart::kSnapshot),
                     job->created_at_ms, job->attempts};
}

std::vector<Interrupted> Fibers::due_list() const {
  std::unordered_map<std::string_view, std::size_t> ranks;
  for (const std::string& id : plan_) ranks.emplace(id, ranks.size());
  std::vector<Job> due;
  jobs_.each("WHERE kind = 2 AND state = 0 AND due_at <= ?", std::array{Param(until_ms())},
             [&](Job& job) {
               if (line_.why_given_up(job).empty()) due.push_back(std::move(job));
               return true;
             });
  const auto order = [&](const Job& job) {
    const auto rank = ranks.find(job.id);
    return std::tuple(rank == ranks.end() ? ranks.size() : rank->second, job.due_at_ms, job.seq);
  };
  std::ranges::sort(due, {}, order);
  std::vector<Interrupted> listed;
  listed.reserve(due.size());
  for (Job& job : due)
    listed.push_back({std::move(job.id), std::move(job.name), std::nullopt, job.created_at_ms,
                      job.attempts + 1});
  return listed;
}

void Fibers::plan(std::span<const std::string> ids) {
  plan_.assign(ids.begin(), ids.end());
}

bool Fibers::claim_uncounted(std::string_view id) {
  auto job = jobs_.find(JobKind::kManaged, id);
  if (!job || job->state != JobState::kWaiting) return false;
  if (!job->due_at_ms || *job->due_at_ms > now_ms()) return false;
  job->claim(now_ms());
  write(*job);
  line_.hold(std::move(*job));
  return true;
}

Fibers::Failure Fibers::failed(std::string_view id, std::string_view error, bool is_final) {
  line_.follow_clock();
  std::optional<Job> job = line_.take(id);
  if (!job) return {};  // it runs again, or is settled
  error = error.substr(0, kMaxJobErrorBytes);
  job->interruptions = std::max(0, job->interruptions - 1);
  if (is_final || failed_attempts(*job) >= settings_.max_attempts) {
    give_up(*job, error);
    return Failure{true, now_ms()};
  }
  job->next_at_ms = now_ms() + wait_after(failed_attempts(*job)).count();
  job->has_failed = true;
  job->wait(now_ms());
  jobs_.put(job->seq, JobPart::kLastError, error);
  write(*job);
  return Failure{false, job->next_at_ms};
}

void Fibers::unknown(std::string_view id) {
  std::optional<Job> job = line_.take(id);
  if (const auto running = find_running(id); running != running_.end()) job = end_running(running);
  if (!job) return;
  give_back_attempt(*job);
  job->next_at_ms = 0;
  job->state = JobState::kWaiting;
  job->due_at_ms = kNextVersion;
  write(*job);
}

Wake Fibers::wake() const {
  Wake wake;
  wake.working = !running_.empty() || !line_.claimed().empty();
  wake.at_ms = line_.moment();
  for (const auto& [id, job] : line_.claimed())
    wake.at_ms = earliest(wake.at_ms, std::optional(job.next_at_ms));
  return wake;
}

// ---- for ManagedFibers --------------------------------------------------------------------------

Result<void> Fibers::may_start(std::string_view name) const {
  if (name.empty() || name.size() > kMaxFiberNameBytes || !is_valid_utf8(name)) {
    return Error{Errc::kInvalidArgument, "a fiber's name is 1 to 256 bytes of UTF-8"};
  }
  if (running_.size() >= settings_.max_running) {
    return Error{Errc::kLimitExceeded, "too many fibers run in this agent"};
  }
  return {};
}

FiberHandle Fibers::start_managed(Job& job) {
  has_rows_ = true;
  job.kind = JobKind::kManaged;
  job.claim(now_ms());
  jobs_.insert(job);
  return add_running(job);
}

void Fibers::park(Job& job) {
  has_rows_ = true;
  job.kind = JobKind::kManaged;
  job.state = JobState::kWaiting;
  job.due_at_ms.reset();
  jobs_.insert(job);
}

void Fibers::forget_first_offer(Job& job) {
  if (job.started_at_ms) return;
  job.attempts = job.interruptions = job.claims = 0;
  job.next_at_ms = 0;
  write(job);
}

Result<FiberHandle> Fibers::resume(std::string_view id) {
  if (line_.is_claimed(id) && running_.size() >= settings_.max_running)
    return Error{Errc::kLimitExceeded, "too many fibers run in this agent"};
  std::optional<Job> taken = line_.take(id);
  if (!taken) return Error{Errc::kNotFound, "no fiber of this id is being recovered"};
  forget_first_offer(*taken);
  return add_running(*std::move(taken));
}

Result<std::optional<Fibers::TakenUp>> Fibers::take_up(std::string_view id) {
  if (handles_.contains(id)) return std::optional<TakenUp>();
  if (line_.is_claimed(id)) {
    const auto handle = resume(id);
    if (!handle) return handle.error();
    return std::optional(TakenUp{*handle, true});
  }
  line_.follow_clock();
  auto job = jobs_.find(JobKind::kManaged, id);
  if (!job || job->state != JobState::kWaiting || !line_.why_given_up(*job).empty())
    return std::optional<TakenUp>();
  const auto due_at = job->due_at_ms;
  if (!due_at || (*due_at > now_ms() && !is_next_version(*due_at))) return std::optional<TakenUp>();
  if (running_.size() >= settings_.max_running)
    return Error{Errc::kLimitExceeded, "too many fibers run in this agent"};
  claim(*job);
  forget_first_offer(*job);
  return std::optional(TakenUp{add_running(std::move(*job)), false});
}

void Fibers::postpone(std::string_view id, std::int64_t next_at_ms) {
  line_.follow_clock();
  const auto found = find_running(id);
  HEARTH_ASSERT(found != running_.end(), "a fiber that does not run is postponed");
  Job job = end_running(found);
  job.attempts = job.interruptions = job.fatal_attempts = 0;
  if (!job.is_turn()) give_back_recovery(job);
  job.next_at_ms = next_at_ms;
  job.wait(now_ms());
  write(job);
}

void Fibers::erase(std::string_view id) {
  // `id` may point into the row, and is not read after that is removed.
  std::erase_if(left_over_, [id](const LeftOver& each) { return each.id == id; });
  forget_moment();
  if (const auto running = find_running(id); running != running_.end()) {
    end_running(running);
  } else {
    line_.take(id);
  }
}

std::optional<FiberStanding> Fibers::find(std::string_view id) {
  const auto standing = [](const Job& job) {
    return FiberStanding{
        0,
        false,
        job.state == JobState::kDead,
        job.state == JobState::kWaiting && job.due_at_ms && is_next_version(*job.due_at_ms),
        job.attempts,
        job.next_at_ms};
  };
  if (const auto running = find_running(id); running != running_.end()) {
    FiberStanding found = standing(running->second);
    found.running = running->first;
    return found;
  }
  if (const auto recovering = line_.claimed().find(id); recovering != line_.claimed().end()) {
    FiberStanding found = standing(recovering->second);
    found.recovering = true;
    return found;
  }
  const auto job = find_open(id);
  if (!job) return std::nullopt;
  return standing(*job);
}

const std::string* Fibers::managed_id(FiberHandle fiber) const {
  const auto found = running_.find(fiber);
  return found == running_.end() ? nullptr : &found->second.id;
}

std::optional<std::string> Fibers::last_error(std::string_view id) {
  const auto job = jobs_.find(JobKind::kManaged, id);
  return job ? jobs_.document(job->seq, JobPart::kLastError) : std::nullopt;
}

}  // namespace hearth::durable
