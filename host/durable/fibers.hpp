#pragma once
// The fibers of one live agent: those that run in this instance, and those that were interrupted.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/job_line.hpp"
#include "durable/jobs.hpp"
#include "durable/wake.hpp"
#include "durable/work_part.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
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
  int max_attempts = 10;        // recoveries begun without progress, until a fiber is dead
  int max_recoveries = 1'000;   // recoveries begun in all, until a fiber is dead; 0: no bound
  int max_turn_recoveries = 5;  // recoveries begun in all, until a turn is dead
  int max_crashes = 2;          // runs that ended the process, until a fiber is dead; 0: no bound
  std::chrono::milliseconds retry_base{1'000};  // wait after the first failed recovery; doubles
  std::chrono::milliseconds retry_cap{300'000};
  std::size_t max_running = 1'000;  // of one agent at once
  std::size_t max_snapshot_bytes = std::size_t{2} << 20;
  std::chrono::milliseconds keep_dead{std::chrono::hours(24 * 7)};  // 0: dead ones go at once
};

// Under which retention a dead fiber without a record is.
inline constexpr std::string_view kKeepDeadFiber = "dead";

// A fiber whose work runs in this instance. Never reused.
using FiberHandle = std::uint64_t;

// The row of a fiber in its agent's database: what tells it apart after a crash.
using FiberRow = std::int64_t;
inline constexpr FiberRow kNoFiber = 0;
// Of code that is asked how to recover several fibers: which of them it is about is not known.
inline constexpr FiberRow kSeveralFibers = std::numeric_limits<FiberRow>::max();

// The process has crashed in an agent's code.
struct EndedProcess {
  // Whose work ran; kNoFiber and kSeveralFibers count for none; nothing: the code has not told.
  std::optional<FiberRow> fiber;
};

// An interrupted fiber that is offered to the agent's code.
struct Interrupted {
  std::string id;
  std::string name;
  std::optional<std::string> snapshot;  // JSON
  std::int64_t created_at_ms = 0;
  int attempt = 1;  // counts from 1
};

// A fiber that an earlier instance left.
struct LeftOver {
  std::string id;
  std::string name;
  bool was_running =
      false;  // its work was interrupted; false: an attempt to recover it has failed since
};

// Where a fiber that has a row stands.
struct FiberStanding {
  FiberHandle running = 0;  // 0: its work does not run in this instance
  bool recovering = false;  // it is being offered
  bool dead = false;
  bool managed = false;  // not known of a dead one
  bool waits_for_code = false;
  // Recoveries begun since the last progress: a checkpoint with another text than the one before.
  int attempts = 0;
  std::int64_t next_at_ms = 0;  // not offered before
};

// state          what is on disk                          leaves it by
// running        the row                                  finish() -> no row; postpone(), or the
//                                                         end of this instance -> interrupted
// interrupted    the row, due at next_at                  begin_recovery() once next_at has come;
//                                                         take_up() then -> running
// recovering     the row, both counts + 1, next_at ahead  recovered() -> no row;
//                                                         start(replaces) -> no row, and a new
//                                                         one runs; resume() -> running;
//                                                         failed() -> interrupted, or dead after
//                                                         max_attempts; unknown() -> waits for
//                                                         code; a crash -> interrupted, with the
//                                                         attempt counted
// waits for code the row, due at kNextVersion             load() of the next instance ->
//                                                         interrupted; take_up() -> running
// dead           the row, dead = 1, last_error            retry() -> interrupted; sweep(), after
//                                                         keep_dead -> no row
// erase() ends any of them.
//
// Promises
//  P1 Row first    start() writes the row before the first instruction of the work runs.
//  P2 Finished     finish() removes the row in the running turn: with the last writes of the work,
//                  or not at all. Finished work is never offered again.
//  P3 One row      A continuation takes its predecessor's place in one transaction.
//  P4 Counted      An attempt is on disk before the hook is called, so that a hook that kills the
//                  process counts.
//  P5 Oldest first  Interrupted fibers are offered in the order of their creation, unless plan()
//                  says otherwise; one whose recovery has failed comes when its time has come, and
//                  after those that were due before.
//  P6 One hook     A fiber is not offered while a hook is to decide about it. Once it runs again or
//                  is settled, the hook that did that may go on beside the next one.
//  P7 Bounded      A fiber that is interrupted again and again is dead in the end: after
//                  max_attempts recoveries without a new checkpoint in between, and after
//                  max_recoveries with as many as it likes (a checkpoint may say the time, which is
//                  always new). A continuation inherits both counts; retry() begins both anew. What
//                  was interrupted on purpose, or postponed, gets the recovery that follows for
//                  nothing; the first one of its life is counted anyway. A turn (Job::is_turn())
//                  is dead after max_turn_recoveries; its retries neither raise nor lower that
//                  count.
//  P8 Poison       A run that ended the process, as load() is told, is counted for the fiber whose
//                  work it was; for none in a plan of several; if the code has not told, for each
//                  fiber that ran in the agent. A checkpoint of a run that is five minutes old
//                  begins the count anew. After max_crashes of them the fiber is dead, before its
//                  class is suspect.
//
// Managed    A row of kind kManaged is a record too (ManagedFibers). Its end is the record's
//            business: start(replaces), finish(), recovered() and erase() leave such a row alone.
//
// Bounded    Dead fibers cost nothing but their rows until somebody asks for them or they have had
//            their time: neither memory nor time at a wake or in a turn grows with their number.
//
// Durable    Methods write into the agent's implicit transaction. The caller commits: before
//            start(), stash() and begin_recovery() take effect outside, with the turn for the
//            others.
// Threads    The agent's shard.  Failure  Result for what a caller does wrong, StorageError for the
//                                         disk.
class Fibers final : public WorkPart, private LinePolicy<Job> {
 public:
  Fibers(storage::AgentDatabase& database, const Clock& clock, Random& random,
         FiberSettings settings);

  // What an earlier instance left. Once, before anything else. `ended`: how the process of that
  // instance has crashed, if it did so in this agent's code.
  void load(const std::optional<EndedProcess>& ended = std::nullopt);

  // Gives up what holds the database; only wake() may be called afterwards.
  void close() override;

  // ---- work ----
  struct Started {
    FiberHandle handle = 0;
    std::string id;
  };
  Result<Started> start(std::string_view name, std::string_view replaces);
  // `json` was checked. The id of the fiber.
  Result<std::string> stash(FiberHandle fiber, std::string_view json);
  // The id of the fiber that is over. kInvalidArgument for a managed one.
  Result<std::string> finish(FiberHandle fiber);
  // The instance goes on purpose (a shutdown, an update, an eviction), not by a fault of the work:
  // what runs or is being recovered is interrupted, and that counts for nothing. Writes only if an
  // attempt or a recovery is given back.
  void interrupt_on_purpose() override;
  [[nodiscard]] std::size_t running() const { return running_.size(); }
  // kNoFiber: it has ended, or (by its id) neither runs nor is being recovered.
  [[nodiscard]] FiberRow row_of(FiberHandle fiber) const;
  [[nodiscard]] FiberRow row_of(std::string_view id) const;

  // ---- recovery ----
  // The oldest interrupted fiber that is due, now recovering; nothing if none is. A due one that
  // has used up its attempts or its recoveries is dead from now on, and passed over.
  std::optional<Interrupted> begin_recovery();
  // The due ones, in the order in which they will be offered; without their snapshots. Costs what
  // all of them cost.
  [[nodiscard]] std::vector<Interrupted> due_list() const;
  // The one that begin_recovery() would give now, unless it is dead by then; empty: none.
  [[nodiscard]] std::string next_due_id() const;
  // From now on those that are due are offered in the order of `ids`, once; those that it does not
  // name after them, oldest first. An id that nothing due has is passed over, of one named twice
  // the first place counts.
  void plan(std::span<const std::string> ids);
  // What load() has found and is not dead, once.
  std::vector<LeftOver> take_left_over() { return std::exchange(left_over_, {}); }
  // Those that begin_recovery() has given up since the last call.
  std::vector<GivenUp> take_given_up() { return line_.take_given_up(); }
  // This one, if it is due, is being recovered from now on, though no code is asked; not counted.
  bool claim_uncounted(std::string_view id);
  void recovered(std::string_view id);
  struct Failure {
    bool dead = false;
    std::int64_t next_at_ms = 0;
  };
  Failure failed(std::string_view id, std::string_view error);
  // The code that is loaded does not know what is being recovered: it waits for another version, at
  // no cost. Of a fiber that is managed.
  void unknown(std::string_view id);
  Result<void> retry(std::string_view id);
  // A page of the dead ones, oldest first: a JSON array of {"id", "name", "snapshot", "created_at",
  // "attempts", "last_error"}. `after`: the id that the last page ended with, or empty. `limit`: 1
  // to 100, 0: 50; a page of more than 4 MiB ends before, and only an empty one is the last.
  // kInvalidArgument; kNotFound: `after` is not dead any more.
  Result<std::string> list_dead(std::string_view after, std::size_t limit);
  // Removes dead ones that died keep_dead ago or earlier, a few at a time: their ids; empty: no
  // more have had their time. Cheap when there are none.
  std::vector<std::string> sweep();
  // True if there is a dead one, or was a while ago.
  [[nodiscard]] bool may_have_dead() const { return may_have_dead_; }

  // ---- for ManagedFibers ----
  [[nodiscard]] int max_turn_recoveries() const { return settings_.max_turn_recoveries; }
  // Whether a fiber of this name and id may begin. kInvalidArgument, kLimitExceeded; kConflict: a
  // fiber that is not over has the id.
  [[nodiscard]] Result<void> may_start(std::string_view name, std::string_view id);
  // As start(), for a record that may_start(); the job gets its seq.
  FiberHandle start_managed(Job& job);
  // What is being recovered runs again, under its id. Its attempts go on counting until the next
  // checkpoint, its recoveries for ever. One that had no record becomes a brief one; for others
  // nothing is written.
  // kNotFound, kLimitExceeded.
  Result<FiberHandle> resume(std::string_view id);
  // What is due, or being recovered, or waits for code, runs in this instance; counted as a
  // recovery. Nothing if it runs already, has to wait, or has used up its attempts.
  struct TakenUp {
    FiberHandle handle = 0;
    bool was_offered = false;  // to a hook, which decides nothing any more
  };
  // kLimitExceeded.
  Result<std::optional<TakenUp>> take_up(std::string_view id);
  // What runs is interrupted, to be offered at `next_at_ms`; its handle is of no use any more. That
  // is no crash: its attempts begin anew, and beginning again counts as no recovery.
  void postpone(std::string_view id, std::int64_t next_at_ms);
  // The row goes, unless it is a record, and what runs under it has lost its handle.
  void erase(std::string_view id);
  // A row that waits was written by another hand.
  void forget_moment() { line_.changed(); }
  [[nodiscard]] std::optional<FiberStanding> find(std::string_view id);
  // The managed fiber that has this handle; or null.
  [[nodiscard]] const std::string* managed_id(FiberHandle fiber) const;
  [[nodiscard]] std::optional<std::string> last_error(std::string_view id);

  // True if begin_recovery() would find something now.
  [[nodiscard]] bool due() const override { return line_.due(); }
  // Running or recovering: work that ends with this instance. And when the next interrupted one is
  // due.
  [[nodiscard]] Wake wake() const override;

  struct Counts {
    std::size_t running = 0;
    std::size_t interrupted = 0;
    std::size_t dead = 0;  // counted on disk
  };
  [[nodiscard]] Counts counts();

 private:
  // ---- LinePolicy ----
  std::optional<std::int64_t> first_moment() override;
  std::optional<Job> next_due() override;
  [[nodiscard]] std::string_view why_given_up(const Job& job) const override;
  // A record is settled by the caller, which hears of it, in the same turn.
  void give_up(Job& job, std::string_view why) override;
  // Counts a recovery. Should it kill the process, the next one waits as after any other failure.
  void claim(Job& job) override;
  void give_back(Job& job) override;
  void follow(std::int64_t jump_ms) override;

  std::map<FiberHandle, Job>::iterator find_running(std::string_view id);
  std::optional<Job> find_open(std::string_view id);
  [[nodiscard]] std::optional<Job> first_waiting() const;
  [[nodiscard]] std::optional<Job> next_to_offer() const;
  [[nodiscard]] Result<void> check_start(std::string_view name) const;
  FiberHandle add_running(Job job);
  Job end_running(std::map<FiberHandle, Job>::iterator running);
  void write(const Job& job);
  [[nodiscard]] std::string dead_json(const Job& job);
  [[nodiscard]] std::chrono::milliseconds wait_after(int attempts) const;
  // Moments on disk up to this one have come.
  [[nodiscard]] std::int64_t until_ms() const { return now_ms() - line_.jump(); }
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }

  mutable Jobs jobs_;
  const Clock& clock_;
  Random& random_;
  const FiberSettings settings_;
  JobLine<Job> line_;  // claimed: those that are being recovered
  // Of these the attempts, the claims and the progress are as on disk, for the rest the row says
  // it.
  std::map<FiberHandle, Job> running_;
  std::map<std::string, FiberHandle, std::less<>> handles_;  // of running_, by id
  FiberHandle last_handle_ = 0;
  mutable std::deque<std::string> plan_;  // ids that are offered before all others
  std::vector<LeftOver> left_over_;
  bool may_have_dead_ = false;
  bool has_rows_ = false;  // else there is none to look for
};

}  // namespace hearth::durable
