#pragma once
// What an agent may ask about the agents below it.

#include "extensions/sub_agents_port.hpp"
#include "runtime/agent_handles.hpp"
#include "runtime/condemned_agents.hpp"
#include "storage/directory.hpp"

#include <functional>

namespace hearth::runtime {

// Reads the directory of agents: a sub-agent lives on the same shard, and is recorded when it first
// starts.
//
// Lifetime   The parts outlive it.
class ShardSubAgents final : public extensions::SubAgents {
 public:
  struct Parts {
    storage::Directory& directory;
    CondemnedAgents& condemned;
    AgentHandles& handles;
    // The agent and those below it were condemned: the shard ends them soon, from the loop.
    std::function<void(const storage::AgentKey&)> end_soon;
  };
  explicit ShardSubAgents(Parts parts);

  std::vector<extensions::SubAgent> list(const storage::AgentKey& above,
                                         const storage::AgentKey& after,
                                         std::size_t limit) override;
  Result<void> destroy(const storage::AgentKey& key, extensions::AgentHandle by) override;

 private:
  const Parts parts_;
};

}  // namespace hearth::runtime
