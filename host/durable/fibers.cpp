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
constexpr std::array kFiberKinds = {JobKind::kFiber, JobKind::kManaged};

// Whether the next run or offer of the fiber counts in Job::claims. A retry of a turn does not:
// retries have a bound of their own, and clients see the numbers of recoveries.
bool is_counted(const Job& job) {
  return !job.is_turn() || job.failures == 0 || job.status != "pending";
}

// Takes back the count of a recovery that is no fault of the work.
void give_back_recovery(Job& job) {
  if (is_counted(job)) job.claims = std::max(0, job.claims - 1);
}

bool comes_before(const Job& a, const Job& b) {
  return std::pair(a.due_at_ms, a.seq) < std::pair(b.due_at_ms, b.seq);
}

}  // namespace

Fibers::Fibers(storage::AgentDatabase& database, const Clock& clock, Random& random,
               FiberSettings settings)
    : jobs_(database), clock_(clock), random_(random), settings_(settings), line_(clock, *this) {}

void Fibers::load(const std::optional<EndedProcess>& ended) {
  if (!jobs_.exists()) return;
  has_rows_ = true;
  if (ended) {
    jobs_.run(
        "UPDATE cf_agents_jobs SET fatal_attempts = fatal_attempts + 1 "
        "WHERE kind IN (1, 2) AND state = 1 AND ended_at IS NULL AND seq = coalesce(?1, seq)",
        std::array{storage::nullable(ended->fiber)});
  }
  for (const JobKind kind : kFiberKinds) {
    jobs_.release(kind, JobState::kWaiting, now_ms());
    jobs_.bound_waits(kind, JobState::kWaiting, now_ms(), settings_.retry_cap);
    jobs_.each("WHERE kind = +?1 AND state = 0 ORDER BY due_at, seq",
               std::array{Param(static_cast<std::int64_t>(kind))}, [this](const Job& job) {
                 const bool is_retry = job.failures > 0 && job.status == "pending";
                 left_over_.push_back(LeftOver{job.id, job.name, !job.has_failed && !is_retry});
                 return true;
               });
  }
  may_have_dead_ = jobs_.has_any(JobKind::kFiber, JobState::kDead);
}

void Fibers::close() {
  line_.close();
  jobs_.close();
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
  for (const JobKind kind : kFiberKinds) {
    auto job = jobs_.find(kind, id);
    if (job && (kind == JobKind::kFiber || !job->ended_at_ms)) return job;
  }
  return std::nullopt;
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
      "has_failed = ?7, dead = max(dead, ?8), ended_at = ?9, keep = ?10, fatal_attempts = ?11 "
      "WHERE seq = ?1",
      std::array{Param(job.seq), Param(static_cast<std::int64_t>(job.state)),
                 storage::nullable(job.due_at_ms), Param(job.next_at_ms),
                 Param(std::int64_t{job.attempts}), Param(std::int64_t{job.claims}),
                 Param(std::int64_t{job.has_failed}), Param(std::int64_t{job.dead}),
                 storage::nullable(job.ended_at_ms), storage::nullable(job.keep),
                 Param(std::int64_t{job.fatal_attempts})});
  forget_moment();
}

// ---- work ---------------------------------------------------------------------------------------

Result<void> Fibers::check_start(std::string_view name) const {
  if (name.empty() || name.size() > kMaxFiberNameBytes || !is_valid_utf8(name)) {
    return Error{Errc::kInvalidArgument, "a fiber's name is 1 to 256 bytes of UTF-8"};
  }
  if (running_.size() >= settings_.max_running) {
    return Error{Errc::kLimitExceeded, "too many fibers run in this agent"};
  }
  return {};
}

Result<Fibers::Started> Fibers::start(std::string_view name, std::string_view replaces) {
  if (auto checked = check_start(name); checked.has_error()) return checked.error();
  Job job;
  job.id = make_uuid(random_);
  job.name = name;
  job.created_at_ms = now_ms();
  job.claim();
  has_rows_ = true;
  if (replaces.empty()) {
    jobs_.insert(job);
  } else {
    const auto found = line_.claimed().find(replaces);
    if (found == line_.claimed().end())
      return Error{Errc::kNotFound, "no fiber of this id is being recovered"};
    if (found->second.kind == JobKind::kManaged)
      return Error{Errc::kInvalidArgument, "a managed fiber is resumed, not replaced"};
    const Job old = found->second;
    line_.take(replaces);
    const std::optional<std::string> snapshot = jobs_.document(old.seq, JobPart::kSnapshot);
    // A continuation that dies before its first checkpoint has made no progress, so it inherits the
    // counts.
    job.attempts = old.attempts;
    job.claims = old.claims;
    job.fatal_attempts = old.fatal_attempts;
    job.next_at_ms = old.next_at_ms;
    jobs_.erase(old.seq);
    jobs_.insert(job);
    if (snapshot) jobs_.put(job.seq, JobPart::kSnapshot, *snapshot);
  }
  std::string id = job.id;
  return Started{add_running(std::move(job)), std::move(id)};
}

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
  const bool is_proven = job.fatal_attempts > 0 && now_ms() - job.runs_since_ms >= kProvenAfterMs;
  if (job.attempts == 0 && !is_proven && job.next_at_ms == 0 && !job.has_failed) return job.id;
  if (std::exchange(job.has_failed, false)) jobs_.put(job.seq, JobPart::kLastError, std::nullopt);
  job.attempts = 0;
  if (is_proven) job.fatal_attempts = 0;
  job.next_at_ms = 0;
  write(job);
  return job.id;
}

