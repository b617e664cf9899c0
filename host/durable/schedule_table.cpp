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

constexpr std::string_view kColumns =
    "seq, id, parent, callback, type, time, coalesce(delay_ms, interval_ms, 0), cron, time_zone, "
    "fixed_rate, likeness, retry_max_attempts, retry_base_ms, retry_max_ms, misfire, "
    "misfire_limit, overlap, paused, dead, missing, running, scheduled_for, owed, missed, "
    "attempts, interruptions, begun_at, catch_up_until, set_at, created_at, runs, failures, "
    "last_run, "
    "last_error";

// Of the column `owed`.
constexpr std::int64_t kOwed = 1;
constexpr std::int64_t kOver = 2;

// The state of a row, in SQL.
constexpr std::string_view kState =
    "CASE WHEN running > 0 THEN 'running' WHEN dead THEN 'dead' WHEN paused THEN 'paused' "
    "WHEN missing > 0 THEN 'missing' ELSE 'waiting' END";

std::string select(std::string_view rest) {
  return "SELECT " + std::string(kColumns) + " FROM cf_agents_schedules " + std::string(rest);
}

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
  row.begun_at = rows.integer(column++);
  row.catch_up_until = rows.integer(column++);
  row.set_at = rows.integer(column++);
  row.created_at = rows.integer(column++);
  row.runs = rows.integer(column++);
  row.failures = rows.integer(column++);
  row.last_run = integer_or_none(rows, column++);
  if (!rows.is_null(column)) row.last_error = rows.text(column);
  return row;
}

Param text_or_null(std::string_view text) {
  return text.empty() ? Param(nullptr) : Param(text);
}
template <class Number>
Param number(Number value) {
  return Param(static_cast<std::int64_t>(value));
}

Param owed_of(const ScheduleRow& row) {
  return Param(row.over ? kOver : row.owed ? kOwed : std::int64_t{0});
}

}  // namespace

bool ScheduleTable::has_table() {
  if (has_table_ || !database_.exists()) return has_table_;
  Statement find(
      database_.connection(),
      "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'cf_agents_schedules'");
  has_table_ = find.query().next();
  return has_table_;
}

void ScheduleTable::prepare_write() {
  database_.begin_write();
  if (has_table()) return;
  for (const std::string_view sql :
       {"CREATE TABLE IF NOT EXISTS cf_agents_schedules("
        "seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, parent TEXT, callback TEXT NOT NULL, "
        "type TEXT NOT NULL, time INTEGER, delay_ms INTEGER, "
        "interval_ms INTEGER, cron TEXT, time_zone TEXT, fixed_rate INTEGER NOT NULL, "
        "likeness TEXT NOT NULL, retry_max_attempts INTEGER NOT NULL, "
        "retry_base_ms INTEGER NOT NULL, retry_max_ms INTEGER NOT NULL, misfire INTEGER NOT NULL, "
        "misfire_limit INTEGER NOT NULL, overlap INTEGER NOT NULL, "
        "paused INTEGER NOT NULL DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0, "
        "missing INTEGER NOT NULL DEFAULT 0, running INTEGER NOT NULL DEFAULT 0, "
        "scheduled_for INTEGER NOT NULL, owed INTEGER NOT NULL DEFAULT 0, "
        "missed INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, "
        "interruptions INTEGER NOT NULL DEFAULT 0, begun_at INTEGER NOT NULL DEFAULT 0, "
        "catch_up_until INTEGER NOT NULL DEFAULT 0, "
        "set_at INTEGER NOT NULL, created_at INTEGER NOT NULL, runs INTEGER NOT NULL DEFAULT 0, "
        "failures INTEGER NOT NULL DEFAULT 0, last_run INTEGER, last_error TEXT, "
        "payload TEXT NOT NULL)",
        "CREATE INDEX IF NOT EXISTS cf_agents_schedules_alike ON cf_agents_schedules(likeness)",
        "CREATE INDEX IF NOT EXISTS cf_agents_schedules_runs ON cf_agents_schedules(parent) "
        "WHERE parent IS NOT NULL"}) {
    Statement(database_.connection(), sql).execute();
  }
  // Not remembered: a savepoint that the plugin rolls back could take it away again. The next look
  // finds it.
}

