#pragma once
// A timer of a loop, cancelled when its owner destroys it.

#include "runtime/shard_loop.hpp"

#include <functional>
#include <utility>

namespace hearth::runtime {

// Threads    The loop's.
// Lifetime   The loop outlives it. A destroyed timer does not fire any more.
class LoopTimer {
 public:
  LoopTimer() = default;
  LoopTimer(ShardLoop& loop, SteadyTime due, std::function<void()> task)
      : loop_(&loop), timer_(loop.call_at(due, std::move(task))) {}
  ~LoopTimer() { cancel(); }
  LoopTimer(LoopTimer&& other) noexcept
      : loop_(other.loop_), timer_(std::exchange(other.timer_, 0)) {}
  LoopTimer& operator=(LoopTimer&& other) noexcept {
    if (this == &other) return *this;
    cancel();
    loop_ = other.loop_;
    timer_ = std::exchange(other.timer_, 0);
    return *this;
  }
  LoopTimer(const LoopTimer&) = delete;
  LoopTimer& operator=(const LoopTimer&) = delete;

  // Does nothing if the timer has run.
  void cancel() {
    if (timer_ != 0) loop_->cancel_timer(std::exchange(timer_, 0));
  }

 private:
  ShardLoop* loop_ = nullptr;
  TimerId timer_ = 0;
};

}  // namespace hearth::runtime
