#pragma once
// The fibers of one live agent: those that run in this instance, and interrupted ones.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/back_off.hpp"
#include "durable/job_line.hpp"
#include "durable/jobs.hpp"
#include "durable/wake.hpp"
#include "durable/work_part.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
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
};

// Names a fiber whose work runs in this instance. Never reused.
using FiberHandle = std::uint64_t;

// The row of a fiber in its agent's database: WorkMark::row.
using FiberRow = std::int64_t;
inline constexpr FiberRow kNoFiber = 0;

// An interrupted fiber that is offered to the agent's code.
struct Interrupted {
  std::string id;
  std::string name;
  std::optional<std::string> snapshot;  // JSON
  std::int64_t created_at_ms = 0;
  int attempt = 1;  // from 1
};

// An interrupted fiber that an earlier instance left.
struct LeftOver {
  std::string id;
  std::string name;
  bool was_running =
      false;  // its work was interrupted; false: its work or its last recovery had failed
};

// The state of a fiber that has a row.
struct FiberStanding {
  FiberHandle running = 0;  // 0: it does not run in this instance
  bool recovering = false;  // it is being offered
  bool dead = false;
  bool waits_for_code = false;
  // Recoveries begun since the last progress. Progress is a checkpoint that differs from the one
  // before.
  int attempts = 0;
  std::int64_t next_at_ms = 0;  // it is not offered before this time
};

// state          what is on disk                          leaves it by
// running        the row                                  postpone(), or the end of this
//                                                         instance -> interrupted; unknown() ->
//                                                         waits for code
// interrupted    the row, due at next_at                  begin_recovery() once next_at has come;
//                                                         take_up() then -> running
// recovering     the row, the counts + 1, next_at ahead   resume() -> running; failed() ->
//                                                         interrupted, or dead after
//                                                         max_attempts; unknown() -> waits for
//                                                         code; a crash -> interrupted, with the
//                                                         attempt counted
// waits for code the row, due at kNextVersion             load() of the next instance ->
//                                                         interrupted; take_up() -> running
// dead           the row, last_error                      ManagedFibers settles it at once
// erase() ends each of them.
//
// Promises
//  P1 Row first    start_managed() writes the row before the first instruction of the work runs.
//  P2 Finished     A row that is settled, in one transaction with the last writes of the work, is
//                  never offered again.
//  P3 One row      A fiber that is recovered keeps its row and its id.
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
//
// P5: A fiber whose recovery has failed is offered when its time has come, after fibers that were
// due before.
// P6: Once the fiber runs again or is settled, the hook that did this may go on beside the next
// hook.
// P7: JobLine bounds recoveries that have no end. The second bound is for work whose checkpoints
// always differ, such as by the time. If a fiber was interrupted on purpose or postponed, the
// recovery that follows does not count; but the first recovery of its life does. A retry of a turn
// (Job::is_turn()) neither raises nor lowers the turn's count.
// With JobPart::kResets progress resets the failures of the work, and the recoveries of a turn.
// P8: Jobs::count_crash() counts, for no fiber in a plan of several. A checkpoint by a run that is
// five minutes old resets the count.
//
// Records    A row is also a record (ManagedFibers), which ManagedFibers begins and ends.
//
// Durable    Methods write into the agent's implicit transaction. The caller commits: before
//            start_managed(), stash() and begin_recovery() take effect outside, with the turn for
//            the others.
// Threads    The agent's shard.
// Failure    Result for a caller's mistake, StorageError for the disk.
class Fibers final : public WorkPart, private LinePolicy<Job> {
 public:
  Fibers(storage::AgentDatabase& database, const Clock& clock, Random& random,
         FiberSettings settings);

  // Takes over the rows of an earlier instance. Once, before any other member.
  void load();

  // Releases the database. Afterwards only wake() may be called.
  void close() override;

  // ---- work ----
  // Writes a checkpoint. The caller has checked `json`. Returns the fiber's id.
  Result<std::string> stash(FiberHandle fiber, std::string_view json);
  // The instance ends on purpose (a shutdown, an update, an eviction): interrupts all that runs or
  // recovers. The next recovery does not count. Writes only if a count is taken back.
  void interrupt_on_purpose() override;
  [[nodiscard]] std::size_t running() const { return running_.size(); }
  // kNoFiber: no fiber with this handle runs; by id: it neither runs nor recovers.
  [[nodiscard]] FiberRow row_of(FiberHandle fiber) const;
  [[nodiscard]] FiberRow row_of(std::string_view id) const;

