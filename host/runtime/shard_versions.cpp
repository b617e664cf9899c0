// How a shard's agents get news of the versions of their classes.
#include "runtime/shard.hpp"

namespace hearth::runtime {

std::vector<AgentSlot*> Shard::residents_with(const ServedClass& version) const {
  std::vector<AgentSlot*> found = residents();
  std::erase_if(found, [&](const AgentSlot* slot) { return slot->life().version() != &version; });
  return found;
}

void Shard::leave_version(const std::shared_ptr<const ServedClass>& version, EvictReason reason,
                          bool when_idle) {
  for (AgentSlot* const slot : residents_with(*version)) {
    slot->exit().must_leave(reason, when_idle);
    if (when_idle) continue;
    // Found by its key: the agent may be gone, or have another version, when its turn comes.
    steps_.add(StepKind::kDeparture, [this, version, key = slot->key()] {
      AgentSlot* const still = find_slot(key);
      if (still != nullptr && still->life().version() == version.get()) still->exit().leave_here();
    });
  }
}

void Shard::expel_version(const ServedClass& version, EvictReason reason) {
  for (AgentSlot* const slot : residents_with(version)) slot->exit().leave_suddenly(reason);
}

void Shard::try_version(const ServedClass& before, const std::shared_ptr<VersionTrial>& trial) {
  // The most recently used agents first: their clients would notice a failure.
  const std::vector<AgentSlot*> slots = residents_with(before);
  for (auto slot = slots.rbegin(); slot != slots.rend() && trial->places > 0; ++slot)
    (*slot)->exit().may_try(trial);
}

std::vector<AgentSlot*> Shard::slots_of(std::string_view segment) const {
  std::vector<AgentSlot*> found;
  for (const auto& [key, slot] : slots_) {
    if (slot->segment() == segment) found.push_back(slot.get());
  }
  return found;
}

void Shard::trial_is_over(std::string_view segment) {
  for (AgentSlot* slot : slots_of(segment)) slot->entry().trial_is_over();
  hurry(segment);  // agents that wait for this version
}

void Shard::class_is_back(std::string_view segment) {
  for (AgentSlot* slot : slots_of(segment)) slot->entry().class_is_back();
  // Alarms found no class, or a version on which agents failed: these agents are looked at now.
  hurry(segment);
}

void Shard::hurry(std::string_view segment) {
  if (const auto served = services_.classes.find(segment))
    alarms_.hurry(served->agent_class->name());
}

void Shard::class_is_gone(std::string_view segment) {
  for (AgentSlot* slot : slots_of(segment)) slot->entry().class_is_gone();
}

void Shard::end_clients(std::string_view agent_class, std::uint16_t code, std::string_view why) {
  std::vector<AgentSlot*> found;
  for (const auto& [key, slot] : slots_) {
    const bool is_root = !key.is_sub_agent();
    if ((is_root ? key.agent_class : key.root().agent_class) == agent_class)
      found.push_back(slot.get());
  }
  for (AgentSlot* slot : found) slot->inbox().end_clients(code, why);
}

}  // namespace hearth::runtime
