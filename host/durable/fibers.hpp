#pragma once
// The fibers of one live agent. hearth/ext/fibers.h has their meaning for authors, and the table of
// their statuses.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/back_off.hpp"
#include "durable/counted_jobs.hpp"
#include "durable/fiber_counts.hpp"
#include "durable/fiber_record.hpp"
#include "durable/fiber_request.hpp"
#include "durable/fiber_table.hpp"
#include "durable/fiber_turns.hpp"
#include "durable/job_count.hpp"
#include "durable/job_line.hpp"
#include "durable/jobs.hpp"
#include "durable/wake.hpp"
#include "durable/work_part.hpp"
#include "storage/agent_database.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// Names a fiber whose work runs in this instance. Never reused.
using FiberHandle = std::uint64_t;

// The row of a fiber in its agent's database: WorkMark::row.
using FiberRow = std::int64_t;
inline constexpr FiberRow kNoFiber = 0;

// A record after a change, for logs, counts and waiting callers.
struct FiberChange {
  std::string id;
  std::int64_t row = 0;
  FiberStatus status{};
  std::string record;                // JSON
  std::vector<std::string> inner{};  // ids of the fibers that were aborted with it
};

// An interrupted fiber that is offered to the agent's code.
struct Interrupted {
  std::string id;
  std::string name;
  std::optional<std::string> snapshot;  // JSON
  std::int64_t created_at_ms = 0;
  int attempt = 1;          // from 1
  bool is_pending = false;  // no run of it was interrupted: its work begins, or is retried
};

// Members of HEARTH_EVENT_FIBER_RECOVERED.
struct Offered {
  std::string record;       // JSON
  std::string_view reason;  // a literal
};

// An interrupted fiber that an earlier instance left.
struct LeftOver {
  std::string id;
  std::string name;
  // Its work was interrupted; false: its work or its last recovery had failed.
  bool was_running = false;
};

// A fiber is one row, and the row is its record. How long the record stays is data (FiberKeeping).
//
// state          what is on disk                          leaves it by
// parked         the row, without a due_at                the end of the first of its lane ->
//                                                         interrupted
// running        the row, claimed                         settle() -> settled, or interrupted until
//                                                         its retry; wait_for_code(); the end of
//                                                         this instance -> interrupted
// interrupted    the row, due at next_at                  begin_recovery() once next_at has come
// recovering     the row, claimed, the counts + 1,        resume(), take_up -> running; recovered()
//                next_at ahead                            -> settled; failed() -> interrupted, or
//                                                         settled as dead; unknown() -> waits for
//                                                         code; a crash -> interrupted, counted
// waits for code the row, due at kNextVersion             load() of the next instance ->
//                                                         interrupted; take_up -> running
// settled        the row; while its telling is due, a     retry() -> interrupted; resolve(); a
//                row of that beside it                    replacing start(), remove(), sweep() -> -
//
// Promises
//  P1 Row first    start() writes the row before the first instruction of the work runs.
//  P2 Settled      A fiber that is settled, in one transaction with the last writes of its work, is
//                  never offered again.
//  P3 Told         A settled record is due for telling until told(), unless it is replaced, retried
//                  or removed before.
//  P4 Counted      An attempt is on disk before the hook is called, so that a hook that kills the
//                  process counts.
//  P5 Oldest first  Interrupted fibers are offered in the order of their creation, unless plan()
//                  gives another order.
//  P6 One hook     A fiber is not offered while another hook has to decide about it.
//  P7 Bounded      A fiber is dead after max_attempts recoveries that failed or crashed without a
//                  new checkpoint, and after max_recoveries in all; a turn is dead after
//                  max_turn_recoveries in all.
//  P8 Poison       A fiber is dead after max_crashes runs that crashed the process, before its
//                  class is suspect.
//  P9 Conflict     A key or id with another name or input, or an id whose record has another key or
//                  none, is kConflict, never a silent hit.
//  P10 Brief       The turn that settles a brief record without an open parent removes it without
//                  a telling; a dead record gets a telling, and is kept for keep_failed.
//  P11 Parents     A brief record with an open parent is kept, untold, until the parent has another
//                  checkpoint or is settled, so that a parent that is run again finds the value.
//  P12 Code        A fiber that waits for code waits without limit, and counts toward max_records.
//  P13 Turns       Each recovery of a turn, and its giving up, is in take_turn_news().
//  P14 Once        once() is true one time for each mark of a fiber, over all its recoveries.
//  P15 Inner       An aborted fiber ends its inner fibers, however deep, and none begins below it.
//  P16 Lanes       Of the open fibers of a lane only the first accepted one runs or is offered,
//                  also while it waits for a retry or for code.
//
// P1: A fiber that is recovered keeps its row and its id.
// P2: Only resolve(), retry() and a replacing start() overwrite a settled status.
// P3: Retention does not remove a record before it was told.
// P5: A fiber whose recovery has failed is offered when its time has come, after those that were
// due before.
// P8: A plan of several fibers counts for none of them. A checkpoint by a run that is five minutes
// old resets the count.
// P7: JobLine bounds recoveries that have no end. The second bound is for work whose checkpoints
// always differ, such as by the time. If a fiber was interrupted on purpose or its work is retried,
// the recovery that follows does not count; but the first recovery of its life does. A retry of a
// turn neither raises nor lowers the turn's count. Progress is a checkpoint that differs from the
// one before; with FiberRequest::resets_by_progress it resets the failures of the work, and the
// recoveries of a turn.
// P11: A dead or interrupted parent may be revived, and keeps the values. A kKept record stays, but
// loses its key at the same moment if the key begins with the parent's id and a slash.
//
// Savepoints      No member may be called while a savepoint of the agent's code is open: a rollback
//                 would not reach the state in memory here.
// Durable         Methods write into the agent's implicit transaction. The caller commits: before
//                 start(), resume(), stash() and begin_recovery() take effect outside, with the
//                 turn for the others.
// Threads         The agent's shard.
// Failure         Result for a caller's mistake, StorageError for the disk.
// Bounded         In memory: running and recovering fibers. A list ends at 4 MiB.
class Fibers final : public WorkPart, private LinePolicy<Job> {
 public:
  static constexpr std::size_t kMostTelling = 8;  // at once

