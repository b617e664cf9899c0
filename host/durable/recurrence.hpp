#pragma once
// When a schedule that comes again and again is due.

#include "base/error.hpp"
#include "durable/cron.hpp"
#include "durable/time_zone.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace hearth::durable {

// More missed occurrences than these are not counted: 1,000 stands for 1,000 or more.
inline constexpr std::uint32_t kMostCounted = 1'000;

// The occurrences of one schedule: those of a cron expression in its time zone, or every so many
// milliseconds. Times are Unix milliseconds. Cheap to make, immutable.
//
// Bounded   No member's cost grows with the length of the time that it is asked about, beyond
//           kMostCounted steps of a cron expression (some tens of thousand for first_of_last).
class Recurrence {
 public:
  // Failure: as Cron::parse() and `find_zone`.
  static Result<Recurrence> cron(
      std::string_view expression, std::string_view time_zone,
      Result<TimeZone> (*find_zone)(std::string_view name) = &TimeZone::find);
  // At `anchor`, and every `length` before and after it. `length` is 1 or more.
  static Recurrence every(std::int64_t length, std::int64_t anchor);

  // The first occurrence strictly after a moment; nothing if it is never due again.
  [[nodiscard]] std::optional<std::int64_t> next(std::int64_t after) const;
  // How many occurrences lie in (after, until]; at most kMostCounted.
  [[nodiscard]] std::uint32_t count(std::int64_t after, std::int64_t until) const;
  // The first of the last `n` occurrences in (after, until]; of all of them if there are fewer.
  [[nodiscard]] std::optional<std::int64_t> first_of_last(std::uint32_t n, std::int64_t after,
                                                          std::int64_t until) const;

  // Where to look for the occurrence that follows the one at `last`, when it is `now`: after both
  // of them. If the clock was set back since, what the clock shows a second time comes a second
  // time only for cron expressions that follow real time, and for all if it was set back by more
  // than three hours: then it was wrong before.
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

  std::optional<ByCron> cron_;  // none: every length_
  std::int64_t length_ = 1;
  std::int64_t anchor_ = 0;
};

}  // namespace hearth::durable
