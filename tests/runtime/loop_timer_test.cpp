#include "runtime/loop_timer.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;

class LoopTimerTest : public ::testing::Test {
 protected:
  LoopTimer in(milliseconds wait) {
    return LoopTimer(loop_, loop_.clock().steady_now() + wait, [this] { ++runs_; });
  }

  testing::ManualLoop loop_;
  int runs_ = 0;
};

TEST_F(LoopTimerTest, RunsOnceAtItsTime) {
  LoopTimer timer = in(milliseconds(10));
  loop_.advance(milliseconds(9));
  EXPECT_EQ(runs_, 0);
  loop_.advance(milliseconds(20));
  EXPECT_EQ(runs_, 1);
  timer.cancel();
}

TEST_F(LoopTimerTest, EndsWithItsOwnerAndWhenItIsCancelledOrReplaced) {
  {
    const LoopTimer gone = in(milliseconds(10));
  }
  LoopTimer cancelled = in(milliseconds(10));
  cancelled.cancel();
  LoopTimer replaced = in(milliseconds(10));
  replaced = in(milliseconds(10));
  loop_.advance(milliseconds(20));
  EXPECT_EQ(runs_, 1) << "the one that replaced another";
}

TEST_F(LoopTimerTest, GoesOnWhereItIsMovedTo) {
  std::optional<LoopTimer> first = in(milliseconds(10));
  const LoopTimer second = std::move(*first);
  first.reset();
  loop_.advance(milliseconds(20));
  EXPECT_EQ(runs_, 1);
}

}  // namespace
}  // namespace hearth::runtime
