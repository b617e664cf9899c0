#include "durable/schedule_record.hpp"

#include "json/json_text.hpp"

#include <optional>

namespace hearth::durable {
namespace {

// Members of one JSON object, in the order in which they are added.
class ObjectText {
 public:
  void text(std::string_view name, std::string_view value) {
    begin(name);
    append_json_string(out_, value);
  }
  void json(std::string_view name, std::string_view value) {
    begin(name);
    out_ += value;
  }
  void number(std::string_view name, std::int64_t value) { json(name, std::to_string(value)); }
  void number(std::string_view name, std::optional<std::int64_t> value) {
    json(name, value ? std::to_string(*value) : "null");
  }
  void truth(std::string_view name, bool value) { json(name, value ? "true" : "false"); }
  std::string finish() { return std::move(out_) + "}"; }

 private:
  void begin(std::string_view name) {
    if (out_.size() > 1) out_ += ',';
    append_json_string(out_, name);
    out_ += ':';
  }
  std::string out_ = "{";
};

}  // namespace

std::string_view state_of(const ScheduleRow& row) noexcept {
  if (row.running > 0) return "running";
  if (row.dead) return "dead";
  if (row.paused) return "paused";
  return row.missing > 0 ? "missing" : "waiting";
}

std::string schedule_record(const ScheduleRow& row, std::string_view payload) {
  ObjectText retry;
  retry.number("max_attempts", std::int64_t{row.retry.max_attempts});
  retry.number("base_delay_ms", std::int64_t{row.retry.base.count()});
  retry.number("max_delay_ms", std::int64_t{row.retry.cap.count()});

  ObjectText record;
  record.text("id", row.id);
  record.text("callback", row.callback);
  record.json("payload", payload);
  record.text("type", to_string(row.type));
  record.number("time", row.time);
  if (row.type == ScheduleType::kDelay) record.number("delay_ms", row.length_ms);
  if (row.type == ScheduleType::kInterval) record.number("interval_ms", row.length_ms);
  if (row.type == ScheduleType::kCron) {
    record.text("cron", row.cron);
    record.text("time_zone", row.time_zone);
  }
  record.truth("fixed_rate", row.fixed_rate);
  record.json("retry", retry.finish());
  record.text("misfire", to_string(row.misfire));
  record.number("misfire_limit", std::int64_t{row.misfire_limit});
  record.text("overlap", to_string(row.overlap));
  record.text("state", state_of(row));
  record.number("created_at", row.created_at);
  record.number("runs", row.runs);
  record.number("failures", row.failures);
  record.number("last_run", row.last_run);
  if (row.last_error) {
    record.text("last_error", *row.last_error);
  } else {
    record.json("last_error", "null");
  }
  return record.finish();
}

std::string run_body(const ScheduleRow& row, std::string_view payload, std::int64_t late_ms) {
  ObjectText body;
  body.text("id", row.parent.empty() ? row.id : row.parent);
  body.text("type", to_string(row.type));
  body.json("payload", payload);
  body.number("scheduled_for", row.scheduled_for);
  body.number("late_ms", late_ms);
  body.number("attempt", std::int64_t{row.attempts} + 1);
  body.number("missed", std::int64_t{row.missed});
  return body.finish();
}

}  // namespace hearth::durable
