#include "durable/counted_jobs.hpp"

#include "durable/retry_policy.hpp"

#include <algorithm>

namespace hearth::durable {

namespace {

Error no_such(const Kind& kind, std::string_view which) {
  return Error{Errc::kNotFound, "no " + std::string(kind.noun) + " has " + std::string(which)};
}

}  // namespace

CountedJobs::CountedJobs(storage::AgentDatabase& database, const Clock& clock, Random& random,
                         const Kind& kind, int max_crashes)
    : jobs_(database),
      clock_(clock),
      random_(random),
      kind_(kind),
      line_(clock, *this, kind.at_once, ClockRule::kSetBack, max_crashes),
      count_(jobs_, kind.kind) {}

void CountedJobs::load(bool has_code) {
  if (!jobs_.exists()) return;
  if (jobs_.has_any(kind_.kind, JobState::kClaimed)) {
    // An earlier instance's tries that did not end: the next ones wait.
    for (Job& job : jobs_.all("WHERE kind = +?1 AND state = 1", kind_.kind)) {
      const auto wait = line_.wait_after_cut(job, random_);
      if (wait.count() == 0) continue;
      job.set_at_ms = now_ms();
      job.next_at_ms = job.set_at_ms + wait.count();
      jobs_.update(job);
    }
  }
  jobs_.release(kind_.kind, now_ms());
  jobs_.restart_waits(kind_.kind, now_ms(), has_code);
  line_.changed();
}

// ---- rows and lanes -----------------------------------------------------------------------------

std::optional<Job> CountedJobs::first_of_lane(const std::optional<std::string>& key) {
  static_assert(kFirstOfNextVersion == 8'100'000'000'000, "the texts say so");
  if (kind_.lane == Lane::kKey)
    return jobs_.first(
        "WHERE key = ?1 AND kind = +?2 AND +state < 2 AND coalesce(due_at, 0) < 8100000000000 "
        "ORDER BY seq LIMIT 1",
        storage::nullable(key), kind_.kind);
  // Neighbours in the index: the one that is claimed, the one that is due, those behind it.
  for (const std::string_view where :
       {std::string_view("WHERE kind = +?1 AND state = 1 LIMIT 1"),
        std::string_view("WHERE kind = +?1 AND state = 0 AND due_at < 8100000000000 LIMIT 1"),
        std::string_view(
            "WHERE kind = +?1 AND state = 0 AND due_at IS NULL ORDER BY seq LIMIT 1")}) {
    if (auto job = jobs_.first(where, kind_.kind)) return job;
  }
  return std::nullopt;
}

void CountedJobs::promote(const std::optional<std::string>& key) {
  line_.changed();
  if (kind_.lane == Lane::kNone) return;
  std::optional<Job> job = first_of_lane(key);
  if (!job || job->state != JobState::kWaiting || job->due_at_ms) return;
  job->wait(now_ms());
  jobs_.update(*job);
  line_.changed();
}

void CountedJobs::insert(Job& job, std::string_view input) {
  line_.follow_clock();  // before its own time, which is of the clock as it is now
  job.kind = kind_.kind;
  const bool is_first = kind_.lane == Lane::kNone || !first_of_lane(job.key);
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

Result<void> CountedJobs::remove(std::string_view id) {
  const auto job = find(id);
  if (!job) return no_such(kind_, "this id");
  remove(*job);
  return {};
}

Result<std::int64_t> CountedJobs::place_after(std::string_view id) {
  if (id.empty()) return std::int64_t{0};
  const auto last = find(id);
  if (!last) return no_such(kind_, "the id `after`");
  return last->seq;
}

std::string_view CountedJobs::state_of(const Job& job) const {
  if (job.dead) return "dead";
  return line_.is_claimed(job.id) ? "running" : "waiting";
}

// ---- tries --------------------------------------------------------------------------------------

std::optional<Begun> CountedJobs::begin_next() {
  std::optional<Job> job = line_.claim();
  if (!job) return std::nullopt;
  auto input = jobs_.document(job->seq, JobPart::kInput);
  return Begun{*std::move(job), std::move(input).value_or("")};
}

std::optional<std::int64_t> CountedJobs::first_moment() {
  const std::optional<Job> first = next_due();
  return first ? first->due_at_ms : std::nullopt;
}

std::optional<Job> CountedJobs::next_due() {
  return jobs_.first_due(kind_.kind, [this](const Job& job) {
    // No job of its lane is in progress, not even one whose row was removed.
    return kind_.lane == Lane::kNone || std::ranges::none_of(line_.claimed(), [&](const auto& it) {
             return kind_.lane == Lane::kKind || it.second.key == job.key;
           });
  });
}

void CountedJobs::claim(Job& job) {
  ++job.claims;
  ++job.interruptions;  // until its end
  job.claim(now_ms());
  jobs_.update(job);
}

std::optional<Job> CountedJobs::claimed_row(std::string_view id) {
  auto row = jobs_.find(kind_.kind, id);
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

TryEnded CountedJobs::ended(std::string_view id, TryOutcome outcome,
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
  ++job->failures;
  const std::optional<std::int64_t> next = next_after_failure(*job);
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

std::optional<std::int64_t> CountedJobs::next_after_failure(const Job& job) {
  return now_ms() + back_off(job.failures, kFirstWait, kLongestWait, random_).count();
}

void CountedJobs::give_up(Job& job, std::string_view why) {
  if (kind_.most_dead == 0) {
    jobs_.erase(job.seq);
  } else {
    job.state = JobState::kDead;
    job.due_at_ms.reset();
    job.dead = true;
    jobs_.put(job.seq, JobPart::kLastError, why.substr(0, kMaxJobErrorBytes));
    jobs_.update(job);
    if (kind_.most_dead != SIZE_MAX)
      jobs_.run(
          "DELETE FROM cf_agents_jobs WHERE seq IN (SELECT seq FROM cf_agents_jobs "
          "WHERE kind = +?1 AND state = 2 ORDER BY seq DESC LIMIT -1 OFFSET ?2)",
          kind_.kind, kind_.most_dead);
  }
  promote(job.key);
}

}  // namespace hearth::durable
