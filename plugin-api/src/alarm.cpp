#include <hearth/alarm.hpp>

namespace hearth::detail {
namespace {

const hearth_alarms_v1& alarms_table(const Activation& activation) {
  return need(activation.tables().alarms, HEARTH_EXT_ALARMS);
}

Alarm read_alarm(const Json& record) {
  Alarm alarm;
  alarm.id = record.at("id").get<std::string>();
  alarm.method = record.at("method").get<std::string>();
  alarm.args = record.at("args");
  alarm.fire_at = read_time(record.at("fire_at"));
  alarm.is_dead = record.at("state").get_ref<const std::string&>() == "dead";
  alarm.attempts = find_number(record, "attempts", 0);
  alarm.last_error = find_text(record, "last_error");
  alarm.replaced = record.value("replaced", false);
  return alarm;
}

}  // namespace

Alarm set_alarm_at(const Activation& activation, Time at, std::string_view method,
                   std::string_view arguments) {
  need_method(activation, method);
  hearth_alarm_request request = {};
  request.struct_size = sizeof request;
  request.method = slice(method);
  request.arguments = slice(arguments);
  request.at_ms = at.time_since_epoch().count();
  hearth_bytes record = {nullptr, 0};
  activation.check(
      alarms_table(activation).set(activation.host(), activation.id(), &request, &record),
      "set alarm");
  return read_alarm(parse_record(view(record)));
}

std::vector<Alarm> list_alarms(const Activation& activation) {
  hearth_bytes records = {nullptr, 0};
  activation.check(alarms_table(activation).list(activation.host(), activation.id(), &records),
                   "list alarms");
  std::vector<Alarm> all;
  for (const Json& record : parse_record(view(records))) all.push_back(read_alarm(record));
  return all;
}

bool cancel_alarm(const Activation& activation, std::string_view id) {
  return found(activation,
               alarms_table(activation).cancel(activation.host(), activation.id(), slice(id)),
               "cancel alarm");
}

}  // namespace hearth::detail

namespace hearth {

void to_json(Json& json, const Alarm& alarm) {
  json = {{"id", alarm.id},
          {"method", alarm.method},
          {"args", alarm.args},
          {"fire_at", alarm.fire_at.time_since_epoch().count()},
          {"is_dead", alarm.is_dead},
          {"attempts", alarm.attempts},
          {"last_error", detail::to_json_text(alarm.last_error)},
          {"replaced", alarm.replaced}};
}

}  // namespace hearth
