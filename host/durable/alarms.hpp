#pragma once
// The alarms of one live agent: calls of its own methods, each at a time. What they mean to an
// agent's author is said in config/README.md, "Alarms".

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/counted_tries.hpp"
#include "durable/job_line.hpp"
#include "durable/jobs.hpp"
#include "durable/wake.hpp"
#include "durable/work_part.hpp"
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
  std::int64_t at_ms = 0;  // Unix time; one that has passed: now
};

struct AlarmDelivery {
  std::string id;
  std::string method;
  std::string arguments;
};

enum class AlarmEnd { kDone, kRetry, kDead, kRemoved };

struct AlarmSettings {
  std::size_t max_alarms = 100;  // of one agent, dead ones left out
  int max_attempts = 3;
  std::chrono::milliseconds retry_base{1'000};  // after the first failure; doubles
};

// A kind of jobs (durable/jobs.hpp). There is at most one alarm that waits for each method.
//
// state      what is on disk              leaves it by
// waiting    the row, its time            begin_next() when its time has come; set() of the method
//                                         takes its place
// running    the row, claimed             ended(); a crash -> waiting, due at once: the attempt
//                                         counts
// dead       the row, its last error      remove(); more than kMostDead: the oldest one goes
//
// Promises
//  P1 At least once  The row goes in a transaction after the call has ended. A crash between the
//                    two runs the call again.
//  P2 Claim first    An attempt is counted on disk before the call begins, so that a call that
//                    kills the process counts. No crash begins the count anew.
//  P3 Bounded        max_alarms wait or run, and at most kMostDead are dead.
//
// Durable    As Notices.
// Savepoints  None of it may be called while a savepoint of the agent's own is open.
// Threads    The agent's shard.  Failure  Result for what a caller does wrong, StorageError for the
//                                         disk.
class Alarms final : public WorkPart, private CountedTries {
 public:
  static constexpr std::size_t kMostDead = 100;
  static constexpr std::size_t kMostRunning = 16;
  // What shows a page holds it a few times over, on the agent's shard.
  static constexpr std::size_t kMaxPageBytes = std::size_t{1} << 20;

  Alarms(storage::AgentDatabase& database, const Clock& clock, Random& random,
         AlarmSettings settings);

  // What an earlier instance left. Once, before anything else.
  void load();
  // Gives up what holds the database; only wake() may be called afterwards.
  void close() override;

  struct Set {
    std::string id;
    std::string record;  // JSON, as in list()
    bool replaced = false;
  };
  // kLimitExceeded. An alarm of the method that waits goes in the same transaction; one that runs
  // is left alone.
  Result<Set> set(const AlarmRequest& request);
  // A JSON array of {"id","method","args","fire_at","state","attempts","last_error"}, the next due
  // first; `fire_at` in Unix milliseconds, `state` "waiting", "running" or "dead".
  std::string list();
  // A part of list(): at most `limit` records, of which none begins behind kMaxPageBytes.
  // `after`: Page::next of the page before, empty for the first. An alarm that another attempt puts
  // off meanwhile may come twice. kInvalidArgument: `after` is no such text.
  struct Page {
    std::string records;  // JSON array
    std::string next;     // empty: there are no more
  };
  Result<Page> page(std::string_view after, std::size_t limit);
  Result<void> remove(std::string_view id);  // kNotFound

  // The next one that is due, claimed; nothing if none is.
  std::optional<AlarmDelivery> begin_next();
  [[nodiscard]] bool runs(std::string_view id) const { return line_.is_claimed(id); }
  // `error`: why the call has failed; empty: it has not.
  AlarmEnd ended(std::string_view id, std::string_view error);
  // The instance goes on purpose: what runs is interrupted, and that counts for nothing.
  void interrupt_on_purpose() override { line_.give_back_all(); }
  // Those that died of crashes since the last call.
  std::vector<GivenUp> take_given_up() { return line_.take_given_up(); }

  [[nodiscard]] bool due() const override { return line_.due(); }
  // Working: one runs, or is due.
  [[nodiscard]] Wake wake() const override { return line_.wake(); }

 private:
  [[nodiscard]] std::optional<Job> waiting_of(std::string_view method);
  [[nodiscard]] std::chrono::milliseconds wait_after(int attempts) const;
  [[nodiscard]] std::string record_json(const Job& job);
  // Failures and crashes count alike.
  [[nodiscard]] std::string_view why_given_up(const Job& job) const override;
  void bury(Job& job, std::string_view why) override;

  const AlarmSettings settings_;
  JobLine<Job> line_;
};

// The record of an alarm that was set, with the member "replaced".
[[nodiscard]] std::string with_replaced(Alarms::Set set);

}  // namespace hearth::durable
