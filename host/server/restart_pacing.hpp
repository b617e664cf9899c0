#pragma once
// How long a supervisor waits before it starts a server that has crashed once more.

#include <chrono>

namespace hearth::server {

// The first restart is immediate: a crash now and then must cost its clients as little as possible.
// If that did not help, the wait begins with kFirstWait and doubles up to kLongestWait, so that a
// server that cannot live does not keep a machine busy. Who was up for kCalm has recovered, and
// begins anew.
//
// A value. Threads  One.
class RestartPacing {
 public:
  static constexpr std::chrono::milliseconds kFirstWait{1'000};
  static constexpr std::chrono::milliseconds kLongestWait{30'000};
  static constexpr std::chrono::milliseconds kCalm{60'000};

  // It has crashed after it was up for `uptime`: how long to wait now.
  [[nodiscard]] std::chrono::milliseconds wait_after_crash(std::chrono::milliseconds uptime) {
    if (uptime >= kCalm) next_ = std::chrono::milliseconds(0);
    const std::chrono::milliseconds wait = next_;
    next_ = wait.count() == 0 ? kFirstWait : wait * 2;
    if (next_ > kLongestWait) next_ = kLongestWait;
    return wait;
  }

 private:
  std::chrono::milliseconds next_{0};
};

}  // namespace hearth::server
