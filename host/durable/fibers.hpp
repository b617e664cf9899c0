#pragma once
// The fibers of one live agent. hearth/ext/fibers.h has their meaning for authors, and the table of
// their statuses.

#include "durable/fiber_records.hpp"
#include "durable/fiber_request.hpp"
#include "durable/job_line.hpp"

#include <string>
#include <string_view>

namespace hearth::durable {

// A fiber is one row, and the row is its record. How long the record stays is data (FiberKeeping).
//
// state          what is on disk                          leaves it by
// parked         the row, without a due_at                the end of the first of its lane ->
//                                                         interrupted
// running        the row, claimed                         settle() -> settled, or interrupted until
//                                                         its retry; wait_for_code(); the end of
//                                                         this instance -> interrupted
// interrupted    the row, due at next_at                  FiberRecovery::begin() at that time
// recovering     the row, claimed, the counts + 1,        resume(), take_up -> running; recovered()
//                next_at ahead                            -> settled; failed() -> interrupted, or
//                                                         settled as dead; unknown() -> waits for
//                                                         code; a crash -> interrupted, counted
// waits for code the row, due at kNextVersion             load() of the next instance ->
//                                                         interrupted; take_up -> running
// settled        the row; while its telling is due, a     retry() -> interrupted; resolve(); a
//                row of that beside it                    replacing start(), remove(), sweep() -> -
//
// Promises. P3, P10, P11: FiberEnds. P4 to P8: FiberRecovery.
//  P1 Row first    start() writes the row before the first instruction of the work runs.
//  P2 Settled      A fiber that is settled, in one transaction with the last writes of its work, is
//                  never offered again.
//  P9 Conflict     A key or id with another name or input, or an id whose record has another key or
//                  none, is kConflict, never a silent hit.
//  P12 Code        A fiber that waits for code waits without limit, and counts toward max_records.
//  P13 Turns       Each recovery of a turn, and its giving up, is in FiberTurns::take().
//  P14 Once        once() is true one time for each mark of a fiber, over all its recoveries.
//  P15 Inner       An aborted fiber ends its inner fibers, however deep, and none begins below it.
//  P16 Lanes       Of the open fibers of a lane only the first accepted one runs or is offered,
//                  also while it waits for a retry or for code.
//
// P1: A fiber that is recovered keeps its row and its id.
// P2: Only FiberRecords::resolve() and retry() and a replacing start() overwrite a settled status.
//
// Savepoints      No member may be called while a savepoint of the agent's code is open: a rollback
//                 would not reach the state in memory here. The same holds for the parts.
// Durable         Methods write into the agent's implicit transaction. The caller commits: before
//                 start(), resume(), stash() and FiberRecovery::begin() take effect outside, with
//                 the turn for the others.
// Threads         The agent's shard.
// Failure         Result for a caller's mistake, StorageError for the disk.
// Bounded         In memory: running and recovering fibers.
class Fibers final : public WorkPart {
 public:
  Fibers(storage::AgentDatabase& database, const Clock& clock, Random& random,
         const FiberSettings& settings);

  // Takes over the rows of an earlier instance. Once, before any other member. `has_code` false:
  // the agent's code is not there, and fibers that wait for code go on waiting.
  void load(bool has_code = true);
  void close() override { recovery_.line().close(); }
  void interrupt_on_purpose() override { recovery_.interrupt_on_purpose(); }
  // True if FiberRecovery::begin() would find something now.
  [[nodiscard]] bool due() const override { return recovery_.line().due(); }
  // Working: a fiber runs or recovers, which ends with this instance. at_ms: when the next
  // interrupted fiber is due. Tellings have their own.
  [[nodiscard]] Wake wake() const override;

  // ---- the parts ----
  [[nodiscard]] const FiberRuns& runs() const { return runs_; }
  [[nodiscard]] FiberRecovery& recovery() { return recovery_; }
  [[nodiscard]] FiberEnds& ends() { return ends_; }
  [[nodiscard]] const FiberEnds& ends() const { return ends_; }
  [[nodiscard]] FiberRecords& records() { return records_; }
  [[nodiscard]] FiberTurns& turns() { return turns_; }
  [[nodiscard]] const FiberSettings& settings() const { return settings_; }

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

 private:
  Result<Started> begin(const FiberRequest& request, const Job* replaced);
  Result<Started> take_up(Job job);
  [[nodiscard]] Result<void> may_run() const;
  FiberHandle go_on(Job job);
  bool reset_retries(Job& job);
  FiberChange postpone(Job job, std::string_view error);
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }

  const Clock& clock_;
  Random& random_;
  const FiberSettings settings_;
  Jobs jobs_;
  FiberTable table_{jobs_};
  FiberTurns turns_{jobs_};
  FiberRuns runs_;
  FiberEnds ends_;
  FiberRecovery recovery_;
  FiberRecords records_;
};

}  // namespace hearth::durable
