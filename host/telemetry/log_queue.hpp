#pragma once
// Writes log lines to a descriptor on a thread of its own: a slow reader does not block the
// callers.

#include "base/logger.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace hearth {

// Promises
//  P1 No waiting   put() waits for no device and no reader: a thread of the queue writes.
//  P2 Honest       A line that finds no room, or that the system refuses, is dropped and counted.
//  P3 Whole        Lines come out in the order of put(), and a line of up to kAtomicWrite bytes
//                  comes out whole although other processes write to the same descriptor.
//  P4 End          The destructor waits at most kLastWait for the lines that are left, and drops
//                  the rest.
//
// P2: the writer puts a report in front of the next line that it can write: how many lines were
// dropped since the last report.
// P4: the destructor then waits 200 ms for the thread of the writer to end. It leaves a thread
// behind that is stuck in a system call.
//
// Bounded    At most kMaxBytes wait.
// Threads    put() and the counts: all. The writer blocks all signals, so a program may make the
//            queue before it blocks its own.
// Forks      A forked child has no writer: put() writes there itself, and waits at most kLastWait.
class LogQueue {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  static constexpr std::chrono::milliseconds kLastWait{500};

  // `report` makes the line that reports dropped lines.
  using Report = std::function<std::string(DroppedLines)>;
  LogQueue(int descriptor, Report report);
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  // `line` ends with a line feed.
  void put(std::string line);

  // Since the queue was made.
  [[nodiscard]] DroppedLines dropped() const;

 private:
  struct State;
  // The writer shares it, and may outlive the queue.
  std::shared_ptr<State> state_;
};

// Waits at most `patience` until all queues of this process have written their lines. For a process
// that is about to end without destructors; a signal handler may call it.
void await_log_written(std::chrono::milliseconds patience) noexcept;

}  // namespace hearth
