#include "durable/operation_limits.hpp"

#include "base/escape.hpp"
#include "json/json.hpp"
#include "json/json_text.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

namespace hearth::durable {

using storage::Rows;

namespace {

// Rows of one kind: a clock can jump among so many days, and each keeps its counts.
constexpr std::int64_t kMostDays = 8;
constexpr std::int64_t kDayMs = std::chrono::milliseconds(std::chrono::days(1)).count();

Error over_budget(std::string_view kind, std::string_view what) {
  return Error{Errc::kLimitExceeded, "the agent has used up today's " + std::string(what) +
                                         " of operations of the kind " + quote_text(kind)};
}

constexpr std::int64_t kSweptAtOnce = 100;

// True if no fiber of the row's work can run again. Parameter 1: needed().
#define HEARTH_NO_FIBER_NEEDS                                                              \
  "AND NOT EXISTS (SELECT 1 FROM cf_agents_jobs j WHERE j.id = o.root AND j.kind = 2 AND " \
  "(j.ended_at IS NULL OR j.dead OR j.status = 'interrupted')) "                           \
  "AND (root IS NULL OR root NOT IN (SELECT value FROM json_each(?1))) "

}  // namespace

// ---- budgets ------------------------------------------------------------------------------------

const OperationKindSettings* OperationBudgets::limits_of(std::string_view kind) const {
  const auto found = settings_.kinds.find(kind);
  if (found == settings_.kinds.end()) return nullptr;
  return found->second.per_day > 0 || found->second.cost_per_day > 0 ? &found->second : nullptr;
}

OperationBudgets::Spent OperationBudgets::spent_today(std::string_view kind) {
  const Spent none{.day = unix_millis(clock_.wall_now()) / kDayMs};
  if (!has_days_) {
    has_days_ = table_.database().has_table("cf_agents_operation_days");
    if (!has_days_) return none;
  }
  // Setting the clock back over midnight gives no second budget.
  Rows rows = table_.rows(
      "SELECT day, count, cost FROM cf_agents_operation_days WHERE kind = ?1 AND day "
      "IN (?2, ?2 + 1) ORDER BY day DESC LIMIT 1",
      kind, none.day);
  if (!rows.next()) return none;
  return {.day = rows.integer(0), .count = rows.integer(1), .cost = rows.integer(2)};
}

std::vector<UsedUpBudget> OperationBudgets::used_up() {
  std::vector<UsedUpBudget> all;
  for (const auto& [kind, limits] : settings_.kinds) {
    if (limits_of(kind) == nullptr) continue;
    const Spent spent = spent_today(kind);
    const bool is_over =
        (limits.per_day > 0 && static_cast<std::uint64_t>(spent.count) >= limits.per_day) ||
        (limits.cost_per_day > 0 && static_cast<std::uint64_t>(spent.cost) >= limits.cost_per_day);
    if (!is_over) continue;
    UsedUpBudget& budget = all.emplace_back(kind);
    const auto last = table_.first(
        "FROM cf_agents_operations WHERE kind = ?1 AND day = ?2 ORDER BY seq DESC "
        "LIMIT 1",
        kind, spent.day);
    if (last) budget.since_ms = last->started_at_ms;
  }
  return all;
}

Result<std::optional<std::int64_t>> OperationBudgets::spend(std::string_view kind,
                                                            std::uint64_t cost) {
  const OperationKindSettings* const limits = limits_of(kind);
  if (limits == nullptr) return std::optional<std::int64_t>();
  Spent spent = spent_today(kind);
  const bool is_first = spent.count == 0;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto its_cost = static_cast<std::int64_t>(cost);
  ++spent.count;
  spent.cost = spent.cost > kMost - its_cost ? kMost : spent.cost + its_cost;
  if (limits->per_day > 0 && static_cast<std::uint64_t>(spent.count) > limits->per_day)
    return over_budget(kind, "number");
  if (limits->cost_per_day > 0 && static_cast<std::uint64_t>(spent.cost) > limits->cost_per_day)
    return over_budget(kind, "cost");
  table_.prepare_write();
  if (!has_days_) {
    storage::Statement(table_.database().connection(),
                       "CREATE TABLE cf_agents_operation_days(kind TEXT NOT NULL, "
                       "day INTEGER NOT NULL, count INTEGER NOT NULL, cost INTEGER NOT NULL, "
                       "PRIMARY KEY(kind, day)) WITHOUT ROWID")
        .execute();
    has_days_ = true;
  }
  table_.run(
      "INSERT INTO cf_agents_operation_days(kind, day, count, cost) VALUES(?, ?, ?, ?) "
      "ON CONFLICT DO UPDATE SET count = excluded.count, cost = excluded.cost",
      kind, spent.day, spent.count, spent.cost);
  if (is_first) {
    table_.run(
        "DELETE FROM cf_agents_operation_days WHERE kind = ?1 AND day <> ?2 AND day <= (SELECT day "
        "FROM cf_agents_operation_days WHERE kind = ?1 ORDER BY day DESC LIMIT 1 OFFSET ?3)",
        kind, spent.day, kMostDays);
  }
  return std::optional(spent.day);
}

void OperationBudgets::set_cost(const OperationRow& row, std::int64_t cost) {
  table_.run("UPDATE cf_agents_operations SET cost = ?2 WHERE seq = ?1", row.seq, cost);
  if (!row.day) return;
  const std::int64_t most_others = std::numeric_limits<std::int64_t>::max() - cost;
  table_.run(
      "UPDATE cf_agents_operation_days SET cost = min(max(cost - ?3, 0), ?4) + ?5 "
      "WHERE kind = ?1 AND day = ?2",
      row.kind, *row.day, row.cost, most_others, cost);
}

void OperationBudgets::give_back(const OperationRow& row) {
  if (!row.day) return;
  table_.run(
      "UPDATE cf_agents_operation_days SET count = max(count - 1, 0), cost = max(cost - ?3, 0) "
      "WHERE kind = ?1 AND day = ?2",
      row.kind, *row.day, row.cost);
}

// ---- retention ----------------------------------------------------------------------------------

std::string OperationRetention::needed() {
  return dump_json(Json(fibers_.roots_of_needed()));
}

// Leaves rows with a key alone: no end of a fiber shows that their keys are not used any more.
Result<void> OperationRetention::make_room() {
  if (!table_.exists()) return {};
  const auto most = static_cast<std::int64_t>(settings_.most);
  // First an upper bound, for two lookups in the table's index.
  if (table_.number("SELECT max(seq) - min(seq) + 1 FROM cf_agents_operations") < most) return {};
  if (table_.number("SELECT count(*) FROM cf_agents_operations") < most) return {};
  const std::string needed = this->needed();
  const std::int64_t removed = table_.remove(
      "FROM cf_agents_operations WHERE seq IN (SELECT seq FROM cf_agents_operations "
      "o WHERE state IN ('completed', 'not_executed') AND "
      "scope IS NOT NULL " HEARTH_NO_FIBER_NEEDS "ORDER BY settled_at LIMIT ?2) RETURNING id",
      storage::params_of(needed, kSweptAtOnce));
  if (removed > 0) return {};
  return Error{Errc::kLimitExceeded, "the ledger of this agent's operations is full"};
}

std::optional<std::int64_t> OperationRetention::next_expiry_ms() {
  std::optional<std::int64_t> next;
  Rows rows = table_.rows(
      "SELECT kind, min(settled_at) FROM cf_agents_operations WHERE state IN "
      "('completed', 'not_executed') GROUP BY kind");
  while (rows.next()) {
    const auto kind = settings_.kinds.find(rows.text(0));
    const bool is_own = kind != settings_.kinds.end() && kind->second.keep.count() > 0;
    const auto keep = is_own ? kind->second.keep : settings_.keep;
    next = earliest(next, rows.integer(1) + keep.count());
  }
  return next;
}

void OperationRetention::sweep() {
  const std::int64_t now = unix_millis(clock_.wall_now());
  const bool is_early = swept_at_ms_ <= now && now < next_sweep_ms_;
  if (is_early || !table_.exists()) return;
  auto shortest = settings_.keep;
  std::string keeps = "{";
  for (const auto& [kind, settings] : settings_.kinds) {
    if (settings.keep.count() == 0) continue;
    shortest = std::min(shortest, settings.keep);
    if (keeps.size() > 1) keeps += ',';
    append_json_string(keeps, kind);
    keeps += ':' + std::to_string(settings.keep.count());
  }
  keeps += '}';
  // A row that is settled from now on is kept at least for the shortest time.
  const std::int64_t latest = now + shortest.count();
  swept_at_ms_ = now;
  next_sweep_ms_ = std::min(latest, next_expiry_ms().value_or(latest));
  if (now < next_sweep_ms_) return;
  const std::string needed = this->needed();
  table_.remove(
      "FROM cf_agents_operations WHERE seq IN (SELECT seq FROM cf_agents_operations o WHERE "
      "state IN ('completed', 'not_executed') AND settled_at <= ?2 AND settled_at <= ?3 - "
      "coalesce((SELECT value FROM json_each(?4) WHERE key = o.kind), ?5) " HEARTH_NO_FIBER_NEEDS
      "ORDER BY settled_at LIMIT ?6) RETURNING id",
      storage::params_of(needed, now - shortest.count(), now, keeps, settings_.keep.count(),
                         kSweptAtOnce));
}

}  // namespace hearth::durable
