#include "durable/schedule_table.hpp"

#include "json/json_object_text.hpp"

#include <algorithm>
#include <map>
#include <type_traits>

namespace hearth::durable {

using storage::Param;

namespace {

// The columns that only schedules have, and their members in the same order.
#define HEARTH_SCHEDULE_COLUMNS                                                                \
  "length_ms, cron, time_zone, fixed_rate, misfire, misfire_limit, overlap, paused, missing, " \
  "running, scheduled_for, missed, begun_at, catch_up_until, last_run, owed"
constexpr std::size_t kScheduleColumns = 16;
// Values of the column `owed`.
constexpr std::int64_t kOwed = 1;
constexpr std::int64_t kOver = 2;

template <class Row, class See>
void each_member(Row& row, const See& see) {
  see(row.length_ms);
  see(row.cron);
  see(row.time_zone);
  see(row.fixed_rate);
  see(row.misfire);
  see(row.misfire_limit);
  see(row.overlap);
  see(row.paused);
  see(row.missing);
  see(row.running);
  see(row.scheduled_for);
  see(row.missed);
  see(row.begun_at);
  see(row.catch_up_until);
  see(row.last_run);
}

template <class Value>
void get(const storage::Rows& rows, int column, Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    value = rows.text(column);
  } else if constexpr (std::is_same_v<Value, std::optional<std::int64_t>>) {
    value = storage::integer_or_none(rows, column);
  } else {
    value = static_cast<Value>(rows.integer(column));
  }
}

template <class Value>
Param member_param(const Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return value.empty() ? Param(nullptr) : Param(std::string_view(value));
  } else if constexpr (std::is_same_v<Value, std::optional<std::int64_t>>) {
    return storage::nullable(value);
  } else {
    return Param(static_cast<std::int64_t>(value));
  }
}

// Sets what follows from the row's other members. Only rows that are not claimed, paused or dead
// are due at their time, and wake the agent.
void fit(ScheduleRow& row) {
  const bool is_claimed = row.running > 0 && !row.may_overlap();
  row.state = row.dead ? JobState::kDead : is_claimed ? JobState::kClaimed : JobState::kWaiting;
  row.due_at_ms.reset();
  if (row.state == JobState::kWaiting && !row.paused && row.next_at_ms != 0)
    row.due_at_ms = due_at(row.next_at_ms);
  row.has_failed = row.last_error.has_value();
}

// The place of a row in a list. Rows without a time come last.
#define HEARTH_PLACE "coalesce(nullif(next_at, 0), 9223372036854775807)"
#define HEARTH_STATE_WORD                                                                 \
  "CASE WHEN running > 0 THEN 'running' WHEN dead THEN 'dead' WHEN paused THEN 'paused' " \
  "WHEN missing > 0 THEN 'missing' ELSE 'waiting' END"

std::int64_t place_of(const ScheduleRow& row) {
  return row.next_at_ms == 0 ? INT64_MAX : row.next_at_ms;
}

}  // namespace

// ---- a row --------------------------------------------------------------------------------------

std::string_view ScheduleRow::state_word() const {
  if (running > 0) return "running";
  if (dead) return "dead";
  if (paused) return "paused";
  return missing > 0 ? "missing" : "waiting";
}

void ScheduleRow::shift(std::int64_t by_ms) {
  const auto move = [by_ms](std::int64_t& time) { time += time != 0 ? by_ms : 0; };
  move(next_at_ms);
  move(begun_at);
  set_at_ms += by_ms;
  if (is(ScheduleType::kDelay) || is(ScheduleType::kInterval)) scheduled_for += by_ms;
  if (is(ScheduleType::kInterval)) move(catch_up_until);
}

