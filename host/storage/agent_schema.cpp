#include "storage/agent_schema.hpp"

#include "storage/statement.hpp"

#include <array>
#include <string>
#include <string_view>

namespace hearth::storage {
namespace {

constexpr std::array kJobTables = {
    "CREATE TABLE IF NOT EXISTS cf_agents_jobs("
    "seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0, "
    "due_at INTEGER, id TEXT NOT NULL, name TEXT NOT NULL, key TEXT, created_at INTEGER NOT NULL, "
    "started_at INTEGER, ended_at INTEGER, next_at INTEGER, "
    "attempts INTEGER NOT NULL DEFAULT 0, claims INTEGER NOT NULL DEFAULT 0, "
    "failures INTEGER NOT NULL DEFAULT 0, interruptions INTEGER NOT NULL DEFAULT 0, "
    "fatal_attempts INTEGER NOT NULL DEFAULT 0, max_attempts INTEGER NOT NULL DEFAULT 0, "
    "retry_base INTEGER NOT NULL DEFAULT 0, retry_cap INTEGER NOT NULL DEFAULT 0, "
    "dead INTEGER NOT NULL DEFAULT 0, has_failed INTEGER NOT NULL DEFAULT 0, status TEXT, "
    "tell_failures INTEGER NOT NULL DEFAULT 0, keep TEXT, root TEXT, trace TEXT, "
    "parent TEXT, type TEXT, length_ms INTEGER, cron TEXT, time_zone TEXT, fixed_rate INTEGER, "
    "misfire INTEGER, misfire_limit INTEGER, overlap INTEGER, paused INTEGER, missing INTEGER, "
    "running INTEGER, scheduled_for INTEGER, owed INTEGER, missed INTEGER, begun_at INTEGER, "
    "catch_up_until INTEGER, set_at INTEGER, last_run INTEGER)",
    "CREATE TABLE IF NOT EXISTS cf_agents_job_documents("
    "job INTEGER NOT NULL, part INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY(job, part)) "
    "WITHOUT ROWID",
    // Finds due, dead and next rows of a kind without reading other rows.
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_due ON cf_agents_jobs(kind, state, due_at)",
    "CREATE UNIQUE INDEX IF NOT EXISTS cf_agents_jobs_id ON cf_agents_jobs(id, kind)",
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_key ON cf_agents_jobs(key, kind) "
    "WHERE key IS NOT NULL",
    "CREATE UNIQUE INDEX IF NOT EXISTS cf_agents_jobs_managed_key ON cf_agents_jobs(key) "
    "WHERE kind = 2",
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_kept ON cf_agents_jobs(keep, ended_at) "
    "WHERE keep IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_kind ON cf_agents_jobs(kind)",
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_open ON cf_agents_jobs(kind) "
    "WHERE kind = 2 AND ended_at IS NULL",
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_parent ON cf_agents_jobs(parent) "
    "WHERE parent IS NOT NULL",
    // The order of a list of schedules.
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_time ON "
    "cf_agents_jobs(coalesce(next_at, 9223372036854775807)) WHERE kind = 3 AND parent IS NULL",
    "CREATE TRIGGER IF NOT EXISTS cf_agents_jobs_gone AFTER DELETE ON cf_agents_jobs BEGIN "
    "DELETE FROM cf_agents_job_documents WHERE job = old.seq; END",
};

#define HEARTH_DOCUMENT(part) \
  "(SELECT body FROM cf_agents_job_documents WHERE job = seq AND part = " #part ")"

constexpr std::array kJobViews = {
    "CREATE VIEW IF NOT EXISTS cf_agents_runs AS SELECT id, name, " HEARTH_DOCUMENT(3)
    " AS snapshot, created_at, attempts, iif(state = 2, ended_at, next_at) AS next_at, "
    "state = 2 AS dead, " HEARTH_DOCUMENT(6) " AS last_error, claims AS recoveries "
    "FROM cf_agents_jobs WHERE kind = 1 OR (kind = 2 AND ended_at IS NULL)",

    "CREATE VIEW IF NOT EXISTS cf_agents_fibers AS SELECT seq, id AS fiber_id, "
    "key AS idempotency_key, name, status, dead, created_at, started_at, ended_at AS completed_at, "
    "attempts, failures, max_attempts AS max_retries, retry_base, retry_cap, "
    "iif(ended_at IS NULL, next_at, 0) AS next_at, "
    "ended_at IS NULL OR state = 4 AS told, iif(ended_at IS NULL, 0, next_at) AS tell_at, "
    "tell_failures, keep, " HEARTH_DOCUMENT(1) " AS input, " HEARTH_DOCUMENT(2) " AS metadata, "
    HEARTH_DOCUMENT(3) " AS snapshot, " HEARTH_DOCUMENT(4) " AS result, " HEARTH_DOCUMENT(5)
    " AS error, iif(ended_at IS NULL, 0, interruptions) AS tell_interruptions "
    "FROM cf_agents_jobs WHERE kind = 2",

    "CREATE VIEW IF NOT EXISTS cf_agents_schedules AS SELECT seq, id, parent, name AS callback, type, "
    "next_at AS time, iif(type = 'delay', length_ms, NULL) AS delay_ms, "
    "iif(type = 'interval', length_ms, NULL) AS interval_ms, cron, time_zone, fixed_rate, "
    "key AS likeness, max_attempts AS retry_max_attempts, retry_base AS retry_base_ms, "
    "retry_cap AS retry_max_ms, misfire, misfire_limit, overlap, paused, dead, missing, running, "
    "scheduled_for, owed, missed, attempts, interruptions, begun_at, catch_up_until, set_at, "
    "created_at, claims AS runs, failures, last_run, " HEARTH_DOCUMENT(6) " AS last_error, "
    HEARTH_DOCUMENT(1) " AS payload FROM cf_agents_jobs WHERE kind = 3",

    "CREATE VIEW IF NOT EXISTS cf_agents_queues AS SELECT seq, id, name AS callback, created_at, dead, "
    "claims AS deliveries, failures, interruptions, next_at, max_attempts, retry_base, retry_cap, "
    HEARTH_DOCUMENT(6) " AS last_error, " HEARTH_DOCUMENT(1) " AS payload "
    "FROM cf_agents_jobs WHERE kind = 4",
};

void run(sqlite3& connection, std::string_view sql) {
  Statement(connection, sql).execute();
}

bool has(sqlite3& connection, std::string_view sql) {
  Statement find(connection, sql);
  return find.query().next();
}

bool has_table(sqlite3& connection, std::string_view table) {
  return has(connection, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '" +
                             std::string(table) + "'");
}

bool has_column(sqlite3& connection, std::string_view table, std::string_view column) {
  return has(connection, "SELECT 1 FROM pragma_table_info('" + std::string(table) +
                             "') WHERE name = '" + std::string(column) + "'");
}

// A NULL makes no document.
void copy_documents(sqlite3& connection, std::string_view from, std::string_view kinds,
                    std::string_view id, std::string_view column, std::string_view part) {
  run(connection, "INSERT OR REPLACE INTO cf_agents_job_documents(job, part, body) SELECT j.seq, " +
                      std::string(part) + ", o." + std::string(column) + " FROM " +
                      std::string(from) + " o JOIN cf_agents_jobs j ON j.id = o." +
                      std::string(id) + " AND j.kind IN (" + std::string(kinds) + ") WHERE o." +
                      std::string(column) + " IS NOT NULL");
}

// An open managed fiber had its record in cf_agents_fibers, and its progress in cf_agents_runs.
void move_records(sqlite3& connection) {
  if (!has_table(connection, "cf_agents_fibers")) return;
  const bool counts_tellings = has_column(connection, "cf_agents_fibers", "tell_interruptions");
  run(connection,
      "INSERT INTO cf_agents_jobs(seq, kind, state, due_at, id, name, key, created_at, started_at, "
      "ended_at, next_at, attempts, failures, interruptions, max_attempts, retry_base, retry_cap, "
      "dead, status, tell_failures, keep) SELECT seq, 2, "
      "CASE WHEN completed_at IS NULL THEN 0 WHEN told = 0 THEN 3 ELSE 4 END, "
      "CASE WHEN completed_at IS NULL THEN iif(next_at > 0, next_at, created_at) "
      "WHEN told = 0 THEN tell_at END, fiber_id, name, idempotency_key, created_at, started_at, "
      "completed_at, CASE WHEN completed_at IS NULL THEN iif(failures > 0, next_at, 0) "
      "ELSE tell_at END, attempts, failures, " +
          std::string(counts_tellings ? "tell_interruptions" : "0") +
          ", max_retries, retry_base, retry_cap, dead, status, tell_failures, keep "
          "FROM cf_agents_fibers ORDER BY seq");
  constexpr std::array kDocuments = {std::array{"input", "1"}, std::array{"metadata", "2"},
                                     std::array{"snapshot", "3"}, std::array{"result", "4"},
                                     std::array{"error", "5"}};
  for (const auto& [column, part] : kDocuments)
    copy_documents(connection, "cf_agents_fibers", "2", "fiber_id", column, part);
}

void move_runs(sqlite3& connection) {
  if (!has_table(connection, "cf_agents_runs")) return;
  const bool is_early = !has_column(connection, "cf_agents_runs", "recoveries");
  if (is_early)  // its dead rows have no time: the first sweep sets it
    run(connection, "ALTER TABLE cf_agents_runs ADD COLUMN recoveries INTEGER NOT NULL DEFAULT 0");
  run(connection,
      "UPDATE cf_agents_jobs SET attempts = r.attempts, claims = r.recoveries, "
      "next_at = max(coalesce(cf_agents_jobs.next_at, 0), r.next_at), "
      "due_at = max(cf_agents_jobs.due_at, r.next_at), "
      "has_failed = r.last_error IS NOT NULL, state = iif(r.dead, 2, 0) "
      "FROM cf_agents_runs r WHERE r.id = cf_agents_jobs.id AND kind = 2 AND ended_at IS NULL");
  run(connection, "UPDATE cf_agents_jobs SET due_at = NULL WHERE kind = 2 AND state = 2");
  run(connection,
      "INSERT INTO cf_agents_jobs(kind, state, due_at, id, name, created_at, ended_at, next_at, "
      "attempts, claims, dead, has_failed, keep) SELECT 1, iif(dead, 2, 0), "
      "iif(dead, NULL, iif(next_at > 0, next_at, created_at)), id, name, created_at, "
      "iif(dead, " +
          std::string(is_early ? "-1" : "next_at") +
          ", NULL), iif(dead, 0, next_at), attempts, recoveries, dead, last_error IS NOT NULL, "
          "iif(dead, 'dead', NULL) FROM cf_agents_runs r "
          "WHERE NOT EXISTS (SELECT 1 FROM cf_agents_jobs j WHERE j.id = r.id AND j.kind = 2) "
          "ORDER BY created_at, id");
  // The run's row of a settled record was not written by the host: it is removed with its
  // documents.
  run(connection,
      "DELETE FROM cf_agents_runs WHERE id IN "
      "(SELECT id FROM cf_agents_jobs WHERE kind = 2 AND ended_at IS NOT NULL)");
  copy_documents(connection, "cf_agents_runs", "1, 2", "id", "snapshot", "3");
  copy_documents(connection, "cf_agents_runs", "1, 2", "id", "last_error", "6");
}

void move_schedules(sqlite3& connection) {
  if (!has_table(connection, "cf_agents_schedules")) return;
  run(connection,
      "INSERT INTO cf_agents_jobs(kind, state, due_at, id, name, key, created_at, next_at, "
      "attempts, claims, failures, interruptions, max_attempts, retry_base, retry_cap, dead, "
      "parent, type, length_ms, cron, time_zone, fixed_rate, misfire, misfire_limit, overlap, "
      "paused, missing, running, scheduled_for, owed, missed, begun_at, catch_up_until, set_at, "
      "last_run, has_failed) SELECT 3, iif(dead, 2, 0), iif(dead OR paused, NULL, time), id, "
      "callback, "
      "likeness, created_at, time, attempts, runs, failures, interruptions, retry_max_attempts, "
      "retry_base_ms, retry_max_ms, dead, parent, type, coalesce(delay_ms, interval_ms), cron, "
      "time_zone, fixed_rate, misfire, misfire_limit, overlap, paused, missing, running, "
      "scheduled_for, owed, missed, begun_at, catch_up_until, set_at, last_run, "
      "last_error IS NOT NULL FROM cf_agents_schedules ORDER BY seq");
  copy_documents(connection, "cf_agents_schedules", "3", "id", "payload", "1");
  copy_documents(connection, "cf_agents_schedules", "3", "id", "last_error", "6");
}

void move_items(sqlite3& connection) {
  if (!has_table(connection, "cf_agents_queues")) return;
  run(connection,
      "INSERT INTO cf_agents_jobs(kind, state, id, name, created_at, next_at, claims, failures, "
      "interruptions, max_attempts, retry_base, retry_cap, dead) SELECT 4, iif(dead, 2, 0), id, "
      "callback, created_at, next_at, deliveries, failures, interruptions, max_attempts, "
      "retry_base, retry_cap, dead FROM cf_agents_queues ORDER BY seq");
  run(connection,
      "UPDATE cf_agents_jobs SET due_at = iif(next_at > 0, next_at, created_at) WHERE seq = "
      "(SELECT min(seq) FROM cf_agents_jobs WHERE kind = 4 AND state = 0)");
  copy_documents(connection, "cf_agents_queues", "4", "id", "payload", "1");
  copy_documents(connection, "cf_agents_queues", "4", "id", "last_error", "6");
}

}  // namespace

void create_job_tables(sqlite3& connection) {
  for (const char* sql : kJobTables) run(connection, sql);
  for (const char* sql : kJobViews) run(connection, sql);
}

void migrate_jobs_from_version_1(sqlite3& connection) {
  constexpr std::array<std::string_view, 4> kOld = {"cf_agents_fibers", "cf_agents_runs",
                                                    "cf_agents_schedules", "cf_agents_queues"};
  bool any = false;
  for (const std::string_view table : kOld) any = any || has_table(connection, table);
  if (!any) return;
  for (const char* sql : kJobTables) run(connection, sql);
  move_records(connection);
  move_runs(connection);
  move_schedules(connection);
  move_items(connection);
  for (const std::string_view table : kOld)
    run(connection, "DROP TABLE IF EXISTS " + std::string(table));
  for (const char* sql : kJobViews) run(connection, sql);
}

}  // namespace hearth::storage
