#include "durable/fiber_table.hpp"

#include <array>
#include <utility>

namespace hearth::durable {

using storage::Param;
using storage::Rows;
using storage::Statement;

namespace {

#define HEARTH_ROW_COLUMNS \
  "id, name, created_at, attempts, next_at, dead, last_error IS NOT NULL, recoveries"

constexpr const char* kDeadIndex =
    "CREATE INDEX IF NOT EXISTS cf_agents_runs_dead ON cf_agents_runs(dead, next_at) WHERE dead = "
    "1";

std::vector<FiberRow> fiber_rows_of(Rows rows) {
  std::vector<FiberRow> result;
  while (rows.next()) {
    FiberRow row;
    row.id = rows.text(0);
    row.name = rows.text(1);
    row.created_at_ms = rows.integer(2);
    row.attempts = static_cast<int>(rows.integer(3));
    row.next_at_ms = rows.integer(4);
    row.dead = rows.integer(5) != 0;
    row.has_failed = rows.integer(6) != 0;
    row.recoveries = static_cast<int>(rows.integer(7));
    result.push_back(std::move(row));
  }
  return result;
}

}  // namespace

bool FiberTable::has_table() {
  if (has_table_ || !database_.exists()) return has_table_;
  Statement find(database_.connection(),
                 "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'cf_agents_runs'");
  has_table_ = find.query().next();
  return has_table_;
}

void FiberTable::prepare_write() {
  database_.begin_write();
  const bool had_table = has_table();
  if (had_table && has_index_) return;
  Statement(database_.connection(),
            "CREATE TABLE IF NOT EXISTS cf_agents_runs("
            "id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, snapshot TEXT, created_at INTEGER "
            "NOT NULL, "
            "attempts INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT NULL DEFAULT 0, "
            "dead INTEGER NOT NULL DEFAULT 0, last_error TEXT, "
            "recoveries INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID")
      .execute();
  Statement(database_.connection(),
            "CREATE INDEX IF NOT EXISTS cf_agents_runs_order "
            "ON cf_agents_runs(dead, created_at, id)")
      .execute();
  Statement(database_.connection(), kDeadIndex).execute();
  // That the table is there is not remembered here: a savepoint that the plugin rolls back could take it away again. The next
  // look finds it. An older table gets the index with the first write of each life, if it has none.
  has_index_ = had_table;
}

void FiberTable::upgrade(std::int64_t now_ms) {
  if (!has_table()) return;
  {
    Statement find(database_.connection(),
                   "SELECT 1 FROM pragma_table_info('cf_agents_runs') WHERE name = 'recoveries'");
    if (find.query().next()) return;
  }
  database_.begin_write();
  Statement(database_.connection(),
            "ALTER TABLE cf_agents_runs ADD COLUMN recoveries INTEGER NOT NULL DEFAULT 0")
      .execute();
  Statement(database_.connection(), kDeadIndex).execute();
  Statement date(database_.connection(), "UPDATE cf_agents_runs SET next_at = ? WHERE dead = 1");
  const std::array params{Param(now_ms)};
  date.execute(params);
}

std::vector<FiberRow> FiberTable::load() {
  if (!has_table()) return {};
  Statement alive(database_.connection(), "SELECT " HEARTH_ROW_COLUMNS
                                          " FROM cf_agents_runs WHERE dead = 0 "
                                          "ORDER BY created_at, id");
  return fiber_rows_of(alive.query());
}

std::optional<FiberRow> FiberTable::find_dead(std::string_view id) {
  if (!has_table()) return std::nullopt;
  Statement find(database_.connection(),
                 "SELECT " HEARTH_ROW_COLUMNS " FROM cf_agents_runs WHERE id = ? AND dead <> 0");
  const std::array params{Param(id)};
  std::vector<FiberRow> found = fiber_rows_of(find.query(params));
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

std::vector<FiberRow> FiberTable::dead_after(const std::optional<FiberRow>& after,
                                             std::size_t limit) {
  if (!has_table()) return {};
  Statement page(database_.connection(),
                 "SELECT " HEARTH_ROW_COLUMNS
                 " FROM cf_agents_runs WHERE dead = 1 AND "
                 "(created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?");
  const std::array params{Param(after ? after->created_at_ms : INT64_MIN),
                          Param(after ? std::string_view(after->id) : std::string_view()),
                          Param(static_cast<std::int64_t>(limit))};
  return fiber_rows_of(page.query(params));
}

std::size_t FiberTable::count_dead() {
  if (!has_table()) return 0;
  Statement count(database_.connection(), "SELECT count(*) FROM cf_agents_runs WHERE dead = 1");
  Rows rows = count.query();
  return rows.next() ? static_cast<std::size_t>(rows.integer(0)) : 0;
}

bool FiberTable::has_dead() {
  if (!has_table()) return false;
  Statement find(database_.connection(), "SELECT 1 FROM cf_agents_runs WHERE dead = 1 LIMIT 1");
  return find.query().next();
}

std::vector<std::string> FiberTable::dead_since(std::int64_t before_ms, std::size_t limit) {
  if (!has_table()) return {};
  Statement find(database_.connection(),
                 "SELECT id FROM cf_agents_runs WHERE dead = 1 AND next_at <= ? "
                 "ORDER BY next_at LIMIT ?");
  const std::array params{Param(before_ms), Param(static_cast<std::int64_t>(limit))};
  std::vector<std::string> ids;
  for (Rows rows = find.query(params); rows.next();) ids.emplace_back(rows.text(0));
  return ids;
}

std::optional<std::string> FiberTable::snapshot(std::string_view id) {
  return text_of("SELECT snapshot FROM cf_agents_runs WHERE id = ?", id);
}

std::optional<std::string> FiberTable::last_error(std::string_view id) {
  return text_of("SELECT last_error FROM cf_agents_runs WHERE id = ?", id);
}

std::optional<std::string> FiberTable::text_of(std::string_view select, std::string_view id) {
  if (!has_table()) return std::nullopt;
  Statement find(database_.connection(), select);
  const std::array params{Param(id)};
  Rows rows = find.query(params);
  if (!rows.next() || rows.is_null(0)) return std::nullopt;
  return std::string(rows.text(0));
}

void FiberTable::insert(const FiberRow& row) {
  prepare_write();
  Statement insert(database_.connection(),
                   "INSERT INTO cf_agents_runs(id, name, snapshot, created_at, attempts, next_at, "
                   "recoveries) VALUES(?, ?, ?, ?, ?, ?, ?)");
  const std::array params{Param(std::string_view(row.id)),
                          Param(std::string_view(row.name)),
                          row.snapshot ? Param(std::string_view(*row.snapshot)) : Param(nullptr),
                          Param(row.created_at_ms),
                          Param(std::int64_t{row.attempts}),
                          Param(row.next_at_ms),
                          Param(std::int64_t{row.recoveries})};
  insert.execute(params);
}

void FiberTable::stash(std::string_view id, std::string_view json) {
  prepare_write();
  if (!stash_) {
    stash_ = std::make_unique<Statement>(database_.connection(),
                                         "UPDATE cf_agents_runs SET snapshot = ?2, attempts = 0, "
                                         "next_at = 0, last_error = NULL WHERE id = ?1");
  }
  const std::array params{Param(id), Param(json)};
  stash_->execute(params);
}

void FiberTable::note_attempt(const FiberRow& row) {
  prepare_write();
  Statement update(
      database_.connection(),
      "UPDATE cf_agents_runs SET attempts = ?, recoveries = ?, next_at = ? WHERE id = ?");
  const std::array params{Param(std::int64_t{row.attempts}), Param(std::int64_t{row.recoveries}),
                          Param(row.next_at_ms), Param(std::string_view(row.id))};
  update.execute(params);
}

void FiberTable::note_failure(std::string_view id, std::string_view error, std::int64_t next_at_ms,
                              bool dead) {
  prepare_write();
  Statement update(database_.connection(),
                   "UPDATE cf_agents_runs SET last_error = ?, next_at = ?, dead = ? WHERE id = ?");
  const std::array params{Param(error), Param(next_at_ms), Param(std::int64_t{dead ? 1 : 0}),
                          Param(id)};
  update.execute(params);
}

void FiberTable::revive(std::string_view id) {
  prepare_write();
  Statement update(database_.connection(),
                   "UPDATE cf_agents_runs SET attempts = 0, recoveries = 0, next_at = 0, dead = 0 "
                   "WHERE id = ?");
  const std::array params{Param(id)};
  update.execute(params);
}

void FiberTable::erase(std::string_view id) {
  prepare_write();
  Statement erase(database_.connection(), "DELETE FROM cf_agents_runs WHERE id = ?");
  const std::array params{Param(id)};
  erase.execute(params);
}

}  // namespace hearth::durable
