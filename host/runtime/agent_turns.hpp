#pragma once
// Delivers the events of an agent in memory, from START to EVICT, and handles their results.

#include "runtime/agent_exit.hpp"
#include "runtime/agent_place.hpp"
#include "runtime/agent_visits.hpp"
#include "runtime/agent_work.hpp"
#include "runtime/delivery.hpp"

#include <chrono>

namespace hearth::runtime {

// Threads    The shard's. deliver_now() and after_turn() may run plugin code, but do not destroy
//            the live agent.
class AgentTurns {
 public:
  // P7 of AgentSlot.
  static constexpr unsigned kMostAtOnce = 64;
  static constexpr std::chrono::milliseconds kLongestAtOnce{5};

  AgentTurns(AgentPlace& place, AgentVisits& visits, AgentWork& work, AgentExit& exit)
      : place_(place), visits_(visits), work_(work), exit_(exit) {}

  // Delivers the event, unless it has to wait: then the result is false, and nothing is taken.
  bool deliver_now(Event& incoming);
  // As LiveAgent::Parts.
  void after_turn();
  // The agent is used.
  void touch();
  // When an event last came, or a turn of the instance ended.
  [[nodiscard]] SteadyTime last_activity() const { return last_activity_; }

 private:
  [[nodiscard]] Delivery delivery() const;
  bool deliver_next();
  void deliver(OwnedEvent event);
  // This turn of the loop has delivered enough: the other events are delivered in the next one.
  void go_on_later();
  void settle();
  void after_settling();
  void completed(const Completion& completion);
  void migrated(const Completion& completion);
  void started(const Completion& completion);
  void connected(const Completion& completion);
  // Ends the agent; while it starts, its start has failed.
  void end(EvictReason reason, const char* why);
  void start_failed(const Completion& completion, const Error& why);
  // Lends the agent for a checkpoint, and takes it back. Only this agent waits for the device; its
  // slot keeps it meanwhile.
  void checkpoint(LiveAgent& agent);
  void watch_idleness();
  void look_if_idle();

  AgentPlace& place_;
  AgentVisits& visits_;
  AgentWork& work_;
  AgentExit& exit_;
  SteadyTime last_activity_;
};

}  // namespace hearth::runtime
