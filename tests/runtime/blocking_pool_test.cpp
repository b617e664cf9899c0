#include "runtime/blocking_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <iterator>
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

class HangingOwner {
 public:
  // Jobs that hang until let_go(). The pool stops before the object goes.
  HangingOwner(BlockingPool& pool, std::size_t jobs) {
    for (std::size_t i = 0; i < jobs; ++i) {
      const bool accepted = pool.run(
          [this](bool) {
            ++begun_;
            begun_.notify_all();
            go_.wait();
          },
          "Hangs");
      if (accepted) ++accepted_;
    }
  }
  void let_go() { release_.set_value(); }
  void wait_until_begun(int jobs) const {
    for (int now = begun_; now < jobs; now = begun_) begun_.wait(now);
  }
  [[nodiscard]] int begun() const { return begun_; }
  [[nodiscard]] int accepted() const { return accepted_; }

 private:
  std::promise<void> release_;
  const std::shared_future<void> go_ = release_.get_future().share();
  std::atomic<int> begun_ = 0;
  int accepted_ = 0;
};

TEST(BlockingPoolTest, P2_AnOwnerWhoseJobsHangLeavesAThreadToOthers) {
  std::promise<void> served;
  std::atomic<int> others = 0;
  BlockingPool pool(3, 100);
  HangingOwner hanging(pool, 10);
  hanging.wait_until_begun(2);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(pool.run(
        [&](bool) {
          if (++others == 20) served.set_value();
        },
        "Other"));
  }
  EXPECT_EQ(served.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(hanging.begun(), 2);
  hanging.let_go();
  pool.stop();
}

TEST(BlockingPoolTest, P2_AnOwnerWhoseJobsHangLeavesPlacesToOthers) {
  BlockingPool pool(2, 8);
  HangingOwner hanging(pool, 20);
  EXPECT_LE(hanging.accepted(), 7) << "one runs, and six of the eight places are its";
  EXPECT_GE(hanging.accepted(), 6);
  EXPECT_TRUE(pool.run([](bool) {}, "Other"));
  hanging.let_go();
  pool.stop();
}

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(BlockingPoolTest, StartsNoThreadWithoutWork) {
  const auto before = threads_of_this_process();
  BlockingPool pool(4, 10);
  EXPECT_LE(threads_of_this_process(), before) << "a thread of an earlier test may end meanwhile";
  pool.stop();
}

}  // namespace
}  // namespace hearth::runtime
