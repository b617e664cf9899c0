#pragma once
// The agents below one, as whoever keeps all agents knows them.

#include "base/error.hpp"
#include "extensions/types.hpp"
#include "storage/agent_key.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hearth::extensions {

// One that was started once, and not destroyed since.
struct SubAgent {
  storage::AgentKey key;
  std::int64_t created_at_ms = 0;  // Unix time
};

// Threads   The agent's shard, from inside a call into its code.
// Failure   Throws StorageError.
// Re-entry  No member calls the code of an agent.
class SubAgents {
 public:
  SubAgents() = default;
  virtual ~SubAgents() = default;
  SubAgents(const SubAgents&) = delete;
  SubAgents& operator=(const SubAgents&) = delete;

  // Those right below `above`, in byte order of their names and then of their classes, behind
  // `after`, which need not exist; an empty key starts a listing.
  virtual std::vector<SubAgent> list(const storage::AgentKey& above, const storage::AgentKey& after,
                                     std::size_t limit) = 0;

  // As if it had asked for it itself: when this has returned its end is certain, and that of all
  // below it. `by`: whose answers wait until that is durable. kNotFound: there is none.
  virtual Result<void> destroy(const storage::AgentKey& key, AgentHandle by) = 0;
};

}  // namespace hearth::extensions
