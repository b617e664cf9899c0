#pragma once
// Time comes through this interface, so that a test drives it by hand.

#include <chrono>
#include <cstdint>

namespace hearth {

using SteadyTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;

// Threads   All members are safe to call from any thread.
class Clock {
 public:
  Clock() = default;
  virtual ~Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  // Never goes back. For time-outs and durations.
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
