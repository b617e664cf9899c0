#pragma once
// When an agent in memory does its durable work, and which permits it holds for it.

#include "runtime/agent_place.hpp"
#include "runtime/alarm_clock.hpp"

#include <cstdint>
#include <functional>
#include <utility>

namespace hearth::runtime {

// Each piece of work is a paced step, so that clients' frames and other agents' work come in
// between.
//
// Threads    The shard's.
class AgentWork {
 public:
  // `step`: calls begin_due(), and does what that returns.
  AgentWork(AgentPlace& place, std::function<void()> step)
      : place_(place), step_(std::move(step)) {}

  // Durable work may be due: a step of a live agent looks soon.
  void look();
  enum class Then : std::uint8_t {
    kNothing,
    kSettle,       // storage has failed, and its results are there
    kLeaveIfIdle,  // only another instance can begin the work
  };
  // In a step: begins one thing that is due, and looks again while there is more.
  [[nodiscard]] Then begin_due();
  // Counts a live agent for its version, once that has gone on with the fibers that are due.
  void count_trial();

  // ---- permits: held from the line for room until the agent is gone (permits.hpp) ----
  [[nodiscard]] const HeldPermits& permits() const { return permits_; }
  void take(PermitKind kind) { place_.services.alarms.take(permits_, kind); }
  // An agent that still recovers keeps that permit.
  void give_back();
  // It is the agent's turn to recover. It takes the permit if it can use it.
  void let_recover();

 private:
  AgentPlace& place_;
  const std::function<void()> step_;
  HeldPermits permits_;
};

}  // namespace hearth::runtime