Result<std::string> Fibers::finish(FiberHandle fiber) {
  const auto found = running_.find(fiber);
  if (found == running_.end()) return Error{Errc::kNotFound, "the fiber has ended"};
  if (found->second.kind == JobKind::kManaged)
    return Error{Errc::kInvalidArgument, "a managed fiber is settled, not finished"};
  Job job = end_running(found);
  jobs_.erase(job.seq);
  return std::move(job.id);
}

void Fibers::give_back(Job& job) {
  if (job.attempts == 0 && job.claims == 0) return;
  job.attempts = std::max(0, job.attempts - 1);
  give_back_recovery(job);
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
  for (const JobKind kind : kFiberKinds) jobs_.shift(kind, JobState::kWaiting, jump_ms);
}

std::optional<Job> Fibers::first_waiting() const {
  std::optional<Job> first;
  for (const JobKind kind : kFiberKinds) {
    auto job = jobs_.first_due(kind, JobState::kWaiting);
    if (job && (!first || comes_before(*job, *first))) first = std::move(job);
  }
  return first;
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
    for (const JobKind kind : kFiberKinds) {
      auto job = jobs_.find(kind, plan_.front());
      if (job && job->state == JobState::kWaiting && job->due_at_ms <= until_ms()) return job;
    }
  }
  return first_waiting();
}

std::string Fibers::next_due_id() const {
  const auto job = next_to_offer();
  return job ? job->id : std::string();
}

std::string_view Fibers::why_given_up(const Job& job) const {
  if (settings_.max_crashes > 0 && job.fatal_attempts >= settings_.max_crashes)
    return "its work has ended the process as often as fibers.max_crashes allows";
  if (job.is_turn() && is_counted(job) && job.claims >= settings_.max_turn_recoveries)
    return "recovered as often as fibers.max_turn_recoveries allows, and interrupted once more";
  if (job.attempts >= settings_.max_attempts) return "interrupted again and again without progress";
  if (settings_.max_recoveries > 0 && job.claims >= settings_.max_recoveries)
    return "recovered as often as fibers.max_recoveries allows, and interrupted once more";
  return {};
}

void Fibers::give_up(Job& job, std::string_view why) {
  job.state = JobState::kDead;
  job.due_at_ms.reset();
  job.has_failed = true;
  job.next_at_ms = 0;
  if (job.kind == JobKind::kFiber) {
    job.dead = true;
    job.ended_at_ms = now_ms();
    job.keep = kKeepDeadFiber;
    may_have_dead_ = true;
  }
  jobs_.put(job.seq, JobPart::kLastError, why);
  write(job);
}

std::chrono::milliseconds Fibers::wait_after(int attempts) const {
  return back_off(attempts, settings_.retry_base, settings_.retry_cap, random_);
}

void Fibers::claim(Job& job) {
  ++job.attempts;
  if (is_counted(job)) ++job.claims;
  job.next_at_ms = now_ms() + wait_after(job.attempts).count();
  job.claim();
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
  for (const JobKind kind : kFiberKinds) {
    jobs_.each("WHERE kind = +?1 AND state = 0 AND due_at <= ?2",
               std::array{Param(static_cast<std::int64_t>(kind)), Param(until_ms())},
               [&](Job& job) {
                 if (why_given_up(job).empty()) due.push_back(std::move(job));
                 return true;
               });
  }
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
  for (const JobKind kind : kFiberKinds) {
    auto job = jobs_.find(kind, id);
    if (!job || job->state != JobState::kWaiting) continue;
    if (!job->due_at_ms || *job->due_at_ms > now_ms()) continue;
    job->claim();
    write(*job);
    line_.hold(std::move(*job));
    return true;
  }
  return false;
}

void Fibers::recovered(std::string_view id) {
  const auto found = line_.claimed().find(id);
  // Not claimed: a continuation replaced the fiber, or it runs again, or it waits for a retry.
  if (found == line_.claimed().end() || found->second.kind == JobKind::kManaged) return;
  jobs_.erase(found->second.seq);
  line_.take(id);
}

