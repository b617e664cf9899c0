#pragma once
// The schedules of one live agent. hearth/ext/schedule.h has their meaning for authors.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/job_line.hpp"
#include "durable/schedule_runs.hpp"
#include "storage/agent_database.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::durable {

// state      what is on disk                              leaves it by (begin_due(), ended(): of
//                                                         ScheduleRuns)
// waiting    the row, its time                            begin_due() once the time has come
// running    the row, claimed                             ended(); a crash -> waiting, or dead
//                                                         (JobLine); the end of the instance on
//                                                         purpose -> waiting, due at once
// paused     the row, paused                              pause(false)
// missing    the row, a time after growing waits          begin_due(); load() makes it due at once
// dead       the row, no time                             retry(); an idempotent create() that is
//                                                         alike replaces it
//
// A row is missing if the class has no such callback, or if this machine has no time zones now to
// find out when a cron row is due.
//
// Promises
//  P1 Claim first   A run is claimed on disk before it is delivered, so that a run that kills the
//                   process counts.
//  P2 At least once  A one-shot row is removed in the transaction that reports its run, or when it
//                   is too late for misfire kSkip, but never for a failure of the host.
//  P3 Next          A recurring row gets its next time in the transaction that reports the run.
//  P4 Clock         If the wall clock is set, no interval or delay waits longer than its length
//                   from now, and none runs more than once for the jump.
//  P5 Fair          Due rows begin in the order of their times, and up to max_running run at once.
//
// P4: A live instance measures a jump by the steady clock, and moves the waits by it. The wait of a
// row from an earlier instance is bounded by its length from now. hearth/ext/schedule.h says what
// follows the wall clock.
//
// Durable    Methods write into the agent's implicit transaction. The caller commits: after
//            ScheduleRuns::begin_due() before the run is delivered, with the turn for the others.
// Threads    The agent's shard.
// Failure    Result for a caller's mistake, StorageError for the disk.
// Bounded    On disk: nothing until the first schedule is made.
class Schedules final : public WorkPart {
 public:
  Schedules(storage::AgentDatabase& database, const Clock& clock, Random& random,
            ScheduleSettings settings, int max_crashes = kMostCrashes);

  // Takes over the rows of an earlier instance. Once, before any other member. Writes a row if its
  // run was interrupted, or the clock was set back. `has_code` false: the agent's code is not
  // there, and what lacks its callback waits on.
  void load(bool has_code = true) { runs_.load(has_code); }
  // Releases the database. Afterwards only wake() and the counts may be called.
  void close() override { runs_.line().close(); }

  struct Created {
    std::string record;  // JSON
    std::string id;
    bool created = true;
  };
  // If an idempotent request is like an existing row that is not dead, returns that row. If it is
  // like a dead row, the new row replaces that in one transaction, and takes over its unfinished
  // runs.
  Result<Created> create(const ScheduleRequest& request);
  Result<std::string> get(std::string_view id);
  // A JSON array of at most 1,000 records and 8 MiB; empty: no schedule has the id `after`.
  std::string list(const ScheduleFilter& filter);
  Result<void> cancel(std::string_view id);
  Result<void> pause(std::string_view id, bool paused);
  Result<void> retry(std::string_view id);
  // The next run begins now; the times behind it are reckoned as after any run. kNotFound: there is
  // no such schedule, or it is paused, dead, or runs.
  Result<void> run_now(std::string_view id);

  [[nodiscard]] ScheduleRuns& runs() { return runs_; }
  [[nodiscard]] std::size_t size() const { return table_.size(); }
  // The instance ends on purpose: interrupts the runs, which do not count as tries. No run begins
  // any more, and wake() is then for the next instance.
  void interrupt_on_purpose() override { runs_.interrupt_on_purpose(); }
  [[nodiscard]] bool due() const override { return runs_.due(); }
  // Working: a run is in progress, which ends with this instance. at_ms: when the next row is due.
  [[nodiscard]] Wake wake() const override;

 private:
  std::string record_of(const ScheduleRow& row);
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }

  ScheduleTable table_;
  const Clock& clock_;
  Random& random_;
  const ScheduleSettings settings_;
  ScheduleRuns runs_;
};

}  // namespace hearth::durable
