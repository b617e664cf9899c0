#pragma once
// Times as the tables have them.

#include <hearth/time.hpp>

#include <chrono>
#include <cstdint>

namespace hearth::chat {

inline std::int64_t unix_ms(Time time) {
  return time.time_since_epoch().count();
}
inline Time unix_time(std::int64_t milliseconds) {
  return Time(std::chrono::milliseconds(milliseconds));
}

}  // namespace hearth::chat
