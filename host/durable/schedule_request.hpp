#pragma once
// From what an agent asks for to the row that will be kept.

#include "base/error.hpp"
#include "durable/recurrence.hpp"
#include "durable/schedule_table.hpp"
#include "durable/schedule_types.hpp"

#include <cstdint>

namespace hearth::durable {

// The row for a request that came at `now_ms`: all but its id and seq. It is due for the first time
// at row.time.
//
// Failure   kInvalidArgument: what was asked for has no meaning or is out of its range (the message
//           says what). kLimitExceeded: the payload is too large. kUnavailable: no time zones on
//           this machine.
Result<ScheduleRow> checked_schedule(const ScheduleRequest& request,
                                     const ScheduleSettings& settings, std::int64_t now_ms);

// Whether a request that is alike is the same schedule.
bool is_idempotent(const ScheduleRequest& request);

// When a row of type cron or interval is due.
//
// Failure   kInvalidArgument: its zone is gone, for good. kUnavailable: zones cannot be looked up
//           now.
Result<Recurrence> recurrence_of(const ScheduleRow& row, const ScheduleSettings& settings);

}  // namespace hearth::durable
