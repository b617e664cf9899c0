#include "runtime/blocking_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>

namespace hearth::runtime {
namespace {

TEST(BlockingPoolTest, RunsJobsOnSeveralThreadsAtOnce) {
  std::latch both(2);
  std::promise<void> met;
  BlockingPool pool(2, 10);  // ends before what its jobs use
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(pool.run([&](bool) {
      both.arrive_and_wait();  // hangs unless the other job runs at the same time
    }));
  }
  ASSERT_TRUE(pool.run([&](bool cancelled) {
    EXPECT_FALSE(cancelled);
    met.set_value();
  }));
  EXPECT_EQ(met.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST(BlockingPoolTest, RefusesBeyondItsBoundAndCancelsWhatWaitsWhenItStops) {
  std::promise<void> started;
  std::promise<void> release;
  std::atomic<int> cancelled = 0;
  BlockingPool pool(1, 2);
  ASSERT_TRUE(pool.run([&, go = release.get_future().share()](bool) {
    started.set_value();
    go.wait();
  }));
  started.get_future().wait();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(pool.run([&](bool gone) {
      if (gone && ++cancelled == 2) release.set_value();
    }));
  }
  EXPECT_FALSE(pool.run([](bool) { FAIL() << "was refused"; }));
  pool.stop();
  EXPECT_EQ(cancelled, 2);
  EXPECT_FALSE(pool.run([](bool) { FAIL() << "stopped"; }));
}

TEST(BlockingPoolTest, StartsNoThreadWithoutWork) {
  BlockingPool pool(4, 10);
  pool.stop();
  pool.stop();
}

}  // namespace
}  // namespace hearth::runtime
