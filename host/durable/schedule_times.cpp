#include "durable/schedule_times.hpp"

#include "durable/schedule_request.hpp"

#include <algorithm>

namespace hearth::durable {

void bound_wait(ScheduleRow& row, std::int64_t now) {
  const std::int64_t latest = now + std::max<std::int64_t>(0, row.next_at_ms - row.set_at_ms);
  if (row.next_at_ms <= latest) return;
  row.next_at_ms = latest;
  row.scheduled_for = std::min(row.scheduled_for, latest);
}

void reckon_anew(ScheduleRow& row, std::int64_t last, std::int64_t now,
                 const ScheduleSettings& settings) {
  const Result<Recurrence> recurrence = recurrence_of(row, settings);
  if (!recurrence) return;  // reported when the row is due
  const auto at = recurrence->next(recurrence->search_from(last, now));
  if (at && *at < row.next_at_ms) row.next_at_ms = row.scheduled_for = *at;
}

Result<std::uint32_t> reckon_absence(ScheduleRow& row, std::int64_t from, std::int64_t now,
                                     const ScheduleSettings& settings) {
  const Result<Recurrence> recurrence = recurrence_of(row, settings);
  if (!recurrence) {
    if (recurrence.error().code == Errc::kUnavailable) return recurrence.error();
    return 0U;  // reported after the run
  }
  const std::uint32_t others = recurrence->count(std::max(row.scheduled_for, from), now);
  if (others == 0) return 0U;
  if (row.misfire == Misfire::kAll) {
    row.catch_up_until = now;
    return 0U;
  }
  row.missed = std::min(kMostCounted, row.missed + others);
  return others;
}

std::optional<std::int64_t> following(const ScheduleRow& row, const Recurrence& recurrence,
                                      std::int64_t now) {
  const auto at = recurrence.next(recurrence.search_from(row.scheduled_for, now));
  // P4: no interval waits longer than its length, even if the clock was set back.
  if (at && row.fixed_rate) return std::min(*at, now + row.length_ms);
  return at;
}

bool set_next(ScheduleRow& row, std::optional<std::int64_t> at, std::int64_t now) {
  row.attempts = 0;
  row.missed = 0;
  row.owed = false;
  row.over = false;
  row.begun_at = 0;
  row.set_at_ms = now;
  row.next_at_ms = at.value_or(0);
  if (at) {
    row.scheduled_for = *at;
    return true;
  }
  row.dead = true;
  row.last_error = "it is never due again";
  return false;
}

bool catch_up(ScheduleRow& row, const Recurrence& recurrence, std::int64_t now) {
  if (row.catch_up_until <= row.scheduled_for) return false;
  const auto at =
      recurrence.first_of_last(row.misfire_limit, row.scheduled_for, row.catch_up_until);
  if (!at) return false;
  set_next(row, at, now);
  row.owed = true;
  return true;
}

}  // namespace hearth::durable
