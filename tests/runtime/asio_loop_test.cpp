#include "runtime/asio_loop.hpp"

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <vector>

namespace {

std::atomic<int> alarms_set{0};

}  // namespace

// In place of the C library's, for this whole program.
extern "C" int timerfd_settime(int descriptor, int flags, const ::itimerspec* value,
                               ::itimerspec* old) {
  ++alarms_set;
  return static_cast<int>(::syscall(SYS_timerfd_settime, descriptor, flags, value, old));
}

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

TEST_F(AsioLoopTest, TheTimersOfATurnShareOneAlarm) {
  loop_.start();
  on_loop([] {});
  const int before = alarms_set;
  std::promise<void> ran;
  on_loop([&] {  // each is due before all others
    for (int i = 100; i > 0; --i) loop_.call_at(clock_.steady_now() + std::chrono::hours(i), [] {});
    loop_.call_at(clock_.steady_now() + milliseconds(1), [&] { ran.set_value(); });
  });
  ASSERT_EQ(ran.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  on_loop([] {});
  EXPECT_LE(alarms_set - before, 2) << "once for the nearest, once for the one after it";
}

TEST_F(AsioLoopTest, WhatIsDueAlreadyNeedsNoAlarm) {
  loop_.start();
  on_loop([] {});
  const int before = alarms_set;
  std::promise<void> ran;
  int left = 1'000;
  std::function<void()> again = [&] {
    if (--left == 0) return ran.set_value();
    loop_.call_at(clock_.steady_now(), again);
  };
  loop_.post(again);
  ASSERT_EQ(ran.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(alarms_set, before);
}

TEST_F(AsioLoopTest, WhatIsAlwaysDueAgainHoldsUpNeitherTasksNorSockets) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  boost::asio::posix::stream_descriptor reader(loop_.context(), ends[0]);
  loop_.start();
  std::promise<void> heard;
  bool over = false;  // only the loop's thread touches it
  int rounds = 0;
  std::function<void()> again = [&] {
    if (!over) loop_.call_at(clock_.steady_now(), again);
    if (++rounds == 100) {
      loop_.post([&] { EXPECT_EQ(::write(ends[1], "x", 1), 1); });
    }
  };
  on_loop([&] {
    reader.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [&](const boost::system::error_code& error) {
                        EXPECT_FALSE(error) << error.message();
                        over = true;
                        heard.set_value();
                      });
    again();
  });
  EXPECT_EQ(heard.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  loop_.stop();
  ::close(ends[1]);
}

TEST_F(AsioLoopTest, MoreTimersThanATurnTakesAllRunInOrder) {
  loop_.start();
  constexpr int kMany = 3 * AsioLoop::kMostPerTurn;
  std::promise<void> ran;
  std::vector<int> order;
  on_loop([&] {
    for (int i = 0; i < kMany; ++i) {
      loop_.call_at(clock_.steady_now(), [&, i] {
        order.push_back(i);
        if (i == kMany - 1) ran.set_value();
      });
    }
  });
  ASSERT_EQ(ran.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(order.size(), kMany);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_F(AsioLoopTest, ATimerThatIsCancelledLeavesTheOthersTheirMoments) {
  loop_.start();
  std::promise<void> ran;
  on_loop([&] {
    const SteadyTime now = clock_.steady_now();
    const TimerId sooner = loop_.call_at(now + milliseconds(1), [] {});
    loop_.call_at(now + milliseconds(20), [&] { ran.set_value(); });
    // In a later turn, when the alarm is set already.
    loop_.post([&, sooner] { loop_.post([&, sooner] { loop_.cancel_timer(sooner); }); });
  });
  EXPECT_EQ(ran.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
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
