#pragma once
// How the agents of one mock host reach each other.

#include "extensions/agent_router.hpp"
#include "mock/world.hpp"

#include <functional>
#include <memory>

namespace hearth::mock {

class StoredAgent;

// A call becomes an event of the callee in one of the next steps. It knows no time-outs and no
// serial classes; the depth is limited as in the server.
//
// Threads   The test's.  Lifetime  The world outlives it.
class MockRouter final : public extensions::AgentRouter {
 public:
  // The agent of the host that a call is for: made if need be. Null: there is none.
  using Find = std::function<StoredAgent*(const extensions::AgentCall& call)>;

  MockRouter(World& world, Find find) : world_(world), find_(std::move(find)) {}

  [[nodiscard]] std::unique_ptr<extensions::RemoteOperation> call(
      extensions::AgentCall call) override;

 private:
  World& world_;
  const Find find_;
};

}  // namespace hearth::mock
