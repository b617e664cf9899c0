#include "durable/counted_jobs.hpp"

#include <algorithm>
#include <array>

namespace hearth::durable {

using storage::Param;

CountedJobs::CountedJobs(storage::AgentDatabase& database, const Clock& clock, Random& random,
                         const TryRules& rules)
    : jobs_(database),
      clock_(clock),
      random_(random),
      rules_(rules),
      line_(clock, *this, rules.at_once, ClockRule::kSetBack, rules.max_crashes),
      count_(jobs_, rules.kind) {}

void CountedJobs::load() {
  if (!jobs_.exists()) return;
  pace_cut_off();
  jobs_.release(rules_.kind, now_ms());
  jobs_.restart_waits(rules_.kind, now_ms());
  line_.changed();
}

// An earlier instance's tries that did not end: the next ones wait.
void CountedJobs::pace_cut_off() {
  if (!jobs_.has_any(rules_.kind, JobState::kClaimed)) return;
  for (Job& job : jobs_.all("WHERE kind = +?1 AND state = 1",
                            std::array{Param(static_cast<std::int64_t>(rules_.kind))})) {
    const auto wait = line_.wait_after_cut(job, random_);
    if (wait.count() == 0) continue;
    job.set_at_ms = now_ms();
    job.next_at_ms = job.set_at_ms + wait.count();
    jobs_.update(job);
  }
}

void CountedJobs::close() {
  line_.close();
}

void CountedJobs::interrupt_on_purpose() {
  line_.give_back_all();
}

// ---- rows and lanes -----------------------------------------------------------------------------

bool CountedJobs::is_held_back(const Job& job) const {
  if (rules_.lane == Lane::kNone) return false;
  return std::ranges::any_of(line_.claimed(), [&](const auto& claimed) {
    return rules_.lane == Lane::kKind || claimed.second.key == job.key;
  });
}

std::optional<Job> CountedJobs::first_of_lane(const std::optional<std::string>& key) {
  static_assert(kFirstOfNextVersion == 8'100'000'000'000, "the texts say so");
  const auto kind = static_cast<std::int64_t>(rules_.kind);
  if (rules_.lane == Lane::kKey)
    return jobs_.first(
        "WHERE key = ?1 AND kind = +?2 AND +state < 2 AND coalesce(due_at, 0) < 8100000000000 "
        "ORDER BY seq LIMIT 1",
        std::array{storage::nullable(key), Param(kind)});
  // Neighbours in the index: the one that is claimed, the one that is due, those behind it.
  for (const std::string_view where :
       {std::string_view("WHERE kind = +?1 AND state = 1 LIMIT 1"),
        std::string_view("WHERE kind = +?1 AND state = 0 AND due_at < 8100000000000 LIMIT 1"),
        std::string_view(
            "WHERE kind = +?1 AND state = 0 AND due_at IS NULL ORDER BY seq LIMIT 1")}) {
    if (auto job = jobs_.first(where, std::array{Param(kind)})) return job;
  }
  return std::nullopt;
}

void CountedJobs::promote(const std::optional<std::string>& key) {
  line_.changed();
  if (rules_.lane == Lane::kNone) return;
  std::optional<Job> job = first_of_lane(key);
  if (!job || job->state != JobState::kWaiting || job->due_at_ms) return;
  job->wait(now_ms());
  jobs_.update(*job);
  line_.changed();
}

void CountedJobs::insert(Job& job, std::string_view input) {
  line_.follow_clock();  // before its own time, which is of the clock as it is now
  job.kind = rules_.kind;
  const bool is_first = rules_.lane == Lane::kNone || !first_of_lane(job.key);
  if (is_first) job.wait(now_ms());
  jobs_.insert(job);
  if (!input.empty()) jobs_.put(job.seq, JobPart::kInput, input);
  count_.added();
  if (is_first) line_.changed();
}

void CountedJobs::remove(const Job& job) {
  jobs_.erase(job.seq);
  count_.removed(1);
  promote(job.key);
}

std::string_view CountedJobs::state_of(const Job& job) const {
  if (job.dead) return "dead";
  return line_.is_claimed(job.id) ? "running" : "waiting";
}

std::optional<std::string> CountedJobs::last_error(const Job& job) {
  return jobs_.document(job.seq, JobPart::kLastError);
}

// ---- tries --------------------------------------------------------------------------------------

std::optional<std::int64_t> CountedJobs::first_moment() {
  const std::optional<Job> first = next_due();
  return first ? first->due_at_ms : std::nullopt;
}

std::optional<Job> CountedJobs::next_due() {
  return jobs_.first_due(rules_.kind, [this](const Job& job) { return !is_held_back(job); });
}

void CountedJobs::give_up(Job& job, std::string_view why) {
  bury(job, why);
  promote(job.key);
}

void CountedJobs::claim(Job& job) {
  ++job.claims;
  ++job.interruptions;  // until its end
  job.claim(now_ms());
  jobs_.update(job);
}

std::optional<Job> CountedJobs::claimed_row(std::string_view id) {
  auto row = jobs_.find(rules_.kind, id);
  if (row && row->state != JobState::kClaimed) row.reset();
  return row;
}

void CountedJobs::give_back(Job& job) {
  std::optional<Job> row = claimed_row(job.id);
  if (!row) return;
  --row->claims;
  --row->interruptions;
  row->next_at_ms = std::min(row->next_at_ms, now_ms());  // its time had come
  row->wait(now_ms());
  jobs_.update(*row);
}

void CountedJobs::follow(std::int64_t jump_ms) {
  jobs_.shift(rules_.kind, jump_ms);
}

TryEnded CountedJobs::end(std::string_view id, TryOutcome outcome,
                          std::optional<std::string_view> error) {
  line_.follow_clock();
  const std::optional<Job> begun = line_.take(id);
  if (!begun) return {TryEnd::kRemoved};
  std::optional<Job> job = claimed_row(begun->id);
  if (!job) {
    promote(begun->key);
    return {TryEnd::kRemoved};
  }
  job->interruptions = 0;
  if (outcome == TryOutcome::kDone) {
    job->fatal_attempts = 0;
    remove(*job);
    return {TryEnd::kDone};
  }
  if (outcome == TryOutcome::kNeedsCode) {
    --job->claims;
    job->next_at_ms = 0;
    job->wait(now_ms());
    job->due_at_ms = kNextVersion;
    jobs_.put(job->seq, JobPart::kLastError, error.value_or("").substr(0, kMaxJobErrorBytes));
    jobs_.update(*job);
    promote(job->key);
    line_.changed();
    return {TryEnd::kWaitsForCode};
  }
  const std::optional<std::int64_t> next = failed(*job);
  if (!next || outcome == TryOutcome::kHopeless) {
    give_up(*job, error.value_or(""));
    return {TryEnd::kDead};
  }
  job->next_at_ms = *next;
  job->wait(now_ms());
  if (error) jobs_.put(job->seq, JobPart::kLastError, error->substr(0, kMaxJobErrorBytes));
  jobs_.update(*job);
  line_.changed();
  return {TryEnd::kRetry, *next};
}

void CountedJobs::bury(Job& job, std::string_view why) {
  job.state = JobState::kDead;
  job.due_at_ms.reset();
  job.dead = true;
  jobs_.put(job.seq, JobPart::kLastError, why.substr(0, kMaxJobErrorBytes));
  jobs_.update(job);
}

}  // namespace hearth::durable
