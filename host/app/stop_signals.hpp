#pragma once
// SIGTERM and SIGINT as something to wait for, SIGPIPE and SIGXFSZ as nothing.

#include <semaphore>
#include <thread>

namespace hearth::app {

// While an object lives, the first SIGTERM or SIGINT releases wait(), and the second ends the process at once
// with the status that shells give for it (128 and the signal's number: 143, 130): whoever sends it has lost
// patience. One that comes with the first is its echo: timeout(1) and some shells signal a process and then its group.
// SIGPIPE and SIGXFSZ do nothing: a peer that went away, and a file past its limit, are errors of a write.
//
// Threads   Make it before any other thread: they inherit the mask that keeps the signals for this object.
//           All members on the thread that made it.
// Lifetime  One at a time. The destructor gives the signals back to the mask that was there before.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Returns the number of the first signal, at once if it has already come. Call it once.
  [[nodiscard]] int wait();

 private:
  void listen();

  std::binary_semaphore came_{0};
  int signal_ = 0;    // set before came_ is released
  int signals_ = -1;  // signalfd
  int end_;           // eventfd: written by the destructor
  std::thread listener_;
};

}  // namespace hearth::app
