#include "durable/queue_table.hpp"

#include <array>
#include <chrono>

namespace hearth::durable {

using storage::nullable;
using storage::Param;
using storage::Rows;
using storage::Statement;
using storage::text_or_none;

namespace {

#define HEARTH_QUEUE_COLUMNS                                                            \
  "seq, id, callback, created_at, dead, deliveries, failures, interruptions, next_at, " \
  "max_attempts, "                                                                      \
  "retry_base, retry_cap, last_error, payload"

// The payload last: a walk that passes over rows does not read it.
constexpr const char* kQueueSchema[] = {
    "CREATE TABLE IF NOT EXISTS cf_agents_queues("
    "seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, callback TEXT NOT NULL, "
    "created_at INTEGER NOT NULL, dead INTEGER NOT NULL DEFAULT 0, "
    "deliveries INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, "
    "interruptions INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT NULL DEFAULT 0, "
    "max_attempts INTEGER NOT NULL, retry_base INTEGER NOT NULL, retry_cap INTEGER NOT NULL, "
    "last_error TEXT, payload TEXT)",
    // Otherwise every look for the head would pass over the dead ones before it.
    "CREATE INDEX IF NOT EXISTS cf_agents_queues_alive ON cf_agents_queues(seq) WHERE dead = 0",
};

// ?1 callback, ?2 dead or null, ?3 only or null, ?4 except or null, ?5 after.
#define HEARTH_QUEUE_CONDITION                                                 \
  "seq > ?5 AND (?1 = '' OR callback = ?1) AND (?2 IS NULL OR dead = ?2) AND " \
  "(?3 IS NULL OR seq = ?3) AND (?4 IS NULL OR seq <> ?4)"

std::array<Param, 5> params_of(const QueueQuery& query) {
  const auto number = [](const auto& value) {
    return value ? Param(static_cast<std::int64_t>(*value)) : Param(nullptr);
  };
  return {Param(query.callback), number(query.dead), number(query.only), number(query.except),
          Param(query.after)};
}

QueueRow queue_row_of(const Rows& rows) {
  QueueRow row;
  int column = 0;
  row.seq = rows.integer(column++);
  row.id = rows.text(column++);
  row.callback = rows.text(column++);
  row.created_at_ms = rows.integer(column++);
  row.dead = rows.integer(column++) != 0;
  row.deliveries = static_cast<int>(rows.integer(column++));
  row.failures = static_cast<int>(rows.integer(column++));
  row.interruptions = static_cast<int>(rows.integer(column++));
  row.next_at_ms = rows.integer(column++);
  row.retry.max_attempts = static_cast<int>(rows.integer(column++));
  row.retry.base = std::chrono::milliseconds(rows.integer(column++));
  row.retry.cap = std::chrono::milliseconds(rows.integer(column++));
  row.last_error = text_or_none(rows, column++);
  row.payload = text_or_none(rows, column++);
  return row;
}

}  // namespace

// The table must be there when these are made.
struct QueueTable::Prepared {
  explicit Prepared(sqlite3& connection)
      // SQLite would rather walk the table, which is in the same order but has the dead ones in it.
      : head(connection,
             "SELECT seq, interruptions, next_at, retry_cap FROM cf_agents_queues "
             "INDEXED BY cf_agents_queues_alive WHERE dead = 0 ORDER BY seq LIMIT 1"),
        find(connection, "SELECT " HEARTH_QUEUE_COLUMNS " FROM cf_agents_queues WHERE seq = ?"),
        append(connection,
               "INSERT INTO cf_agents_queues(id, callback, created_at, max_attempts, retry_base, "
               "retry_cap, payload) VALUES(?, ?, ?, ?, ?, ?, ?) RETURNING seq"),
        update(connection,
               "UPDATE cf_agents_queues SET dead = ?2, deliveries = ?3, failures = ?4, "
               "interruptions = ?5, next_at = ?6, last_error = ?7 WHERE seq = ?1"),
        erase(connection, "DELETE FROM cf_agents_queues WHERE seq = ?") {}

