// What an agent may begin of one kind on one day.
#include "base/escape.hpp"
#include "durable/operations.hpp"

#include <array>
#include <chrono>

namespace hearth::durable {

using storage::Param;
using storage::Rows;

namespace {

constexpr std::int64_t kDayMs = std::chrono::milliseconds(std::chrono::days(1)).count();

Error over_budget(std::string_view kind, std::string_view what) {
  return Error{Errc::kLimitExceeded, "the agent has used up today's " + std::string(what) +
                                         " of operations of the kind " + quote_text(kind)};
}

}  // namespace

const OperationKindSettings* Operations::limits_of(std::string_view kind) const {
  const auto found = settings_.kinds.find(kind);
  if (found == settings_.kinds.end()) return nullptr;
  return found->second.per_day > 0 || found->second.cost_per_day > 0 ? &found->second : nullptr;
}

Operations::Spent Operations::spent_today(std::string_view kind) {
  const Spent none{.day = now_ms() / kDayMs};
  if (!has_days_) {
    if (!database_.exists()) return none;
    storage::Statement find(database_.connection(),
                            "SELECT 1 FROM sqlite_schema WHERE type = 'table' "
                            "AND name = 'cf_agents_operation_days'");
    has_days_ = find.query().next();
    if (!has_days_) return none;
  }
  Rows rows = kept("SELECT day, count, cost FROM cf_agents_operation_days WHERE kind = ?")
                  .query(std::array{Param(kind)});
  if (!rows.next()) return none;
  const Spent known{.day = rows.integer(0), .count = rows.integer(1), .cost = rows.integer(2)};
  // A clock that was set back over midnight gives nobody a second budget.
  return known.day == none.day || known.day == none.day + 1 ? known : none;
}

Result<void> Operations::spend(std::string_view kind, std::uint64_t cost) {
  const OperationKindSettings* const limits = limits_of(kind);
  if (limits == nullptr) return {};
  Spent spent = spent_today(kind);
  ++spent.count;
  spent.cost += static_cast<std::int64_t>(cost);
  if (limits->per_day > 0 && spent.count > static_cast<std::int64_t>(limits->per_day))
    return over_budget(kind, "number");
  if (limits->cost_per_day > 0 && spent.cost > static_cast<std::int64_t>(limits->cost_per_day))
    return over_budget(kind, "cost");
  prepare_write();
  if (!has_days_) {
    storage::Statement(database_.connection(),
                       "CREATE TABLE cf_agents_operation_days(kind TEXT PRIMARY KEY, "
                       "day INTEGER NOT NULL, count INTEGER NOT NULL, cost INTEGER NOT NULL) "
                       "WITHOUT ROWID")
        .execute();
    has_days_ = true;
  }
  kept(
      "INSERT INTO cf_agents_operation_days(kind, day, count, cost) VALUES(?, ?, ?, ?) "
      "ON CONFLICT DO UPDATE SET day = excluded.day, count = excluded.count, cost = excluded.cost")
      .execute(std::array{Param(kind), Param(spent.day), Param(spent.count), Param(spent.cost)});
  return {};
}

void Operations::give_back(const Row& row) {
  if (limits_of(row.kind) == nullptr) return;
  const Spent spent = spent_today(row.kind);
  const std::int64_t begun = row.started_at_ms / kDayMs;
  if (!has_days_ || spent.count == 0 || begun != spent.day) return;
  kept(
      "UPDATE cf_agents_operation_days SET count = count - 1, cost = max(cost - ?2, 0) "
      "WHERE kind = ?1")
      .execute(std::array{Param(std::string_view(row.kind)), Param(row.cost)});
}

}  // namespace hearth::durable
