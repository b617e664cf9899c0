#pragma once
// The sub-agents of a mock host.

#include "extensions/sub_agents_port.hpp"
#include "mock/world.hpp"

#include <memory>
#include <vector>

namespace hearth::mock {

class StoredAgent;

// An agent is listed from its first start to its destruction, as in the server.
//
// Threads   The test's.
// Lifetime  The world and the agents outlive it.
class MockSubAgents final : public extensions::SubAgents {
 public:
  MockSubAgents(World& world, const std::vector<std::unique_ptr<StoredAgent>>& agents)
      : world_(world), agents_(agents) {}

  std::vector<extensions::SubAgent> list(const storage::AgentKey& above,
                                         const storage::AgentKey& after,
                                         std::size_t limit) override;
  Result<void> destroy(const storage::AgentKey& key, extensions::AgentHandle by) override;

  // Call it when the agent is destroyed: destroys all agents below it.
  void destroyed(const storage::AgentKey& key);

 private:
  // Listings leave the agent out at once. One of the next steps destroys its instance and its data.
  void end_soon(StoredAgent& agent);

  World& world_;
  const std::vector<std::unique_ptr<StoredAgent>>& agents_;
};

}  // namespace hearth::mock
