#include "server/work_places.hpp"

#include "durable/jobs.hpp"
#include "storage/statement.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace hearth::server {
namespace {

// In the order of each list: fibers the newest first, the others the oldest.
struct PlacedKind {
  std::string_view word;
  durable::JobKind kind;
  std::string_view last_before;  // ?1: the kind, ?2: seq
};
constexpr std::array kPlacedKinds{
    PlacedKind{"fiber", durable::JobKind::kFiber,
               "SELECT id FROM cf_agents_jobs WHERE kind = ?1 AND seq >= ?2 ORDER BY seq LIMIT 1"},
    PlacedKind{"item", durable::JobKind::kItem,
               "SELECT id FROM cf_agents_jobs WHERE kind = ?1 AND seq <= ?2 "
               "ORDER BY seq DESC LIMIT 1"},
    PlacedKind{"schedule", durable::JobKind::kSchedule,
               "SELECT id FROM cf_agents_jobs WHERE kind = ?1 AND seq <= ?2 AND parent IS NULL "
               "ORDER BY seq DESC LIMIT 1"},
};

const PlacedKind* placed(std::string_view kind) {
  const auto* const found = std::ranges::find(kPlacedKinds, kind, &PlacedKind::word);
  return found == kPlacedKinds.end() ? nullptr : found;
}

}  // namespace

std::string place_of_work(storage::AgentDatabase& database, std::string_view kind,
                          std::string_view id) {
  const PlacedKind* const its = placed(kind);
  if (its == nullptr) return std::string(id);
  storage::Statement find(database.connection(),
                          "SELECT seq FROM cf_agents_jobs WHERE id = ? AND kind = ?");
  storage::Rows rows = find.query(id, its->kind);
  return rows.next() ? "@" + std::to_string(rows.integer(0)) : std::string(id);
}

std::string work_at_place(storage::AgentDatabase& database, std::string_view kind,
                          std::string_view place) {
  const PlacedKind* const its = placed(kind);
  if (its == nullptr || !place.starts_with('@')) return std::string(place);
  std::int64_t seq = 0;
  const char* const end = place.data() + place.size();
  const auto read = std::from_chars(place.data() + 1, end, seq);
  if (read.ec != std::errc() || read.ptr != end || !durable::Jobs(database).exists())
    return std::string(place);
  storage::Statement find(database.connection(), its->last_before);
  storage::Rows rows = find.query(its->kind, seq);
  return rows.next() ? std::string(rows.text(0)) : std::string();
}

}  // namespace hearth::server
