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
    "started_at INTEGER, ended_at INTEGER, next_at INTEGER, set_at INTEGER, "
    "attempts INTEGER NOT NULL DEFAULT 0, claims INTEGER NOT NULL DEFAULT 0, "
    "failures INTEGER NOT NULL DEFAULT 0, interruptions INTEGER NOT NULL DEFAULT 0, "
    "fatal_attempts INTEGER NOT NULL DEFAULT 0, max_attempts INTEGER NOT NULL DEFAULT 0, "
    "retry_base INTEGER NOT NULL DEFAULT 0, retry_cap INTEGER NOT NULL DEFAULT 0, "
    "dead INTEGER NOT NULL DEFAULT 0, has_failed INTEGER NOT NULL DEFAULT 0, status TEXT, "
    "keep TEXT, trace TEXT, "
    "parent TEXT, type TEXT, length_ms INTEGER, cron TEXT, time_zone TEXT, fixed_rate INTEGER, "
    "misfire INTEGER, misfire_limit INTEGER, overlap INTEGER, paused INTEGER, missing INTEGER, "
    "running INTEGER, scheduled_for INTEGER, owed INTEGER, missed INTEGER, begun_at INTEGER, "
    "catch_up_until INTEGER, last_run INTEGER, lane TEXT, failing_since INTEGER)",
    "CREATE TABLE IF NOT EXISTS cf_agents_job_documents("
    "job INTEGER NOT NULL, part INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY(job, part)) "
    "WITHOUT ROWID",
    // Finds due, dead and next rows of a kind without reading other rows.
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_due ON cf_agents_jobs(kind, state, due_at)",
    "CREATE UNIQUE INDEX IF NOT EXISTS cf_agents_jobs_id ON cf_agents_jobs(id, kind)",
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_key ON cf_agents_jobs(key, kind) "
    "WHERE key IS NOT NULL",
    "CREATE UNIQUE INDEX IF NOT EXISTS cf_agents_jobs_fiber_key ON cf_agents_jobs(key) "
    "WHERE kind = 2",
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_kept ON cf_agents_jobs(keep, ended_at) "
    "WHERE keep IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_kind ON cf_agents_jobs(kind)",
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_open ON cf_agents_jobs(kind) "
    "WHERE kind = 2 AND ended_at IS NULL",
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_parent ON cf_agents_jobs(parent) "
    "WHERE parent IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_lane ON cf_agents_jobs(lane) "
    "WHERE lane IS NOT NULL AND ended_at IS NULL",
    // The order of a list of schedules.
    "CREATE INDEX IF NOT EXISTS cf_agents_jobs_time ON "
    "cf_agents_jobs(coalesce(nullif(next_at, 0), 9223372036854775807)) WHERE kind = 3 AND parent "
    "IS NULL",
    "CREATE TRIGGER IF NOT EXISTS cf_agents_jobs_gone AFTER DELETE ON cf_agents_jobs BEGIN "
    "DELETE FROM cf_agents_job_documents WHERE job = old.seq; END",
};

#define HEARTH_DOCUMENT(part) \
  "(SELECT body FROM cf_agents_job_documents WHERE job = seq AND part = " #part ")"

// Of the row that is to tell of the end of fiber f.
#define HEARTH_TELLING(value) \
  "(SELECT " value " FROM cf_agents_jobs t WHERE t.id = f.id AND t.kind = 7)"

constexpr std::array kJobViews = {
    "VIEW IF NOT EXISTS cf_agents_runs AS SELECT id, name, " HEARTH_DOCUMENT(3)
    " AS snapshot, created_at, attempts, next_at, "
    "dead, coalesce(" HEARTH_DOCUMENT(6) ", " HEARTH_DOCUMENT(5)
    ") AS last_error, claims AS recoveries "
    "FROM cf_agents_jobs WHERE kind = 2 AND (ended_at IS NULL OR dead)",

    "VIEW IF NOT EXISTS cf_agents_fibers AS SELECT seq, id AS fiber_id, "
    "key AS idempotency_key, name, status, dead, created_at, started_at, ended_at AS completed_at, "
    "attempts, failures, max_attempts AS max_retries, retry_base, retry_cap, "
    "iif(ended_at IS NULL, next_at, 0) AS next_at, "
    HEARTH_TELLING("1") " IS NULL AS told, "
    "coalesce(" HEARTH_TELLING("max(t.next_at, t.created_at)") ", 0) AS tell_at, "
    "coalesce(" HEARTH_TELLING("t.failures") ", 0) AS tell_failures, "
    "keep, " HEARTH_DOCUMENT(1) " AS input, " HEARTH_DOCUMENT(2) " AS metadata, "
    HEARTH_DOCUMENT(3) " AS snapshot, " HEARTH_DOCUMENT(4) " AS result, " HEARTH_DOCUMENT(5)
    " AS error, coalesce(" HEARTH_TELLING("t.interruptions") ", 0) AS tell_interruptions "
    "FROM cf_agents_jobs f WHERE kind = 2",

    "VIEW IF NOT EXISTS cf_agents_schedules AS SELECT seq, id, parent, name AS callback, type, "
    "nullif(next_at, 0) AS time, iif(type = 'delay', length_ms, NULL) AS delay_ms, "
    "iif(type = 'interval', length_ms, NULL) AS interval_ms, cron, time_zone, fixed_rate, "
    "key AS likeness, max_attempts AS retry_max_attempts, retry_base AS retry_base_ms, "
    "retry_cap AS retry_max_ms, misfire, misfire_limit, overlap, paused, dead, missing, running, "
    "scheduled_for, owed, missed, attempts, interruptions, begun_at, catch_up_until, set_at, "
    "created_at, claims AS runs, failures, last_run, " HEARTH_DOCUMENT(6) " AS last_error, "
    HEARTH_DOCUMENT(1) " AS payload FROM cf_agents_jobs WHERE kind = 3",

    "VIEW IF NOT EXISTS cf_agents_queues AS SELECT seq, id, name AS callback, created_at, dead, "
    "claims AS deliveries, failures, interruptions, next_at, max_attempts, retry_base, retry_cap, "
    HEARTH_DOCUMENT(6) " AS last_error, " HEARTH_DOCUMENT(1) " AS payload "
    "FROM cf_agents_jobs WHERE kind = 4",
};

void run(sqlite3& connection, std::string_view sql) {
  Statement(connection, sql).execute();
}

}  // namespace

void create_job_tables(sqlite3& connection) {
  for (const char* sql : kJobTables) run(connection, sql);
}

void create_job_views(sqlite3& connection, ViewsIn where) {
  const std::string create = where == ViewsIn::kFile ? "CREATE " : "CREATE TEMP ";
  for (const char* sql : kJobViews) run(connection, create + sql);
}

void drop_connection_views(sqlite3& connection) {
  for (const std::string_view name : kWorkViews)
    run(connection, "DROP VIEW IF EXISTS temp." + std::string(name));
}

}  // namespace hearth::storage
