#pragma once
// SIGTERM, SIGINT and SIGHUP as something to wait for, SIGPIPE and SIGXFSZ as nothing.

#include <atomic>
#include <chrono>
#include <optional>
#include <semaphore>
#include <thread>

namespace hearth::server {

// While an object lives, the first SIGTERM or SIGINT releases wait(), and the second ends the
// process at once with the status that shells give for it (128 and the signal's number: 143, 130):
// whoever sends it has lost patience. One that comes with the first is its echo: timeout(1) and
// some shells signal a process and then its group. SIGHUP asks the server to look at its libraries
// again; but one that comes because the terminal was closed ends it like SIGTERM, unless the
// process was started with SIGHUP ignored, as nohup(1) does.
// SIGPIPE and SIGXFSZ do nothing: a peer that went away, and a file past its limit, are errors of a
// write.
//
// Threads   Make it before any other thread: they inherit the mask that keeps the signals for this
//           object. All members on the thread that made it.
// Lifetime  One at a time. The destructor gives the signals back to the mask that was there before.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Returns SIGHUP for each of those that came, and else the number of the signal that ends the
  // server, at once if it has already come; then call it no more.
  [[nodiscard]] int wait();
  // The same; nothing if none comes in that time.
  [[nodiscard]] std::optional<int> wait_for(std::chrono::milliseconds time);
  // Whether the signal that ends the server has come.
  [[nodiscard]] bool is_over() const { return signal_ != 0; }

 private:
  void listen();
  [[nodiscard]] int taken() const;

  std::counting_semaphore<> came_{0};
  std::atomic<int> signal_ = 0;  // the one that ends the server; set before came_ is released
  const bool had_terminal_;      // and should end with it
  int signals_ = -1;             // signalfd
  int end_;                      // eventfd: written by the destructor
  std::thread listener_;
};

}  // namespace hearth::server
