#pragma once
// The sub-agents of an agent, as the host's directory of agents knows them.

#include "base/error.hpp"
#include "base/interface.hpp"
#include "extensions/types.hpp"
#include "storage/agent_key.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hearth::extensions {

// A sub-agent that was started once, and not destroyed since.
struct SubAgent {
  storage::AgentKey key;
  std::int64_t created_at_ms = 0;  // Unix time
};

// Threads   The agent's shard, from inside a call into its code.
// Failure   Throws StorageError.
// Re-entry  No member calls the code of an agent.
class SubAgents : public Interface {
 public:
  // The agents right below `above`, in byte order of their names and then of their classes, from
  // the first one behind `after`. `after` need not exist; an empty key starts a listing.
  virtual std::vector<SubAgent> list(const storage::AgentKey& above, const storage::AgentKey& after,
                                     std::size_t limit) = 0;

  // Destroys the agent as if its own code had asked for it. When this returns, the destruction of
  // the agent and of all agents below it is certain. `by`: the agent whose answers wait until that
  // is durable. kNotFound: there is no such agent.
  virtual Result<void> destroy(const storage::AgentKey& key, AgentHandle by) = 0;
};

}  // namespace hearth::extensions
