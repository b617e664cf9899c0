#include <hearth/schedule.hpp>

namespace hearth::detail {

Schedule read_schedule(const Json& record) {
  Schedule schedule;
  schedule.id = record.at("id").get<std::string>();
  schedule.callback = record.at("callback").get<std::string>();
  schedule.payload = find_json(record, "payload");
  schedule.type =
      find_word<ScheduleType>(kScheduleTypes, record.at("type").get_ref<const std::string&>());
  schedule.time = find_time(record, "time");
  schedule.delay = std::chrono::milliseconds(find_number<std::int64_t>(record, "delay_ms", 0));
  schedule.interval =
      std::chrono::milliseconds(find_number<std::int64_t>(record, "interval_ms", 0));
  schedule.cron = find_text(record, "cron").value_or("");
  schedule.time_zone = find_text(record, "time_zone").value_or("");
  schedule.fixed_rate = find_number(record, "fixed_rate", false);
  schedule.retry = read_retry(find_json(record, "retry"));
  schedule.state =
      find_word<ScheduleState>(kScheduleStates, record.at("state").get_ref<const std::string&>());
  schedule.created_at = read_time(record.at("created_at"));
  schedule.runs = find_number<std::uint64_t>(record, "runs", 0);
  schedule.failures = find_number<std::uint64_t>(record, "failures", 0);
  schedule.last_run = find_time(record, "last_run");
  schedule.last_error = find_text(record, "last_error");
  return schedule;
}

ScheduleRun read_schedule_run(std::string_view callback, const Json& event) {
  ScheduleRun run;
  run.id = event.at("id").get<std::string>();
  run.callback = callback;
  run.type =
      find_word<ScheduleType>(kScheduleTypes, event.at("type").get_ref<const std::string&>());
  run.scheduled_for = read_time(event.at("scheduled_for"));
  run.late = std::chrono::milliseconds(find_number<std::int64_t>(event, "late_ms", 0));
  run.attempt = find_number(event, "attempt", 1);
  run.missed = find_number<std::uint64_t>(event, "missed", 0);
  return run;
}

std::optional<Schedule> find_schedule(const Activation& activation, std::string_view id) {
  hearth_bytes record = {nullptr, 0};
  const hearth_status status =
      schedule_table(activation).get(activation.host(), activation.id(), slice(id), &record);
  if (!found(activation, status, "get schedule")) return std::nullopt;
  return read_schedule(parse_record(view(record)));
}

bool pause_schedule_row(const Activation& activation, std::string_view id, std::uint32_t paused) {
  const hearth_status status =
      schedule_table(activation).pause(activation.host(), activation.id(), slice(id), paused);
  return found(activation, status, "pause schedule");
}

}  // namespace hearth::detail

namespace hearth {

void to_json(Json& json, const Schedule& schedule) {
  json = {{"id", schedule.id},
          {"callback", schedule.callback},
          {"payload", schedule.payload},
          {"type", std::string(word_of(detail::kScheduleTypes, schedule.type))},
          {"time", detail::to_json_time(schedule.time)},
          {"state", std::string(word_of(detail::kScheduleStates, schedule.state))},
          {"retry", detail::to_json_retry(schedule.retry)},
          {"created_at", schedule.created_at.time_since_epoch().count()},
          {"runs", schedule.runs},
          {"failures", schedule.failures},
          {"last_run", detail::to_json_time(schedule.last_run)},
          {"last_error", detail::to_json_text(schedule.last_error)}};
  switch (schedule.type) {
    case ScheduleType::kDelay: json["delay_ms"] = schedule.delay.count(); break;
    case ScheduleType::kAt: break;
    case ScheduleType::kCron:
      json["cron"] = schedule.cron;
      json["time_zone"] = schedule.time_zone;
      break;
    case ScheduleType::kInterval:
      json["interval_ms"] = schedule.interval.count();
      json["fixed_rate"] = schedule.fixed_rate;
      break;
  }
}

}  // namespace hearth
