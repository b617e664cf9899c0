#pragma once
// What counts for a fiber: pure functions of its row.

#include "durable/job_line.hpp"
#include "durable/jobs.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::durable {

struct FiberSettings {
  std::chrono::milliseconds recovery_timeout{60'000};  // of one recovery hook
  // After so many, an interrupted fiber is dead.
  int max_attempts = 10;                              // recoveries that failed without progress
  int max_recoveries = 1'000;                         // recoveries begun in all; 0: no bound
  int max_turn_recoveries = 5;                        // recoveries begun in all, of a turn
  int max_crashes = kMostCrashes;                     // runs that crashed the process; 0: no bound
  std::chrono::milliseconds retry_base = kFirstWait;  // after the first failed recovery; doubles
  std::chrono::milliseconds retry_cap = kLongestWait;
  std::size_t max_running = 1'000;  // of one agent at once
  std::size_t max_snapshot_bytes = std::size_t{2} << 20;
  std::chrono::milliseconds keep_completed{std::chrono::hours(24)};
  std::chrono::milliseconds keep_failed{std::chrono::hours(24 * 7)};
  std::size_t max_records = 10'000;                   // of one agent
  std::size_t max_json_bytes = std::size_t{1} << 20;  // of input, metadata and result, each
};

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

// Why no further recovery begins; empty: one may.
inline std::string_view why_not_recovered(const Job& job, const FiberSettings& settings) {
  if (job.is_turn() && is_counted(job) && job.claims >= settings.max_turn_recoveries)
    return "recovered as often as fibers.max_turn_recoveries allows, and interrupted once more";
  if (failed_attempts(job) >= settings.max_attempts)
    return "interrupted again and again without progress";
  if (settings.max_recoveries > 0 && job.claims >= settings.max_recoveries)
    return "recovered as often as fibers.max_recoveries allows, and interrupted once more";
  return {};
}

// As much of an error's text as a job keeps.
inline std::string cut_job_error(std::string_view text) {
  return std::string(text.substr(0, kMaxJobErrorBytes));
}

}  // namespace hearth::durable
