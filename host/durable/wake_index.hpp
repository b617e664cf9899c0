#pragma once
// When each cold agent of a shard must next be awake: in memory, ordered by time, beside the
// directory's table.

#include "base/random.hpp"
#include "durable/wake.hpp"
#include "storage/agent_key.hpp"
#include "storage/directory.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace hearth::durable {

// Promises
//  P1 Safe side   What is on disk may wake an agent without need, and never misses one: the caller
//                 writes a nearer wake before the agent's commit, and a later one or none after it.
//  P2 Restart     Agents that were working when the process ended are due at once, and so are
//                 those that wait for another version, which may have come. More than
//                 kSpreadFrom of them are due within as many milliseconds, at random: what all of
//                 them ask others for does not come at once, and no name is always the last.
//
// Threads    One shard's.  Failure  StorageError from the directory.
class WakeIndex {
 public:
  // `directory` outlives the index.
  explicit WakeIndex(storage::Directory& directory) : directory_(directory) {}

  static constexpr std::size_t kSpreadFrom = 100;

  // Reads what an earlier process left, for those agents that `mine` says are this shard's. Once.
  void load(std::int64_t now_ms, const std::function<bool(const storage::AgentKey&)>& mine,
            Random& random);

  // What the index says of an agent; none() if nothing.
  [[nodiscard]] Wake find(const storage::AgentKey& key) const;

  // On disk when it returns. While an agent works the disk says that it is due at once after a
  // restart; of its rows' moments the disk then has the earliest since the work began, so that work
  // which takes turns with waits costs no write each time.
  void set(const storage::AgentKey& key, const Wake& wake);

  // In memory only: the agent is gone, and the directory has forgotten its wake already.
  void forget(const storage::AgentKey& key);

  // In memory only: look at this agent again at `at_ms`, whatever the index says. For wakes that
  // failed, and for agents that were evicted in the middle of their work.
  void look_again(const storage::AgentKey& key, std::int64_t at_ms);

  // The agent is being looked at: it is not due again until set() or look_again() says so.
  void taken(const storage::AgentKey& key);

  // In memory only: the agents of a class that must be awake by now and were put off, and those
  // that wait for another version of it, are looked at at `now_ms`.
  void hurry(const std::string& agent_class, std::int64_t now_ms);

  // The clock was set back by `by_ms`: what was to be looked at is looked at so much earlier. In
  // memory only.
  void bring_forward(std::int64_t by_ms);

  // An agent that is due at `now_ms`: the classes take turns (by taken()), and of one class the
  // longest due comes first.
  [[nodiscard]] std::optional<storage::AgentKey> due(std::int64_t now_ms) const;
  // When the next one is due; absent if none is.
  [[nodiscard]] std::optional<std::int64_t> next_ms() const;

  // The agents that must be awake at some time.
  [[nodiscard]] std::size_t size() const { return must_wake_; }
  // The unknown operations of all agents.
  [[nodiscard]] std::int64_t unknown_operations() const { return unknown_operations_; }

 private:
  struct Known {
    Wake wake;
    std::optional<std::int64_t> at_on_disk;  // that of `wake`, or an earlier one
  };
  void schedule(const storage::AgentKey& key, std::optional<std::int64_t> at_ms);
  void count(const Wake& wake, int sign);

  storage::Directory& directory_;
  using InOrder = std::set<std::pair<std::int64_t, std::string>>;  // time and name
  std::map<storage::AgentKey, Known> wakes_;
  std::map<storage::AgentKey, std::int64_t> moments_;  // when to look at the agent
  std::map<std::string, InOrder> in_order_;            // the same, by class and time; none is empty
  std::size_t must_wake_ = 0;
  std::int64_t unknown_operations_ = 0;
  std::string last_class_;  // the one that had its turn
};

}  // namespace hearth::durable
