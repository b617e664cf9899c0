// The recovery of fibers: which are offered, and what their hooks make of them; and the tellings of
// their ends. Other members: fibers.cpp.
#include "base/assert.hpp"
#include "durable/fiber_counts.hpp"
#include "durable/fibers.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace hearth::durable {

using storage::Param;

void Fibers::follow(std::int64_t jump_ms) {
  if (jobs_.exists()) jobs_.shift(JobKind::kFiber, jump_ms);
}

std::optional<Job> Fibers::next_to_offer() const {
  if (!line_.due()) return std::nullopt;
  for (; !plan_.empty(); plan_.pop_front()) {
    auto job = jobs_.find(JobKind::kFiber, plan_.front());
    if (job && job->state == JobState::kWaiting && job->due_at_ms && *job->due_at_ms <= until_ms())
      return job;
  }
  return jobs_.first_due(JobKind::kFiber);
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
  const std::string error = cut_job_error(why);
  jobs_.put(job.seq, JobPart::kLastError, error);
  job.has_failed = true;
  turns_.given_up(job, error);
  (void)settle_as(job, {.status = FiberStatus::kError, .error = error}, true);
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
  return Interrupted{job->id,
                     job->name,
                     jobs_.document(job->seq, JobPart::kSnapshot),
                     job->created_at_ms,
                     job->attempts,
                     is_pending(*job)};
}

Offered Fibers::offer(std::string_view id) {
  auto job = table_.find(id);
  HEARTH_ASSERT(job, "a fiber without a row is recovered");
  const bool was_interrupted = !is_pending(*job);
  if (was_interrupted) turns_.recovers(*job);
  const char* reason = was_interrupted ? "interrupted" : job->failures > 0 ? "retry" : "lane";
  return {change_of(*std::move(job)).record, reason};
}

std::vector<Interrupted> Fibers::due_list() const {
  std::unordered_map<std::string_view, std::size_t> ranks;
  for (const std::string& id : plan_) ranks.emplace(id, ranks.size());
  auto due =
      jobs_.all("WHERE kind = 2 AND state = 0 AND due_at <= ?", std::array{Param(until_ms())});
  std::erase_if(due, [this](const Job& job) { return !line_.why_given_up(job).empty(); });
  std::ranges::sort(due, {}, [&](const Job& job) {
    const auto rank = ranks.find(job.id);
    return std::tuple(rank == ranks.end() ? ranks.size() : rank->second, job.due_at_ms, job.seq);
  });
  std::vector<Interrupted> listed;
  listed.reserve(due.size());
  for (const Job& job : due)
    listed.push_back({job.id, job.name, std::nullopt, job.created_at_ms, job.attempts + 1});
  return listed;
}

void Fibers::plan(std::span<const std::string> ids) {
  plan_.assign(ids.begin(), ids.end());
}

bool Fibers::claim_uncounted(std::string_view id) {
  auto job = table_.find(id);
  if (!job || job->state != JobState::kWaiting) return false;
  if (!job->due_at_ms || *job->due_at_ms > now_ms()) return false;
  job->claim(now_ms());
  write(*job);
  line_.hold(*std::move(job));
  return true;
}

Result<FiberChange> Fibers::recovered(std::string_view id, std::string_view outcome_json) {
  const auto recovering = line_.claimed().find(id);
  if (recovering == line_.claimed().end())
    return Error{Errc::kNotFound, "the fiber was resumed or settled in the meantime"};
  auto outcome = parse_outcome(outcome_json, settings_.max_json_bytes);
  if (outcome.has_error()) return outcome.error();
  return settle_as(recovering->second, *outcome);
}

Fibers::Failure Fibers::failed(std::string_view id, std::string_view error, bool is_final) {
  line_.follow_clock();
  std::optional<Job> job = line_.take(id);
  if (!job) return {};  // it runs again, or is settled
  job->interruptions = std::max(0, job->interruptions - 1);
  if (is_final || failed_attempts(*job) >= settings_.max_attempts) {
    give_up(*job, error);
    return Failure{true, now_ms()};
  }
  job->next_at_ms = now_ms() + wait_after(failed_attempts(*job)).count();
  job->has_failed = true;
  job->wait(now_ms());
  jobs_.put(job->seq, JobPart::kLastError, cut_job_error(error));
  write(*job);
  return Failure{false, job->next_at_ms};
}

Wake Fibers::wake() const {
  Wake wake;
  wake.working = !running_.empty() || !line_.claimed().empty();
  wake.at_ms = line_.moment();
  for (const auto& [id, job] : line_.claimed())
    wake.at_ms = earliest(wake.at_ms, std::optional(job.next_at_ms));
  wake.needs_person = jobs_.needs_person();
  return wake;
}

// ---- telling ------------------------------------------------------------------------------------

void Fibers::tell(const std::string& id) {
  Job job;
  job.id = id;
  job.key = id;
  job.created_at_ms = now_ms();
  tellings_.insert(job, {});
}

// The end of a telling in progress has no effect then.
void Fibers::tell_no_more(const std::string& id) {
  if (const auto job = tellings_.find(id)) tellings_.remove(*job);
}

std::optional<FiberChange> Fibers::next_untold() {
  const std::optional<Job> telling = tellings_.begin_next();
  if (!telling) return std::nullopt;
  auto job = table_.find(telling->id);
  HEARTH_ASSERT(job, "a telling has no row of its fiber");
  FiberChange change = change_of(*std::move(job));
  change.row = telling->seq;
  return change;
}

void Fibers::told(std::string_view id, bool heard) {
  const TryOutcome outcome = heard ? TryOutcome::kDone : TryOutcome::kFailed;
  if (tellings_.ended(id, outcome).next != TryEnd::kDone) return;
  auto job = table_.find(id);
  if (!job) return;
  if (job->status == "completed" || job->status == "aborted") job->keep = "completed";
  if (job->status == "error" && (!job->dead || job->is_brief())) job->keep = "failed";
  jobs_.update(*job);
}

}  // namespace hearth::durable
