#pragma once
// Time comes through this interface, so that a test drives it by hand.

#include <chrono>
#include <cstdint>

namespace hearth {

// CLOCK_BOOTTIME: it goes on while the machine is suspended, which std::chrono::steady_clock does
// not. A type of its own, so that readings of the two are not compared.
struct BootClock {
  // NOLINTBEGIN(readability-identifier-naming): the names that std::chrono asks for
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
  // NOLINTEND(readability-identifier-naming)
};

using SteadyTime = BootClock::time_point;
using WallTime = std::chrono::system_clock::time_point;

// Threads   All members are safe to call from any thread.
class Clock {
 public:
  Clock() = default;
  virtual ~Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  // Never goes back, and no setting of the wall's clock moves it. For time-outs and durations. The
  // time in which the machine is suspended counts: when it wakes, what waited for a moment that has
  // passed is due, as the wall's time says too.
  [[nodiscard]] virtual SteadyTime steady_now() const = 0;

  // The wall's time, which may jump either way. For what people see and what is stored.
  [[nodiscard]] virtual WallTime wall_now() const = 0;
};

// Milliseconds since 1970-01-01T00:00Z, the unit of every stored time.
std::int64_t unix_millis(WallTime time);

// The operating system's clocks.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] SteadyTime steady_now() const override;
  [[nodiscard]] WallTime wall_now() const override;
};

}  // namespace hearth
