#pragma once
// The handles by which plugins and other threads name an agent in memory.

#include "base/slot_map.hpp"
#include "runtime/types.hpp"

namespace hearth::runtime {

class AgentSlot;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

// Promises  A handle names one stay in memory: after remove() it never finds anything again.
// Threads   The shard's; shard_of() any.
class AgentHandles {
 public:
  explicit AgentHandles(unsigned shard) : shard_(shard) {}

  [[nodiscard]] AgentHandle add(AgentSlot& slot) {
    const auto [id, place] = slots_.emplace(&slot);
    return AgentHandle{shard_} << kShardAt | id;
  }
  void remove(AgentHandle handle) { slots_.erase(handle & kPlace); }
  // Null: the agent is gone.
  [[nodiscard]] AgentSlot* find(AgentHandle handle) {
    AgentSlot* const* slot = slots_.find(handle & kPlace);
    return slot == nullptr ? nullptr : *slot;
  }

  [[nodiscard]] static unsigned shard_of(AgentHandle handle) {
    return static_cast<unsigned>(handle >> kShardAt);
  }

 private:
  static constexpr unsigned kShardAt = 56;
  static constexpr AgentHandle kPlace = (AgentHandle{1} << kShardAt) - 1;

  const unsigned shard_;
  SlotMap<AgentSlot*> slots_;
};

}  // namespace hearth::runtime
