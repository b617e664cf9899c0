#pragma once
// Schedules as the JSON that an agent's author sees.

#include "durable/schedule_table.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::durable {

// "waiting", "running", "paused", "missing" or "dead".
std::string_view state_of(const ScheduleRow& row) noexcept;

// A record, as hearth/ext/schedule.h describes it. `payload` is JSON and stands in it as it is.
std::string schedule_record(const ScheduleRow& row, std::string_view payload);

// The body of the event that runs it now.
std::string run_body(const ScheduleRow& row, std::string_view payload, std::int64_t late_ms);

}  // namespace hearth::durable
