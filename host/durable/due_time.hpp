#pragma once
// A moment that is stored in the wall's time and waited for in memory.

#include "base/clock.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace hearth::durable {

// Both clocks at one moment: a look at many waits reads them once.
struct Now {
  explicit Now(const Clock& clock)
      : wall_ms(unix_millis(clock.wall_now())), steady(clock.steady_now()) {}

  std::int64_t wall_ms;
  SteadyTime steady;
};

// While an instance lives, the length of a wait is kept whatever becomes of the wall's clock: one
// that is set back by an hour does not make it an hour longer, and one that is set ahead ends it as
// the disk says.
class DueTime {
 public:
  DueTime() = default;  // due
  DueTime(const Clock& clock, std::int64_t at_ms) : at_ms_(std::max<std::int64_t>(at_ms, 0)) {
    // Ten years: far past any wait, far from overflow.
    constexpr std::int64_t kFar = std::int64_t{10} * 365 * 24 * 3600 * 1000;
    const std::int64_t wait = at_ms_ - unix_millis(clock.wall_now());
    steady_ =
        clock.steady_now() + std::chrono::milliseconds(std::clamp<std::int64_t>(wait, 0, kFar));
  }

  [[nodiscard]] bool reached(const Now& now) const {
    return at_ms_ <= now.wall_ms || steady_ <= now.steady;
  }

  // In the wall's time as it is now. The stored moment as long as the clocks agree to a second:
  // what is in the wake index then stays as it is.
  [[nodiscard]] std::int64_t wall_ms(const Now& now) const {
    const std::int64_t left =
        std::chrono::ceil<std::chrono::milliseconds>(steady_ - now.steady).count();
    if (at_ms_ <= now.wall_ms + std::max<std::int64_t>(left, 0) + 1000) return at_ms_;
    // The wall's clock was set back. In whole seconds, so that one look after the other says the
    // same; and not too early, so that an agent that wakes then finds it reached.
    return (now.wall_ms + left + 999) / 1000 * 1000;
  }

 private:
  std::int64_t at_ms_ = 0;
  SteadyTime steady_{};
};

}  // namespace hearth::durable
