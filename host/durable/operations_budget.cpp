// The limits on an agent's operations of one kind on one day.
#include "base/escape.hpp"
#include "durable/operations.hpp"

#include <array>
#include <chrono>
#include <limits>

namespace hearth::durable {

using storage::Param;
using storage::Rows;

namespace {

// Rows of one kind: a clock can jump among so many days, and each keeps its counts.
constexpr std::int64_t kMostDays = 8;
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
    has_days_ = database_.has_table("cf_agents_operation_days");
    if (!has_days_) return none;
  }
  // Setting the clock back over midnight gives no second budget.
  Rows rows =
      database_
          .kept(
              "SELECT day, count, cost FROM cf_agents_operation_days WHERE kind = ?1 AND day "
              "IN (?2, ?2 + 1) ORDER BY day DESC LIMIT 1")
          .query(std::array{Param(kind), Param(none.day)});
  if (!rows.next()) return none;
  return {.day = rows.integer(0), .count = rows.integer(1), .cost = rows.integer(2)};
}

std::vector<UsedUpBudget> Operations::used_up() {
  std::vector<UsedUpBudget> all;
  for (const auto& [kind, limits] : settings_.kinds) {
    if (limits_of(kind) == nullptr) continue;
    const Spent spent = spent_today(kind);
    const bool is_over =
        (limits.per_day > 0 && static_cast<std::uint64_t>(spent.count) >= limits.per_day) ||
        (limits.cost_per_day > 0 && static_cast<std::uint64_t>(spent.cost) >= limits.cost_per_day);
    if (!is_over) continue;
    UsedUpBudget& budget = all.emplace_back(kind);
    Rows last = database_
                    .kept(
                        "SELECT started_at FROM cf_agents_operations WHERE kind = ?1 AND day = ?2 "
                        "ORDER BY seq DESC LIMIT 1")
                    .query(std::array{Param(std::string_view(kind)), Param(spent.day)});
    if (last.next()) budget.since_ms = last.integer(0);
  }
  return all;
}

Result<std::optional<std::int64_t>> Operations::spend(std::string_view kind, std::uint64_t cost) {
  const OperationKindSettings* const limits = limits_of(kind);
  if (limits == nullptr) return std::optional<std::int64_t>();
  Spent spent = spent_today(kind);
  const bool is_first = spent.count == 0;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto its_cost = static_cast<std::int64_t>(cost);  // begin() has checked it
  ++spent.count;
  spent.cost = spent.cost > kMost - its_cost ? kMost : spent.cost + its_cost;
  if (limits->per_day > 0 && static_cast<std::uint64_t>(spent.count) > limits->per_day)
    return over_budget(kind, "number");
  if (limits->cost_per_day > 0 && static_cast<std::uint64_t>(spent.cost) > limits->cost_per_day)
    return over_budget(kind, "cost");
  prepare_write();
  if (!has_days_) {
    storage::Statement(database_.connection(),
                       "CREATE TABLE cf_agents_operation_days(kind TEXT NOT NULL, "
                       "day INTEGER NOT NULL, count INTEGER NOT NULL, cost INTEGER NOT NULL, "
                       "PRIMARY KEY(kind, day)) WITHOUT ROWID")
        .execute();
    has_days_ = true;
  }
  database_
      .kept(
          "INSERT INTO cf_agents_operation_days(kind, day, count, cost) VALUES(?, ?, ?, ?) "
          "ON CONFLICT DO UPDATE SET count = excluded.count, cost = excluded.cost")
      .execute(std::array{Param(kind), Param(spent.day), Param(spent.count), Param(spent.cost)});
  if (is_first) {
    database_
        .kept(
            "DELETE FROM cf_agents_operation_days WHERE kind = ?1 AND day <> ?2 AND day <= (SELECT "
            "day "
            "FROM cf_agents_operation_days WHERE kind = ?1 ORDER BY day DESC LIMIT 1 OFFSET ?3)")
        .execute(std::array{Param(kind), Param(spent.day), Param(kMostDays)});
  }
  return std::optional(spent.day);
}

Result<void> Operations::set_cost(std::string_view id, std::uint64_t cost) {
  const Running* const running = find_running(id);
  const auto row = running == nullptr ? std::nullopt : find(running->id);
  if (!row) return Error{Errc::kNotFound, "no operation of this id runs"};
  if (cost > kMostCost) return Error{Errc::kInvalidArgument, "a cost is at most 10^15"};
  const auto its_cost = static_cast<std::int64_t>(cost);
  prepare_write();
  database_.kept("UPDATE cf_agents_operations SET cost = ?2 WHERE seq = ?1")
      .execute(std::array{Param(row->seq), Param(its_cost)});
  if (!row->day) return {};
  const std::int64_t most_others = std::numeric_limits<std::int64_t>::max() - its_cost;
  database_
      .kept(
          "UPDATE cf_agents_operation_days SET cost = min(max(cost - ?3, 0), ?4) + ?5 "
          "WHERE kind = ?1 AND day = ?2")
      .execute(std::array{Param(std::string_view(row->kind)), Param(*row->day), Param(row->cost),
                          Param(most_others), Param(its_cost)});
  return {};
}

void Operations::give_back(const Row& row) {
  if (!row.day) return;
  database_
      .kept(
          "UPDATE cf_agents_operation_days SET count = max(count - 1, 0), cost = max(cost - ?3, 0) "
          "WHERE kind = ?1 AND day = ?2")
      .execute(std::array{Param(std::string_view(row.kind)), Param(*row.day), Param(row.cost)});
}

}  // namespace hearth::durable