Statement& ScheduleTable::kept(std::unique_ptr<Statement>& statement, std::string_view sql) {
  if (!statement) statement = std::make_unique<Statement>(database_.connection(), sql);
  return *statement;
}

void ScheduleTable::close() {
  find_.reset();
  payload_.reset();
  update_.reset();
  erase_.reset();
}

// ---- reading ----------------------------------------------------------------------------------------------

std::vector<ScheduleRow> ScheduleTable::load() {
  std::vector<ScheduleRow> result;
  if (!has_table()) return result;
  Statement all(database_.connection(), select("ORDER BY seq"));
  for (Rows rows = all.query(); rows.next();) result.push_back(row_of(rows));
  return result;
}

std::optional<ScheduleRow> ScheduleTable::find(std::int64_t seq) {
  if (!has_table()) return std::nullopt;
  const std::array params{Param(seq)};
  Rows rows = kept(find_, select("WHERE seq = ?")).query(params);
  if (!rows.next()) return std::nullopt;
  return row_of(rows);
}

std::optional<ScheduleRow> ScheduleTable::find(std::string_view id) {
  if (!has_table()) return std::nullopt;
  Statement find(database_.connection(), select("WHERE id = ? AND parent IS NULL"));
  const std::array params{Param(id)};
  Rows rows = find.query(params);
  if (!rows.next()) return std::nullopt;
  return row_of(rows);
}

std::string ScheduleTable::payload(std::int64_t seq) {
  const std::array params{Param(seq)};
  Rows rows = kept(payload_, "SELECT payload FROM cf_agents_schedules WHERE seq = ?").query(params);
  return rows.next() ? std::string(rows.text(0)) : std::string("null");
}

std::vector<std::int64_t> ScheduleTable::children(std::string_view parent) {
  std::vector<std::int64_t> result;
  if (!has_table()) return result;
  Statement find(database_.connection(), "SELECT seq FROM cf_agents_schedules WHERE parent = ?");
  const std::array params{Param(parent)};
  for (Rows rows = find.query(params); rows.next();) result.push_back(rows.integer(0));
  return result;
}

std::optional<std::int64_t> ScheduleTable::find_alike(std::string_view likeness) {
  if (!has_table()) return std::nullopt;
  Statement find(database_.connection(),
                 "SELECT seq FROM cf_agents_schedules WHERE likeness = ? AND parent IS NULL "
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
                 "SELECT seq FROM cf_agents_schedules WHERE likeness = ? AND parent IS NULL "
                 "AND dead ORDER BY seq LIMIT 1");
  const std::array params{Param(likeness)};
  Rows rows = find.query(params);
  if (!rows.next()) return std::nullopt;
  return rows.integer(0);
}

std::vector<std::int64_t> ScheduleTable::list(const ScheduleFilter& filter) {
  std::vector<std::int64_t> result;
  if (!has_table()) return result;
  // A row without a time comes after all others, as if it were due at the end of time.
  constexpr std::string_view kTime = "coalesce(time, 9223372036854775807)";
  std::string sql = "SELECT seq FROM cf_agents_schedules WHERE parent IS NULL";
  std::vector<Param> params;
  const auto restrict_to = [&](std::string_view condition, Param value) {
    sql.append(" AND ").append(condition);
    params.push_back(value);
  };
  if (filter.type) restrict_to("type = ?", to_string(*filter.type));
  if (!filter.callback.empty()) restrict_to("callback = ?", filter.callback);
  if (!filter.state.empty()) restrict_to(std::string(kState) + " = ?", filter.state);
  if (filter.from_ms != 0) restrict_to("time >= ?", filter.from_ms);
  if (filter.until_ms != 0) restrict_to("time < ?", filter.until_ms);
  if (!filter.after.empty()) {
    restrict_to("(" + std::string(kTime) + ", seq) > (SELECT " + std::string(kTime) +
                    ", seq FROM cf_agents_schedules WHERE id = ?)",
                filter.after);
  }
  sql += " ORDER BY " + std::string(kTime) + ", seq LIMIT ?";
  params.emplace_back(number(filter.limit));
  Statement find(database_.connection(), sql);
  for (Rows rows = find.query(params); rows.next();) result.push_back(rows.integer(0));
  return result;
}

