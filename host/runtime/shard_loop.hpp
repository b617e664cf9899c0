#pragma once
// The event loop of one shard, as the runtime needs it: tasks, timers, time. Tests drive one by
// hand.

#include "base/clock.hpp"
#include "base/interface.hpp"
#include "base/turn_end.hpp"

#include <cstdint>
#include <functional>

namespace hearth::runtime {

using TimerId = std::uint64_t;  // 0: none

// Threads    post() and on_this_thread() from any thread, the others on the loop's own.
// Order      Posted tasks run in the order posted, never inside post(). Timers run in the order
//            due.
class ShardLoop : public Interface {
 public:
  virtual void post(std::function<void()> task) = 0;
  // Where output that gathers during a turn of this loop leaves together. The loop's own thread.
  [[nodiscard]] virtual TurnEnd& turn_end() = 0;
  [[nodiscard]] virtual bool on_this_thread() const = 0;

  [[nodiscard]] virtual const Clock& clock() const = 0;
  // Runs `task` once, at `due` or soon after, never inside call_at(). A task that is already due
  // takes turns with posted tasks and sockets.
  virtual TimerId call_at(SteadyTime due, std::function<void()> task) = 0;
  // Does nothing for a timer that has run, was cancelled, or is 0.
  virtual void cancel_timer(TimerId timer) = 0;
};

}  // namespace hearth::runtime
