#include "runtime/shard_versions.hpp"

#include "runtime/paced_steps.hpp"
#include "runtime/shard_services.hpp"

namespace hearth::runtime {

std::vector<AgentSlot*> ShardVersions::residents_with(const ServedClass& version) const {
  std::vector<AgentSlot*> found = slots_.residents();
  std::erase_if(found, [&](const AgentSlot* slot) { return slot->life().version() != &version; });
  return found;
}

void ShardVersions::leave(const std::shared_ptr<const ServedClass>& version, EvictReason reason,
                          bool when_idle) {
  for (AgentSlot* const slot : residents_with(*version)) {
    slot->exit().must_leave(reason, when_idle);
    if (when_idle) continue;
    // Found by its key: the agent may be gone, or have another version, when its turn comes.
    steps_.add(StepKind::kDeparture, [this, version, key = slot->key()] {
      AgentSlot* const still = slots_.find(key);
      if (still != nullptr && still->life().version() == version.get()) still->exit().leave_here();
    });
  }
}

void ShardVersions::expel(const std::shared_ptr<const ServedClass>& version, EvictReason reason) {
  for (AgentSlot* const slot : residents_with(*version)) slot->exit().leave_suddenly(reason);
}

void ShardVersions::begin_trial(const std::shared_ptr<const ServedClass>& before,
                                const std::shared_ptr<VersionTrial>& trial) {
  // The most recently used agents first: their clients would notice a failure.
  const std::vector<AgentSlot*> slots = residents_with(*before);
  for (auto slot = slots.rbegin(); slot != slots.rend() && trial->places > 0; ++slot)
    (*slot)->exit().may_try(trial);
}

std::vector<AgentSlot*> ShardVersions::slots_of(std::string_view segment) const {
  return slots_.all([&](const AgentSlot& slot) { return slot.segment() == segment; });
}

void ShardVersions::trial_is_over(std::string_view segment) {
  for (AgentSlot* const slot : slots_of(segment)) slot->entry().trial_is_over();
  hurry(segment);  // agents that wait for this version
}

void ShardVersions::class_is_back(std::string_view segment) {
  for (AgentSlot* const slot : slots_of(segment)) slot->entry().class_is_back();
  // Alarms found no class, or a version on which agents failed: these agents are looked at now.
  hurry(segment);
}

void ShardVersions::hurry(std::string_view segment) {
  if (const auto served = services_.classes.find(segment))
    services_.alarms.hurry(served->agent_class->name());
}

void ShardVersions::class_is_gone(std::string_view segment) {
  for (AgentSlot* const slot : slots_of(segment)) slot->entry().class_is_gone();
}

void ShardVersions::end_clients(std::string_view agent_class, std::uint16_t code,
                                std::string_view why) {
  const auto is_below = [&](const AgentSlot& slot) {
    const storage::AgentKey& key = slot.key();
    return (key.is_sub_agent() ? key.root().agent_class : key.agent_class) == agent_class;
  };
  for (AgentSlot* const slot : slots_.all(is_below)) slot->inbox().end_clients(code, why);
}

}  // namespace hearth::runtime
