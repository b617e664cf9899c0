#pragma once
// Lines on their way to a descriptor that may not take them.

#include "base/logger.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace hearth {

// Promises
//  P1 No waiting   put() waits for no device and no reader. A thread of the queue's own writes.
//  P2 Honest       A line that finds no room, or that the system refuses, is dropped and counted.
//                  The next line that can be written comes behind a report of how many were
//                  dropped since the last one.
//  P3 Whole        Lines come out in the order of put(). A line of up to kAtomicWrite bytes comes
//                  out whole, though other
//                   processes write to the same descriptor.
//  P4 End          The destructor waits at most kLastWait for what is left to be written; the rest
//                  is lost. So it does for a writer that is stuck in the system, which then is left
//                  behind.
// Bounded    At most kMaxBytes wait.
// Threads    put() and the counts: all. The writer takes no signals, so it may be made before a
//            program blocks its own.
// Forks      In a forked child there is no writer: put() writes by itself, and waits for kLastWait
//            at most.
class LogQueue {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  static constexpr std::chrono::milliseconds kLastWait{500};

  // `report` makes the line that tells of dropped lines.
  using Report = std::function<std::string(DroppedLines)>;
  LogQueue(int descriptor, Report report);
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  // `line` ends with a line feed.
  void put(std::string line);

  // Since the beginning.
  [[nodiscard]] DroppedLines dropped() const;

 private:
  struct State;
  // Shared with the writer, which may outlive the queue.
  std::shared_ptr<State> state_;
};

// Waits until the lines that wait in this process are written, at most `patience`. For a process
// that is about to end without destructors, also from a signal handler.
void await_log_written(std::chrono::milliseconds patience) noexcept;

}  // namespace hearth
