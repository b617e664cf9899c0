#include "durable/recurrence.hpp"

#include <algorithm>

namespace hearth::durable {
namespace {

constexpr std::int64_t kCorrection = 3 * 3'600'000;

// The number of whole lengths from the anchor to the last occurrence at or before a moment.
std::int64_t lengths_until(std::int64_t moment, std::int64_t anchor, std::int64_t length) {
  const std::int64_t distance = moment - anchor;
  const std::int64_t whole = distance / length;
  return distance % length < 0 ? whole - 1 : whole;
}

}  // namespace

Result<Recurrence> Recurrence::cron(std::string_view expression, std::string_view time_zone,
                                    Result<TimeZone> (*find_zone)(std::string_view name)) {
  const Result<Cron> parsed = Cron::parse(expression);
  if (!parsed) return parsed.error();
  const Result<TimeZone> zone = find_zone(time_zone);
  if (!zone) return zone.error();
  return Recurrence(ByCron{*parsed, *zone});
}

Recurrence Recurrence::every(std::int64_t length, std::int64_t anchor) {
  return Recurrence(length, anchor);
}

std::optional<std::int64_t> Recurrence::next(std::int64_t after) const {
  if (cron_) return cron_->expression.next(after, cron_->zone);
  return anchor_ + (lengths_until(after, anchor_, length_) + 1) * length_;
}

std::uint32_t Recurrence::count_up_to(std::uint32_t most, std::int64_t after,
                                      std::int64_t until) const {
  if (until <= after) return 0;
  if (!cron_) {
    const std::int64_t all =
        lengths_until(until, anchor_, length_) - lengths_until(after, anchor_, length_);
    return static_cast<std::uint32_t>(std::min<std::int64_t>(all, most));
  }
  std::uint32_t found = 0;
  for (auto at = next(after); at && *at <= until && found < most; at = next(*at)) ++found;
  return found;
}

std::uint32_t Recurrence::count(std::int64_t after, std::int64_t until) const {
  return count_up_to(kMostCounted, after, until);
}

std::optional<std::int64_t> Recurrence::first_of_last(std::uint32_t n, std::int64_t after,
                                                      std::int64_t until) const {
  if (n == 0 || count_up_to(1, after, until) == 0) return std::nullopt;
  // Binary search for the latest moment that is followed by n occurrences: an expression can only
  // be searched forwards.
  std::int64_t enough = after;
  std::int64_t too_few = until;
  if (count_up_to(n, enough, until) < n) return next(after);
  while (too_few - enough > 1) {
    const std::int64_t middle = enough + (too_few - enough) / 2;
    (count_up_to(n, middle, until) < n ? too_few : enough) = middle;
  }
  return next(enough);
}

std::int64_t Recurrence::search_from(std::int64_t last, std::int64_t now) const {
  if (last <= now) return now;
  const bool again = !cron_ || cron_->expression.follows_real_time() || last - now > kCorrection;
  return again ? now : last;
}

}  // namespace hearth::durable
