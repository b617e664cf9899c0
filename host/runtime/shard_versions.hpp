#pragma once
// What a shard's agents are told of the versions of their classes.

#include "runtime/agent_slots.hpp"
#include "runtime/version_trial.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace hearth::runtime {

// Threads    The shard's.  Lifetime  The constructor arguments outlive it.
class ShardVersions {
 public:
  ShardVersions(const ShardServices& services, AgentSlots& slots, PacedSteps& steps)
      : services_(services), slots_(slots), steps_(steps) {}

  // Agents in memory with `version` leave it, for `reason`: each before its next event, and all as
  // soon as the loop has time. With `when_idle` each leaves at its next idle moment.
  void leave(const std::shared_ptr<const ServedClass>& version, EvictReason reason, bool when_idle);
  // Agents with `version` leave it at once and suddenly, even while busy. An EVICT in progress is
  // cut off.
  void expel(const std::shared_ptr<const ServedClass>& version, EvictReason reason);
  // As many live agents as the trial has places for leave now, and are woken at once on the version
  // that serves their class. With trial->only_idle, idle agents do this now, and others when they
  // become idle, while there are places.
  void begin_trial(const std::shared_ptr<const ServedClass>& before,
                   const std::shared_ptr<VersionTrial>& trial);
  // The trial is decided. If the version under trial still serves the class, events of agents that
  // failed to start on it get the error. Otherwise those agents are woken.
  void trial_is_over(std::string_view segment);
  // Agents that waited for the class go on; or (class_is_gone) their clients are told that the wait
  // is over.
  void class_is_back(std::string_view segment);
  void class_is_gone(std::string_view segment);
  // Closes the clients of the class's agents, and of all agents below those.
  void end_clients(std::string_view agent_class, std::uint16_t code, std::string_view why);

 private:
  [[nodiscard]] std::vector<AgentSlot*> residents_with(const ServedClass& version) const;
  [[nodiscard]] std::vector<AgentSlot*> slots_of(std::string_view segment) const;
  // Looks now at the class's agents that were put off or wait for this version.
  void hurry(std::string_view segment);

  const ShardServices& services_;
  AgentSlots& slots_;
  PacedSteps& steps_;
};

}  // namespace hearth::runtime