std::string schedule_record(const ScheduleRow& row, std::string_view payload) {
  JsonObjectText retry;
  retry.number("max_attempts", row.retry.max_attempts)
      .number("base_delay_ms", row.retry.base.count())
      .number("max_delay_ms", row.retry.cap.count());
  const auto time = row.next_at_ms == 0 ? std::nullopt : std::optional(row.next_at_ms);
  JsonObjectText record;
  record.text("id", row.id)
      .text("callback", row.name)
      .json("payload", payload)
      .text("type", row.type.value_or(""))
      .number_or_null("time", time);
  if (row.is(ScheduleType::kDelay)) record.number("delay_ms", row.length_ms);
  if (row.is(ScheduleType::kInterval)) record.number("interval_ms", row.length_ms);
  if (row.is(ScheduleType::kCron)) record.text("cron", row.cron).text("time_zone", row.time_zone);
  record.flag("fixed_rate", row.fixed_rate)
      .json("retry", retry.take())
      .text("misfire", to_string(row.misfire))
      .number("misfire_limit", row.misfire_limit)
      .text("overlap", to_string(row.overlap))
      .text("state", row.state_word())
      .number("created_at", row.created_at_ms)
      .number("runs", row.claims)
      .number("failures", row.failures)
      .number_or_null("last_run", row.last_run)
      .text_or_null("last_error", row.last_error);
  return record.take();
}

std::string run_body(const ScheduleRow& row, std::string_view payload, std::int64_t late_ms) {
  return JsonObjectText()
      .text("id", row.schedule_id())
      .text("type", row.type.value_or(""))
      .json("payload", payload)
      .number("scheduled_for", row.scheduled_for)
      .number("late_ms", late_ms)
      .number("attempt", std::int64_t{row.attempts} + 1)
      .number("missed", row.missed)
      .take();
}

// ---- reading ------------------------------------------------------------------------------------

std::optional<ScheduleRow> ScheduleTable::read(std::optional<Job> job) {
  if (!job) return std::nullopt;
  ScheduleRow row(*std::move(job));
  storage::Rows rows =
      database_.kept("SELECT " HEARTH_SCHEDULE_COLUMNS " FROM cf_agents_jobs WHERE seq = ?")
          .query(row.seq);
  (void)rows.next();
  int column = 0;
  each_member(row, [&](auto& value) { get(rows, column++, value); });
  const std::int64_t owed = rows.integer(column);
  row.owed = owed == kOwed;
  row.over = owed == kOver;
  if (row.has_failed) row.last_error = jobs_.document(row.seq, JobPart::kLastError);
  return row;
}

std::vector<ScheduleRow> ScheduleTable::all(std::string_view where, Jobs::Params params) {
  std::vector<ScheduleRow> rows;
  for (Job& job : jobs_.all(where, params)) {
    if (auto row = read(std::move(job))) rows.push_back(*std::move(row));
  }
  return rows;
}

std::vector<ScheduleRow> ScheduleTable::load() {
  std::vector<ScheduleRow> rows = all("WHERE kind = 3 ORDER BY seq", {});
  const auto is_child = [](const ScheduleRow& row) { return row.parent.has_value(); };
  children_ = static_cast<std::size_t>(std::ranges::count_if(rows, is_child));
  size_ = rows.size() - children_;
  return rows;
}

std::optional<ScheduleRow> ScheduleTable::row(std::string_view id) {
  return read(jobs_.find(JobKind::kSchedule, id));
}

std::optional<ScheduleRow> ScheduleTable::find(std::string_view id) {
  auto found = row(id);
  if (found && found->parent) found.reset();
  return found;
}

std::string ScheduleTable::payload(std::int64_t seq) {
  return jobs_.document(seq, JobPart::kInput).value_or("null");
}

std::vector<ScheduleRow> ScheduleTable::children(std::string_view parent) {
  return all("WHERE parent = ? AND +kind = 3", storage::params_of(parent));
}

std::optional<ScheduleRow> ScheduleTable::find_alike(std::string_view likeness, bool dead) {
  return read(
      jobs_.first("WHERE key = ?1 AND kind = 3 AND parent IS NULL AND dead = ?2 AND "
                  "(dead OR running = 0 OR type IN ('cron', 'interval')) "
                  "ORDER BY seq LIMIT 1",
                  likeness, dead));
}