  Fibers(storage::AgentDatabase& database, const Clock& clock, Random& random,
         const FiberSettings& settings);

  // Takes over the rows of an earlier instance. Once, before any other member. `has_code` false:
  // the agent's code is not there, and fibers that wait for code go on waiting.
  void load(bool has_code = true);
  // Releases the database. Afterwards only wake() may be called.
  void close() override;

  // ---- work ----
  struct Started {
    FiberHandle fiber = 0;  // 0: the record exists, and no work begins
    std::string id;
    std::string record{};
    bool was_there = false;    // the record existed, and its work goes on with `fiber`
    bool was_offered = false;  // to a hook, whose end has no effect any more
    bool is_parked = false;    // it is new, and begins when its lane is free
  };
  // kInvalidArgument, kConflict, kLimitExceeded, kNotFound (the parent is over): nothing was
  // written.
  Result<Started> start(const FiberRequest& request);
  // A recovering fiber runs again, under its id. Its attempts count on until the next checkpoint,
  // its recoveries for ever. Offers of a parked one before its first run do not count.
  // kNotFound: the fiber is not being offered now; kLimitExceeded.
  Result<FiberHandle> resume(std::string_view id);
  // Writes a checkpoint. The caller has checked `json`. Returns the fiber's id. The fiber needs no
  // more the values of fibers that it waited for before.
  Result<std::string> stash(FiberHandle fiber, std::string_view json);
  // True if this running fiber has not had the mark before; it has it then. kNotFound: the fiber
  // does not run. kInvalidArgument, kLimitExceeded: see FiberTable::mark().
  Result<bool> once(FiberHandle fiber, std::string_view mark);
  // The work has ended. The change is kPending if the work failed and will be retried.
  // `is_final`: no retry can end better than this kError.
  // kNotFound: it was settled before. After other errors it still runs: kInvalidArgument: the
  // status does not settle, or the result is no JSON; kLimitExceeded: the result is too large.
  Result<FiberChange> settle(FiberHandle fiber, FiberStatus status, std::string_view body,
                             bool is_final = false);
  // The same with an outcome, which is final. kInvalidArgument: also if it is none.
  Result<FiberChange> settle(FiberHandle fiber, std::string_view outcome_json);
  // The work of this running fiber cannot go on in this version of the code: the fiber waits for
  // another one. kNotFound: it was settled before.
  Result<FiberChange> wait_for_code(FiberHandle fiber);
  // The instance ends on purpose (a shutdown, an update, an eviction): interrupts all that runs or
  // recovers. The next recovery does not count. Writes only if a count is taken back.
  void interrupt_on_purpose() override;

