#pragma once
// What the durable work of an agent waits for, from its own database: also of a cold agent, and
// without its code.

#include "extensions/wait.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hearth::storage {
class AgentDatabase;
}

namespace hearth::server {

// Of more jobs those are left out that are due last; dead ones come first.
inline constexpr std::size_t kMostWaits = 200;

// Unsettled jobs, one by one. `is_live`: an instance is in memory, so that a claimed job runs;
// otherwise it was interrupted, and is tried again once the agent wakes.
//
// Threads  The agent's shard, between two turns.  Failure  StorageError.
[[nodiscard]] std::vector<extensions::Wait> work_waits(storage::AgentDatabase& database,
                                                       bool is_live);

}  // namespace hearth::server