std::vector<ScheduleTable::Crowd> ScheduleTable::crowds(std::int64_t now_ms, std::uint64_t least) {
  std::vector<Crowd> result;
  if (!has_table()) return result;
  Statement find(database_.connection(),
                 "SELECT callback, min(id), count(*) FROM cf_agents_schedules WHERE time <= ? "
                 "AND running = 0 AND paused = 0 AND parent IS NULL AND type IN ('delay', 'at') "
                 "GROUP BY callback HAVING count(*) >= ? ORDER BY callback LIMIT 100");
  const std::array params{Param(now_ms), number(least)};
  for (Rows rows = find.query(params); rows.next();) {
    result.push_back(Crowd{std::string(rows.text(0)), std::string(rows.text(1)),
                           static_cast<std::uint64_t>(rows.integer(2))});
  }
  return result;
}

// ---- writing ----------------------------------------------------------------------------------------------

void ScheduleTable::insert(ScheduleRow& row, std::string_view payload) {
  prepare_write();
  Statement insert(
      database_.connection(),
      "INSERT INTO cf_agents_schedules(id, parent, callback, payload, type, time, delay_ms, "
      "interval_ms, cron, time_zone, fixed_rate, likeness, retry_max_attempts, retry_base_ms, "
      "retry_max_ms, misfire, misfire_limit, overlap, running, scheduled_for, owed, missed, "
      "interruptions, set_at, created_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
      "?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq");
  const bool delay = row.type == ScheduleType::kDelay;
  const bool interval = row.type == ScheduleType::kInterval;
  const std::array params{Param(std::string_view(row.id)),
                          text_or_null(row.parent),
                          Param(std::string_view(row.callback)),
                          Param(payload),
                          Param(to_string(row.type)),
                          nullable(row.time),
                          delay ? Param(row.length_ms) : Param(nullptr),
                          interval ? Param(row.length_ms) : Param(nullptr),
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
  while (rows.next()) {  // to its end, or the insert is not done
  }
}

void ScheduleTable::update(const ScheduleRow& row) {
  prepare_write();
  const std::array params{
      Param(row.seq),
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
      row.last_error ? Param(std::string_view(*row.last_error)) : Param(nullptr),
      Param(row.begun_at)};
  kept(update_,
       "UPDATE cf_agents_schedules SET time = ?2, paused = ?3, dead = ?4, missing = ?5, "
       "running = ?6, scheduled_for = ?7, owed = ?8, missed = ?9, attempts = ?10, "
       "interruptions = ?11, catch_up_until = ?12, set_at = ?13, runs = ?14, failures = ?15, "
       "last_run = ?16, last_error = ?17, begun_at = ?18 WHERE seq = ?1")
      .execute(params);
}

void ScheduleTable::erase(std::int64_t seq) {
  prepare_write();
  const std::array params{Param(seq)};
  kept(erase_, "DELETE FROM cf_agents_schedules WHERE seq = ?").execute(params);
}

void ScheduleTable::hand_over_children(std::string_view parent, std::string_view heir) {
  prepare_write();
  Statement change(database_.connection(),
                   "UPDATE cf_agents_schedules SET parent = ?2 WHERE parent = ?1");
  const std::array params{Param(parent), Param(heir)};
  change.execute(params);
}

void ScheduleTable::shift(std::int64_t by_ms) {
  prepare_write();
  Statement shift(database_.connection(),
                  "UPDATE cf_agents_schedules SET time = time + ?1, set_at = set_at + ?1, "
                  "scheduled_for = scheduled_for + iif(type IN ('delay', 'interval'), ?1, 0), "
                  "begun_at = iif(begun_at > 0, begun_at + ?1, 0), "
                  "catch_up_until = iif(catch_up_until > 0 AND type = 'interval', "
                  "catch_up_until + ?1, catch_up_until) "
                  "WHERE type IN ('delay', 'interval') OR attempts > 0 OR missing > 0");
  const std::array params{Param(by_ms)};
  shift.execute(params);
}

}  // namespace hearth::durable