  // ---- recovery ----
  // The next due interrupted fiber, now recovering. Nothing: none is due. A due fiber beyond a
  // bound of P7 or P8 becomes dead, and the next one is taken.
  std::optional<Interrupted> begin_recovery();
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
  struct Failure {
    bool dead = false;
    std::int64_t next_at_ms = 0;
  };
  // The hook has failed. `is_final`: no retry can end better, so the fiber is dead.
  Failure failed(std::string_view id, std::string_view error, bool is_final = false);
  // The loaded code cannot go on with this fiber, which is recovering or runs: the fiber waits for
  // another version, and its handle is invalid. The recovery does not count.
  void unknown(std::string_view id);

  // ---- for ManagedFibers ----
  [[nodiscard]] int max_turn_recoveries() const { return settings_.max_turn_recoveries; }
  // Whether a fiber with this name may begin. kInvalidArgument, kLimitExceeded.
  [[nodiscard]] Result<void> may_start(std::string_view name) const;
  // Writes the row of a fiber that may_start() allows, and begins it. Sets the job's seq.
  FiberHandle start_managed(Job& job);
  // The same for one that waits for its lane: it has not begun, and is not offered until its row
  // gets a due_at.
  void park(Job& job);
  // A recovering fiber runs again, under its id. Its attempts count on until the next checkpoint,
  // its recoveries for ever. Offers of a parked one before its first run do not count. kNotFound,
  // kLimitExceeded.
  Result<FiberHandle> resume(std::string_view id);
  // Runs a fiber that is due, recovering or waiting for code; this counts as a recovery.
  // Nothing: it runs already, must wait, or is beyond a bound of P7 or P8.
  struct TakenUp {
    FiberHandle handle = 0;
    bool was_offered = false;  // to a hook, whose end has no effect any more
  };
  // kLimitExceeded.
  Result<std::optional<TakenUp>> take_up(std::string_view id);
  // Interrupts a running fiber, to be offered at `next_at_ms`; its handle is invalid then. This is
  // no crash: the attempts are reset, and the next start does not count as a recovery.
  void postpone(std::string_view id, std::int64_t next_at_ms);
  // Forgets the fiber; its row stays. The handle of a running fiber is invalid then.
  void erase(std::string_view id);
  // Another class has written a waiting row.
  void forget_moment() { line_.changed(); }
  [[nodiscard]] std::optional<FiberStanding> find(std::string_view id);
  // The id of the fiber with this handle; null: no fiber runs with it.
  [[nodiscard]] const std::string* managed_id(FiberHandle fiber) const;
  [[nodiscard]] std::optional<std::string> last_error(std::string_view id);

  // True if begin_recovery() would find something now.
  [[nodiscard]] bool due() const override { return line_.due(); }
  // Working: a fiber runs or recovers, which ends with this instance. at_ms: when the next
  // interrupted fiber is due.
  [[nodiscard]] Wake wake() const override;

 private:
  // ---- LinePolicy ----
  std::optional<std::int64_t> first_moment() override;
  std::optional<Job> next_due() override;
  [[nodiscard]] std::string_view why_given_up(const Job& job) const override;
  // Does not settle a record: the caller does, in the same turn, after take_given_up().
  void give_up(Job& job, std::string_view why) override;
  // Counts a recovery. If it does not end, the next one waits as after a failure.
  void claim(Job& job) override;
  // Takes back the counts. The row stays claimed, until the load() of the next instance.
  void give_back(Job& job) override;
  void follow(std::int64_t jump_ms) override;

  std::map<FiberHandle, Job>::iterator find_running(std::string_view id);
  std::optional<Job> find_open(std::string_view id);
  [[nodiscard]] std::optional<Job> first_waiting() const;
  [[nodiscard]] std::optional<Job> next_to_offer() const;
  FiberHandle add_running(Job job);
  void reset_retries(Job& job);
  void forget_first_offer(Job& job);
  Job end_running(std::map<FiberHandle, Job>::iterator running);
  void write(const Job& job);
  [[nodiscard]] std::chrono::milliseconds wait_after(int failures) const;
  // Rows whose moment on disk is not later than this are due.
  [[nodiscard]] std::int64_t until_ms() const { return now_ms() - line_.jump(); }
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }

  mutable Jobs jobs_;
  const Clock& clock_;
  Random& random_;
  const FiberSettings settings_;
  JobLine<Job> line_;  // claimed: the recovering fibers
  // Attempts, claims and progress of these jobs are as on disk. Other fields may be stale.
  std::map<FiberHandle, Job> running_;
  std::map<std::string, FiberHandle, std::less<>> handles_;  // keys of running_, by id
  FiberHandle last_handle_ = 0;
  mutable std::deque<std::string> plan_;  // ids that are offered before all others
  std::vector<LeftOver> left_over_;
  bool has_rows_ = false;  // false: the agent has no row of a fiber
};

}  // namespace hearth::durable
