#include "durable/operation_table.hpp"

#include "durable/jobs.hpp"

#include <array>
#include <filesystem>
#include <system_error>
#include <vector>

namespace hearth::durable {

namespace fs = std::filesystem;
using storage::integer_or_none;
using storage::nullable;
using storage::Param;
using storage::Rows;
using storage::text_or_none;

namespace {

constexpr std::array kOperationTables = {
    "CREATE TABLE IF NOT EXISTS cf_agents_operations(seq INTEGER PRIMARY KEY, "
    "id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, effect INTEGER NOT NULL, state TEXT NOT NULL, "
    "root TEXT, scope TEXT, key TEXT, likeness TEXT NOT NULL, n INTEGER NOT NULL DEFAULT 0, "
    "behind INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 1, "
    "started_at INTEGER NOT NULL, horizon_at INTEGER, settled_at INTEGER, settled_by TEXT, "
    "note TEXT, told INTEGER, cost INTEGER NOT NULL DEFAULT 0, day INTEGER, "
    "by_request INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE IF NOT EXISTS cf_agents_operation_documents(operation INTEGER NOT NULL, "
    "part INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY(operation, part)) WITHOUT ROWID",
    // To count the equal operations before the last checkpoint, and to list those of a fiber.
    "CREATE INDEX IF NOT EXISTS cf_agents_operations_scope ON "
    "cf_agents_operations(scope, likeness, behind, n) WHERE scope IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS cf_agents_operations_state ON "
    "cf_agents_operations(state, settled_at)",
    "CREATE INDEX IF NOT EXISTS cf_agents_operations_untold ON cf_agents_operations(told) "
    "WHERE told IS NOT NULL",
    "CREATE TRIGGER IF NOT EXISTS cf_agents_operations_gone AFTER DELETE ON cf_agents_operations "
    "BEGIN DELETE FROM cf_agents_operation_documents WHERE operation = old.seq; END",
};

OperationRow row_of(const Rows& rows) {
  OperationRow row;
  int column = 0;
  row.seq = rows.integer(column++);
  row.id = rows.text(column++);
  row.kind = rows.text(column++);
  row.effect = static_cast<Effect>(rows.integer(column++));
  row.state = rows.text(column++);
  row.root = text_or_none(rows, column++);
  row.scope = text_or_none(rows, column++);
  row.key = text_or_none(rows, column++);
  row.likeness = rows.text(column++);
  row.cost = rows.integer(column++);
  row.attempts = static_cast<int>(rows.integer(column++));
  row.started_at_ms = rows.integer(column++);
  row.horizon_at_ms = integer_or_none(rows, column++);
  row.settled_at_ms = integer_or_none(rows, column++);
  row.settled_by = text_or_none(rows, column++);
  row.note = text_or_none(rows, column++);
  row.day = integer_or_none(rows, column++);
  row.acts_by_request = rows.integer(column++) != 0;
  return row;
}

}  // namespace

bool OperationTable::exists() {
  exists_ = exists_ || database_.has_table("cf_agents_operations");
  return exists_;
}

void OperationTable::prepare_write() {
  database_.begin_write();
  if (exists()) return;
  Jobs(database_).prepare_write();  // retention reads the fibers' rows
  for (const char* const sql : kOperationTables)
    storage::Statement(database_.connection(), sql).execute();
  exists_ = true;
}

std::optional<OperationRow> OperationTable::find(std::string_view id) {
  return first("FROM cf_agents_operations WHERE id = ?", id);
}

void OperationTable::each(std::string_view from, Params params,
                          const std::function<bool(OperationRow&)>& see) {
  if (!exists()) return;
  storage::Statement& statement = database_.kept(
      from,
      "SELECT seq, id, kind, effect, state, root, scope, key, likeness, cost, attempts, "
      "started_at, horizon_at, settled_at, settled_by, note, day, by_request ");
  for (Rows rows = statement.query(params); rows.next();) {
    OperationRow row = row_of(rows);
    if (!see(row)) return;
  }
}

void OperationTable::insert(OperationRow& row) {
  prepare_write();
  Rows inserted = rows(
      "INSERT INTO cf_agents_operations(id, kind, effect, state, root, scope, key, likeness, n, "
      "started_at, horizon_at, cost, day, by_request) "
      "VALUES(?, ?, ?, 'started', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq",
      row.id, row.kind, row.effect, nullable(row.root), nullable(row.scope), nullable(row.key),
      row.likeness, row.n, row.started_at_ms, nullable(row.horizon_at_ms), row.cost,
      nullable(row.day), row.acts_by_request);
  // SQLite completes the insert only at the end of the rows.
  while (inserted.next()) row.seq = inserted.integer(0);
}

// Removes the files before the commit. If the commit fails, the row stays, but it is settled and
// needs no file. A file whose row was removed first could stay for ever.
std::int64_t OperationTable::remove(std::string_view from, Params params) {
  prepare_write();
  std::vector<std::string> gone;
  for (Rows removed = database_.kept(from, "DELETE ").query(params); removed.next();)
    gone.emplace_back(removed.text(0));
  std::error_code ignored;
  if (const fs::path directory = database_.files_directory(); fs::exists(directory, ignored)) {
    for (const std::string& id : gone) fs::remove(directory / id, ignored);
  }
  return static_cast<std::int64_t>(gone.size());
}

std::optional<std::string> OperationTable::document(std::int64_t seq, OperationPart part) {
  if (!exists()) return std::nullopt;
  Rows found = rows(
      "SELECT body FROM cf_agents_operation_documents WHERE operation = ? AND part = ?", seq, part);
  if (!found.next()) return std::nullopt;
  return std::string(found.text(0));
}

void OperationTable::put(std::int64_t seq, OperationPart part, const Param& body) {
  run("INSERT INTO cf_agents_operation_documents(operation, part, body) VALUES(?, ?, ?) "
      "ON CONFLICT(operation, part) DO UPDATE SET body = excluded.body",
      seq, part, body);
}

// An id is a hash in hexadecimal digits, so no text from outside is part of a path.
Result<std::string> OperationTable::path_of(const OperationRow& row) {
  const fs::path directory = database_.files_directory();
  std::error_code failure;
  if (fs::create_directory(directory, failure))
    fs::permissions(directory, fs::perms::owner_all, failure);
  if (failure)
    return Error{Errc::kUnavailable, "the directory of the agent's files cannot be made"};
  return (directory / row.id).native();
}

}  // namespace hearth::durable
