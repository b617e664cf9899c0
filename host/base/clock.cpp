#include "base/clock.hpp"

#include <ctime>

namespace hearth {

std::int64_t unix_millis(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

std::int64_t unix_millis_of(SteadyTime moment, const Clock& clock) {
  const auto age = std::chrono::floor<std::chrono::milliseconds>(clock.steady_now() - moment);
  return unix_millis(clock.wall_now()) - age.count();
}

BootClock::time_point BootClock::now() noexcept {
  ::timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

SteadyTime SystemClock::steady_now() const {
  return BootClock::now();
}

WallTime SystemClock::wall_now() const {
  return std::chrono::system_clock::now();
}

}  // namespace hearth
