#pragma once
// A bounded number of agents that may do something at once, and the line of agents that wait for
// it.

#include "storage/agent_key.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>

namespace hearth::runtime {

// A shard has two of these, so that a slow hook of one agent never delays another agent's schedule:
//
//   recovery   An agent holds one while its recovery hooks run. A cold agent whose work a crash has
//              interrupted takes one before it is woken: a restart may leave thousands of them.
//   waking     A cold agent that is due by time takes one before it is woken. It returns the permit
//              after its start and its first turn of durable work, without waiting for a hook or a
//              run.
//
// A live agent's schedules, queue items and settled fibers need neither.
//
// Promises
//  P1 Bounded  At most `limit` permits are out.
//  P2 In turn  Classes take turns, and the agents of one class are served in the order of their
//              first wait().
//
// P2: So thousands of agents of one class do not delay an agent of another. An agent that waits
// already keeps its place.
//
// Threads    One shard's.
class Permits {
 public:
  explicit Permits(std::size_t limit) : limit_(limit) {}

  // False: all permits are out.
  bool take();
  // Returns a permit from take(). Asserts that one is out.
  void give_back();

  void wait(const storage::AgentKey& key);
  [[nodiscard]] bool waits(const storage::AgentKey& key) const { return in_line_.contains(key); }
  // Removes the first waiting agent from the line and returns it; nothing while all permits are
  // out. Does not take a permit: the agent may have no use for it any more.
  std::optional<storage::AgentKey> next();

  [[nodiscard]] std::size_t out() const { return out_; }
  [[nodiscard]] std::size_t waiting() const { return in_line_.size(); }

 private:
  const std::size_t limit_;
  std::size_t out_ = 0;
  std::map<std::string, std::deque<storage::AgentKey>> lines_;  // by class; no line is empty
  std::string last_class_;                                      // the class that had its turn last
  std::unordered_set<storage::AgentKey> in_line_;
};

}  // namespace hearth::runtime
