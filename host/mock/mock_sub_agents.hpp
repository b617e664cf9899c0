#pragma once
// Which agents of a mock host are below which.

#include "extensions/sub_agents_port.hpp"
#include "mock/world.hpp"

#include <memory>
#include <vector>

namespace hearth::mock {

class StoredAgent;

// An agent is listed from its first start to its end, as in the server.
//
// Threads   The test's.  Lifetime  The world and the agents outlive it.
class MockSubAgents final : public extensions::SubAgents {
 public:
  MockSubAgents(World& world, const std::vector<std::unique_ptr<StoredAgent>>& agents)
      : world_(world), agents_(agents) {}

  std::vector<extensions::SubAgent> list(const storage::AgentKey& above,
                                         const storage::AgentKey& after,
                                         std::size_t limit) override;
  Result<void> destroy(const storage::AgentKey& key, extensions::AgentHandle by) override;

  // The agent has come to its end: all below it come to theirs.
  void destroyed(const storage::AgentKey& key);

 private:
  // Now for whoever looks; what is in memory of it goes in one of the next steps.
  void end_soon(StoredAgent& agent);

  World& world_;
  const std::vector<std::unique_ptr<StoredAgent>>& agents_;
};

}  // namespace hearth::mock
