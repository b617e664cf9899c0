#pragma once
// The map of a shard's agents.

#include "runtime/agent_handles.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/loop_timer.hpp"
#include "storage/agent_key.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hearth::runtime {

// An agent gets its slot when something first asks for it, and keeps it until it is unused.
//
// Threads    The shard's.
// Lifetime   The constructor arguments outlive it. Tasks that run after the shard do nothing.
class AgentSlots {
 public:
  // `shard` numbers the handles.
  AgentSlots(unsigned shard, ShardServices& services, Admission& admission, PacedSteps& steps);

  // The agent's slot, made if there is none.
  AgentSlot& at(const storage::AgentKey& key, std::string_view segment);
  // Null: it has none.
  [[nodiscard]] AgentSlot* find(const storage::AgentKey& key) const;
  // Null: the agent is gone, or not live yet.
  [[nodiscard]] LiveAgent* find(AgentHandle handle);
  [[nodiscard]] bool is_in_memory(const storage::AgentKey& key) const;
  // The slot may be unused. It is removed soon if it still is then.
  void look_at_unused(const AgentSlot& slot);

  // Those that fit, in no order.
  [[nodiscard]] std::vector<AgentSlot*> all(
      const std::function<bool(const AgentSlot& slot)>& fits = {}) const;
  // Those in memory, least recently used first.
  [[nodiscard]] std::vector<AgentSlot*> residents() const;
  [[nodiscard]] std::size_t size() const { return slots_.size(); }

  // The condemned agent ends soon.
  void end_condemned(const storage::AgentKey& key);
  // All condemned agents below this one do.
  void end_below(const storage::AgentKey& above);
  // Once: refuses new work, lets running events finish until `deadline`, evicts every agent, then
  // calls `done`.
  void stop(SteadyTime deadline, std::function<void()> done);

 private:
  void one_left();

  const unsigned shard_;
  AgentHandles handles_;
  bool stopping_ = false;
  LoopTimer stop_timer_;
  std::function<void()> stopped_;  // set between stop() and its answer
  const ShardParts parts_;
  std::unordered_map<storage::AgentKey, std::unique_ptr<AgentSlot>> slots_;
};

}  // namespace hearth::runtime
