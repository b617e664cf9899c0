#pragma once
// Code reads the time through this interface, so that a test can set it.

#include <chrono>
#include <cstdint>

namespace hearth {

// CLOCK_BOOTTIME. Unlike std::chrono::steady_clock it also counts while the machine is suspended.
// A separate type, so that code cannot compare times of the two clocks.
struct BootClock {
  // NOLINTBEGIN(readability-identifier-naming): the names that std::chrono requires
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

  // Never goes back, and does not change when the wall clock is set. For timeouts and durations.
  // Suspension counts: after the machine resumes, every timer whose time has passed is due.
  [[nodiscard]] virtual SteadyTime steady_now() const = 0;

  // Wall-clock time, which may jump either way. For times that people see or that are stored.
  [[nodiscard]] virtual WallTime wall_now() const = 0;
};

// Milliseconds since 1970-01-01T00:00Z, the unit of every stored time.
std::int64_t unix_millis(WallTime time);

// The wall clock's time of a steady moment, if the wall clock was not set since.
std::int64_t unix_millis_of(SteadyTime moment, const Clock& clock);

// The operating system's clocks.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] SteadyTime steady_now() const override;
  [[nodiscard]] WallTime wall_now() const override;
};

}  // namespace hearth
