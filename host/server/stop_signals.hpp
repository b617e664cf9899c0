#pragma once
// Waiting for SIGTERM, SIGINT and SIGHUP. SIGPIPE and SIGXFSZ are ignored.

#include <atomic>
#include <chrono>
#include <optional>
#include <semaphore>
#include <thread>

namespace hearth::server {

// While an object lives:
//
//   SIGTERM, SIGINT     The first one releases wait(). A second one ends the process at once with
//                       128 plus the signal's number (143, 130), as shells report it. A second one
//                       within kEcho is ignored: timeout(1) and some shells signal a process and
//                       then its group.
//   SIGHUP              Asks the server to look at its libraries again. If the terminal was closed,
//                       it ends the server like SIGTERM, unless the process was started with SIGHUP
//                       ignored, as by nohup(1).
//   SIGPIPE, SIGXFSZ    Do nothing: the write returns the error (the peer is gone, the file is past
//                       its limit).
//
// Threads   Make it before any other thread: threads inherit the mask that keeps the signals for
//           this object. All members on the thread that made it.
// Lifetime  One at a time. The destructor unblocks the signals.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Returns SIGHUP once for each SIGHUP. Otherwise returns the number of the signal that ends the
  // server, at once if it has come already; do not call it again after that.
  [[nodiscard]] int wait();
  // The same; absent if no signal comes in that time.
  [[nodiscard]] std::optional<int> wait_for(std::chrono::milliseconds time);
  // Whether the signal that ends the server has come.
  [[nodiscard]] bool is_over() const { return signal_ != 0; }

 private:
  void listen();
  [[nodiscard]] int taken() const;

  std::counting_semaphore<> came_{0};
  std::atomic<int> signal_ = 0;  // the signal that ends the server; set before came_ is released
  const bool had_terminal_;      // the server ends when this terminal is closed
  int signals_ = -1;             // signalfd
  int end_;                      // eventfd: written by the destructor
  std::thread listener_;
};

}  // namespace hearth::server
