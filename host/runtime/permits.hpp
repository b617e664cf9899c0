#pragma once
// A bounded number of agents that may do something at once, and the line of those that wait for it.

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
//   recovery   An agent holds one while recovery hooks of it run. A cold agent whose work a crash
//              has interrupted takes one before it is woken: thousands of those at once are what a
//              restart leaves.
//   waking     A cold agent that is due by time takes one before it is woken, and gives it back
//              once it has started and had its first turn of durable work. No hook and no run is
//              waited for.
//
// A live agent's schedules, queue items and settled fibers need neither.
//
// Promises
//  P1 Bounded   At most `limit` permits are out.
//  P2 In turn   Of those that wait the classes take turns, so that thousands of one do not hold up
//               the one of another; those of one class come in the order of their first wait(). One
//               that waits already keeps its place.
//
// Threads    One shard's.
class Permits {
 public:
  explicit Permits(std::size_t limit) : limit_(limit) {}

  // False: all are out.
  bool take();
  // One that take() gave. Asserts that there is one.
  void give_back();

  void wait(const storage::AgentKey& key);
  [[nodiscard]] bool waits(const storage::AgentKey& key) const { return in_line_.contains(key); }
  // The first of those that wait, out of the line; nothing while all permits are out. Does not take
  // one: the agent that stood there may have no use for it any more.
  std::optional<storage::AgentKey> next();

  [[nodiscard]] std::size_t out() const { return out_; }
  [[nodiscard]] std::size_t waiting() const { return in_line_.size(); }

 private:
  const std::size_t limit_;
  std::size_t out_ = 0;
  std::map<std::string, std::deque<storage::AgentKey>> lines_;  // by class; none is empty
  std::string last_class_;                                      // whose turn it was
  std::unordered_set<storage::AgentKey> in_line_;
};

}  // namespace hearth::runtime
