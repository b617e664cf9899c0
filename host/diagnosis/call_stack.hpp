#pragma once
// Captures the stack of another thread of this process that is in a call into a library.
//
// How     CallStacks sends the thread a signal. The handler walks its own stack with the unwinder
//         of the C++ runtime, which needs no frame pointers: libraries are built without them. The
//         handler takes no lock and no memory. Since glibc 2.35 the unwinder finds its tables
//         through _dl_find_object(), which is async-signal-safe. The unwinder's one-time work is
//         done in advance.
// Danger  An overwritten stack can lead the unwinder to unmapped memory. That fault is no crash:
//         the crash handler calls leave_stack_walk() first, which gives the walk up. The jump is
//         safe, because it leaves only the unwinder.
// Effect  As with any signal, a system call in which the thread waits may return EINTR to the
//         library (nanosleep and poll do, others are restarted: signal(7)). That is why the
//         watchdog captures a call only once, when the call already takes too long; and so is a
//         call for which an administrator asks while it holds an event loop up.

#include "base/mutex.hpp"
#include "diagnosis/call_records.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <signal.h>

namespace hearth::diagnosis {

// Asks threads for their stacks.
//
// State      The handler belongs to the process. If several objects exist, the first one works and
//            capture() of the others returns nothing.
// Threads    Made and destroyed on one thread; capture() from any.
class CallStacks {
 public:
  static constexpr std::size_t kMaxFrames = 32;
  static constexpr std::chrono::milliseconds kPatience{50};  // until a thread has answered

  CallStacks();
  ~CallStacks();
  CallStacks(const CallStacks&) = delete;
  CallStacks& operator=(const CallStacks&) = delete;

  // Addresses in the functions that the call is in, innermost first, at most kMaxFrames. Empty:
  // the call has returned, or a debugger is attached (it would stop at the signal), or the thread
  // does not answer within twice kPatience (it blocks signals, or waits in the kernel).
  [[nodiscard]] std::vector<std::uintptr_t> capture(const RunningCall& call);

 private:
  const bool is_first_;
  const int signal_;
  struct sigaction before_{};
  Mutex asking_;  // there is one question at a time
};

// For the handler of a fault. If this thread is walking its stack, jumps back there and does not
// return. Returns for a signal that another process or thread sent (kill).
//   Safety    Async-signal-safe.
void leave_stack_walk(const siginfo_t& fault) noexcept;

}  // namespace hearth::diagnosis
