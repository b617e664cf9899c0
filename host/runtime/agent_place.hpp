#pragma once
// One agent's place on its shard: what the parts of its slot share.

#include "runtime/admission.hpp"
#include "runtime/agent_inbox.hpp"
#include "runtime/agent_state.hpp"
#include "runtime/shard_services.hpp"
#include "storage/agent_key.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace hearth::runtime {

class AgentHandles;
class AgentSlot;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
class PacedSteps;

// The parts of a shard that all its slots use. They and this outlive the slots.
struct ShardParts {
  ShardServices& services;  // what live agents use, and the slot too
  Admission& admission;     // its residents: slots in memory
  AgentHandles& handles;
  PacedSteps& steps;
  const bool& stopping;  // the server stops: no agent is woken
  // The slot may be unused. The shard removes it soon if it is still unused then.
  std::function<void(const AgentSlot& slot)> look_at_unused;
  // An agent has left memory.
  std::function<void()> one_left;
  // The agent was condemned, and with it the agents below it: those end soon.
  std::function<void(const storage::AgentKey& key)> end_below;
};

// Threads    The shard's.
// Lifetime   Owned by the slot. It outlives the other parts.
struct AgentPlace {
  const ShardParts& shard;
  ShardServices& services;  // the shard's
  const storage::AgentKey key;
  const std::string segment;        // how the class is named in URLs
  Admission::Applicant& applicant;  // the agent, for Admission
  // As ShardParts.
  const std::function<void()> look_at_unused;
  AgentInbox inbox;
  AgentLife life = {};
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);  // false: the slot is gone

  // A task for the loop: does `what`, if the slot is still there.
  template <class What>
  [[nodiscard]] std::function<void()> task(What what) const {
    return [alive = alive, what = std::move(what)] {
      if (*alive) what();
    };
  }
  [[nodiscard]] SteadyTime now() const { return services.loop.clock().steady_now(); }
  // The version of the agent's code: that of its instance, else the one that is served, or null.
  [[nodiscard]] std::shared_ptr<const ServedClass> served() const {
    const Resident* const resident = life.resident();
    return resident != nullptr ? resident->served : services.classes.find(segment);
  }
  // The client, whose agent has seen CLOSE or never knew it.
  void forget(ConnectionId id) {
    if (LiveAgent* agent = life.live()) agent->calls().forget_connection(id);
    inbox.forget(id);
    look_at_unused();
  }
};

}  // namespace hearth::runtime
