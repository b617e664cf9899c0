#pragma once
// What a live agent needs from the place that it lives in.

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
// Lifetime  It outlives the live agent. No member destroys that.
class LiveAgentOwner {
 public:
  LiveAgentOwner() = default;
  LiveAgentOwner(const LiveAgentOwner&) = delete;
  LiveAgentOwner& operator=(const LiveAgentOwner&) = delete;

  [[nodiscard]] virtual const storage::AgentKey& key() const = 0;
  // How the class is named in URLs.
  [[nodiscard]] virtual const std::string& segment() const = 0;
  // Where requests of the class's agents may go now. Never null.
  [[nodiscard]] virtual extensions::EgressPtr egress() const = 0;
  // The agent's clients, in the order of arrival, until one comes or goes; and one of them, or
  // null.
  [[nodiscard]] virtual const std::vector<ConnectionId>& connections() const = 0;
  [[nodiscard]] virtual Connection* connection(ConnectionId id) const = 0;
  // When an event last came, or a turn of the instance ended: to be used instead of the clock.
  [[nodiscard]] virtual SteadyTime last_activity() const = 0;

  // No plugin code of this agent is on the stack any more: acts on what happened, then delivers
  // what waits.
  virtual void after_turn() = 0;
  // Something of its durable work may be due: looked at soon, from the loop.
  virtual void look() = 0;
  // The state was replaced, by its write of this number: a STATE_CHANGED event follows this turn.
  // `chain`: of the handler that did it, else null (EventFreight). `origin`: of that event.
  virtual void state_changed(ConnectionId source, std::string_view json, std::uint64_t state_write,
                             std::shared_ptr<unsigned> chain, extensions::OriginPtr origin) = 0;
  // All writes of it after this one were rolled back: their events do not come.
  virtual void states_undone(std::uint64_t last_write) = 0;

 protected:
  ~LiveAgentOwner() = default;
};

}  // namespace hearth::runtime
