#pragma once
// The writes by which an agent's operations get from one state to another.

#include "base/clock.hpp"
#include "durable/operation_answers.hpp"
#include "durable/operation_limits.hpp"
#include "durable/unsettled_operations.hpp"

#include <utility>
#include <vector>

namespace hearth::durable {

// Each writes all that belongs to it: the row, its documents, its stored answer, the budget of its
// kind, the list of unknown operations. It decides only what giving up makes of a row (P12 of
// Operations, which has the table of states).
//
// Durable, Threads, Failure   As OperationTable. What it is given outlives it.
class OperationTransitions {
 public:
  OperationTransitions(OperationTable& table, OperationAnswers& answers, OperationBudgets& budgets,
                       UnknownOperations& unknown, const Clock& clock)
      : table_(table), answers_(answers), budgets_(budgets), unknown_(unknown), clock_(clock) {}

  // ---- to running ----
  // A new row gets its seq.
  void start(OperationRow& row, std::string_view arguments);
  void start_again(const OperationRow& row);
  void start_probe(const OperationRow& row);

  // ---- from running ----
  void interrupt(const OperationRow& row, std::string_view note);
  // Without a result: it was too large to be kept.
  void complete(const OperationRow& row, std::optional<std::string_view> result);

  // ---- from running, interrupted or unknown ----
  void make_unknown(const OperationRow& row, std::string_view why);
  void set_not_executed(const OperationRow& row, std::string_view why);
  // As P12 says.
  void give_up(const OperationRow& row);
  // An actor has settled it: as completed with this result, without one as not executed.
  void resolve(const OperationRow& row, std::optional<std::string_view> result,
               std::string_view note, std::string_view actor);

  // The changes since the last call, in order.
  std::vector<OperationChange> take_changes() { return std::exchange(changes_, {}); }

 private:
  void note(const OperationRow& row, OperationState state) {
    changes_.push_back({row.id, row.kind, state});
  }

  OperationTable& table_;
  OperationAnswers& answers_;
  OperationBudgets& budgets_;
  UnknownOperations& unknown_;
  const Clock& clock_;
  std::vector<OperationChange> changes_;
};

}  // namespace hearth::durable
