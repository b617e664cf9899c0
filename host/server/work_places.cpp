#include "server/work_places.hpp"

#include "durable/jobs.hpp"
#include "storage/statement.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

namespace hearth::server {
namespace {

using storage::Param;

// The order of a list of schedules (durable/schedule_table.cpp).
#define HEARTH_TIME "coalesce(nullif(next_at, 0), 9223372036854775807)"

// In the order of each list: fibers the newest first, items the oldest, schedules by time.
struct PlacedKind {
  std::string_view word;
  durable::JobKind kind;
  std::string_view last_before;  // ?1: the kind, ?2: seq, ?3: the time
};
constexpr std::array kPlacedKinds{
    PlacedKind{"fiber", durable::JobKind::kFiber,
               "SELECT id FROM cf_agents_jobs WHERE kind = ?1 AND seq >= ?2 AND ?3 = ?3 "
               "ORDER BY seq LIMIT 1"},
    PlacedKind{"item", durable::JobKind::kItem,
               "SELECT id FROM cf_agents_jobs WHERE kind = ?1 AND seq <= ?2 AND ?3 = ?3 "
               "ORDER BY seq DESC LIMIT 1"},
    PlacedKind{"schedule", durable::JobKind::kSchedule,
               "SELECT id FROM cf_agents_jobs WHERE kind = 3 AND ?1 = 3 AND parent IS NULL "
               "AND " HEARTH_TIME " <= ?3 AND "
               "(" HEARTH_TIME ", seq) <= (?3, ?2) ORDER BY " HEARTH_TIME
               " DESC, seq DESC LIMIT 1"},
};

const PlacedKind* placed(std::string_view kind) {
  const auto* const found = std::ranges::find(kPlacedKinds, kind, &PlacedKind::word);
  return found == kPlacedKinds.end() ? nullptr : found;
}

std::optional<std::int64_t> number_at(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::string place_of_work(storage::AgentDatabase& database, std::string_view kind,
                          std::string_view id) {
  const PlacedKind* const its = placed(kind);
  if (its == nullptr) return std::string(id);
  storage::Statement find(database.connection(), "SELECT seq, " HEARTH_TIME
                                                 " FROM cf_agents_jobs WHERE id = ? AND kind = ?");
  const std::array params{Param(id), Param(static_cast<std::int64_t>(its->kind))};
  storage::Rows rows = find.query(params);
  if (!rows.next()) return std::string(id);
  return "@" + std::to_string(rows.integer(0)) + "@" + std::to_string(rows.integer(1));
}

std::string work_at_place(storage::AgentDatabase& database, std::string_view kind,
                          std::string_view place) {
  const PlacedKind* const its = placed(kind);
  std::string_view rest = place;
  if (its == nullptr || !rest.starts_with('@')) return std::string(place);
  rest.remove_prefix(1);
  const auto seq = number_at(rest);
  if (!seq || !rest.starts_with('@')) return std::string(place);
  rest.remove_prefix(1);
  const auto time = number_at(rest);
  if (!time || !rest.empty() || !durable::Jobs(database).exists()) return std::string(place);
  storage::Statement find(database.connection(), its->last_before);
  const std::array params{Param(static_cast<std::int64_t>(its->kind)), Param(*seq), Param(*time)};
  storage::Rows rows = find.query(params);
  return rows.next() ? std::string(rows.text(0)) : std::string();
}

#undef HEARTH_TIME

}  // namespace hearth::server
