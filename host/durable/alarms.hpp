#pragma once
// The alarms of one live agent: calls of its own methods, each at a set time. config/README.md,
// "Alarms", has their meaning for authors.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/counted_jobs.hpp"
#include "durable/jobs.hpp"
#include "durable/retry_policy.hpp"
#include "storage/agent_database.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {

// The caller has checked its texts.
struct AlarmRequest {
  std::string method;
  std::string arguments;   // JSON array
  std::int64_t at_ms = 0;  // Unix time; a past time: now
};

struct AlarmSettings {
  std::size_t max_alarms = 100;  // of one agent, without dead ones
  int max_attempts = 3;
  std::chrono::milliseconds retry_base = kFirstWait;  // after the first failure; doubles
};

// A kind of jobs (durable/jobs.hpp). For each method at most one alarm waits,
// besides one that was interrupted and waits to run again.
//
// state      what is on disk              leaves it by
// waiting    the row, its time            begin_next() when its time has come; set() for the same
//                                         method replaces it
// running    the row, claimed             ended(); a crash -> waiting (JobLine)
// dead       the row, its last error      remove(); the oldest beyond kMostDead is removed
//
// Promises
//  P1 At least once  The row is removed in a transaction after the call has ended, and a crash
//                    before that repeats the call.
//  P2 Claim first    An attempt is counted on disk before the call begins, so that a call that
//                    crashes the process counts.
//  P3 Bounded        At most max_alarms wait or run, and at most kMostDead are dead.
//
// P1: an alarm is dead after max_attempts failed calls. The server's death is no failure.
// The time of an alarm is the wall clock's, also after the clock was set. The wait before a retry
// keeps its length when the clock is set back.
//
// Durable, Savepoints, Threads, Failure   As CountedJobs.
class Alarms final : public CountedJobs {
 public:
  static constexpr std::size_t kMostDead = 100;
  static constexpr std::size_t kMostRunning = 16;
  // The code that shows a page holds a few copies of it, on the agent's shard.
  static constexpr std::size_t kMaxPageBytes = std::size_t{1} << 20;

  Alarms(storage::AgentDatabase& database, const Clock& clock, Random& random,
         AlarmSettings settings, int max_crashes = kMostCrashes);

  struct Set {
    std::string id;
    std::string record;  // JSON, as in list()
    bool replaced = false;
  };
  // Replaces the waiting alarm of the method, in the same transaction; a running one stays.
  // kLimitExceeded.
  Result<Set> set(const AlarmRequest& request);
  // A JSON array of {"id","method","args","fire_at","state","attempts","last_error"}, the next due
  // first; `fire_at` in Unix milliseconds, `state` "waiting", "running" or "dead".
  std::string list();
  // A part of list(): at most `limit` records, and no further one after kMaxPageBytes. `after`:
  // Page::next of the page before, empty for the first. An alarm that a failed attempt puts off
  // between two pages may be in both. kInvalidArgument: `after` is not from a page.
  struct Page {
    std::string records;  // JSON array
    std::string next;     // empty: there are no more
  };
  Result<Page> page(std::string_view after, std::size_t limit);

 private:
  [[nodiscard]] std::optional<Job> waiting_of(std::string_view method);
  // The records behind a place, as page().
  Page read(const std::array<std::int64_t, 3>& place, std::size_t limit, std::size_t most_bytes);
  [[nodiscard]] std::string record_json(const Job& job);
  std::optional<std::int64_t> next_after_failure(const Job& job) override;

  const AlarmSettings settings_;
};

}  // namespace hearth::durable
