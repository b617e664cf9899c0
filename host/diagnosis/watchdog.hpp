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

// What to say and do about the calls that run now. A call stands still while its shard does: that
// is what is wrong with one that takes long, while jobs ("offload") may take as long as they like,
// and are left alone.
//
// past soft    agent.call_slow is logged, once, with the stack of the call, and
//              hearth_slow_calls_total{class} counts it
// past hard    `give_up` is called, which need not return
//
// A call's time is what passed between looks, at most kMaxStep of each: a process that was stopped,
// by a debugger or by the system, was not slow.
//
// Threads    One.
class SlowCalls {
 public:
  static constexpr std::chrono::milliseconds kMaxStep{1'000};
  using GiveUp = std::function<void(const RunningCall&, const std::string& stack)>;

  // In which functions a call is, innermost first; empty: unknown.
  using StackOf = std::function<std::string(const RunningCall&)>;

  SlowCalls(HangLimits limits, Logger& logger, Metrics& metrics, GiveUp give_up,
            StackOf stack_of = {});

  // `now`: of a clock that only goes forward.
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

// Looks every kPeriod, on a thread of its own.
//   Lifetime  All that it is given outlives it.
class Watchdog {
 public:
  static constexpr std::chrono::milliseconds kPeriod{100};

  Watchdog(HangLimits limits, Logger& logger, Metrics& metrics, SlowCalls::GiveUp give_up);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();

  CallStacks stacks_;  // the thread's
  SlowCalls calls_;    // the thread's
  Mutex mutex_;
  Condition over_;
  bool is_over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// `inner+0x8 (room.so+0x11f8) < outer+0x1c (room.so+0x12f4)`: the stack of a call in a line.
[[nodiscard]] std::string stack_text(const std::vector<std::uintptr_t>& frames);

}  // namespace hearth::diagnosis