Fibers::Failure Fibers::failed(std::string_view id, std::string_view error) {
  line_.follow_clock();
  std::optional<Job> job = line_.take(id);
  if (!job) return {};  // a continuation goes on with the work
  error = error.substr(0, kMaxJobErrorBytes);
  if (job->attempts >= settings_.max_attempts) {
    give_up(*job, error);
    return Failure{true, now_ms()};
  }
  job->next_at_ms = now_ms() + wait_after(job->attempts).count();
  job->has_failed = true;
  job->wait(now_ms());
  jobs_.put(job->seq, JobPart::kLastError, error);
  write(*job);
  return Failure{false, job->next_at_ms};
}

void Fibers::unknown(std::string_view id) {
  std::optional<Job> job = line_.take(id);
  if (!job) return;
  job->attempts = std::max(0, job->attempts - 1);
  give_back_recovery(*job);
  job->next_at_ms = 0;
  job->state = JobState::kWaiting;
  job->due_at_ms = kNextVersion;
  write(*job);
}

Result<void> Fibers::retry(std::string_view id) {
  std::optional<Job> job = jobs_.find(JobKind::kFiber, id);
  if (!job || job->state != JobState::kDead)
    return Error{Errc::kNotFound, "no dead fiber has this id"};
  jobs_.run(
      "UPDATE cf_agents_jobs SET state = 0, due_at = min(created_at, ?2), next_at = 0, attempts = "
      "0, "
      "fatal_attempts = 0, claims = 0, dead = 0, ended_at = NULL, keep = NULL WHERE seq = ?1",
      std::array{Param(job->seq), Param(now_ms())});
  forget_moment();
  return {};
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

Result<void> Fibers::may_start(std::string_view name, std::string_view id) {
  if (auto checked = check_start(name); checked.has_error()) return checked.error();
  if (find(id)) return Error{Errc::kConflict, "a fiber has this id"};
  return {};
}

FiberHandle Fibers::start_managed(Job& job) {
  has_rows_ = true;
  job.kind = JobKind::kManaged;
  job.claim();
  jobs_.insert(job);
  return add_running(job);
}

Result<FiberHandle> Fibers::resume(std::string_view id) {
  if (line_.is_claimed(id) && running_.size() >= settings_.max_running)
    return Error{Errc::kLimitExceeded, "too many fibers run in this agent"};
  std::optional<Job> taken = line_.take(id);
  if (!taken) return Error{Errc::kNotFound, "no fiber of this id is being recovered"};
  Job& job = *taken;
  if (job.kind == JobKind::kFiber) {
    job.kind = JobKind::kManaged;
    jobs_.run(
        "UPDATE cf_agents_jobs SET kind = 2, status = 'running', type = 'brief' WHERE seq = ?",
        std::array{Param(job.seq)});
  }
  return add_running(std::move(job));
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
  if (!job || job->state != JobState::kWaiting || !why_given_up(*job).empty())
    return std::optional<TakenUp>();
  const std::int64_t due_at = job->due_at_ms.value_or(0);
  if (due_at > now_ms() && !is_next_version(due_at)) return std::optional<TakenUp>();
  if (running_.size() >= settings_.max_running)
    return Error{Errc::kLimitExceeded, "too many fibers run in this agent"};
  claim(*job);
  return std::optional(TakenUp{add_running(std::move(*job)), false});
}

void Fibers::postpone(std::string_view id, std::int64_t next_at_ms) {
  line_.follow_clock();
  const auto found = find_running(id);
  HEARTH_ASSERT(found != running_.end(), "a fiber that does not run is postponed");
  Job job = end_running(found);
  job.attempts = job.fatal_attempts = 0;
  if (!job.is_turn()) give_back_recovery(job);
  job.next_at_ms = next_at_ms;
  job.wait(now_ms());
  write(job);
}

void Fibers::erase(std::string_view id) {
  // `id` may point into the row, and is not read after that is removed.
  std::erase_if(left_over_, [id](const LeftOver& each) { return each.id == id; });
  if (auto job = jobs_.find(JobKind::kFiber, id)) jobs_.erase(job->seq);
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
        job.kind == JobKind::kManaged,
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
  if (found == running_.end() || found->second.kind != JobKind::kManaged) return nullptr;
  return &found->second.id;
}

std::optional<std::string> Fibers::last_error(std::string_view id) {
  for (const JobKind kind : kFiberKinds) {
    const auto job = jobs_.find(kind, id);
    if (job) return jobs_.document(job->seq, JobPart::kLastError);
  }
  return std::nullopt;
}

Fibers::Counts Fibers::counts() {
  const auto count = [this](std::string_view sql) {
    return static_cast<std::size_t>(jobs_.number(sql, {}).value_or(0));
  };
  return Counts{running_.size(),
                count("SELECT count(*) FROM cf_agents_jobs WHERE kind IN (1, 2) AND state = 0") +
                    line_.claimed().size(),
                count("SELECT count(*) FROM cf_agents_jobs WHERE kind = 1 AND state = 2")};
}

}  // namespace hearth::durable
