#pragma once
// What counts for a fiber: pure functions of its row.

#include "durable/jobs.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace hearth::durable {

// By its row: no run was interrupted. The work begins when its lane is free, or is retried.
inline bool is_pending(const Job& job) {
  return job.status == "pending";
}

inline bool waits_for_decision(const Job& job) {
  return job.ended_at_ms && (job.dead || job.status == "interrupted");
}

// The side that decides about a fiber. An operator may also take one that waits for its next try,
// or for code.
enum class Decides : std::uint8_t { kAgent, kOperator };

inline bool may_decide(const Job& job, Decides who) {
  return waits_for_decision(job) ||
         (who == Decides::kOperator && !job.ended_at_ms && job.due_at_ms);
}

// Whether the next run or offer of the fiber counts in Job::claims. The first run or a retry of a
// turn does not: retries have a bound of their own, and clients see the numbers of recoveries.
inline bool is_counted(const Job& job) {
  return !job.is_turn() || !is_pending(job);
}

// Takes back the count of a recovery that is no fault of the work.
inline void give_back_recovery(Job& job) {
  if (is_counted(job)) job.claims = std::max(0, job.claims - 1);
}

inline void give_back_attempt(Job& job) {
  job.attempts = std::max(0, job.attempts - 1);
  job.interruptions = std::max(0, job.interruptions - 1);
  give_back_recovery(job);
}

// Recoveries since the last progress that failed or crashed.
inline int failed_attempts(const Job& job) {
  return job.attempts - job.interruptions;
}

// As much of an error's text as a job keeps.
inline std::string cut_job_error(std::string_view text) {
  return std::string(text.substr(0, kMaxJobErrorBytes));
}

}  // namespace hearth::durable
