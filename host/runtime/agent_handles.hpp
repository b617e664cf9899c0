#pragma once
// The handles by which plugins and other threads name an agent in memory.

#include "base/slot_map.hpp"
#include "runtime/types.hpp"

namespace hearth::runtime {

class AgentLife;

// Promises  A handle names one stay in memory: after remove() it never finds anything again.
// Threads   The shard's; shard_of() any.
class AgentHandles {
 public:
  explicit AgentHandles(unsigned shard) : shard_(shard) {}

  [[nodiscard]] AgentHandle add(const AgentLife& agent) {
    const auto [id, place] = agents_.emplace(&agent);
    return AgentHandle{shard_} << kShardAt | id;
  }
  void remove(AgentHandle handle) { agents_.erase(handle & kPlace); }
  // Null: the agent is gone.
  [[nodiscard]] const AgentLife* find(AgentHandle handle) {
    const AgentLife* const* agent = agents_.find(handle & kPlace);
    return agent == nullptr ? nullptr : *agent;
  }

  [[nodiscard]] static unsigned shard_of(AgentHandle handle) {
    return static_cast<unsigned>(handle >> kShardAt);
  }

 private:
  static constexpr unsigned kShardAt = 56;
  static constexpr AgentHandle kPlace = (AgentHandle{1} << kShardAt) - 1;

  const unsigned shard_;
  SlotMap<const AgentLife*> agents_;
};

}  // namespace hearth::runtime
