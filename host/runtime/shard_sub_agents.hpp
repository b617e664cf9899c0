#pragma once
// The sub-agents of a shard's agents: a sub-agent lives on the shard of the agents above it.

#include "extensions/sub_agents_port.hpp"
#include "runtime/agent_slots.hpp"
#include "storage/directory.hpp"

namespace hearth::runtime {

// A sub-agent is recorded when it first starts, and ends with any agent above it.
//
// Lifetime   The constructor arguments outlive it.
class ShardSubAgents final : public extensions::SubAgents {
 public:
  ShardSubAgents(storage::Directory& directory, const ShardServices& services, AgentSlots& slots)
      : directory_(directory), services_(services), slots_(slots) {}

  std::vector<extensions::SubAgent> list(const storage::AgentKey& above,
                                         const storage::AgentKey& after,
                                         std::size_t limit) override;
  Result<void> destroy(const storage::AgentKey& key, extensions::AgentHandle by) override;

 private:
  storage::Directory& directory_;
  const ShardServices& services_;
  AgentSlots& slots_;
};

}  // namespace hearth::runtime
