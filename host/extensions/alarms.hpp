#pragma once
// hearth.alarms/1: the host's side, over durable/alarms.hpp.

#include "base/error.hpp"
#include "durable/alarms.hpp"

#include <hearth/ext/alarms.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::extensions {

class AgentContext;

// Checks an alarm, for all ways to set one. `arguments`: JSON array; empty: none.
//   Failure  kInvalidArgument: no method can have such a name, or `arguments` is not an array.
//            kTooLarge: the arguments have more than `max_bytes` (ClassSettings: limits.max_value).
[[nodiscard]] Result<durable::AlarmRequest> checked_alarm(std::string_view method,
                                                          std::string_view arguments,
                                                          std::int64_t at_ms,
                                                          std::size_t max_bytes);

// Sets the alarm and gives its record, with "replaced". kLimitExceeded.
[[nodiscard]] Result<std::string> set_alarm(AgentContext& agent,
                                            const durable::AlarmRequest& request);

// {"alarms":[...],"next":"..."}: a page of durable::Alarms::page(). `next` is the `after` of the
// next page, or null. kInvalidArgument.
[[nodiscard]] Result<std::string> alarm_page(AgentContext& agent, std::string_view after,
                                             std::size_t limit);

extern const hearth_alarms_v1 kAlarmsTable;

}  // namespace hearth::extensions
