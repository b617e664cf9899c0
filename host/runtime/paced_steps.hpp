#pragma once
// Work of a shard that may wait, done in small steps so that clients hardly notice it.

#include "runtime/shard_loop.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

namespace hearth::runtime {

// Waking an agent that is due, offering an interrupted fiber to its class, and evicting an idle
// agent are such steps: each opens or closes files or commits, and after a restart there are
// thousands of them. What a fiber does after its first wait is its own, and is not paced.
//
// Promises
//  P1 One at a time  Steps run in the order in which they were added, each from the loop. Between
//                    two of them everything else that is ready on the loop runs, so that a call
//                    waits for one step at most.
//  P2 A share        While clients use the shard, and kBusyFor longer, steps have `share` percent
//                    of the loop's time: the rest of it, but at most kMaxPause after one step, is
//                    for what else there is. While no client does, steps follow one another at
//                    once.
//  P3 No limit       of its own: what adds steps is bounded elsewhere (permits).
//
// Threads    The loop's.
// Lifetime   The loop outlives it. Steps that are left when it is destroyed are dropped.
class PacedSteps {
 public:
  static constexpr std::chrono::milliseconds kBusyFor{200};
  static constexpr std::chrono::milliseconds kMaxPause{
      100};  // one slow step must not stop the others for long

  // `share`: 1 to 100.
  PacedSteps(ShardLoop& loop, int share);
  ~PacedSteps() { *alive_ = false; }
  PacedSteps(const PacedSteps&) = delete;
  PacedSteps& operator=(const PacedSteps&) = delete;

  void add(std::function<void()> step);

  // An event of a client came. On the path of every frame: it only counts.
  void client_came() { ++clients_; }

  [[nodiscard]] std::size_t waiting() const { return steps_.size(); }

 private:
  void schedule();
  void run_one();

  ShardLoop& loop_;
  const int share_;
  std::deque<std::function<void()>> steps_;
  bool scheduled_ = false;
  std::uint64_t clients_ = 0;
  std::uint64_t clients_seen_ = 0;
  SteadyTime busy_until_{};
  SteadyTime not_before_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // tasks of the loop check it
};

}  // namespace hearth::runtime
