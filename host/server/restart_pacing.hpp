#pragma once
// How long a supervisor waits before it restarts a crashed server.

#include <chrono>

namespace hearth::server {

// The first restart is immediate: a rare crash must cost clients as little as possible. After
// further crashes the wait is kFirstWait, and doubles up to kLongestWait: a server that always
// crashes must not keep the machine busy. A server that was up for kCalm begins anew.
//
// A value. Threads  One.
class RestartPacing {
 public:
  static constexpr std::chrono::milliseconds kFirstWait{1'000};
  static constexpr std::chrono::milliseconds kLongestWait{30'000};
  static constexpr std::chrono::milliseconds kCalm{60'000};

  // How long to wait now, after a crash of a server that was up for `uptime`.
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
