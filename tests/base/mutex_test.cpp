#include "base/mutex.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

// tests/lint/thread_safety.py tests that clang refuses access to a guarded member without its
// mutex.
namespace hearth {
namespace {

class Ticket {
 public:
  void give() {
    const MutexLock lock(mutex_);
    ++tickets_;
    came_.notify_one();
  }
  void take() {
    const MutexLock lock(mutex_);
    while (tickets_ == 0) came_.wait(mutex_);
    --tickets_;
  }
  bool comes_within(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    const MutexLock lock(mutex_);
    while (tickets_ == 0) {
      if (!came_.wait_until(mutex_, end)) return tickets_ > 0;
    }
    return true;
  }

 private:
  Mutex mutex_;
  Condition came_;
  int tickets_ GUARDED_BY(mutex_) = 0;
};

TEST(MutexTest, WhoWaitsLetsOthersInAndHearsOfThem) {
  Ticket there;
  Ticket back;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) {
      there.take();
      back.give();
    }
  });
  for (int i = 0; i < 1000; ++i) {
    there.give();
    back.take();
  }
  other.join();
}

TEST(MutexTest, AWaitEndsWhenItsTimeIsOver) {
  Ticket ticket;
  EXPECT_FALSE(ticket.comes_within(std::chrono::milliseconds(1)));
  ticket.give();
  EXPECT_TRUE(ticket.comes_within(std::chrono::milliseconds(0)));
}

}  // namespace
}  // namespace hearth
