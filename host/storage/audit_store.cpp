#include "storage/audit_store.hpp"

#include "storage/connection.hpp"
#include "storage/data_format.hpp"
#include "storage/statement.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace hearth::storage {
namespace {

constexpr const char* kAuditTables =
    "CREATE TABLE entries("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, event TEXT NOT NULL,"
    "  actor TEXT NOT NULL, class TEXT NOT NULL, agent TEXT NOT NULL, detail TEXT NOT NULL,"
    "  kind INTEGER NOT NULL);"
    "CREATE INDEX entries_of_agents ON entries(class, agent, id);"
    "CREATE INDEX entries_of_kinds ON entries(kind, id)";

// Entries spell a class as its settings file or as its library does. An actor may be followed by
// its address.
constexpr std::string_view kFilters =
    " FROM entries WHERE id > ?1 AND (?2 = '' OR event = ?2) AND (?3 = '' OR actor = ?3"
    " OR substr(actor, 1, length(?3) + 1) = ?3 || ' ')"
    " AND (?4 = '' OR lower(replace(replace(class, '-', ''), '_', '')) ="
    " lower(replace(replace(?4, '-', ''), '_', ''))) AND (?5 = '' OR agent = ?5)"
    " AND (?6 IS NULL OR at_ms >= ?6) AND (?7 IS NULL OR at_ms < ?7) ORDER BY id ";

}  // namespace

AuditStore::AuditStore(std::filesystem::path file) : file_(std::move(file)) {}

AuditStore::~AuditStore() = default;

Connection& AuditStore::opened() {
  if (!connection_) {
    auto connection = std::make_unique<Connection>(file_, ConnectionOptions{.create = true});
    check_format(*connection);  // before the first write
    connection->execute("PRAGMA journal_mode = WAL");
    connection->execute("PRAGMA synchronous = NORMAL");
    prepare_tables(*connection, kAuditTables);
    connection_ = std::move(connection);
  }
  return *connection_;
}

void AuditStore::append(std::vector<AuditEntry>& entries) {
  Connection& connection = opened();
  connection.execute("BEGIN IMMEDIATE");
  try {
    Statement put(connection.handle(),
                  "INSERT INTO entries(at_ms, event, actor, class, agent, detail, kind) "
                  "VALUES(?, ?, ?, ?, ?, ?, ?) RETURNING id");
    for (AuditEntry& each : entries) {
      Rows rows = put.query(each.at_ms, each.event, each.actor, each.agent_class, each.agent,
                            each.detail, each.kind);
      while (rows.next()) each.id = rows.integer(0);
    }
    connection.execute("COMMIT");
  } catch (...) {
    connection_.reset();  // rolls back
    throw;
  }
}

void AuditStore::trim(std::size_t keep, std::int64_t before_ms) {
  Connection& connection = opened();
  Statement by_age(connection.handle(), "DELETE FROM entries WHERE at_ms < ?");
  by_age.execute(before_ms);
  Statement by_count(connection.handle(),
                     "DELETE FROM entries WHERE kind = ?1 AND id <= (SELECT id FROM entries"
                     " WHERE kind = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)");
  for (const AuditKind kind : {AuditKind::kServer, AuditKind::kAdministrators, AuditKind::kUsers})
    by_count.execute(kind, keep);
}

std::vector<AuditEntry> AuditStore::read(const AuditQuery& query) {
  std::vector<AuditEntry> entries;
  if (!connection_ && !std::filesystem::exists(file_)) return entries;
  const std::string sql = "SELECT id, at_ms, event, actor, class, agent, detail" +
                          std::string(kFilters) + (query.newest ? "DESC" : "ASC") + " LIMIT ?8";
  Statement all(opened().handle(), sql);
  for (Rows rows = all.query(query.after, query.event, query.actor, query.agent_class, query.agent,
                             nullable(query.since_ms), nullable(query.until_ms), query.limit);
       rows.next();) {
    entries.push_back({.id = rows.integer(0),
                       .at_ms = rows.integer(1),
                       .event = std::string(rows.text(2)),
                       .actor = std::string(rows.text(3)),
                       .agent_class = std::string(rows.text(4)),
                       .agent = std::string(rows.text(5)),
                       .detail = std::string(rows.text(6))});
  }
  if (query.newest) std::ranges::reverse(entries);
  return entries;
}

}  // namespace hearth::storage
