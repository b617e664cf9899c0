#pragma once
// From an agent's request to the row of a schedule.

#include "base/error.hpp"
#include "durable/recurrence.hpp"
#include "durable/schedule_table.hpp"
#include "durable/schedule_types.hpp"

#include <cstdint>

namespace hearth::durable {

// The row for a request that came at `now_ms`, without its id and seq. It is first due at its
// next_at_ms.
//
// Failure   kInvalidArgument: a value has no meaning or is out of range; the message says which.
//           kLimitExceeded: the payload is too large. kUnavailable: this machine has no time zones.
Result<ScheduleRow> checked_schedule(const ScheduleRequest& request,
                                     const ScheduleSettings& settings, std::int64_t now_ms);

// Whether the request and an equal one before it make only one schedule.
bool is_idempotent(const ScheduleRequest& request);

// The occurrences of a row of type cron or interval.
//
// Failure   kInvalidArgument: its zone does not exist any more. kUnavailable: zones cannot be
//           looked up now.
Result<Recurrence> recurrence_of(const ScheduleRow& row, const ScheduleSettings& settings);

}  // namespace hearth::durable
