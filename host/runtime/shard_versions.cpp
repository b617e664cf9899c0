// How a shard's agents get news of the versions of their classes. See migration.hpp.
#include "runtime/shard.hpp"

namespace hearth::runtime {

std::vector<MovingAgent*> Shard::in_memory() const {
  const std::vector<AgentSlot*> slots = residents();
  return {slots.begin(), slots.end()};
}

MovingAgent* Shard::find(const storage::AgentKey& key) const {
  return find_slot(key);
}

std::vector<AgentSlot*> Shard::slots_of(std::string_view segment) const {
  std::vector<AgentSlot*> found;
  for (const auto& [key, slot] : slots_) {
    if (slot->segment() == segment) found.push_back(slot.get());
  }
  return found;
}

void Shard::trial_is_over(std::string_view segment) {
  for (AgentSlot* slot : slots_of(segment)) slot->trial_is_over();
  hurry(segment);  // agents that wait for this version
}

void Shard::class_is_back(std::string_view segment) {
  for (AgentSlot* slot : slots_of(segment)) slot->class_is_back();
  // Alarms found no class, or a version on which agents failed: these agents are looked at now.
  hurry(segment);
}

void Shard::hurry(std::string_view segment) {
  if (const auto served = environment_.classes.find(segment))
    alarms_.hurry(served->agent_class->name());
}

void Shard::class_is_gone(std::string_view segment) {
  for (AgentSlot* slot : slots_of(segment)) slot->class_is_gone();
}

void Shard::end_clients(std::string_view agent_class, std::uint16_t code, std::string_view why) {
  std::vector<AgentSlot*> found;
  for (const auto& [key, slot] : slots_) {
    const bool is_root = !key.is_sub_agent();
    if ((is_root ? key.agent_class : key.root().agent_class) == agent_class)
      found.push_back(slot.get());
  }
  for (AgentSlot* slot : found) slot->end_clients(code, why);
}

}  // namespace hearth::runtime
