#include "durable/schedule_record.hpp"

#include "json/json_object_text.hpp"

#include <optional>

namespace hearth::durable {
std::string_view state_of(const ScheduleRow& row) noexcept {
  if (row.running > 0) return "running";
  if (row.dead) return "dead";
  if (row.paused) return "paused";
  return row.missing > 0 ? "missing" : "waiting";
}

std::string schedule_record(const ScheduleRow& row, std::string_view payload) {
  JsonObjectText retry;
  retry.number("max_attempts", row.retry.max_attempts);
  retry.number("base_delay_ms", row.retry.base.count());
  retry.number("max_delay_ms", row.retry.cap.count());

  JsonObjectText record;
  record.text("id", row.id);
  record.text("callback", row.callback);
  record.json("payload", payload);
  record.text("type", to_string(row.type));
  record.number_or_null("time", row.time);
  if (row.type == ScheduleType::kDelay) record.number("delay_ms", row.length_ms);
  if (row.type == ScheduleType::kInterval) record.number("interval_ms", row.length_ms);
  if (row.type == ScheduleType::kCron) {
    record.text("cron", row.cron);
    record.text("time_zone", row.time_zone);
  }
  record.flag("fixed_rate", row.fixed_rate);
  record.json("retry", retry.take());
  record.text("misfire", to_string(row.misfire));
  record.number("misfire_limit", row.misfire_limit);
  record.text("overlap", to_string(row.overlap));
  record.text("state", state_of(row));
  record.number("created_at", row.created_at);
  record.number("runs", row.runs);
  record.number("failures", row.failures);
  record.number_or_null("last_run", row.last_run);
  record.text_or_null("last_error", row.last_error);
  return record.take();
}

std::string run_body(const ScheduleRow& row, std::string_view payload, std::int64_t late_ms) {
  JsonObjectText body;
  body.text("id", row.parent.empty() ? row.id : row.parent);
  body.text("type", to_string(row.type));
  body.json("payload", payload);
  body.number("scheduled_for", row.scheduled_for);
  body.number("late_ms", late_ms);
  body.number("attempt", std::int64_t{row.attempts} + 1);
  body.number("missed", row.missed);
  return body.take();
}

}  // namespace hearth::durable