std::vector<ScheduleRow> ScheduleTable::list(const ScheduleFilter& filter) {
  std::int64_t place = 0;
  std::int64_t seq = 0;
  if (!filter.after.empty()) {
    const auto last = find(filter.after);
    if (!last) return {};
    place = place_of(*last);
    seq = last->seq;
  }
  if (filter.by_age)
    return all("WHERE kind = 3 AND parent IS NULL AND seq > ?1 ORDER BY seq LIMIT ?2",
               storage::params_of(seq, filter.limit));
  // Without the first condition of ?1, SQLite would not begin at that place of the index.
  return all(
      "INDEXED BY cf_agents_jobs_time WHERE kind = 3 AND parent IS NULL AND " HEARTH_PLACE
      " >= ?1 AND (" HEARTH_PLACE
      ", seq) > (?1, ?2) AND (?3 = '' OR type = ?3) AND (?4 = '' OR "
      "name = ?4) AND (?5 = '' OR " HEARTH_STATE_WORD
      " = ?5) AND (?6 = 0 OR next_at >= ?6) AND "
      "(?7 = 0 OR next_at BETWEEN 1 AND ?7 - 1) ORDER BY " HEARTH_PLACE ", seq LIMIT ?8",
      storage::params_of(place, seq, filter.type ? to_string(*filter.type) : "", filter.callback,
                         filter.state, filter.from_ms, filter.until_ms, filter.limit));
}

std::optional<ScheduleRow> ScheduleTable::first_due() {
  return read(jobs_.first_due(JobKind::kSchedule));
}

bool ScheduleTable::is_crowded(std::int64_t now_ms, std::int64_t least) {
  const auto due = jobs_.number(
      "SELECT count(*) FROM (SELECT 1 FROM cf_agents_jobs WHERE kind = 3 AND state = 0 "
      "AND due_at <= ?1 LIMIT ?2)",
      now_ms, least);
  return due.value_or(0) >= least;
}

std::vector<std::pair<std::string, ScheduleTable::Crowd>> ScheduleTable::crowds(
    std::int64_t now_ms, std::int64_t least) {
  constexpr std::size_t kMost = 100;
  std::map<std::string, Crowd> by_callback;
  jobs_.each(
      "WHERE kind = 3 AND state = 0 AND due_at <= ? AND parent IS NULL AND "
      "type IN ('delay', 'at')",
      storage::params_of(now_ms), [&](Job& job) {
        Crowd& crowd = by_callback[job.name];
        if (++crowd.rows == 1 || job.id < crowd.id) crowd.id = std::move(job.id);
        return true;
      });
  std::vector<std::pair<std::string, Crowd>> found;
  std::ranges::copy_if(by_callback, std::back_inserter(found), [&](const auto& each) {
    return each.second.rows >= least && found.size() < kMost;
  });
  return found;
}

// ---- writing ------------------------------------------------------------------------------------

void ScheduleTable::insert(ScheduleRow& row, std::string_view payload) {
  fit(row);
  jobs_.insert(row);
  write(row);
  jobs_.put(row.seq, JobPart::kInput, payload);
  ++(row.parent ? children_ : size_);
}

void ScheduleTable::erase(const ScheduleRow& row) {
  jobs_.erase(row.seq);
  std::size_t& count = row.parent ? children_ : size_;
  if (count > 0) --count;
}

void ScheduleTable::update(ScheduleRow& row) {
  const bool had_error = row.has_failed;
  fit(row);
  jobs_.update(row);
  write(row);
  if (row.missing > 0) jobs_.note_person();
  if (had_error || row.has_failed) jobs_.put(row.seq, JobPart::kLastError, row.last_error);
}

void ScheduleTable::write(ScheduleRow& row) {
  std::vector<Param> params;
  params.reserve(kScheduleColumns + 1);
  each_member(row, [&](const auto& value) { params.push_back(member_param(value)); });
  params.emplace_back(row.over ? kOver : std::int64_t{row.owed});
  params.emplace_back(row.seq);
  jobs_.run("UPDATE cf_agents_jobs SET (" HEARTH_SCHEDULE_COLUMNS
            ") = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE seq = ?",
            params);
}

void ScheduleTable::hand_over_children(std::string_view parent, std::string_view heir) {
  jobs_.run("UPDATE cf_agents_jobs SET parent = ?2 WHERE parent = ?1 AND +kind = 3", parent, heir);
}

}  // namespace hearth::durable
