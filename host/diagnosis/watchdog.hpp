#pragma once
// Finds calls into libraries that take too long, and ends the process for one that does not return.

#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "diagnosis/call_records.hpp"
#include "diagnosis/call_stack.hpp"
#include "telemetry/metrics.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace hearth::diagnosis {

struct HangLimits {
  std::chrono::milliseconds soft{1'000};   // 0: none
  std::chrono::milliseconds hard{60'000};  // 0: none
};

// Judges the calls that run now. A slow call blocks its shard. Jobs ("offload") block no shard, may
// take any time, and are ignored.
//
// past soft    logs agent.call_slow once, with the stack of the call, and counts the call in
//              hearth_slow_calls_total{class}
// past hard    calls `give_up`, which need not return
//
// Time       A call's time is the sum of the times between looks, each counted as kMaxStep at most:
//            a process that a debugger or the system stopped was not slow.
// Threads    One.
class SlowCalls {
 public:
  static constexpr std::chrono::milliseconds kMaxStep{1'000};
  using GiveUp = std::function<void(const RunningCall&, const std::string& stack)>;

  // The functions that a call is in, innermost first; empty: unknown.
  using StackOf = std::function<std::string(const RunningCall&)>;

  SlowCalls(HangLimits limits, Logger& logger, Metrics& metrics, GiveUp give_up,
            StackOf stack_of = {});

  // `now`: from a monotonic clock.
  void look(std::chrono::nanoseconds now);

 private:
  // A call that was there at the last look.
  struct Seen {
    std::uint64_t thread = 0;
    std::uint64_t number = 0;
    std::chrono::nanoseconds time{0};
    bool is_told = false;
  };

  void judge(const RunningCall& call, Seen& seen);
  void tell(const RunningCall& call, const Seen& seen);
  [[nodiscard]] std::string stack_text_of(const RunningCall& call) const;
  Counter& counter(const std::string& agent_class);

  const HangLimits limits_;
  Logger& logger_;
  Metrics& metrics_;
  const GiveUp give_up_;
  const StackOf stack_of_;
  std::chrono::nanoseconds last_look_{0};
  std::vector<Seen> seen_;  // as many as threads are in calls
  std::map<std::string, Counter*> counters_;
};

// Calls SlowCalls::look() every kPeriod, on a thread of its own.
//   Lifetime  The arguments outlive it.
class Watchdog {
 public:
  static constexpr std::chrono::milliseconds kPeriod{100};

  Watchdog(HangLimits limits, Logger& logger, Metrics& metrics, SlowCalls::GiveUp give_up);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // As SlowCalls::StackOf. Any thread.
  [[nodiscard]] std::string stack_of(const RunningCall& call);

 private:
  void watch();

  CallStacks stacks_;
  SlowCalls calls_;  // used by the thread
  Mutex mutex_;
  Condition over_;
  bool is_over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// `inner+0x8 (room.so+0x11f8) < outer+0x1c (room.so+0x12f4)`: the stack of a call on one line.
[[nodiscard]] std::string stack_text(const std::vector<std::uintptr_t>& frames);

}  // namespace hearth::diagnosis
