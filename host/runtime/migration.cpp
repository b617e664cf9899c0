#include "runtime/migration.hpp"

namespace hearth::runtime {

std::vector<MovingAgent*> Migration::of(const ServedClass& version) const {
  std::vector<MovingAgent*> found;
  for (MovingAgent* agent : agents_.in_memory()) {
    if (agent->version() == &version) found.push_back(agent);
  }
  return found;
}

std::size_t Migration::leave_version(const std::shared_ptr<const ServedClass>& version,
                                     EvictReason reason, bool when_idle) {
  const std::vector<MovingAgent*> agents = of(*version);
  for (MovingAgent* agent : agents) {
    agent->must_leave(reason, when_idle);
    if (when_idle) continue;
    // Found by its key: the agent may be gone, or have another version, when its turn comes.
    steps_.add(StepKind::kDeparture, [this, version, key = agent->key()] {
      MovingAgent* const still = agents_.find(key);
      if (still != nullptr && still->version() == version.get()) still->leave_here();
    });
  }
  return agents.size();
}

void Migration::expel_version(const ServedClass& version, EvictReason reason) {
  for (MovingAgent* agent : of(version)) agent->leave_suddenly(reason);
}

void Migration::try_version(const ServedClass& before, const std::shared_ptr<VersionTrial>& trial) {
  // The most recently used agents first: their clients would notice a failure.
  const std::vector<MovingAgent*> agents = of(before);
  for (auto agent = agents.rbegin(); agent != agents.rend() && trial->places > 0; ++agent)
    (*agent)->may_try(trial);
}

}  // namespace hearth::runtime
