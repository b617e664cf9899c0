#include "base/clock.hpp"

namespace hearth {

std::int64_t unix_millis(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

SteadyTime SystemClock::steady_now() const {
  return std::chrono::steady_clock::now();
}

WallTime SystemClock::wall_now() const {
  return std::chrono::system_clock::now();
}

}  // namespace hearth
