#pragma once
// The limits of an agent's operations: of one kind on one day, of their number, and of the time
// that their rows stay.

#include "base/clock.hpp"
#include "durable/operation_fibers.hpp"
#include "durable/operation_table.hpp"

#include <vector>

namespace hearth::durable {

// P7 Budget   An operation that would exceed its kind's limits of the day does not begin.
// P7: Another run does not count again, and one that was not executed does not count. After a clock
// was set back over midnight, the later day goes on.
//
// On disk     cf_agents_operation_days, made with the first operation that a limit counts: a row
//             for each day, so that a clock that jumps ahead and back finds the old counts.
// Durable, Threads, Failure   As OperationTable. What it is given outlives it.
class OperationBudgets {
 public:
  OperationBudgets(OperationTable& table, const Clock& clock, const OperationSettings& settings)
      : table_(table), clock_(clock), settings_(settings) {}

  // Counts one more operation, whose cost is at most kMostOperationCost. Returns the day of the
  // count; nothing: its kind has no limit. kLimitExceeded: nothing was written.
  [[nodiscard]] Result<std::optional<std::int64_t>> spend(std::string_view kind,
                                                          std::uint64_t cost);
  // Takes back the count of an operation that has counted.
  void give_back(const OperationRow& row);
  // What the operation has cost, in place of row.cost.
  void set_cost(const OperationRow& row, std::int64_t cost);
  // The kinds whose budget of today is used up: the next operation of the kind would be refused, or
  // one that costs something.
  [[nodiscard]] std::vector<UsedUpBudget> used_up();

 private:
  struct Spent {
    std::int64_t day = 0;
    std::int64_t count = 0;
    std::int64_t cost = 0;
  };
  [[nodiscard]] const OperationKindSettings* limits_of(std::string_view kind) const;
  [[nodiscard]] Spent spent_today(std::string_view kind);

  OperationTable& table_;
  const Clock& clock_;
  const OperationSettings& settings_;
  bool has_days_ = false;  // the table of days exists
};

// Promises
//  P5 Bounded    There are at most OperationSettings::most rows.
//  P6 Kept       A settled row is removed when the time to keep of its kind is over, but not while
//                its work may run again; an unknown row stays.
// P5: To make room, the oldest settled rows of fibers that cannot run again are removed. If there
// are none: kLimitExceeded.
// P6: The time runs from the settling. Its work: the outermost fiber of it, or one below that.
//
// Durable, Threads, Failure   As OperationTable. What it is given outlives it.
class OperationRetention {
 public:
  OperationRetention(OperationTable& table, OperationFibers& fibers, const Clock& clock,
                     const OperationSettings& settings)
      : table_(table), fibers_(fibers), clock_(clock), settings_(settings) {}

  // For one more row.
  [[nodiscard]] Result<void> make_room();
  // Removes some of the expired rows. Cheap when there are none.
  void sweep();

 private:
  // The ids of outermost fibers whose rows are needed, as JSON.
  [[nodiscard]] std::string needed();
  // When the first settled row expires.
  [[nodiscard]] std::optional<std::int64_t> next_expiry_ms();

  OperationTable& table_;
  OperationFibers& fibers_;
  const Clock& clock_;
  const OperationSettings& settings_;
  // No row expires between these two moments. Wall time.
  std::int64_t swept_at_ms_ = 0;
  std::int64_t next_sweep_ms_ = 0;
};

}  // namespace hearth::durable
