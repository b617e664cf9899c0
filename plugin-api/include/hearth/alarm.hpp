#pragma once
// Alarms: calls of an agent's own methods at a set time. Clients of objects set the same alarms at
// /objects/{class}/{id}/alarms.
//
//     set_alarm(std::chrono::minutes(5), "reset");
//     set_alarm(now() + std::chrono::hours(24), "bill", "monthly", 12);
//
// Promises  Written with the running turn. At its time the agent is woken, after a restart too, and
//           the method is called, at least once. After a failure it is called again, as `alarms` of
//           the class's file says (three attempts, one and two seconds after a failure). After the
//           last one the alarm is dead, and the audit log has AlarmFailed.
// Names     Each method has at most one waiting alarm: a new one replaces it. schedule() has
//           callbacks, repetition and options.
// Bounded   alarms.max_alarms of the class's file (100). Arguments: limits.max_value of the class.
// Failure   Error(INVALID) for an invalid time, and a method that the class does not list;
//           HostError: INVALID (while a transaction() is open), LIMIT.

#include <hearth/callback.hpp>
#include <hearth/ext/alarms.h>
#include <hearth/time.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

// An alarm as it is stored.
struct Alarm {
  std::string id;
  std::string method;
  Json args;     // an array
  Time fire_at;  // when the next attempt is due
  bool is_dead = false;
  int attempts = 0;
  std::optional<std::string> last_error;
  bool replaced = false;  // of set_alarm(): it replaced another alarm of the method
};

namespace detail {

Alarm set_alarm_at(const Activation& activation, Time at, std::string_view method,
                   std::string_view arguments);
// The next due first, dead ones last.
std::vector<Alarm> list_alarms(const Activation& activation);
bool cancel_alarm(const Activation& activation, std::string_view id);

}  // namespace detail

// So that a method may return them: as the host's records, with times in Unix milliseconds.
void to_json(Json& json, const Alarm& alarm);

}  // namespace hearth
