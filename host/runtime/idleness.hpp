#pragma once
// When an agent in memory gives back what it does not use, and when it leaves.

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace hearth::runtime {

// An agent that was idle this long gives back caches. It stays in memory until its idle timeout.
inline constexpr std::chrono::milliseconds kTrimAfter{1000};

enum class IdleStep : std::uint8_t { kNothing, kTrimUnused, kTrimAll, kLeave };

// What an agent does at a look of its idle timer. `unused`: since its last activity. `is_trimmed`:
// it has given back all caches since then.
[[nodiscard]] constexpr IdleStep idle_step(std::chrono::nanoseconds unused,
                                           std::chrono::milliseconds timeout, bool is_busy,
                                           bool is_trimmed) {
  // With a shorter timeout it soon leaves memory anyway.
  if (is_busy) return timeout >= kTrimAfter ? IdleStep::kTrimUnused : IdleStep::kNothing;
  if (unused >= timeout) return IdleStep::kLeave;
  return !is_trimmed && unused >= kTrimAfter ? IdleStep::kTrimAll : IdleStep::kNothing;
}

// How long after the last activity the timer looks next.
[[nodiscard]] constexpr std::chrono::milliseconds next_look(std::chrono::milliseconds timeout,
                                                            bool is_trimmed) {
  return is_trimmed ? timeout : std::min(kTrimAfter, timeout);
}

}  // namespace hearth::runtime
