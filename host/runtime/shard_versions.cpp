// Agents move from one version of their code to another.
#include "runtime/shard.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {

std::vector<AgentSlot*> Shard::slots_of(const ServedClass& version) const {
  std::vector<AgentSlot*> found;
  for (AgentSlot* slot : residents()) {
    if (slot->served_.get() == &version) found.push_back(slot);
  }
  return found;
}

std::vector<AgentSlot*> Shard::slots_of(std::string_view segment) const {
  std::vector<AgentSlot*> found;
  for (const auto& [key, slot] : slots_) {
    if (slot->segment() == segment) found.push_back(slot.get());
  }
  return found;
}

std::size_t Shard::leave_version(const std::shared_ptr<const ServedClass>& version,
                                 EvictReason reason, bool when_idle) {
  const std::vector<AgentSlot*> slots = slots_of(*version);
  for (AgentSlot* slot : slots) {
    slot->must_leave(reason, when_idle);
    if (when_idle) continue;
    // By name: the slot may be gone, or have another version, when its turn comes.
    departures_.add([this, version, key = slot->key()] {
      const auto found = slots_.find(key);
      if (found == slots_.end()) return;
      AgentSlot& still = *found->second;
      if (still.served_ == version) still.leave_here();
    });
  }
  return slots.size();
}

void Shard::expel_version(const ServedClass& version, EvictReason reason) {
  for (AgentSlot* slot : slots_of(version)) slot->leave_suddenly(reason);
}

void Shard::try_version(const ServedClass& before, const std::shared_ptr<VersionTrial>& trial) {
  // The most recently used first: they are the ones that somebody would notice.
  const std::vector<AgentSlot*> slots = slots_of(before);
  for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot) {
    if ((*slot)->state() != AgentState::kLive) continue;
    if (trial->places == 0) return;
    (*slot)->may_try(trial);
  }
}

void Shard::trial_is_over(std::string_view segment) {
  for (AgentSlot* slot : slots_of(segment)) slot->trial_is_over();
}

void Shard::class_is_back(std::string_view segment) {
  for (AgentSlot* slot : slots_of(segment)) slot->class_is_back();
  // Alarms found no class, or one on which agents failed: they need not wait for the next look.
  if (const auto served = environment_.classes.find(segment))
    alarms_.hurry(served->agent_class->name());
}

void Shard::class_is_gone(std::string_view segment) {
  for (AgentSlot* slot : slots_of(segment)) slot->class_is_gone();
}

}  // namespace hearth::runtime