  Statement head;
  Statement find;
  Statement append;
  Statement update;
  Statement erase;
};

QueueTable::QueueTable(storage::AgentDatabase& database) : database_(database) {}

QueueTable::~QueueTable() = default;

void QueueTable::close() {
  prepared_.reset();
}

bool QueueTable::has_table() {
  if (has_table_ || !database_.exists()) return has_table_;
  Statement find(database_.connection(),
                 "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'cf_agents_queues'");
  has_table_ = find.query().next();
  return has_table_;
}

void QueueTable::prepare_write() {
  database_.begin_write();
  if (has_table()) return;
  for (const char* sql : kQueueSchema) Statement(database_.connection(), sql).execute();
  // Not remembered: a savepoint that the plugin rolls back could take it away again. The next look finds it.
}

QueueTable::Prepared& QueueTable::prepared() {
  if (!prepared_) prepared_ = std::make_unique<Prepared>(database_.connection());
  return *prepared_;
}

// ---- reading ----------------------------------------------------------------------------------------------

std::optional<QueueHead> QueueTable::head() {
  if (!has_table()) return std::nullopt;
  Rows rows = prepared().head.query();
  if (!rows.next()) return std::nullopt;
  return QueueHead{rows.integer(0), static_cast<int>(rows.integer(1)), rows.integer(2),
                   rows.integer(3)};
}

std::optional<QueueRow> QueueTable::find(std::int64_t seq) {
  if (!has_table()) return std::nullopt;
  const std::array params{Param(seq)};
  Rows rows = prepared().find.query(params);
  if (!rows.next()) return std::nullopt;
  return queue_row_of(rows);
}

std::optional<QueueRow> QueueTable::find(std::string_view id) {
  const auto seq = seq_of(id);
  return seq ? find(*seq) : std::nullopt;
}

std::optional<std::int64_t> QueueTable::seq_of(std::string_view id) {
  if (!has_table()) return std::nullopt;
  Statement select(database_.connection(), "SELECT seq FROM cf_agents_queues WHERE id = ?");
  const std::array params{Param(id)};
  Rows rows = select.query(params);
  if (!rows.next()) return std::nullopt;
  return rows.integer(0);
}

void QueueTable::walk(const QueueQuery& query, const std::function<bool(QueueRow&)>& see) {
  if (!has_table()) return;
  Statement select(database_.connection(),
                   "SELECT " HEARTH_QUEUE_COLUMNS
                   " FROM cf_agents_queues WHERE " HEARTH_QUEUE_CONDITION " ORDER BY seq");
  const auto params = params_of(query);
  for (Rows rows = select.query(params); rows.next();) {
    QueueRow row = queue_row_of(rows);
    if (!see(row)) return;
  }
}

std::size_t QueueTable::size_bound() {
  if (!has_table()) return 0;
  // Each by itself: SQLite looks up a minimum or a maximum only when it is alone.
  Statement select(database_.connection(),
                   "SELECT (SELECT max(seq) FROM cf_agents_queues), "
                   "(SELECT min(seq) FROM cf_agents_queues)");
  Rows rows = select.query();
  if (!rows.next() || rows.is_null(0)) return 0;
  return static_cast<std::size_t>(rows.integer(0) - rows.integer(1) + 1);
}

std::size_t QueueTable::size() {
  if (!has_table()) return 0;
  Statement select(database_.connection(), "SELECT count(*) FROM cf_agents_queues");
  Rows rows = select.query();
  return rows.next() ? static_cast<std::size_t>(rows.integer(0)) : 0;
}

// ---- writing ----------------------------------------------------------------------------------------------

std::int64_t QueueTable::append(const QueueRow& row) {
  prepare_write();
  const std::array params{Param(std::string_view(row.id)),
                          Param(std::string_view(row.callback)),
                          Param(row.created_at_ms),
                          Param(std::int64_t{row.retry.max_attempts}),
                          Param(std::int64_t{row.retry.base.count()}),
                          Param(std::int64_t{row.retry.cap.count()}),
                          nullable(row.payload)};
  Rows rows = prepared().append.query(params);
  const bool has_row = rows.next();
  const std::int64_t seq = has_row ? rows.integer(0) : 0;
  while (has_row && rows.next()) continue;  // to its end: that is when the insert is over
  return seq;
}

void QueueTable::update(const QueueRow& row) {
  prepare_write();
  const std::array params{Param(row.seq),
                          Param(std::int64_t{row.dead}),
                          Param(std::int64_t{row.deliveries}),
                          Param(std::int64_t{row.failures}),
                          Param(std::int64_t{row.interruptions}),
                          Param(row.next_at_ms),
                          nullable(row.last_error)};
  prepared().update.execute(params);
}

void QueueTable::erase(std::int64_t seq) {
  prepare_write();
  const std::array params{Param(seq)};
  prepared().erase.execute(params);
}

std::size_t QueueTable::erase(const QueueQuery& query) {
  if (!has_table()) return 0;
  prepare_write();
  Statement erase(database_.connection(),
                  "DELETE FROM cf_agents_queues WHERE " HEARTH_QUEUE_CONDITION);
  const auto params = params_of(query);
  return static_cast<std::size_t>(erase.execute(params));
}

void QueueTable::move_to_end(std::int64_t seq) {
  prepare_write();
  Statement move(database_.connection(),
                 "UPDATE cf_agents_queues SET seq = (SELECT max(seq) + 1 FROM cf_agents_queues), "
                 "dead = 0, deliveries = 0, failures = 0, interruptions = 0, next_at = 0 "
                 "WHERE seq = ?");
  const std::array params{Param(seq)};
  move.execute(params);
}

}  // namespace hearth::durable
