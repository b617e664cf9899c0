#pragma once
// Timers in due order, without a clock or a thread of their own.

#include "base/clock.hpp"
#include "runtime/shard_loop.hpp"

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace hearth::runtime {

// Threads   None of its own; used by one loop.
class TimerQueue {
 public:
  TimerId add(SteadyTime due, std::function<void()> task);
  void cancel(TimerId timer);

  // When the next timer is due.
  [[nodiscard]] std::optional<SteadyTime> next_due() const;
  // The newest timer that was ever added; 0: none was.
  [[nodiscard]] TimerId last() const { return last_; }

  // Removes the first timer that is due at `now` and returns its task; empty if none is due. It
  // takes one at a time, so that a task may cancel other due timers. A first timer that is newer
  // than `newest` counts as not due: timers that a round of tasks adds wait for the next round.
  std::function<void()> take_due(SteadyTime now,
                                 TimerId newest = std::numeric_limits<TimerId>::max());

 private:
  using Key = std::pair<SteadyTime, TimerId>;  // equal times run in the order added
  std::map<Key, std::function<void()>> tasks_;
  std::unordered_map<TimerId, SteadyTime> due_;
  TimerId last_ = 0;
};

}  // namespace hearth::runtime
