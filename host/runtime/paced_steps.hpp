#pragma once
// Work of a shard that may wait. It is done in small steps, so that clients hardly notice it.

#include "runtime/shard_loop.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

namespace hearth::runtime {

enum class StepKind : std::uint8_t {
  kWork,       // durable work of an agent in memory begins
  kArrival,    // a notification comes: it ends what others have begun
  kWaking,     // an agent wakes because its time has come
  kDeparture,  // an agent leaves, none of them urgent: whole versions
  kRecovery,   // an interrupted fiber is offered to its class
};

// Each step opens or closes files or commits, and a restart or a single call may cause thousands of
// them. A fiber's work after its first wait is not paced.
//
// Promises
//  P1 One at a time Steps of one kind run in the order added, each from the loop, and between two
//                   of them everything that is ready on the loop runs.
//  P2 A share       While clients use the shard, and for kBusyFor afterwards, the steps of a kind
//                   have kShare percent of the loop's time, or `recovery_share` percent.
//  P3 No limit      The number of steps has no limit here: the code that adds steps limits it
//                   (permits).
//
// P1: A call waits for one step of each kind at most.
// P2: The pause after one step is at most kMaxPause. While no client uses the shard, steps follow
// one another at once.
//
// Threads    The loop's.
// Lifetime   The loop outlives it. Its destructor drops the steps that are left.
class PacedSteps {
 public:
  static constexpr int kShare = 20;
  static constexpr std::chrono::milliseconds kBusyFor{200};
  static constexpr std::chrono::milliseconds kMaxPause{
      100};  // one slow step must not stop the others for long

  // `recovery_share`: 1 to 100.
  PacedSteps(ShardLoop& loop, int recovery_share);
  ~PacedSteps() { *alive_ = false; }
  PacedSteps(const PacedSteps&) = delete;
  PacedSteps& operator=(const PacedSteps&) = delete;

  void add(StepKind kind, std::function<void()> step);

  // An event of a client came. Called for every frame, so it only counts.
  void client_came() { ++clients_; }

  [[nodiscard]] std::size_t waiting() const;

 private:
  struct Line {
    int share = kShare;
    std::deque<std::function<void()>> steps{};
    bool scheduled = false;
    std::uint64_t clients_seen = 0;
    SteadyTime busy_until{};
    SteadyTime not_before{};
  };

  void schedule(Line& line);
  void run_one(Line& line);

  ShardLoop& loop_;
  std::array<Line, 5> lines_;  // by kind
  std::uint64_t clients_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // tasks of the loop check it
};

}  // namespace hearth::runtime
