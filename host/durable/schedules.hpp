#pragma once
// The schedules of one live agent. What they mean to an agent's author is said in
// hearth/ext/schedule.h.

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

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::durable {

// state      what is on disk                              leaves it by
// waiting    the row, its time                            begin_due() once the time has come
// running    the row, claimed                             ended(); a crash -> waiting, due at once,
//                                                         interruption counted, dead after too
//                                                         many; the end of the instance on
//                                                         purpose -> waiting, due at once
// paused     the row, paused                              pause(false)
// missing    the row, a time after growing waits          begin_due(); load() makes it due at once.
//                                                         Also when this machine cannot say when a
//                                                         cron row is due, for want of its time
//                                                         zones
// dead       the row, no time                             retry(); create(), if it is idempotent
//                                                         and like it: the new row takes its place
//
// Promises
//  P1 Claim first   A run is claimed on disk before it is delivered, so that a run that kills the
//                   process counts.
//  P2 At least once  A one-shot row goes in the transaction that reports its run, or when it is too
//                   late for misfire kSkip; never because of the host's own failure.
//  P3 Next          A recurring row gets its next time in the transaction that reports the run.
//  P4 Clock         When the wall's clock is set back or ahead, intervals and delays that wait keep
//                   their length as well as they can: none waits longer than its own length from
//                   now, and none runs more than once for the jump. While an instance lives it
//                   measures a jump by the steady clock and moves them by it; a row that another
//                   instance left is bounded by its length from now. What follows the wall is said
//                   in hearth/ext/schedule.h.
//  P5 Fair          Due rows begin in the order of their times; one that runs holds no other up,
//                   up to max_running.
//
// Durable    Methods write into the agent's implicit transaction. The caller commits: after
//            begin_due() before the run is delivered, with the turn for the others (which is also
//            when begin_due() gave nothing: it may have put off a row, or followed the clock).
// Threads    The agent's shard.  Failure  Result for what a caller does wrong, StorageError for the
//                                         disk.
// Bounded    In memory: what runs. On disk nothing until the first is made. No call but load() and
//            the first after a jump of the clock looks at all rows.
class Schedules final : public WorkPart, private LinePolicy<ScheduleRow> {
 public:
  Schedules(storage::AgentDatabase& database, const Clock& clock, Random& random,
            ScheduleSettings settings);

  // What an earlier instance left. Once, before anything else. Writes where a run was left or the
  // clock was set back.
  void load();
  // Gives up what holds the database; only wake() and the counts may be called afterwards.
  void close() override;

  struct Created {
    std::string record;  // JSON
    std::string id;
    bool created = true;
  };
  // An idempotent request like a row that is not dead gives that row. A like row that is dead goes
  // in the same transaction as the new one is made, which takes over what runs of it are not over.
  Result<Created> create(const ScheduleRequest& request);
  Result<std::string> get(std::string_view id);
  // JSON array of at most 1,000 records and 8 MiB; empty if `after` names none.
  std::string list(const ScheduleFilter& filter);
  Result<void> cancel(std::string_view id);
  Result<void> pause(std::string_view id, bool paused);
  Result<void> retry(std::string_view id);

  // The next run that is due, claimed; nothing if none is or enough run.
  std::optional<ScheduleRun> begin_due();
  // A run that begin_due() gave has ended. `error` is a text for people; up to 4 KiB of it are
  // kept.
  ScheduleEnd ended(std::uint64_t run, RunOutcome outcome, std::string_view error);
  // The instance goes on purpose: what runs is interrupted, and that counts for nothing. Nothing
  // begins any more, and wake() is what is to be done after it.
  void interrupt_on_purpose() override;

  // Occurrences that were skipped or left out since the last call (misfire, overlap), rows that
  // died, and rows that were looked at in vain because there are no time zones now: for logs.
  struct Note {
    std::string id;
    std::string callback;
    enum class What { kMissed, kOverlapped, kDead, kPutOff, kManyDue } what{};
    std::uint64_t count = 1;
    std::string reason{};  // of kDead and kPutOff, for people
  };
  std::vector<Note> take_notes();

  [[nodiscard]] bool due() const override;
  // Running: work that ends with this instance. And when the next row is due.
  [[nodiscard]] Wake wake() const override;
  [[nodiscard]] std::size_t running() const;
  [[nodiscard]] std::size_t size() const;

 private:
  struct Run {
    std::string row_id;
    std::int64_t began_ms = 0;
  };

  // ---- LinePolicy ----
  std::optional<std::int64_t> first_moment() override;
  std::optional<ScheduleRow> next_due() override;
  [[nodiscard]] std::string_view why_given_up(const ScheduleRow& row) const override;
  void give_up(ScheduleRow& row, std::string_view why) override;
  // Runs that may be beside each other get a row each: the schedule itself goes on to its next
  // time, and the new row is the next one that is due.
  bool admit(ScheduleRow& row) override;
  void claim(ScheduleRow& row) override;
  void give_back(ScheduleRow& row) override;
  void follow(std::int64_t jump_ms) override;

  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }
  [[nodiscard]] bool full() const { return running_.size() >= settings_.max_running; }

  // ---- the rows and what is known of them ----
  void store(ScheduleRow& row);
  void insert(ScheduleRow& row, std::string_view payload);
  void remove(const ScheduleRow& row);
  // Nothing: it was removed while it ran.
  [[nodiscard]] std::optional<ScheduleRow> row_of(const ScheduleRow& claimed);
  std::string record_of(const ScheduleRow& row);
  void note(const ScheduleRow& row, Note::What what, std::uint64_t count, std::string reason = {});
  void die(ScheduleRow& row, std::string reason);
  void put_off(ScheduleRow& row, const Error& why, std::int64_t now);
  void die_or_put_off(ScheduleRow& row, const Error& why, std::int64_t now);

  // ---- the wall's clock ----
  void take_up(ScheduleRow& row);
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
  ScheduleEnd end_run(ScheduleRow& row, RunOutcome outcome, std::string_view error);
  ScheduleEnd end_child(ScheduleRow& child, ScheduleRow& parent, RunOutcome outcome,
                        std::string_view error);

  mutable ScheduleTable table_;
  const Clock& clock_;
  Random& random_;
  const ScheduleSettings settings_;

  std::size_t size_ = 0;      // schedules
  std::size_t children_ = 0;  // runs beside each other
  JobLine<ScheduleRow> line_;
  std::map<std::uint64_t, Run> running_;  // also those whose row was removed meanwhile
  std::uint64_t last_run_ = 0;
  bool going_ = false;    // interrupt_on_purpose() was called
  bool crowded_ = false;  // and that was noted
  std::vector<Note> notes_;
};

}  // namespace hearth::durable
