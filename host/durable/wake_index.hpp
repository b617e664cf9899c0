#pragma once
// When each cold agent of a shard must next be awake: in memory, ordered by time, over the
// directory's table on disk.

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
//  P1 Safe side   The wakes on disk may wake an agent without need, but never miss one: the caller
//                 writes an earlier wake before the agent's commit, and a later one or none after
//                 it.
//  P2 Restart     Agents that were working when the process ended are due at once, as are agents
//                 that wait for another version, which may be there now.
//  P3 Clock       After the wall clock was set back, every agent that must be awake later is due at
//                 once, and corrects its rows.
//
// P3: While the process runs, the caller notices it. load() compares with the last note_time().
// P2: If there are more than kSpreadFrom of them, each is due at a random time within half as many
// milliseconds. So their requests to others do not come all at once, and no name is always last.
//
// Threads    One shard's.  Failure  StorageError from the directory.
class WakeIndex {
 public:
  // `directory` outlives the index.
  explicit WakeIndex(storage::Directory& directory) : directory_(directory) {}

  static constexpr std::size_t kSpreadFrom = 100;

  // Reads the wakes that an earlier process left, for the agents of this shard (`mine`). Once.
  void load(std::int64_t now_ms, const std::function<bool(const storage::AgentKey&)>& mine,
            Random& random);

  // The wake of an agent; none() if the index has none.
  [[nodiscard]] Wake find(const storage::AgentKey& key) const;
  void each(const std::function<void(const storage::AgentKey&, const Wake&)>& see) const {
    for (const auto& [key, known] : wakes_) see(key, known.wake);
  }

  // On disk when it returns. While an agent works, its entry on disk says that it is due at once
  // after a restart. The entry then keeps the earliest moment since the work began: so work that
  // alternates with waits costs no write each time.
  void set(const storage::AgentKey& key, const Wake& wake);

  // In memory only: the agent is gone, and the directory has forgotten its wake already.
  void forget(const storage::AgentKey& key);

  [[nodiscard]] bool is_scheduled(const storage::AgentKey& key) const {
    return moments_.contains(key);
  }
  // In memory only: look at this agent again at `at_ms`, whatever its wake. For wakes that failed,
  // and for agents that were evicted in the middle of their work.
  void look_again(const storage::AgentKey& key, std::int64_t at_ms);

  // The caller is looking at the agent: it is not due again before set() or look_again().
  void taken(const storage::AgentKey& key);

  // In memory only. Makes agents of a class due at `now_ms`: those that must be awake by now and
  // were put off, and those that may wait for another version.
  void hurry(const std::string& agent_class, std::int64_t now_ms);

  // The clock was set back (P3).
  void clock_was_set_back(std::int64_t now_ms);
  // The next load() finds out whether the clock was set back since.
  void note_time(std::int64_t now_ms) { directory_.note_time(now_ms); }

  // An agent that is due at `now_ms`. The classes take turns (see taken()); within a class the
  // agent that has been due longest comes first.
  [[nodiscard]] std::optional<storage::AgentKey> due(std::int64_t now_ms) const;
  // When the next agent is due; nothing: no agent is to be looked at.
  [[nodiscard]] std::optional<std::int64_t> next_ms() const;

  // The number of agents that must be awake at some time.
  [[nodiscard]] std::size_t size() const { return must_wake_; }
  // The number of unknown operations of all agents.
  [[nodiscard]] std::int64_t unknown_operations() const { return unknown_operations_; }

 private:
  struct Known {
    Wake wake;
    std::optional<std::int64_t> at_on_disk;  // the moment of `wake`, or an earlier one
  };
  void schedule(const storage::AgentKey& key, std::optional<std::int64_t> at_ms);
  void count(const Wake& wake, int sign);

  storage::Directory& directory_;
  using InOrder = std::set<std::pair<std::int64_t, std::string>>;  // time and name
  std::map<storage::AgentKey, Known> wakes_;
  std::map<storage::AgentKey, std::int64_t> moments_;  // when to look at the agent
  std::map<std::string, InOrder> in_order_;            // the same, by class; no set is empty
  std::size_t must_wake_ = 0;
  std::int64_t unknown_operations_ = 0;
  std::string last_class_;  // the class that had the last turn
};

}  // namespace hearth::durable
