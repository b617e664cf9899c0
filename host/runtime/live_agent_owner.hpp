#pragma once
// What a live agent needs from its place on the shard.

#include "base/clock.hpp"
#include "extensions/class_settings.hpp"
#include "runtime/connection.hpp"
#include "runtime/types.hpp"
#include "storage/agent_key.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {

// Threads   The shard's.
// Lifetime  It outlives the live agent, and no member destroys the live agent.
class LiveAgentOwner {
 public:
  LiveAgentOwner() = default;
  LiveAgentOwner(const LiveAgentOwner&) = delete;
  LiveAgentOwner& operator=(const LiveAgentOwner&) = delete;

  [[nodiscard]] virtual const storage::AgentKey& key() const = 0;
  // How the class is named in URLs.
  [[nodiscard]] virtual const std::string& segment() const = 0;
  // Where the class's agents may send requests now. Never null.
  [[nodiscard]] virtual extensions::EgressPtr egress() const = 0;
  // The agent's clients in the order of arrival, valid until a client comes or goes; and one
  // client, or null.
  [[nodiscard]] virtual const std::vector<ConnectionId>& connections() const = 0;
  [[nodiscard]] virtual Connection* connection(ConnectionId id) const = 0;
  // When an event last came, or a turn of the instance ended. Used instead of the clock.
  [[nodiscard]] virtual SteadyTime last_activity() const = 0;

  // No plugin code of this agent is on the stack any more: handles the results, then delivers the
  // events that wait.
  virtual void after_turn() = 0;
  // Durable work of the agent may be due: a task of the loop looks soon.
  virtual void look() = 0;
  // The write with this number replaced the state: a STATE_CHANGED event follows this turn.
  // `chain`: of the handler that wrote, else null (EventFreight). `origin`: of that event.
  virtual void state_changed(ConnectionId source, std::string_view json, std::uint64_t state_write,
                             std::shared_ptr<unsigned> chain, extensions::OriginPtr origin) = 0;
  // All writes after this one were rolled back: their events are dropped.
  virtual void states_undone(std::uint64_t last_write) = 0;

 protected:
  ~LiveAgentOwner() = default;
};

}  // namespace hearth::runtime
