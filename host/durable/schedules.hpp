#pragma once
// The schedules of one live agent. hearth/ext/schedule.h has their meaning for authors.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/job_line.hpp"
#include "durable/recurrence.hpp"
#include "durable/schedule_table.hpp"
#include "durable/schedule_types.hpp"
#include "durable/wake.hpp"
#include "durable/work_part.hpp"
#include "storage/agent_database.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::durable {

// state      what is on disk                              leaves it by
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
//            begin_due() before the run is delivered, with the turn for the others. A begin_due()
//            that returns nothing may have written too: put off a row, or followed the clock.
// Threads    The agent's shard.
// Failure    Result for a caller's mistake, StorageError for the disk.
// Bounded    In memory: the runs in progress. On disk: nothing until the first schedule is made.
//            Only load() and the first call after a jump of the clock read all rows.
class Schedules final : public WorkPart, private LinePolicy<ScheduleRow> {
 public:
  Schedules(storage::AgentDatabase& database, const Clock& clock, Random& random,
            ScheduleSettings settings, int max_crashes = kMostCrashes);

  // Takes over the rows of an earlier instance. Once, before any other member. Writes a row if its
  // run was interrupted, or the clock was set back. `has_code` false: the agent's code is not
  // there, and what lacks its callback waits on.
  void load(bool has_code = true);
  // Releases the database. Afterwards only wake() and the counts may be called.
  void close() override;

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

  // The next due run, claimed. Nothing: none is due, or max_running run.
  std::optional<ScheduleRun> begin_due();
  // A run of begin_due() has ended. `error`: a text for logs and records, cut to 4 KiB.
  ScheduleEnd ended(std::uint64_t run, TryOutcome outcome, std::string_view error);
  // The instance ends on purpose: interrupts the runs, which do not count as tries. No run begins
  // any more, and wake() is then for the next instance.
  void interrupt_on_purpose() override;

  // For logs: occurrences that were skipped since the last call (misfire, overlap), rows that died,
  // rows that were put off because there are no time zones now, and many rows due at once.
  struct Note {
    std::string id;
    std::string callback;
    enum class What { kMissed, kOverlapped, kDead, kPutOff, kManyDue } what{};
    std::uint64_t count = 1;
    std::string reason{};  // for kDead and kPutOff
  };
  std::vector<Note> take_notes();

  [[nodiscard]] bool due() const override;
  // Working: a run is in progress, which ends with this instance. at_ms: when the next row is due.
  [[nodiscard]] Wake wake() const override;
  [[nodiscard]] std::size_t running() const;
  [[nodiscard]] std::size_t size() const;

 private:
  // ---- LinePolicy ----
  std::optional<std::int64_t> first_moment() override { return table_.first_moment(); }
  std::optional<ScheduleRow> next_due() override { return table_.first_due(); }
  void give_up(ScheduleRow& row, std::string_view why) override;
  // If runs may overlap, each run gets a row of its own, which is due next, and the schedule goes
  // on to its next time.
  bool admit(ScheduleRow& row) override;
  void claim(ScheduleRow& row) override;
  void give_back(ScheduleRow& row) override;
  void follow(std::int64_t jump_ms) override;

  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }
  [[nodiscard]] std::int64_t steady_ms() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               clock_.steady_now().time_since_epoch())
        .count();
  }

  // ---- the rows and what is known of them ----
  void store(ScheduleRow& row);
  void insert(ScheduleRow& row, std::string_view payload);
  void remove(const ScheduleRow& row);
  // Nothing: it is no run of a schedule that exists.
  [[nodiscard]] std::optional<ScheduleRow> parent_of(const ScheduleRow& row);
  std::string record_of(const ScheduleRow& row);
  void note(const ScheduleRow& row, Note::What what, std::uint64_t count, std::string reason = {});
  void die(ScheduleRow& row, std::string reason);
  void put_off(ScheduleRow& row, const Error& why, std::int64_t now);
  void die_or_put_off(ScheduleRow& row, const Error& why, std::int64_t now);

  // ---- the wall's clock ----
  void take_up(ScheduleRow& row, bool has_code);
  void bound_wait(ScheduleRow& row, std::int64_t now);
  Result<void> reckon_absence(ScheduleRow& row, std::int64_t from, std::int64_t now);
  void reckon_anew(ScheduleRow& row, std::int64_t last, std::int64_t now);

  // ---- runs ----
  void note_crowds(std::int64_t now);
  bool may_run(ScheduleRow& row, std::int64_t now);
  void spin_off(ScheduleRow& row, std::int64_t now);
  void set_next(ScheduleRow& row, std::optional<std::int64_t> at, std::int64_t now);
  bool catch_up(ScheduleRow& row, const Recurrence& recurrence, std::int64_t now);
  void set_next_after_run(ScheduleRow& row, std::int64_t ended_at, std::int64_t now);
  ScheduleEnd end_run(ScheduleRow& row, TryOutcome outcome, std::string_view error);
  ScheduleEnd end_child(ScheduleRow& child, ScheduleRow& parent, TryOutcome outcome,
                        std::string_view error);

  mutable ScheduleTable table_;
  const Clock& clock_;
  Random& random_;
  const ScheduleSettings settings_;

  std::size_t size_ = 0;       // schedules
  std::size_t children_ = 0;   // rows of overlapping runs
  JobLine<ScheduleRow> line_;  // claimed: also runs whose row was removed meanwhile
  std::uint64_t last_run_ = 0;
  bool going_ = false;    // interrupt_on_purpose() was called
  bool crowded_ = false;  // many rows are due at once, and a note says so
  std::vector<Note> notes_;
};

}  // namespace hearth::durable
