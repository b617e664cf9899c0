#pragma once
// Schedules as JSON for authors.

#include "durable/schedule_table.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::durable {

// "waiting", "running", "paused", "missing" or "dead".
std::string_view state_of(const ScheduleRow& row) noexcept;

// A record, as in hearth/ext/schedule.h. `payload` is JSON, and is copied unchanged.
std::string schedule_record(const ScheduleRow& row, std::string_view payload);

// The body of the event that runs the schedule now.
std::string run_body(const ScheduleRow& row, std::string_view payload, std::int64_t late_ms);

}  // namespace hearth::durable
