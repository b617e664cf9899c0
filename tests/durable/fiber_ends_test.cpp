// A telling is claimed before it begins. If the process ends meanwhile, it is told again, a limited
// number of times.
#include "fibers_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace hearth::durable {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class FibersTellingTest : public FibersFixture {
 protected:
  FibersTellingTest() { settle(start("a").fiber, FiberStatus::kCompleted, "1"); }

  // Tells, if there is something to tell, and kills the process. Returns whether it has told.
  bool tell_and_crash() {
    const bool told = fibers_->ends().next_untold().has_value();
    database_->commit();
    crash();
    return told;
  }
};

TEST_F(FibersTellingTest, P3_AfterTooManyCrashesItIsGivenUpAndTheRecordStays) {
  int times = 0;
  for (int i = 0; i < kMostInterruptions + 5; ++i) {
    times += tell_and_crash() ? 1 : 0;
    clock_.advance(hours(1));
  }
  EXPECT_EQ(times, kMostInterruptions);
  EXPECT_TRUE(fibers_->ends().tellings().wake().none());
  EXPECT_EQ(status("a"), "completed");
  clock_.advance(hours(24 * 30));
  EXPECT_FALSE(fibers_->ends().sweep()) << "nobody has heard of it: it does not go by itself";
  EXPECT_EQ(*fibers_->records().remove({}), 1U);
}

TEST_F(FibersTellingTest, ATellingThatEndsBreaksTheRowOfCrashes) {
  for (int i = 0; i < kMostInterruptions * 2; ++i) {
    if (i % 5 == 4) {
      ASSERT_TRUE(fibers_->ends().next_untold());
      fibers_->ends().told("a", false);
      database_->commit();
      crash();
    } else {
      EXPECT_TRUE(tell_and_crash()) << i;
    }
    clock_.advance(hours(1));
  }
}

TEST_F(FibersTellingTest, AnInterruptionOnPurposeLeavesWhatWasSettledAgainAlone) {
  settle(start("b").fiber, FiberStatus::kCompleted, "1");
  ASSERT_TRUE(fibers_->ends().next_untold());
  ASSERT_TRUE(fibers_->ends().next_untold());
  ASSERT_EQ(*fibers_->records().remove({}), 2U);
  settle(start("a").fiber, FiberStatus::kError, "no");
  fibers_->ends().tellings().interrupt_on_purpose();
  database_->commit();
  crash();
  EXPECT_EQ(fibers_->ends().next_untold()->status, FiberStatus::kError);
}

}  // namespace
}  // namespace hearth::durable
