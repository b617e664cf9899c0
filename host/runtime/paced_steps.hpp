#pragma once
// Work of a shard that may wait. It is done in small steps, so that clients hardly notice it.

#include "runtime/shard_loop.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

namespace hearth::runtime {

// Steps are: waking an agent that is due, offering an interrupted fiber to its class, evicting an
// idle agent, beginning durable work of an agent in memory, and delivering a notification. Each
// opens or closes files or commits, and a restart or a single call may cause thousands of them. A
// fiber's work after its first wait is not paced.
//
// Promises
//  P1 One at a time Steps run in the order added, each from the loop, and between two of them
//                   everything that is ready on the loop runs.
//  P2 A share       While clients use the shard, and for kBusyFor afterwards, steps have `share`
//                   percent of the loop's time.
//  P3 No limit      The number of steps has no limit here: the code that adds steps limits it
//                   (permits).
//
// P1: A call waits for one step at most.
// P2: The pause after one step is at most kMaxPause. While no client uses the shard, steps follow
// one another at once.
//
// Threads    The loop's.
// Lifetime   The loop outlives it. Its destructor drops the steps that are left.
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

  // An event of a client came. Called for every frame, so it only counts.
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
