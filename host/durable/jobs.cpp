#include "durable/jobs.hpp"

#include "storage/agent_schema.hpp"

#include <algorithm>
#include <limits>

namespace hearth::durable {

using storage::integer_or_none;
using storage::nullable;
using storage::Rows;
using storage::Statement;
using storage::text_or_none;

namespace {

#define HEARTH_JOB_COLUMNS                                                                       \
  "seq, kind, state, due_at, id, name, key, created_at, started_at, ended_at, next_at, set_at, " \
  "attempts, claims, failures, interruptions, fatal_attempts, max_attempts, retry_base, "        \
  "retry_cap, dead, has_failed, status, keep, parent, type, lane"

Job job_of(const Rows& rows) {
  Job job;
  int column = 0;
  const auto small = [&] { return static_cast<int>(rows.integer(column++)); };
  job.seq = rows.integer(column++);
  job.kind = static_cast<JobKind>(rows.integer(column++));
  job.state = static_cast<JobState>(rows.integer(column++));
  job.due_at_ms = integer_or_none(rows, column++);
  job.id = rows.text(column++);
  job.name = rows.text(column++);
  job.key = text_or_none(rows, column++);
  job.created_at_ms = rows.integer(column++);
  job.started_at_ms = integer_or_none(rows, column++);
  job.ended_at_ms = integer_or_none(rows, column++);
  job.next_at_ms = rows.integer(column++);
  job.set_at_ms = rows.integer(column++);
  job.attempts = small();
  job.claims = small();
  job.failures = small();
  job.interruptions = small();
  job.fatal_attempts = small();
  job.retry.max_attempts = small();
  job.retry.base = std::chrono::milliseconds(rows.integer(column++));
  job.retry.cap = std::chrono::milliseconds(rows.integer(column++));
  job.dead = small() != 0;
  job.has_failed = small() != 0;
  job.status = text_or_none(rows, column++);
  job.keep = text_or_none(rows, column++);
  job.parent = text_or_none(rows, column++);
  job.type = text_or_none(rows, column++);
  job.lane = text_or_none(rows, column++);
  return job;
}

}  // namespace

bool Jobs::exists() {
  return database_.has_table("cf_agents_jobs");
}

void Jobs::prepare_write() {
  if (exists()) return database_.begin_write();
  database_.begin_write();
  storage::create_job_tables(database_.connection());
}

// ---- rows ---------------------------------------------------------------------------------------

// A statement with all columns takes 17 KB of memory, one with the number alone 2 KB. So the texts
// find numbers, and one statement reads the rows.
void Jobs::each(std::string_view where, Params params, const std::function<bool(Job&)>& see) {
  if (!exists()) return;
  Statement& statement = database_.kept(where, "SELECT seq FROM cf_agents_jobs ");
  for (Rows rows = statement.query(params); rows.next();) {
    std::optional<Job> job = row(rows.integer(0));
    if (job && !see(*job)) return;
  }
}

std::vector<Job> Jobs::all(std::string_view where, Params params) {
  std::vector<Job> found;
  each(where, params, [&](Job& job) {
    found.push_back(std::move(job));
    return true;
  });
  return found;
}

std::optional<Job> Jobs::find(std::int64_t seq) {
  return exists() ? row(seq) : std::nullopt;
}

std::optional<Job> Jobs::row(std::int64_t seq) {
  Rows rows =
      database_.kept("SELECT " HEARTH_JOB_COLUMNS " FROM cf_agents_jobs WHERE seq = ?").query(seq);
  if (!rows.next()) return std::nullopt;
  return job_of(rows);
}

std::optional<Job> Jobs::find(JobKind kind, std::string_view id) {
  return first("WHERE id = ?1 AND kind = +?2", id, kind);
}

std::optional<std::int64_t> Jobs::number(std::string_view sql, Params params) {
  if (!exists()) return std::nullopt;
  Rows rows = database_.kept(sql).query(params);
  if (!rows.next()) return std::nullopt;
  return integer_or_none(rows, 0);
}

void Jobs::keep_trace(JobKind kind, std::string_view id, std::string_view trace) {
  run("UPDATE cf_agents_jobs SET trace = ?3 WHERE id = ?1 AND kind = +?2 AND trace IS NULL", id,
      kind, trace);
}

std::string Jobs::trace_of(JobKind kind, std::string_view id) {
  if (!exists()) return {};
  Rows rows = database_.kept("SELECT trace FROM cf_agents_jobs WHERE id = ?1 AND kind = +?2")
                  .query(id, kind);
  if (!rows.next()) return {};
  return text_or_none(rows, 0).value_or(std::string());
}

std::int64_t Jobs::run(std::string_view sql, Params params) {
  prepare_write();
  return database_.kept(sql).execute(params);
}

void Jobs::insert(Job& job) {
  prepare_write();
  Rows rows =
      database_
          .kept(
              "INSERT INTO cf_agents_jobs(kind, state, due_at, id, name, key, created_at, "
              "started_at, next_at, set_at, attempts, claims, max_attempts, retry_base, "
              "retry_cap, status, fatal_attempts, parent, type, interruptions, lane) "
              "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq")
          .query(job.kind, job.state, nullable(job.due_at_ms), job.id, job.name, nullable(job.key),
                 job.created_at_ms, nullable(job.started_at_ms), job.next_at_ms, job.set_at_ms,
                 job.attempts, job.claims, job.retry.max_attempts, job.retry.base.count(),
                 job.retry.cap.count(), nullable(job.status), job.fatal_attempts,
                 nullable(job.parent), nullable(job.type), job.interruptions, nullable(job.lane));
  if (rows.next()) job.seq = rows.integer(0);
  while (rows.next()) {  // SQLite completes the insert only at the end of the rows
  }
}

void Jobs::update(const Job& job) {
  prepare_write();
  const bool fails =  // of a schedule, failures are all that there ever were
      job.failures >= kOftenFailed && !job.ended_at_ms && job.kind != JobKind::kSchedule;
  needs_person_ = needs_person_ || job.dead || job.waits_for_code() || fails;
  database_
      .kept(
          "UPDATE cf_agents_jobs SET state = ?2, due_at = ?3, started_at = ?4, ended_at = ?5, "
          "next_at = ?6, attempts = ?7, claims = ?8, failures = ?9, interruptions = ?10, "
          "dead = ?11, has_failed = ?12, status = ?13, keep = ?14, fatal_attempts = ?15, "
          "set_at = ?16, failing_since = iif(?9 > 0 AND kind <> 3, "
          "coalesce(failing_since, ?16), NULL) WHERE seq = ?1")
      .execute(job.seq, job.state, nullable(job.due_at_ms), nullable(job.started_at_ms),
               nullable(job.ended_at_ms), job.next_at_ms, job.attempts, job.claims, job.failures,
               job.interruptions, job.dead, job.has_failed, nullable(job.status),
               nullable(job.keep), job.fatal_attempts, job.set_at_ms);
}

void Jobs::erase(std::int64_t seq) {
  run("DELETE FROM cf_agents_jobs WHERE seq = ?", seq);
}

bool Jobs::any_needs_person() {
  return number(
             "SELECT 1 FROM cf_agents_jobs WHERE dead OR missing > 0 OR (state = 0 AND due_at >= "
             "?1) OR (failures >= ?2 AND ended_at IS NULL AND kind <> ?3) LIMIT 1",
             kFirstOfNextVersion, kOftenFailed, JobKind::kSchedule)
      .has_value();
}

// ---- lines --------------------------------------------------------------------------------------

void Jobs::each_waiting(JobKind kind, const std::function<bool(Job&)>& see) {
  each("WHERE kind = +?1 AND state = 0 AND due_at IS NOT NULL ORDER BY due_at, seq",
       storage::params_of(kind), see);
}

std::optional<Job> Jobs::first_due(JobKind kind, const std::function<bool(const Job&)>& fits) {
  std::optional<Job> found;
  each_waiting(kind, [&](Job& job) {
    if (fits && !fits(job)) return true;
    found = std::move(job);
    return false;
  });
  return found;
}

std::optional<std::int64_t> Jobs::first_moment(JobKind kind) {
  const auto job = first_due(kind);
  return job ? job->due_at_ms : std::nullopt;
}

bool Jobs::has_any(JobKind kind) {
  return number("SELECT 1 FROM cf_agents_jobs WHERE kind = +? LIMIT 1", kind).has_value();
}

bool Jobs::has_any(JobKind kind, JobState state) {
  return number("SELECT 1 FROM cf_agents_jobs WHERE kind = +? AND state = ? LIMIT 1", kind, state)
      .has_value();
}

void Jobs::count_crash(const EndedProcess& ended) {
#define HEARTH_COUNT_CRASH                                          \
  "UPDATE cf_agents_jobs SET fatal_attempts = fatal_attempts + 1, " \
  "interruptions = max(0, interruptions - 1) WHERE state = 1 AND "
  if (!exists()) return;
  if (ended.row) {
    run(HEARTH_COUNT_CRASH "seq = ?1", *ended.row);
  } else {
    run(HEARTH_COUNT_CRASH "kind IN (2, 3, 4, 6, 7)", {});
  }
#undef HEARTH_COUNT_CRASH
}

void Jobs::release(JobKind kind, std::int64_t now_ms) {
  for (Job& job : all("WHERE kind = +?1 AND state = 1", kind)) {
    const std::int64_t set_at = job.set_at_ms;
    job.wait(now_ms);
    job.set_at_ms = set_at;  // restart_waits() needs it
    update(job);
  }
}

#define HEARTH_WAITING "WHERE kind = +?1 AND state = 0 AND (?1 <> 6 OR claims > 0 OR next_at = 0) "

void Jobs::shift(JobKind kind, std::int64_t by_ms) {
  if (!number("SELECT 1 FROM cf_agents_jobs " HEARTH_WAITING "LIMIT 1", kind)) return;
  run("UPDATE cf_agents_jobs SET due_at = due_at + ?2, set_at = set_at + ?2, "
      "next_at = iif(next_at > 0, next_at + ?2, 0) " HEARTH_WAITING "AND due_at IS NOT NULL",
      kind, by_ms);
}

#define HEARTH_WAITING_TOO_LONG \
  HEARTH_WAITING "AND due_at > ?2 AND due_at < ?3 AND (next_at = 0 OR set_at > ?2) "

void Jobs::restart_waits(JobKind kind, std::int64_t now_ms, bool with_code) {
  const auto params = storage::params_of(
      kind, now_ms, with_code ? std::numeric_limits<std::int64_t>::max() : kFirstOfNextVersion);
  if (!number("SELECT 1 FROM cf_agents_jobs " HEARTH_WAITING_TOO_LONG "LIMIT 1", params)) return;
  run("UPDATE cf_agents_jobs SET due_at = iif(next_at = 0, ?2, due_at - set_at + ?2), "
      "next_at = iif(next_at = 0, 0, next_at - set_at + ?2), set_at = ?2 " HEARTH_WAITING_TOO_LONG,
      params);
}

// ---- numbers and retention ----------------------------------------------------------------------

std::size_t Jobs::count_bound(JobKind kind) {
  // In two queries: SQLite uses the index for min() or max() only if it is alone in a query.
  const auto bound = number(
      "SELECT (SELECT max(seq) FROM cf_agents_jobs WHERE kind = +?1) - "
      "(SELECT min(seq) FROM cf_agents_jobs WHERE kind = +?1) + 1",
      kind);
  return static_cast<std::size_t>(bound.value_or(0));
}

std::size_t Jobs::count(JobKind kind) {
  return static_cast<std::size_t>(
      number("SELECT count(*) FROM cf_agents_jobs WHERE kind = +?1 AND (?1 <> 3 OR parent IS NULL)",
             kind)
          .value_or(0));
}

std::vector<Job> Jobs::expired(std::string_view keep, std::int64_t before_ms, std::size_t limit) {
  return all("WHERE keep = ? AND ended_at <= ? ORDER BY ended_at LIMIT ?", keep, before_ms, limit);
}

// ---- documents ----------------------------------------------------------------------------------

std::optional<std::string> Jobs::document(std::int64_t seq, JobPart part) {
  if (!exists()) return std::nullopt;
  Rows rows = database_.kept("SELECT body FROM cf_agents_job_documents WHERE job = ? AND part = ?")
                  .query(seq, part);
  if (!rows.next()) return std::nullopt;
  return text_or_none(rows, 0);
}

void Jobs::each_document(std::int64_t seq,
                         const std::function<void(JobPart, std::string_view body)>& see) {
  if (!exists()) return;
  for (Rows rows =
           database_
               .kept("SELECT part, body FROM cf_agents_job_documents WHERE job = ?1 AND part < 16")
               .query(seq);
       rows.next();)
    see(static_cast<JobPart>(rows.integer(0)), rows.text(1));
}

void Jobs::put(std::int64_t seq, JobPart part, std::optional<std::string_view> body) {
  if (!body) {
    run("DELETE FROM cf_agents_job_documents WHERE job = ? AND part = ?", seq, part);
    return;
  }
  run("INSERT INTO cf_agents_job_documents(job, part, body) VALUES(?, ?, ?) "
      "ON CONFLICT(job, part) DO UPDATE SET body = excluded.body",
      seq, part, *body);
}

}  // namespace hearth::durable
