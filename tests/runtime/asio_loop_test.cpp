#include "runtime/asio_loop.hpp"

#include <gtest/gtest.h>

#include <future>
#include <string>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;

class AsioLoopTest : public ::testing::Test {
 protected:
  ~AsioLoopTest() override { loop_.stop(); }

  // Runs `task` on the loop and waits for it.
  template <class Task>
  void on_loop(Task task) {
    std::promise<void> done;
    loop_.post([&] {
      task();
      done.set_value();
    });
    ASSERT_EQ(done.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  }

  SystemClock clock_;
  AsioLoop loop_{clock_};
};

TEST_F(AsioLoopTest, RunsPostedTasksInOrderOnItsOwnThread) {
  loop_.start();
  EXPECT_FALSE(loop_.on_this_thread());
  std::string order;
  loop_.post([&] { order += 'a'; });
  loop_.post([&] { order += 'b'; });
  on_loop([&] {
    EXPECT_TRUE(loop_.on_this_thread());
    order += 'c';
  });
  EXPECT_EQ(order, "abc");
}

TEST_F(AsioLoopTest, TimersRunInTheOrderDueAndCancelledOnesDoNot) {
  loop_.start();
  std::promise<std::string> ran;
  std::string order;
  on_loop([&] {
    const SteadyTime now = clock_.steady_now();
    loop_.call_at(now + milliseconds(30), [&] { ran.set_value(order); });
    loop_.call_at(now + milliseconds(20), [&] { order += 'b'; });
    const TimerId gone = loop_.call_at(now + milliseconds(1), [&] { order += '!'; });
    loop_.call_at(now + milliseconds(10), [&] { order += 'a'; });
    loop_.cancel_timer(gone);
  });
  auto result = ran.get_future();
  ASSERT_EQ(result.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(result.get(), "ab");
}

TEST_F(AsioLoopTest, ATimerMaySetAnother) {
  loop_.start();
  std::promise<void> second;
  on_loop([&] {
    loop_.call_at(clock_.steady_now(), [&] {
      loop_.call_at(clock_.steady_now() + milliseconds(1), [&] { second.set_value(); });
    });
  });
  EXPECT_EQ(second.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST_F(AsioLoopTest, WhatIsPostedFromManyThreadsAllRuns) {
  loop_.start();
  int ran = 0;  // only the loop's thread touches it
  std::vector<std::thread> posters;
  for (int i = 0; i < 4; ++i) {
    posters.emplace_back([&] {
      for (int n = 0; n < 1000; ++n) loop_.post([&] { ++ran; });
    });
  }
  for (std::thread& poster : posters) poster.join();
  on_loop([&] { EXPECT_EQ(ran, 4000); });
}

}  // namespace
}  // namespace hearth::runtime