  [[nodiscard]] std::size_t running() const { return running_.size(); }
  // When the oldest run of this instance began, Unix milliseconds. None: no fiber runs.
  [[nodiscard]] std::optional<std::int64_t> runs_since_ms() const;
  [[nodiscard]] int max_turn_recoveries() const { return settings_.max_turn_recoveries; }
  // kNoFiber: no fiber with this handle runs; by id: it neither runs nor recovers.
  [[nodiscard]] FiberRow row_of(FiberHandle fiber) const;
  [[nodiscard]] FiberRow row_of(std::string_view id) const;
  // Null: no fiber runs with this handle. Valid until it ends.
  [[nodiscard]] const Job* find_running(FiberHandle fiber) const;

  // ---- records ----
  // The record, by id or by key; the other is empty. kNotFound, kInvalidArgument.
  Result<std::string> inspect(std::string_view id, std::string_view key);
  // A JSON array, newest first. kNotFound: no record has the id `after`. A page can end before its
  // limit, after 4 MiB: only an empty page is the last.
  Result<std::string> list(const FiberFilter& filter);
  // Settles an unsettled fiber as aborted. Its handle is invalid then, and it cannot be resumed.
  // "inner" in the record: the ids of the fibers that ended with it.
  Result<FiberChange> cancel(std::string_view id, std::string_view key, std::string_view reason);
  // Settles a dead or interrupted fiber with this outcome. kNotFound: it is neither.
  Result<FiberChange> resolve(std::string_view id, std::string_view outcome_json,
                              Decides who = Decides::kAgent);
  // A dead or interrupted fiber is to be recovered again, with new counts. kNotFound: it is
  // neither.
  Result<void> retry(std::string_view id, Decides who = Decides::kAgent);
  // The number of removed records. See FiberTable::to_remove().
  Result<std::uint64_t> remove(const FiberFilter& filter);
  // Removes some expired records. True if it removed any. Cheap when none has expired.
  bool sweep();
  // The ids of the dead records that sweep() has removed since the last call.
  std::vector<std::string> take_expired() { return std::exchange(expired_, {}); }
  // A fiber was settled since the last call of take_settled().
  [[nodiscard]] bool has_settled() const { return has_settled_; }
  bool take_settled() { return std::exchange(has_settled_, false); }
  // The news since the last call, in order.
  std::vector<TurnNews> take_turn_news() { return turns_.take(); }
  // The last news of turns, for a client that has just connected: of turns that were recovered and
  // go on, and of given up turns whose records are still dead and after which no turn has begun. At
  // most FiberTurns::kMostStanding of each, the oldest first.
  [[nodiscard]] std::vector<TurnNews> standing_turns() { return turns_.standing(); }

  // ---- telling: the event kFiberSettled ----
  [[nodiscard]] CountedJobs& tellings() { return tellings_; }
  // The next due record that is to be told, claimed. Nothing: none is due, or
  // kMostTelling are in progress.
  std::optional<FiberChange> next_untold();
  // The telling has ended. `heard` false: it is repeated.
  void told(std::string_view id, bool heard);

  // ---- recovery ----
  // The next due interrupted fiber, now recovering. Nothing: none is due. A due fiber beyond a
  // bound of P7 or P8 becomes dead, and the next one is taken.
  std::optional<Interrupted> begin_recovery();
  // The fiber of begin_recovery() is now offered. The record is as it is now, also if the fiber was
  // cancelled in between.
  Offered offer(std::string_view id);
  [[nodiscard]] bool is_recovering(std::string_view id) const { return line_.is_claimed(id); }
  // The due fibers in the order in which they will be offered, without snapshots. Reads all of
  // their rows.
  [[nodiscard]] std::vector<Interrupted> due_list() const;
  // The id of the fiber that begin_recovery() looks at next; empty: none is due.
  [[nodiscard]] std::string next_due_id() const;
  // Offers the due fibers in the order of `ids`, each once, and then all others, oldest first. An
  // id that no due fiber has is ignored. If an id is there twice, its first place counts.
  void plan(std::span<const std::string> ids);
  // The interrupted fibers that load() found. Empty from the second call on.
  std::vector<LeftOver> take_left_over() { return std::exchange(left_over_, {}); }
  // The fibers that begin_recovery() has given up since the last call.
  std::vector<GivenUp> take_given_up() { return line_.take_given_up(); }
  // If this fiber is due, makes it recovering without a hook; it is not counted. False: not due.
  bool claim_uncounted(std::string_view id);
  // The hook has ended well. `outcome_json`: the body that completed the event, or empty.
  // kNotFound: the fiber was resumed or settled meanwhile, which is fine. Any other error: the body
  // is no outcome; the caller treats the hook as failed.
  Result<FiberChange> recovered(std::string_view id, std::string_view outcome_json);
  struct Failure {
    bool dead = false;
    std::int64_t next_at_ms = 0;
  };
  // The hook has failed. `is_final`: no retry can end better, so the fiber is dead.
  Failure failed(std::string_view id, std::string_view error, bool is_final = false);
  // The recovering fiber waits for another version of the code; the recovery does not count. False:
  // it was settled meanwhile.
  bool unknown(std::string_view id);

