#pragma once
// Where a call into a library stands right now: the stack of another thread of this process.
//
// How     The thread is sent a signal, and its handler walks its own stack with the unwinder of the
//         C++ runtime, which needs no frame pointers: libraries are built without. Nothing that is
//         done there takes a lock or memory: since glibc 2.35 the unwinder finds its tables through
//         _dl_find_object(), which is made for signal handlers, and what it does once is done in
//         advance.
// Danger  A stack that was overwritten can lead the unwinder to memory that is not there. That
//         fault is no crash: who handles crashes asks leave_stack_walk() first, which gives the
//         walk up. Nothing is lost by that jump, since it leaves only the unwinder.
// Effect  As with any signal, a system call in which the thread waits may return EINTR to the
//         library (nanosleep and poll do, others are restarted: signal(7)). That is why nobody is
//         asked but once, when it has taken too long already.

#include "diagnosis/call_records.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <signal.h>

namespace hearth::diagnosis {

// Asks threads for their stacks.
//
// State      The handler is the process's. Of several objects at a time the first one asks, and the
//            others are told nothing.
// Threads    Made and destroyed on one; capture() on one at a time.
class CallStacks {
 public:
  static constexpr std::size_t kMaxFrames = 32;
  static constexpr std::chrono::milliseconds kPatience{50};  // until a thread has answered

  CallStacks();
  ~CallStacks();
  CallStacks(const CallStacks&) = delete;
  CallStacks& operator=(const CallStacks&) = delete;

  // Addresses in the functions that the call is in, innermost first, at most kMaxFrames. Empty: the
  // call has returned, the thread does not answer within twice kPatience (it blocks signals, or the
  // kernel holds it), or a debugger is attached, which would stop at the signal.
  [[nodiscard]] std::vector<std::uintptr_t> capture(const RunningCall& call);

 private:
  const bool is_first_;
  const int signal_;
  struct sigaction before_{};
};

// For the handler of a fault: if this thread is walking its stack, goes back there and does not
// return. A signal that somebody else has sent meanwhile (kill) is not the walk's: it returns.
//   Safety    Async-signal-safe.
void leave_stack_walk(const siginfo_t& fault) noexcept;

}  // namespace hearth::diagnosis
