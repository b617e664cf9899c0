#include "durable/schedule_table.hpp"

#include <array>
#include <string>
#include <utility>

namespace hearth::durable {

using storage::integer_or_none;
using storage::nullable;
using storage::Param;
using storage::Rows;
using storage::Statement;

namespace {

constexpr std::string_view kSelect =
    "SELECT seq, id, parent, name, type, next_at, coalesce(length_ms, 0), cron, time_zone, "
    "fixed_rate, key, max_attempts, retry_base, retry_cap, misfire, "
    "misfire_limit, overlap, paused, dead, missing, running, scheduled_for, owed, missed, "
    "attempts, interruptions, fatal_attempts, begun_at, catch_up_until, set_at, created_at, "
    "claims, failures, "
    "last_run, has_failed FROM cf_agents_jobs ";

// Values of the column `owed`.
constexpr std::int64_t kOwed = 1;
constexpr std::int64_t kOver = 2;

// The state of a row, in SQL.
constexpr std::string_view kState =
    "CASE WHEN running > 0 THEN 'running' WHEN dead THEN 'dead' WHEN paused THEN 'paused' "
    "WHEN missing > 0 THEN 'missing' ELSE 'waiting' END";

int small(const Rows& rows, int column) {
  return static_cast<int>(rows.integer(column));
}

ScheduleRow row_of(const Rows& rows) {
  ScheduleRow row;
  int column = 0;
  row.seq = rows.integer(column++);
  row.id = rows.text(column++);
  row.parent = rows.text(column++);
  row.callback = rows.text(column++);
  row.type = schedule_type(rows.text(column++)).value_or(ScheduleType::kAt);
  row.time = integer_or_none(rows, column++);
  row.length_ms = rows.integer(column++);
  row.cron = rows.text(column++);
  row.time_zone = rows.text(column++);
  row.fixed_rate = rows.integer(column++) != 0;
  row.likeness = rows.text(column++);
  row.retry.max_attempts = small(rows, column++);
  row.retry.base = std::chrono::milliseconds(rows.integer(column++));
  row.retry.cap = std::chrono::milliseconds(rows.integer(column++));
  row.misfire = static_cast<Misfire>(rows.integer(column++));
  row.misfire_limit = static_cast<std::uint32_t>(rows.integer(column++));
  row.overlap = static_cast<Overlap>(rows.integer(column++));
  row.paused = rows.integer(column++) != 0;
  row.dead = rows.integer(column++) != 0;
  row.missing = small(rows, column++);
  row.running = small(rows, column++);
  row.scheduled_for = rows.integer(column++);
  const std::int64_t owed = rows.integer(column++);
  row.owed = owed == kOwed;
  row.over = owed == kOver;
  row.missed = static_cast<std::uint32_t>(rows.integer(column++));
  row.attempts = small(rows, column++);
  row.interruptions = small(rows, column++);
  row.fatal_attempts = small(rows, column++);
  row.begun_at = rows.integer(column++);
  row.catch_up_until = rows.integer(column++);
  row.set_at = rows.integer(column++);
  row.created_at = rows.integer(column++);
  row.runs = rows.integer(column++);
  row.failures = rows.integer(column++);
  row.last_run = integer_or_none(rows, column++);
  if (rows.integer(column) != 0) row.last_error.emplace();  // fill_in() reads it
  return row;
}

Param text_or_null(std::string_view text) {
  return text.empty() ? Param(nullptr) : Param(text);
}
template <class Number>
Param number(Number value) {
  return Param(static_cast<std::int64_t>(value));
}

// Only rows that are not claimed, paused or dead are due at their time, and wake the agent.
JobState state_of_row(const ScheduleRow& row) {
  if (row.dead) return JobState::kDead;
  return row.running > 0 && !row.may_overlap() ? JobState::kClaimed : JobState::kWaiting;
}
Param due_of(const ScheduleRow& row) {
  const bool waits = state_of_row(row) == JobState::kWaiting && !row.paused;
  return waits ? nullable(row.time) : Param(nullptr);
}

Param owed_of(const ScheduleRow& row) {
  return Param(row.over ? kOver : row.owed ? kOwed : std::int64_t{0});
}

}  // namespace

bool ScheduleTable::has_table() {
  return jobs_.exists();
}

void ScheduleTable::prepare_write() {
  jobs_.prepare_write();
}

void ScheduleTable::fill_in(ScheduleRow& row) {
  if (row.last_error) row.last_error = jobs_.document(row.seq, JobPart::kLastError);
  row.known_error = row.last_error;
}

// ---- reading ------------------------------------------------------------------------------------

std::vector<ScheduleRow> ScheduleTable::load() {
  std::vector<ScheduleRow> result;
  if (!has_table()) return result;
  Statement& all = database_.kept("WHERE kind = 3 ORDER BY seq", kSelect);
  for (Rows rows = all.query(); rows.next();) result.push_back(row_of(rows));
  for (ScheduleRow& row : result) fill_in(row);
  return result;
}

std::optional<ScheduleRow> ScheduleTable::find(std::int64_t seq) {
  if (!has_table()) return std::nullopt;
  const std::array params{Param(seq)};
  std::optional<ScheduleRow> row;
  {
    Rows rows = database_.kept("WHERE seq = ? AND kind = 3", kSelect).query(params);
    if (rows.next()) row = row_of(rows);
  }
  if (row) fill_in(*row);
  return row;
}

std::optional<ScheduleRow> ScheduleTable::find(std::string_view id) {
  if (!has_table()) return std::nullopt;
  Statement& find = database_.kept("WHERE id = ? AND kind = 3 AND parent IS NULL", kSelect);
  const std::array params{Param(id)};
  Rows rows = find.query(params);
  if (!rows.next()) return std::nullopt;
  ScheduleRow row = row_of(rows);
  fill_in(row);
  return row;
}

std::string ScheduleTable::payload(std::int64_t seq) {
  return jobs_.document(seq, JobPart::kInput).value_or("null");
}

std::vector<std::int64_t> ScheduleTable::children(std::string_view parent) {
  std::vector<std::int64_t> result;
  if (!has_table()) return result;
  Statement find(database_.connection(),
                 "SELECT seq FROM cf_agents_jobs WHERE parent = ? AND +kind = 3");
  const std::array params{Param(parent)};
  for (Rows rows = find.query(params); rows.next();) result.push_back(rows.integer(0));
  return result;
}

std::optional<std::int64_t> ScheduleTable::find_alike(std::string_view likeness) {
  if (!has_table()) return std::nullopt;
  Statement find(database_.connection(),
                 "SELECT seq FROM cf_agents_jobs WHERE key = ? AND kind = 3 AND parent IS NULL "
                 "AND dead = 0 AND (running = 0 OR type IN ('cron', 'interval')) "
                 "ORDER BY seq LIMIT 1");
  const std::array params{Param(likeness)};
  Rows rows = find.query(params);
  if (!rows.next()) return std::nullopt;
  return rows.integer(0);
}

std::optional<std::int64_t> ScheduleTable::find_dead(std::string_view likeness) {
  if (!has_table()) return std::nullopt;
  Statement find(database_.connection(),
                 "SELECT seq FROM cf_agents_jobs WHERE key = ? AND kind = 3 AND parent IS NULL "
                 "AND dead ORDER BY seq LIMIT 1");
  const std::array params{Param(likeness)};
  Rows rows = find.query(params);
  if (!rows.next()) return std::nullopt;
  return rows.integer(0);
}

std::vector<std::int64_t> ScheduleTable::list(const ScheduleFilter& filter) {
  std::vector<std::int64_t> result;
  if (!has_table()) return result;
  // Rows without a time come last.
  constexpr std::string_view kTime = "coalesce(next_at, 9223372036854775807)";
  std::string sql =
      "SELECT seq FROM cf_agents_jobs INDEXED BY cf_agents_jobs_time "
      "WHERE kind = 3 AND parent IS NULL";
  std::vector<Param> params;
  const auto restrict_to = [&](std::string_view condition, Param value) {
    sql.append(" AND ").append(condition);
    params.push_back(value);
  };
  if (filter.type) restrict_to("type = ?", to_string(*filter.type));
  if (!filter.callback.empty()) restrict_to("name = ?", filter.callback);
  if (!filter.state.empty()) restrict_to(std::string(kState) + " = ?", filter.state);
  if (filter.from_ms != 0) restrict_to("next_at >= ?", filter.from_ms);
  if (filter.until_ms != 0) restrict_to("next_at < ?", filter.until_ms);
  if (!filter.after.empty()) {
    // Follows from the next condition, but lets SQLite begin at that place of the index.
    restrict_to(std::string(kTime) + " >= (SELECT " + std::string(kTime) +
                    " FROM cf_agents_jobs WHERE id = ? AND kind = 3)",
                filter.after);
    restrict_to("(" + std::string(kTime) + ", seq) > (SELECT " + std::string(kTime) +
                    ", seq FROM cf_agents_jobs WHERE id = ? AND kind = 3)",
                filter.after);
  }
  sql += " ORDER BY " + std::string(kTime) + ", seq LIMIT ?";
  params.emplace_back(number(filter.limit));
  Statement find(database_.connection(), sql);
  for (Rows rows = find.query(params); rows.next();) result.push_back(rows.integer(0));
  return result;
}

std::optional<Job> ScheduleTable::first_due() {
  return jobs_.first_due(JobKind::kSchedule);
}

bool ScheduleTable::is_crowded(std::int64_t now_ms, std::uint64_t least) {
  const auto due = jobs_.number(
      "SELECT count(*) FROM (SELECT 1 FROM cf_agents_jobs WHERE kind = 3 AND state = 0 "
      "AND due_at <= ?1 LIMIT ?2)",
      std::array{Param(now_ms), number(least)});
  return due.value_or(0) >= static_cast<std::int64_t>(least);
}

std::vector<ScheduleTable::Crowd> ScheduleTable::crowds(std::int64_t now_ms, std::uint64_t least) {
  std::vector<Crowd> result;
  if (!has_table()) return result;
  Statement find(database_.connection(),
                 "SELECT name, min(id), count(*) FROM cf_agents_jobs WHERE kind = 3 AND state = 0 "
                 "AND due_at <= ? AND parent IS NULL AND type IN ('delay', 'at') "
                 "GROUP BY name HAVING count(*) >= ? ORDER BY name LIMIT 100");
  const std::array params{Param(now_ms), number(least)};
  for (Rows rows = find.query(params); rows.next();) {
    result.push_back(Crowd{std::string(rows.text(0)), std::string(rows.text(1)),
                           static_cast<std::uint64_t>(rows.integer(2))});
  }
  return result;
}

// ---- writing ------------------------------------------------------------------------------------

void ScheduleTable::insert(ScheduleRow& row, std::string_view payload) {
  prepare_write();
  Statement insert(
      database_.connection(),
      "INSERT INTO cf_agents_jobs(kind, state, due_at, id, parent, name, type, next_at, length_ms, "
      "cron, time_zone, fixed_rate, key, max_attempts, retry_base, retry_cap, misfire, "
      "misfire_limit, overlap, running, scheduled_for, owed, missed, interruptions, set_at, "
      "created_at, paused, missing, begun_at, catch_up_until) VALUES(3, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
      "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0) RETURNING seq");
  const bool has_length = row.type == ScheduleType::kDelay || row.type == ScheduleType::kInterval;
  const std::array params{number(state_of_row(row)),
                          due_of(row),
                          Param(std::string_view(row.id)),
                          text_or_null(row.parent),
                          Param(std::string_view(row.callback)),
                          Param(to_string(row.type)),
                          nullable(row.time),
                          has_length ? Param(row.length_ms) : Param(nullptr),
                          text_or_null(row.cron),
                          text_or_null(row.time_zone),
                          number(row.fixed_rate),
                          Param(std::string_view(row.likeness)),
                          number(row.retry.max_attempts),
                          number(row.retry.base.count()),
                          number(row.retry.cap.count()),
                          number(row.misfire),
                          number(row.misfire_limit),
                          number(row.overlap),
                          number(row.running),
                          Param(row.scheduled_for),
                          owed_of(row),
                          number(row.missed),
                          number(row.interruptions),
                          Param(row.set_at),
                          Param(row.created_at)};
  Rows rows = insert.query(params);
  if (rows.next()) row.seq = rows.integer(0);
  while (rows.next()) {  // SQLite completes the insert only at the end of the rows
  }
  jobs_.put(row.seq, JobPart::kInput, payload);
  row.known_error.reset();
}

void ScheduleTable::update(const ScheduleRow& row) {
  prepare_write();
  const std::array params{Param(row.seq),
                          nullable(row.time),
                          number(row.paused),
                          number(row.dead),
                          number(row.missing),
                          number(row.running),
                          Param(row.scheduled_for),
                          owed_of(row),
                          number(row.missed),
                          number(row.attempts),
                          number(row.interruptions),
                          Param(row.catch_up_until),
                          Param(row.set_at),
                          Param(row.runs),
                          Param(row.failures),
                          nullable(row.last_run),
                          number(row.last_error.has_value()),
                          Param(row.begun_at),
                          number(state_of_row(row)),
                          due_of(row),
                          number(row.fatal_attempts)};
  database_
      .kept(
          "UPDATE cf_agents_jobs SET next_at = ?2, paused = ?3, dead = ?4, missing = ?5, "
          "running = ?6, scheduled_for = ?7, owed = ?8, missed = ?9, attempts = ?10, "
          "interruptions = ?11, catch_up_until = ?12, set_at = ?13, claims = ?14, failures = ?15, "
          "last_run = ?16, has_failed = ?17, begun_at = ?18, state = ?19, due_at = ?20, "
          "fatal_attempts = ?21 WHERE seq = ?1")
      .execute(params);
  if (row.last_error != row.known_error) {
    const auto& error = row.last_error;
    jobs_.put(row.seq, JobPart::kLastError,
              error ? std::optional<std::string_view>(*error) : std::nullopt);
  }
}

void ScheduleTable::erase(std::int64_t seq) {
  jobs_.erase(seq);
}

void ScheduleTable::hand_over_children(std::string_view parent, std::string_view heir) {
  prepare_write();
  Statement change(database_.connection(),
                   "UPDATE cf_agents_jobs SET parent = ?2 WHERE parent = ?1 AND +kind = 3");
  const std::array params{Param(parent), Param(heir)};
  change.execute(params);
}

void ScheduleTable::shift(std::int64_t by_ms) {
  prepare_write();
  Statement shift(
      database_.connection(),
      "UPDATE cf_agents_jobs SET next_at = next_at + ?1, due_at = due_at + ?1, "
      "set_at = set_at + ?1, "
      "scheduled_for = scheduled_for + iif(type IN ('delay', 'interval'), ?1, 0), "
      "begun_at = iif(begun_at > 0, begun_at + ?1, 0), "
      "catch_up_until = iif(catch_up_until > 0 AND type = 'interval', "
      "catch_up_until + ?1, catch_up_until) "
      "WHERE kind = 3 AND (type IN ('delay', 'interval') OR attempts > 0 OR missing > 0)");
  const std::array params{Param(by_ms)};
  shift.execute(params);
}

}  // namespace hearth::durable
