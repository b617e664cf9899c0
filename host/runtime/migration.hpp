#pragma once
// Agents of one shard move from one version of their class to another.

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

// A few agents try a version of their class before all others do. Places are taken by the shards as
// they come to it.
// Threads  Any. Lifetime  Shared by the caller, by what was posted to the shards, and by agents
//                         that may still try.
struct VersionTrial {
  // `ringing` rings when there is less to wait for; null: nothing does.
  VersionTrial(unsigned shards, std::size_t at_most, bool when_idle,
               std::shared_ptr<VersionNews> ringing = nullptr)
      : places(at_most), only_idle(when_idle), news(std::move(ringing)), answers(shards, news) {}

  void lose_candidate() {
    --candidates;
    if (news) news->ring();
  }
  // False: there is none.
  bool take_place() {
    std::size_t left = places.load();
    while (left > 0 && !places.compare_exchange_weak(left, left - 1)) {
    }
    if (left > 0) ++tried;
    return left > 0;
  }

  std::atomic<std::size_t> places;  // that are left; 0 closes the trial
  std::atomic<std::size_t> tried{0};
  std::atomic<bool> only_idle;             // a busy agent takes a place once it is idle
  std::atomic<std::size_t> candidates{0};  // busy agents that have no place yet
  const std::shared_ptr<VersionNews> news;
  ShardAnswers answers;  // shards that have looked for agents that may try
};

// An agent, as migration sees it.
class MovingAgent {
 public:
  MovingAgent() = default;
  MovingAgent(const MovingAgent&) = delete;
  MovingAgent& operator=(const MovingAgent&) = delete;

  [[nodiscard]] virtual const storage::AgentKey& key() const = 0;
  // The version of its code; null: it is cold.
  [[nodiscard]] virtual const ServedClass* version() const = 0;
  // It is to leave its code, for `reason`: with its next event, when leave_here() is called, or, if
  // it is starting, once it has started. With `when_idle` its next event does not count, but its
  // next idle moment does.
  virtual void must_leave(EvictReason reason, bool when_idle) = 0;
  // It goes now if it must: from a task of the loop's own, with nothing of the agent on the stack.
  // A sudden eviction is over when this returns, but for closing files elsewhere: a caller that
  // paces many of them knows what each costs.
  virtual void leave_here() = 0;
  // It goes with no time for EVICT, also if it is starting.
  virtual void leave_suddenly(EvictReason reason) = 0;
  // A live one leaves and comes back on the version that is on trial, if there is a place: now, or
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
  // `departures`: where agents leave that are not waited for, whole versions at a time.
  Migration(MovingAgents& agents, PacedSteps& departures)
      : agents_(agents), departures_(departures) {}

  // Agents in memory that have `version` leave it, for `reason`: each with its next event, and all
  // of them as soon as the loop has time, or, with `when_idle`, at their next idle moment. How many
  // there are.
  std::size_t leave_version(const std::shared_ptr<const ServedClass>& version, EvictReason reason,
                            bool when_idle);
  // Those that have `version` leave it at once and suddenly, whatever they do: EVICT, if they were
  // asked to leave, is cut off.
  void expel_version(const ServedClass& version, EvictReason reason);
  // As many live ones as the trial has places for leave now, and are woken again at once: they try
  // the version that serves their class now. With trial->only_idle those that are idle do; the
  // others when they become idle, while there are places.
  void try_version(const ServedClass& before, const std::shared_ptr<VersionTrial>& trial);

 private:
  [[nodiscard]] std::vector<MovingAgent*> of(const ServedClass& version) const;

  MovingAgents& agents_;
  PacedSteps& departures_;
};

}  // namespace hearth::runtime
