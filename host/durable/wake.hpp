#pragma once
// When an agent must next be awake for its own work, with no request from outside.

#include <algorithm>
#include <cstdint>
#include <optional>

namespace hearth::durable {

// The moment of work that waits for another version of the class. A new version wakes the agent.
// The moment is in the year 2255, which a duration in nanoseconds still holds.
inline constexpr std::int64_t kNextVersion = 9'000'000'000'000;
// From here on: setting the clock moves all moments.
inline constexpr std::int64_t kFirstOfNextVersion = kNextVersion / 10 * 9;
[[nodiscard]] constexpr bool is_next_version(std::int64_t at_ms) {
  return at_ms >= kFirstOfNextVersion;
}

// Work of a later moment is due then, in 2198: no setting of the clock makes it work that waits for
// a version.
[[nodiscard]] constexpr std::int64_t due_at(std::int64_t at_ms) {
  return std::min(at_ms, kNextVersion / 10 * 8);
}

// Everything that an agent must do later, as one value. It follows from the agent's rows and its
// state in memory alone. The host keeps the last value in its wake index.
struct Wake {
  // The agent has work in progress in memory, and is awake. After a restart of the process this
  // work was interrupted, and the agent is woken at once.
  bool working = false;

  // The earliest moment at which a row is due, Unix milliseconds.
  std::optional<std::int64_t> at_ms;

  // The number of unknown operations, if the agent may have unsettled ones. It wakes no agent:
  // administrators find the agent by it.
  std::optional<std::int64_t> unknown_operations{};

  // Some of its work has used up its tries, fails again and again, waits for code, or asks for a
  // person; or it was so when the agent was last in memory. It wakes no agent either.
  bool needs_person = false;

  // A new version of the class may be what some of its work waits for: that work alone is due at
  // kNextVersion, or it stands behind work with a moment.
  [[nodiscard]] bool may_wait_for_code() const {
    return at_ms && (needs_person || is_next_version(*at_ms));
  }
  // Nothing wakes the agent.
  [[nodiscard]] bool none() const { return !working && !at_ms; }
  // The index need not have an entry for the agent.
  [[nodiscard]] bool is_empty() const { return none() && !unknown_operations && !needs_person; }

  // True if the index must get this wake before the agent commits: the wake that it has, `known`,
  // would be too late.
  [[nodiscard]] bool earlier_than(const Wake& known) const {
    if ((working && !known.working) || (needs_person && !known.needs_person)) return true;
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

// The wake that covers both.
inline Wake either(const Wake& a, const Wake& b) {
  return Wake{a.working || b.working, earliest(a.at_ms, b.at_ms),
              std::max(a.unknown_operations, b.unknown_operations),
              a.needs_person || b.needs_person};
}

}  // namespace hearth::durable
