#pragma once
// From an agent's request to the row of a schedule, and when schedules are due. The functions store
// nothing.

#include "base/error.hpp"
#include "durable/recurrence.hpp"
#include "durable/schedule_table.hpp"
#include "durable/schedule_types.hpp"

#include <cstdint>
#include <optional>

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

// ---- when a row is due ----
// Bounds the wait of a row that waits for a length of time: the clock was set back meanwhile.
void bound_wait(ScheduleRow& row, std::int64_t now);
// Finds the time of a cron row again: the clock was set back from `last` to `now` while it waited.
void reckon_anew(ScheduleRow& row, std::int64_t last, std::int64_t now,
                 const ScheduleSettings& settings);
// An occurrence is owed that no instance could run from `from` to `now`. Other occurrences in this
// time are missed like any others: the number of those that will not run.
// Failure: kUnavailable; the row is unchanged, and the caller must try again later.
Result<std::uint32_t> reckon_absence(ScheduleRow& row, std::int64_t from, std::int64_t now,
                                     const ScheduleSettings& settings);
// The occurrence after now.
[[nodiscard]] std::optional<std::int64_t> following(const ScheduleRow& row,
                                                    const Recurrence& recurrence, std::int64_t now);
// Sets the time of the next occurrence, and resets what belonged to the last one. False: there is
// none, and the row is dead.
bool set_next(ScheduleRow& row, std::optional<std::int64_t> at, std::int64_t now);
// Goes on to the next missed occurrence, where these run one by one. False: there is none.
bool catch_up(ScheduleRow& row, const Recurrence& recurrence, std::int64_t now);

}  // namespace hearth::durable
