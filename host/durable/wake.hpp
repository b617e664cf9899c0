#pragma once
// When an agent must next be awake, without a client or an agent that asks for it.

#include <algorithm>
#include <cstdint>
#include <optional>

namespace hearth::durable {

// The moment of what waits for another version of its class, whose coming wakes it: the year 2255,
// which a duration in nanoseconds still holds.
inline constexpr std::int64_t kNextVersion = 9'000'000'000'000;
[[nodiscard]] constexpr bool is_next_version(std::int64_t at_ms) {
  return at_ms >= kNextVersion / 10 * 9;  // a clock that is set moves all moments
}

// Everything that an agent must do later, as one value. It is a pure function of the agent's rows
// and of what it holds in memory; the host keeps the last one in its wake index.
struct Wake {
  // Work is under way in memory. While the process lives nothing needs to wake it; after the
  // process was replaced its work was interrupted, and the agent is woken at once.
  bool working = false;

  // The earliest moment at which a row is due, Unix milliseconds.
  std::optional<std::int64_t> at_ms;

  // The agent may have operations that are not settled, and so many of them are unknown. It does
  // not wake the agent: administrators find it by this.
  std::optional<std::int64_t> unknown_operations{};

  // Nothing wakes the agent.
  [[nodiscard]] bool none() const { return !working && !at_ms; }
  // The index need not know the agent.
  [[nodiscard]] bool is_empty() const { return none() && !unknown_operations; }

  // True if the index must know this wake before the agent commits: with `known` in its place it
  // would come too late.
  [[nodiscard]] bool earlier_than(const Wake& known) const {
    if (working && !known.working) return true;
    if (unknown_operations && unknown_operations > known.unknown_operations) return true;
    return at_ms && (!known.at_ms || *at_ms < *known.at_ms);
  }

  friend bool operator==(const Wake&, const Wake&) = default;
};

// The earlier of two moments that may be absent.
inline std::optional<std::int64_t> earliest(std::optional<std::int64_t> a,
                                            std::optional<std::int64_t> b) {
  if (!a) return b;
  if (!b) return a;
  return std::min(*a, *b);
}

// What must be so if the one or the other may be true.
inline Wake either(const Wake& a, const Wake& b) {
  return Wake{a.working || b.working, earliest(a.at_ms, b.at_ms),
              std::max(a.unknown_operations, b.unknown_operations)};
}

}  // namespace hearth::durable
