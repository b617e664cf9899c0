#pragma once
// Moves the agents of one shard from one version of their class to another.

#include "runtime/class_registry.hpp"
#include "runtime/paced_steps.hpp"
#include "runtime/shard_answers.hpp"
#include "runtime/types.hpp"
#include "storage/agent_key.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace hearth::runtime {

// A few agents try a version of their class before all others. Each shard takes places for its
// agents when it gets to the trial.
// Threads  Any. Lifetime  Shared by the caller, by tasks posted to the shards, and by agents that
//                         may still try.
struct VersionTrial {
  // `ringing` rings when the trial has less to wait for; null: no ring.
  VersionTrial(unsigned shards, std::size_t at_most, bool when_idle,
               std::shared_ptr<VersionNews> ringing = nullptr)
      : places(at_most), only_idle(when_idle), news(std::move(ringing)), answers(shards, news) {}

  void lose_candidate() {
    --candidates;
    if (news) news->ring();
  }
  // False: no place is left.
  bool take_place() {
    std::size_t left = places.load();
    while (left > 0 && !places.compare_exchange_weak(left, left - 1)) {
    }
    if (left > 0) ++tried;
    return left > 0;
  }

  std::atomic<std::size_t> places;  // places that are left; 0 closes the trial
  std::atomic<std::size_t> tried{0};
  std::atomic<bool> only_idle;             // a busy agent takes a place once it is idle
  std::atomic<std::size_t> candidates{0};  // busy agents that have no place yet
  const std::shared_ptr<VersionNews> news;
  ShardAnswers answers;  // from shards that have looked for agents that may try
};

// An agent, as migration sees it.
class MovingAgent {
 public:
  MovingAgent() = default;
  MovingAgent(const MovingAgent&) = delete;
  MovingAgent& operator=(const MovingAgent&) = delete;

  [[nodiscard]] virtual const storage::AgentKey& key() const = 0;
  // The version of its code; null: the agent is cold.
  [[nodiscard]] virtual const ServedClass* version() const = 0;
  // The agent has to leave its version, for `reason`: before its next event, at leave_here(), or
  // once it has started. With `when_idle`, it leaves at its next idle moment instead of before its
  // next event.
  virtual void must_leave(EvictReason reason, bool when_idle) = 0;
  // The agent leaves now if it must. Called from a task of the loop, with none of the agent's code
  // on the stack. A sudden eviction is over when this returns, except for closing files on another
  // thread: so a caller that paces many evictions knows the cost of each.
  virtual void leave_here() = 0;
  // The agent leaves without EVICT, even while it is starting.
  virtual void leave_suddenly(EvictReason reason) = 0;
  // A live agent leaves and comes back on the version under trial if the trial has a place: now, or
  // when it is idle.
  virtual void may_try(const std::shared_ptr<VersionTrial>& trial) = 0;

 protected:
  ~MovingAgent() = default;
};

// The agents of a shard that are in memory.
class MovingAgents {
 public:
  MovingAgents() = default;
  MovingAgents(const MovingAgents&) = delete;
  MovingAgents& operator=(const MovingAgents&) = delete;

  // Least recently used first.
  [[nodiscard]] virtual std::vector<MovingAgent*> in_memory() const = 0;
  // Null: there is none.
  [[nodiscard]] virtual MovingAgent* find(const storage::AgentKey& key) const = 0;

 protected:
  ~MovingAgents() = default;
};

// Threads    The shard's.
// Lifetime   The steps and the agents outlive it.
class Migration {
 public:
  // `steps`: those of agents that leave and are not urgent, whole versions at a time.
  Migration(MovingAgents& agents, PacedSteps& steps) : agents_(agents), steps_(steps) {}

  // Agents in memory with `version` leave it, for `reason`: each before its next event, and all as
  // soon as the loop has time. With `when_idle` each leaves at its next idle moment. Returns their
  // number.
  std::size_t leave_version(const std::shared_ptr<const ServedClass>& version, EvictReason reason,
                            bool when_idle);
  // Agents with `version` leave it at once and suddenly, even while busy. An EVICT in progress is
  // cut off.
  void expel_version(const ServedClass& version, EvictReason reason);
  // As many live agents as the trial has places for leave now, and are woken at once on the version
  // that serves their class. With trial->only_idle, idle agents do this now, and others when they
  // become idle, while there are places.
  void try_version(const ServedClass& before, const std::shared_ptr<VersionTrial>& trial);

 private:
  [[nodiscard]] std::vector<MovingAgent*> of(const ServedClass& version) const;

  MovingAgents& agents_;
  PacedSteps& steps_;
};

}  // namespace hearth::runtime