  // True if begin_recovery() would find something now.
  [[nodiscard]] bool due() const override { return line_.due(); }
  // Working: a fiber runs or recovers, which ends with this instance. at_ms: when the next
  // interrupted fiber is due. Tellings have their own.
  [[nodiscard]] Wake wake() const override;

 private:
  // ---- LinePolicy ----
  std::optional<std::int64_t> first_moment() override {
    return jobs_.first_moment(JobKind::kFiber);
  }
  std::optional<Job> next_due() override { return next_to_offer(); }
  [[nodiscard]] std::string_view why_given_up(const Job& job) const override;
  // Settles the fiber as dead.
  void give_up(Job& job, std::string_view why) override;
  // Counts a recovery. If it does not end, the next one waits as after a failure.
  void claim(Job& job) override;
  // Takes back the counts. The row stays claimed, until the load() of the next instance.
  void give_back(Job& job) override;
  void follow(std::int64_t jump_ms) override;

  // ---- runs ----
  Result<Started> begin(const FiberRequest& request, const Job* replaced);
  Result<Started> take_up(Job job);
  [[nodiscard]] Result<void> make_room();
  [[nodiscard]] Result<void> may_run() const;
  FiberHandle go_on(Job job);
  FiberHandle add_running(Job job);
  // Ends the run of this fiber in memory.
  Job end_running(std::map<FiberHandle, Job>::iterator running);
  bool reset_retries(Job& job);
  FiberChange postpone(Job job, std::string_view error);
  void put_aside(Job& job);
  void write(const Job& job);

  // ---- ends ----
  FiberChange settle_as(Job job, const FiberOutcome& outcome, bool dead = false);
  FiberChange settle_alone(Job job, const FiberOutcome& outcome, bool dead);
  // P15, once `outer` is settled.
  void abort_inner(FiberChange& outer, const FiberOutcome& outcome);
  // Forgets what is in memory.
  void forget(const std::string& id);
  void tell(const std::string& id);
  void tell_no_more(const std::string& id);
  void erase(const Job& job);
  void remove_children(std::string_view parent);
  FiberRecord record_of(Job job);
  FiberChange change_of(Job job);

  // ---- recovery ----
  [[nodiscard]] std::optional<Job> next_to_offer() const;
  [[nodiscard]] std::chrono::milliseconds wait_after(int failures) const;
  // Rows whose moment on disk is not later than this are due.
  [[nodiscard]] std::int64_t until_ms() const { return now_ms() - line_.jump(); }
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }

  mutable Jobs jobs_;
  FiberTable table_;
  FiberTurns turns_;
  const Clock& clock_;
  Random& random_;
  const FiberSettings settings_;
  // A telling has the id of its fiber, and is its key too: if a fiber ends once more while its
  // telling is in progress, the next telling begins when that one has ended. One that is given up
  // leaves no row.
  CountedJobs tellings_;
  JobCount count_;
  JobLine<Job> line_;                                        // claimed: the recovering fibers
  std::map<FiberHandle, Job> running_;                       // as on disk, like those in line_
  std::map<std::string, FiberHandle, std::less<>> handles_;  // keys of running_, by id
  FiberHandle last_handle_ = 0;
  mutable std::deque<std::string> plan_;  // ids that are offered before all others
  std::vector<LeftOver> left_over_;
  std::vector<std::string> expired_;  // ids
  // Ids of running fibers for which values may be kept since their last checkpoint.
  std::set<std::string, std::less<>> parents_;
  bool has_settled_ = false;
};

}  // namespace hearth::durable
