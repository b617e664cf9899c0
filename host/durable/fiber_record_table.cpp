#include "durable/fiber_record_table.hpp"

#include <array>
#include <initializer_list>

namespace hearth::durable {

using storage::integer_or_none;
using storage::nullable;
using storage::Param;
using storage::Rows;
using storage::Statement;
using storage::text_or_none;

namespace {

#define HEARTH_RECORD_COLUMNS                                                                    \
  "seq, fiber_id, idempotency_key, name, status, dead, created_at, started_at, completed_at, "   \
  "attempts, failures, max_retries, retry_base, retry_cap, next_at, input, metadata, snapshot, " \
  "result, error"

// Small columns first: a walk that passes over records does not read their documents.
constexpr const char* kFiberRecordSchema[] = {
    "CREATE TABLE IF NOT EXISTS cf_agents_fibers("
    "seq INTEGER PRIMARY KEY, fiber_id TEXT NOT NULL UNIQUE, idempotency_key TEXT UNIQUE, "
    "name TEXT NOT NULL, status TEXT NOT NULL, dead INTEGER NOT NULL DEFAULT 0, "
    "created_at INTEGER NOT NULL, started_at INTEGER, completed_at INTEGER, "
    "attempts INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, "
    "max_retries INTEGER NOT NULL DEFAULT 0, retry_base INTEGER NOT NULL DEFAULT 0, "
    "retry_cap INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT NULL DEFAULT 0, "
    "told INTEGER NOT NULL DEFAULT 1, tell_at INTEGER NOT NULL DEFAULT 0, "
    "tell_failures INTEGER NOT NULL DEFAULT 0, keep TEXT, "
    "input TEXT, metadata TEXT, snapshot TEXT, result TEXT, error TEXT, "
    "tell_interruptions INTEGER NOT NULL DEFAULT 0)",
    "CREATE INDEX IF NOT EXISTS cf_agents_fibers_open ON cf_agents_fibers(seq) "
    "WHERE completed_at IS NULL",
    "CREATE INDEX IF NOT EXISTS cf_agents_fibers_untold ON cf_agents_fibers(completed_at, seq) "
    "WHERE told = 0",
    "CREATE INDEX IF NOT EXISTS cf_agents_fibers_kept ON cf_agents_fibers(keep, completed_at) "
    "WHERE keep IS NOT NULL",
};

// Settled records pass these conditions; ?1 status bits, ?2 name, ?3 created before, ?4 dead: 1 only those, -1 only the others.
#define HEARTH_SETTLED_CONDITION                                                               \
  "completed_at IS NOT NULL AND (?1 & CASE status WHEN 'interrupted' THEN 8 WHEN 'completed' " \
  "THEN 16 WHEN 'error' THEN 32 WHEN 'aborted' THEN 64 ELSE 0 END) <> 0"
#define HEARTH_COMMON_CONDITION \
  "(?2 = '' OR name = ?2) AND (?3 = 0 OR created_at < ?3) AND (?4 = 0 OR (?4 = 1) = dead)"

std::int64_t dead_filter(const RecordQuery& query) {
  if (query.dead) return 1;
  return query.spare_dead ? -1 : 0;
}

FiberRecord fiber_record_of(const Rows& rows) {
  FiberRecord record;
  int column = 0;
  record.seq = rows.integer(column++);
  record.id = rows.text(column++);
  record.key = text_or_none(rows, column++);
  record.name = rows.text(column++);
  // A word that we do not know was written by a foreign hand: the fiber is then as good as interrupted.
  record.status = fiber_status(rows.text(column++)).value_or(FiberStatus::kInterrupted);
  record.dead = rows.integer(column++) != 0;
  record.created_at_ms = rows.integer(column++);
  record.started_at_ms = integer_or_none(rows, column++);
  record.completed_at_ms = integer_or_none(rows, column++);
  record.attempts = static_cast<int>(rows.integer(column++));
  record.failures = static_cast<std::uint32_t>(rows.integer(column++));
  record.max_retries = static_cast<std::uint32_t>(rows.integer(column++));
  record.retry_base = std::chrono::milliseconds(rows.integer(column++));
  record.retry_cap = std::chrono::milliseconds(rows.integer(column++));
  record.next_at_ms = rows.integer(column++);
  record.input = text_or_none(rows, column++);
  record.metadata = text_or_none(rows, column++);
  record.snapshot = text_or_none(rows, column++);
  record.result = text_or_none(rows, column++);
  record.error = text_or_none(rows, column++);
  return record;
}

}  // namespace

// The table must be there when these are made.
struct FiberRecordTable::Prepared {
  explicit Prepared(sqlite3& connection)
      : find(connection,
             "SELECT " HEARTH_RECORD_COLUMNS " FROM cf_agents_fibers WHERE fiber_id = ?"),
        find_by_key(connection, "SELECT " HEARTH_RECORD_COLUMNS
                                " FROM cf_agents_fibers WHERE idempotency_key = ?"),
        seq_of(connection, "SELECT seq FROM cf_agents_fibers WHERE fiber_id = ?"),
        insert(connection,
               "INSERT INTO cf_agents_fibers(fiber_id, idempotency_key, name, status, created_at, "
               "started_at, max_retries, retry_base, retry_cap, input, metadata) "
               "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
        update(connection,
               "UPDATE cf_agents_fibers SET status = ?2, dead = ?3, started_at = ?4, "
               "completed_at = ?5, attempts = ?6, failures = ?7, next_at = ?8, told = ?9, "
               "tell_at = ?10, tell_failures = 0, tell_interruptions = 0, keep = NULL, metadata = "
               "?11, snapshot = ?12, "
               "result = ?13, error = ?14 WHERE fiber_id = ?1"),
        note_told(connection,
                  "UPDATE cf_agents_fibers SET told = 1, keep = CASE "
                  "WHEN status IN ('completed', 'aborted') THEN 'completed' "
                  "WHEN status = 'error' AND dead = 0 THEN 'failed' END "
                  "WHERE fiber_id = ? AND completed_at IS NOT NULL"),
        note_telling(connection,
                     "UPDATE cf_agents_fibers SET tell_interruptions = ?, tell_at = ? "
                     "WHERE fiber_id = ? AND told = 0"),
        erase(connection, "DELETE FROM cf_agents_fibers WHERE fiber_id = ?"),
        has_expired(connection,
                    "SELECT 1 FROM cf_agents_fibers WHERE keep = ? AND completed_at <= ? LIMIT 1"),
        // SQLite builds a DELETE with a LIMIT only on request.
        erase_expired(connection,
                      "DELETE FROM cf_agents_fibers WHERE seq IN (SELECT seq FROM cf_agents_fibers "
                      "WHERE keep = ?1 AND completed_at <= ?2 ORDER BY completed_at LIMIT ?3)") {}

  Statement find;
  Statement find_by_key;
  Statement seq_of;
  Statement insert;
  Statement update;
  Statement note_told;
  Statement note_telling;
  Statement erase;
  Statement has_expired;
  Statement erase_expired;
};

FiberRecordTable::FiberRecordTable(storage::AgentDatabase& database) : database_(database) {}

FiberRecordTable::~FiberRecordTable() = default;

void FiberRecordTable::close() {
  prepared_.reset();
}

bool FiberRecordTable::has_table() {
  if (has_table_ || !database_.exists()) return has_table_;
  Statement find(database_.connection(),
                 "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'cf_agents_fibers'");
  has_table_ = find.query().next();
  return has_table_;
}

void FiberRecordTable::prepare_write() {
  database_.begin_write();
  if (has_table()) return;
  for (const char* sql : kFiberRecordSchema) Statement(database_.connection(), sql).execute();
  // Not remembered: a savepoint that the plugin rolls back could take it away again. The next look finds it.
}

void FiberRecordTable::upgrade() {
  if (!has_table()) return;
  {
    Statement find(database_.connection(),
                   "SELECT 1 FROM pragma_table_info('cf_agents_fibers') "
                   "WHERE name = 'tell_interruptions'");
    if (find.query().next()) return;
  }
  database_.begin_write();
  Statement(database_.connection(),
            "ALTER TABLE cf_agents_fibers "
            "ADD COLUMN tell_interruptions INTEGER NOT NULL DEFAULT 0")
      .execute();
}

FiberRecordTable::Prepared& FiberRecordTable::prepared() {
  if (!prepared_) prepared_ = std::make_unique<Prepared>(database_.connection());
  return *prepared_;
}

// ---- reading ----------------------------------------------------------------------------------------------

std::optional<FiberRecord> FiberRecordTable::first(Statement& select, std::string_view value) {
  const std::array params{Param(value)};
  Rows rows = select.query(params);
  if (!rows.next()) return std::nullopt;
  return fiber_record_of(rows);
}

std::optional<FiberRecord> FiberRecordTable::find(std::string_view id) {
  if (!has_table()) return std::nullopt;
  return first(prepared().find, id);
}

std::optional<FiberRecord> FiberRecordTable::find_by_key(std::string_view key) {
  if (!has_table()) return std::nullopt;
  return first(prepared().find_by_key, key);
}

std::optional<std::int64_t> FiberRecordTable::seq_of(std::string_view id) {
  if (!has_table()) return std::nullopt;
  const std::array params{Param(id)};
  Rows rows = prepared().seq_of.query(params);
  if (!rows.next()) return std::nullopt;
  return rows.integer(0);
}

void FiberRecordTable::walk(const RecordQuery& query,
                            const std::function<bool(FiberRecord&)>& see) {
  if (!has_table()) return;
  // Those that are open have an index of their own, and what is settled may be much more.
  Statement select(database_.connection(),
                   query.settled == 0
                       ? "SELECT " HEARTH_RECORD_COLUMNS
                         " FROM cf_agents_fibers WHERE completed_at IS NULL AND ?1 = 0 AND "
                         "seq < ?5 AND ?6 = 1 AND " HEARTH_COMMON_CONDITION " ORDER BY seq DESC"
                       : "SELECT " HEARTH_RECORD_COLUMNS
                         " FROM cf_agents_fibers WHERE seq < ?5 AND "
                         "((?6 = 1 AND completed_at IS NULL) OR (" HEARTH_SETTLED_CONDITION
                         ")) AND " HEARTH_COMMON_CONDITION " ORDER BY seq DESC");
  const std::array params{
      Param(std::int64_t{query.settled}), Param(query.name),  Param(query.before_ms),
      Param(dead_filter(query)),          Param(query.after), Param(std::int64_t{query.open})};
  for (Rows rows = select.query(params); rows.next();) {
    FiberRecord record = fiber_record_of(rows);
    if (!see(record)) return;
  }
}

std::vector<std::string> FiberRecordTable::settled_ids(const RecordQuery& query,
                                                       std::size_t limit) {
  std::vector<std::string> ids;
  if (!has_table()) return ids;
  Statement select(database_.connection(),
                   "SELECT fiber_id FROM cf_agents_fibers WHERE " HEARTH_SETTLED_CONDITION
                   " AND " HEARTH_COMMON_CONDITION " ORDER BY completed_at, seq LIMIT ?5");
  const std::array params{Param(std::int64_t{query.settled}), Param(query.name),
                          Param(query.before_ms), Param(dead_filter(query)),
                          Param(static_cast<std::int64_t>(limit))};
  for (Rows rows = select.query(params); rows.next();) ids.emplace_back(rows.text(0));
  return ids;
}

std::vector<std::string> FiberRecordTable::open_ids() {
  std::vector<std::string> ids;
  if (!has_table()) return ids;
  Statement select(database_.connection(),
                   "SELECT fiber_id FROM cf_agents_fibers WHERE completed_at IS NULL ORDER BY seq");
  for (Rows rows = select.query(); rows.next();) ids.emplace_back(rows.text(0));
  return ids;
}

std::vector<UntoldRow> FiberRecordTable::untold() {
  std::vector<UntoldRow> found;
  if (!has_table()) return found;
  Statement select(
      database_.connection(),
      "SELECT fiber_id, tell_at, tell_failures, tell_interruptions FROM cf_agents_fibers "
      "WHERE told = 0 ORDER BY completed_at, seq");
  for (Rows rows = select.query(); rows.next();) {
    found.push_back({std::string(rows.text(0)), rows.integer(1), static_cast<int>(rows.integer(2)),
                     static_cast<int>(rows.integer(3))});
  }
  return found;
}

std::size_t FiberRecordTable::size_bound() {
  if (!has_table()) return 0;
  // Two queries in one would read the whole table: SQLite looks up a minimum or a maximum only by itself.
  Statement select(database_.connection(),
                   "SELECT (SELECT max(seq) FROM cf_agents_fibers), "
                   "(SELECT min(seq) FROM cf_agents_fibers)");
  Rows rows = select.query();
  if (!rows.next() || rows.is_null(0)) return 0;
  return static_cast<std::size_t>(rows.integer(0) - rows.integer(1) + 1);
}

std::size_t FiberRecordTable::size() {
  if (!has_table()) return 0;
  Statement select(database_.connection(), "SELECT count(*) FROM cf_agents_fibers");
  Rows rows = select.query();
  return rows.next() ? static_cast<std::size_t>(rows.integer(0)) : 0;
}

// ---- writing ----------------------------------------------------------------------------------------------

void FiberRecordTable::insert(const FiberRecord& record) {
  prepare_write();
  const std::array params{Param(std::string_view(record.id)),
                          nullable(record.key),
                          Param(std::string_view(record.name)),
                          Param(to_string(record.status)),
                          Param(record.created_at_ms),
                          nullable(record.started_at_ms),
                          Param(std::int64_t{record.max_retries}),
                          Param(std::int64_t{record.retry_base.count()}),
                          Param(std::int64_t{record.retry_cap.count()}),
                          nullable(record.input),
                          nullable(record.metadata)};
  prepared().insert.execute(params);
}

void FiberRecordTable::update(const FiberRecord& record, std::int64_t now_ms) {
  prepare_write();
  const std::array params{Param(std::string_view(record.id)),
                          Param(to_string(record.status)),
                          Param(std::int64_t{record.dead}),
                          nullable(record.started_at_ms),
                          nullable(record.completed_at_ms),
                          Param(std::int64_t{record.attempts}),
                          Param(std::int64_t{record.failures}),
                          Param(record.next_at_ms),
                          Param(std::int64_t{record.settled() ? 0 : 1}),
                          Param(now_ms),
                          nullable(record.metadata),
                          nullable(record.snapshot),
                          nullable(record.result),
                          nullable(record.error)};
  prepared().update.execute(params);
}

bool FiberRecordTable::note_told(std::string_view id) {
  prepare_write();
  const std::array params{Param(id)};
  return prepared().note_told.execute(params) > 0;
}

bool FiberRecordTable::note_not_told(std::string_view id, int failures, std::int64_t tell_at_ms) {
  prepare_write();
  Statement update(database_.connection(),
                   "UPDATE cf_agents_fibers SET tell_failures = ?, tell_at = ?, "
                   "tell_interruptions = 0 WHERE fiber_id = ? AND told = 0");
  const std::array params{Param(std::int64_t{failures}), Param(tell_at_ms), Param(id)};
  return update.execute(params) > 0;
}

void FiberRecordTable::note_telling(std::string_view id, int interruptions,
                                    std::int64_t tell_at_ms) {
  prepare_write();
  const std::array params{Param(std::int64_t{interruptions}), Param(tell_at_ms), Param(id)};
  prepared().note_telling.execute(params);
}

void FiberRecordTable::note_never_told(std::string_view id) {
  prepare_write();
  Statement update(database_.connection(),
                   "UPDATE cf_agents_fibers SET told = 1 WHERE fiber_id = ? AND told = 0");
  const std::array params{Param(id)};
  update.execute(params);
}

void FiberRecordTable::erase(std::string_view id) {
  prepare_write();
  const std::array params{Param(id)};
  prepared().erase.execute(params);
}

std::size_t FiberRecordTable::erase_expired(std::int64_t completed_before_ms,
                                            std::int64_t failed_before_ms, std::size_t limit) {
  if (!has_table()) return 0;
  std::size_t erased = 0;
  for (const auto& [keep, before] :
       std::initializer_list<std::pair<std::string_view, std::int64_t>>{
           {"completed", completed_before_ms}, {"failed", failed_before_ms}}) {
    const std::array look{Param(keep), Param(before)};
    if (!prepared().has_expired.query(look).next()) continue;  // no transaction for nothing
    database_.begin_write();
    const std::array erase{Param(keep), Param(before), Param(static_cast<std::int64_t>(limit))};
    erased += static_cast<std::size_t>(prepared().erase_expired.execute(erase));
  }
  return erased;
}

}  // namespace hearth::durable
