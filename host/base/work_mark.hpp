#pragma once
// Names the durable work that some code does. The record of a crash has it, so that the next
// process knows which work crashed the last one.

#include <cstdint>
#include <limits>

namespace hearth {

// WorkMark{}: no durable work.
struct WorkMark {
  // In an agent's file: of cf_agents_jobs; or, plus kOperationRows, of cf_agents_operations.
  std::int64_t row = 0;
  // AgentKey::digest() of the agent whose row it is, for a notification: its work runs in another
  // agent. 0: the agent whose code runs.
  std::uint64_t sender = 0;

  friend bool operator==(const WorkMark&, const WorkMark&) = default;
};

inline constexpr std::int64_t kOperationRows = std::int64_t{1} << 62;

// The row for code that plans the recovery of several fibers: it works for none in particular.
inline constexpr std::int64_t kSeveralRows = std::numeric_limits<std::int64_t>::max();

}  // namespace hearth
