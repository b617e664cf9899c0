#pragma once
// When a recurring schedule is due.

#include "base/error.hpp"
#include "durable/cron.hpp"
#include "durable/time_zone.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace hearth::durable {

// Counts of missed occurrences stop here: 1,000 means 1,000 or more.
inline constexpr std::uint32_t kMostCounted = 1'000;

// The occurrences of one schedule: of a cron expression in its time zone, or of an interval. Times
// are Unix milliseconds. Cheap to make, immutable.
//
// Bounded   The length of a span of time costs a member at most kMostCounted steps of a cron
//           expression (first_of_last: some tens of thousand).
class Recurrence {
 public:
  // Failure: as Cron::parse() and `find_zone`.
  static Result<Recurrence> cron(
      std::string_view expression, std::string_view time_zone,
      Result<TimeZone> (*find_zone)(std::string_view name) = &TimeZone::find);
  // An occurrence at `anchor`, and one every `length` before and after it. `length` is 1 or more.
  static Recurrence every(std::int64_t length, std::int64_t anchor);

  // The first occurrence strictly after a moment; nothing: there is none.
  [[nodiscard]] std::optional<std::int64_t> next(std::int64_t after) const;
  // The number of occurrences in (after, until]; at most kMostCounted.
  [[nodiscard]] std::uint32_t count(std::int64_t after, std::int64_t until) const;
  // The first of the last `n` occurrences in (after, until]; if there are fewer, the first of all.
  [[nodiscard]] std::optional<std::int64_t> first_of_last(std::uint32_t n, std::int64_t after,
                                                          std::int64_t until) const;

  // The moment after which to look for the occurrence that follows the one at `last`: `last` or
  // `now`, whichever is later. If the clock was set back since `last`, it shows some times twice,
  // and this is `now` in three cases. Intervals and cron expressions that follow real time repeat.
  // All others repeat if the clock was set back by more than three hours: then it was wrong before.
  [[nodiscard]] std::int64_t search_from(std::int64_t last, std::int64_t now) const;

 private:
  struct ByCron {
    Cron expression;
    TimeZone zone;
  };
  explicit Recurrence(ByCron cron) : cron_(cron) {}
  Recurrence(std::int64_t length, std::int64_t anchor) : length_(length), anchor_(anchor) {}

  [[nodiscard]] std::uint32_t count_up_to(std::uint32_t most, std::int64_t after,
                                          std::int64_t until) const;

  std::optional<ByCron> cron_;  // nothing: every length_
  std::int64_t length_ = 1;
  std::int64_t anchor_ = 0;
};

}  // namespace hearth::durable
