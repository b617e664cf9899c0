#pragma once
// The ledger of one agent's operations: its effects outside the server. hearth/ext/operations.h has
// their meaning for authors.

#include "durable/fibers.hpp"
#include "durable/job_line.hpp"
#include "durable/operation_identity.hpp"
#include "durable/operation_limits.hpp"
#include "durable/operation_records.hpp"
#include "durable/operation_requests.hpp"
#include "durable/operation_transitions.hpp"
#include "durable/unsettled_operations.hpp"

#include <vector>

namespace hearth::durable {

// state         what is on disk            leaves it by
// running       the row, 'started'         settle(); the end of this instance -> interrupted
// interrupted   the row, 'started'         give_up_lost() -> unknown, or no row (P12), or not
//                                          executed (P9);
//                                          begin() -> running or unknown;
//                                          resolve() -> completed, not executed
// unknown       the row, 'unknown'         resolve() -> completed, not executed;
//                                          begin() -> running, if it was given up (P12)
// not executed  the row, 'not_executed'    begin() -> running; sweep() -> no row
// completed     the row and its result     sweep() -> no row
//
// Promises. Its parts have the others: OperationIdentity P2, P3 and P11, UnknownOperations P4,
// OperationRetention P5 and P6, OperationBudgets P7, OperationRequests P8 and P10, OpenOperations
// P12.
//  P1 Once       begin() gives kRun for a new operation, for one that was certainly not executed,
//                and for one whose effect allows another run (decide()).
//  P9 Not sent   An operation that is cut off before its run began (never_begins()) or before its
//                request left (may_send()) is not executed, whatever its effect.
// P9: Not if an earlier run may have acted, or if the agent sent something else after that request
// (sent_elsewhere()). With acts_by_request, the row shows it: it has no request. Then this holds
// after a crash too.
//
// Durable    Methods write into the agent's implicit transaction; the caller commits.
// Savepoints No member, of its parts neither, may be called while a savepoint of the agent's code
//            is open.
// Threads    The agent's shard.
// Failure    Result for a caller's mistake, StorageError for the disk.
class Operations final : public WorkPart {
 public:
  // The references outlive this object.
  Operations(storage::AgentDatabase& database, const Fibers& fibers, const Clock& clock,
             Random& random, const OperationSettings& settings)
      : clock_(clock),
        settings_(settings),
        table_(database),
        answers_(table_),
        fibers_(database, fibers.runs()),
        identity_(table_, fibers_, random),
        budgets_(table_, clock, settings),
        retention_(table_, fibers_, clock, settings),
        requests_(table_, answers_, running_, clock, settings),
        records_(table_, answers_, fibers_, running_),
        unknown_(table_, records_),
        open_(table_, answers_, fibers_, running_, clock),
        transitions_(table_, answers_, budgets_, unknown_, clock) {}

  // Takes over the rows of an earlier instance. Once, before any other member.
  void load();
  // Releases the database. Afterwards only wake() may be called.
  void close() override { open_.close(); }
  // Nothing to do: operations have no count of interrupted runs.
  void interrupt_on_purpose() override {}

  [[nodiscard]] RunningOperations& running() { return running_; }
  [[nodiscard]] OperationRequests& requests() { return requests_; }
  [[nodiscard]] OperationBudgets& budgets() { return budgets_; }
  [[nodiscard]] OperationRecords& records() { return records_; }
  [[nodiscard]] UnknownOperations& unknown() { return unknown_; }

  // Decides what the caller is to do, and writes the row for a new run. kInvalidArgument,
  // kConflict, kLimitExceeded. kNotFound: no operation has the id, or the fiber has ended.
  Result<OperationBegun> begin(const OperationRequest& request);
  // A run has ended. Returns the operation's new state. kNotFound: it does not run.
  // kInvalidArgument: the result is no JSON, and the operation still runs. kLimitExceeded: the
  // result is too large, and the operation has completed without it. kConflict: it is said to act
  // by its request, and has asked for none; it is unknown.
  Result<OperationState> settle(std::uint64_t operation, OperationOutcome outcome,
                                std::string_view body);
  // What a running operation has cost, in place of the cost that it began with, for P7 too.
  // kNotFound: it does not run. kInvalidArgument: above kMostOperationCost.
  Result<void> set_cost(std::string_view id, std::uint64_t cost);
  // The path of a running operation's file: its id, in the agent's directory of files, which is
  // made. It is the same in each attempt. The file is removed with the operation's row. kNotFound:
  // the operation does not run. kUnavailable: the directory cannot be made.
  Result<std::string> path_of(std::string_view id);
  // See OperationIdentity.
  void checkpointed(std::string_view fiber) { identity_.checkpointed(fiber); }

  // Whether resolve() would succeed.
  [[nodiscard]] Result<void> may_resolve(std::string_view id, OperationOutcome outcome,
                                         std::string_view result, std::string_view note,
                                         std::string_view actor);
  // An actor settles an unknown or interrupted operation. kNotFound; kConflict: it runs, or is
  // settled; kInvalidArgument; kLimitExceeded.
  Result<void> resolve(std::string_view id, OperationOutcome outcome, std::string_view result,
                       std::string_view note, std::string_view actor);

  // Gives up operations as P12 says, if their moment may have come. `have_fibers_ended`: one may
  // have been the last of an operation's work.
  void give_up_lost(bool have_fibers_ended);
  // The changes since the last call, in order.
  std::vector<OperationChange> take_changes() { return transitions_.take_changes(); }
  // Removes some of the expired rows. Cheap when there are none.
  void sweep() { retention_.sweep(); }

  [[nodiscard]] bool due() const override { return unknown_.has_untold() || open_.has_lost(); }
  // Working: the agent is to be told of an operation, or one runs that a restart would give up.
  // at_ms: when the next one is given up, or earlier. unknown_operations: present if one may be
  // unsettled. Both are exact only after close(), so that operations cost no writes for them.
  [[nodiscard]] Wake wake() const override;

 private:
  // Does what decide() says. `arguments`: of a new row.
  OperationBegun proceed(OperationRow row, OperationState state, const OperationRequest& request,
                         std::string_view arguments);
  std::uint64_t run(const OperationRow& row, const OperationRequest& request, bool is_anew,
                    bool is_probe);
  // What became of a run that was cut off.
  [[nodiscard]] OperationOutcome end_of_cut(const RunningOperation& running);

  const Clock& clock_;
  const OperationSettings& settings_;
  OperationTable table_;
  OperationAnswers answers_;
  OperationFibers fibers_;
  RunningOperations running_;
  OperationIdentity identity_;
  OperationBudgets budgets_;
  OperationRetention retention_;
  OperationRequests requests_;
  OperationRecords records_;
  UnknownOperations unknown_;
  OpenOperations open_;
  OperationTransitions transitions_;
};

}  // namespace hearth::durable
