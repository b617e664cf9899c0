#pragma once
// Cron expressions, and the times that they name.

#include "base/error.hpp"
#include "durable/time_zone.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hearth::durable {

// A parsed expression. Small, copied freely.
//
//   expression   [second] minute hour day month weekday, or @yearly @annually @monthly @weekly
//                @daily @midnight @hourly @minutely
//   field        item{,item}
//   item         * | ? | value | value-value, the first and the last two with an optional /step
//   value        a number; jan to dec and sun to sat where they belong, in any case; weekday 0 and
//                7 are Sunday
//
// A field is *restricted* if it leaves out a value. A day matches when its month does, and its day
// and weekday: both if at most one of the two is restricted, either if both are.
//
// Daylight saving. Expressions whose hour is a * or a step of it follow real time.
//
//   local time     hour is * or */n     all others
//   skipped        left out             moved to the first instant after the gap
//   comes twice    matches twice        matches the first time
//
// An instant is named at most once in either case.
//
// Threads   Immutable.
class Cron {
 public:
  // Failure: kInvalidArgument; the message names the field and its mistake. Rejected: more than 512
  // bytes, reversed ranges, 5/15 (a step without a range), step 0, L, W and #, and dates that never
  // come (30 February).
  static Result<Cron> parse(std::string_view text);

  // The first named instant strictly after `after_ms`, Unix milliseconds; nothing: there is none
  // before the year 10000.
  // Bounded: some thousand steps, whatever the expression.
  [[nodiscard]] std::optional<std::int64_t> next(std::int64_t after_ms, const TimeZone& zone) const;

  // Whether the hour is a * or a step of it.
  [[nodiscard]] bool follows_real_time() const { return follows_real_time_; }

 private:
  Cron() = default;

  Result<void> parse_fields(std::string_view text);
  [[nodiscard]] bool can_ever_match() const;
  [[nodiscard]] bool matches(std::chrono::sys_days day) const;
  [[nodiscard]] int second_of_day(int from) const;
  [[nodiscard]] std::optional<std::int64_t> next_local(std::int64_t after) const;
  [[nodiscard]] std::optional<std::int64_t> next_real(std::int64_t after,
                                                      const TimeZone& zone) const;
  [[nodiscard]] std::optional<std::int64_t> next_fixed(std::int64_t after,
                                                       const TimeZone& zone) const;

  // One bit for each value.
  std::uint64_t seconds_ = 1;
  std::uint64_t minutes_ = 0;
  std::uint64_t hours_ = 0;
  std::uint64_t days_ = 0;
  std::uint64_t months_ = 0;
  std::uint64_t weekdays_ = 0;  // 0: Sunday
  bool follows_real_time_ = false;
};

}  // namespace hearth::durable
