// A telling is claimed before it begins. If it crashes the process, it is retried after growing
// waits, a limited number of times.
#include "managed_fibers_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace hearth::durable {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class ManagedFibersTellingTest : public ManagedFibersFixture {
 protected:
  ManagedFibersTellingTest() { settle(start("a").fiber, FiberStatus::kCompleted, "1"); }

  // Tells, if there is something to tell, and kills the process. Returns whether it has told.
  bool tell_and_crash() {
    const bool told = managed_->next_untold().has_value();
    database_->commit();
    crash();
    return told;
  }
  std::int64_t wait() { return *managed_->wake().at_ms - unix_millis(clock_.wall_now()); }
};

TEST_F(ManagedFibersTellingTest, P3_AfterOneCrashItIsToldAtOnceAndThenAfterGrowingWaits) {
  EXPECT_TRUE(tell_and_crash());
  EXPECT_TRUE(tell_and_crash()) << "the first may be anybody's fault";
  std::int64_t last = 0;
  for (int i = 0; i < 6; ++i) {
    EXPECT_FALSE(tell_and_crash());
    EXPECT_FALSE(managed_->wake().working);
    EXPECT_GT(wait(), last * 3 / 2);
    last = wait();
    clock_.advance(milliseconds(last));
    EXPECT_TRUE(tell_and_crash());
  }
}

TEST_F(ManagedFibersTellingTest, P3_AfterTooManyCrashesItIsGivenUpAndTheRecordStays) {
  int times = 0;
  for (int i = 0; i < 50; ++i) {
    times += tell_and_crash() ? 1 : 0;
    clock_.advance(hours(1));
  }
  EXPECT_EQ(times, settings_.max_tell_interruptions);
  EXPECT_TRUE(managed_->wake().none());
  EXPECT_EQ(status("a"), "completed");
  clock_.advance(hours(24 * 30));
  EXPECT_FALSE(managed_->sweep()) << "nobody has heard of it: it does not go by itself";
  EXPECT_EQ(*managed_->remove({}), 1U);
}

TEST_F(ManagedFibersTellingTest, WhatIsGivenUpIsNamedOnce) {
  for (int i = 0; i < settings_.max_tell_interruptions; ++i) {
    EXPECT_TRUE(tell_and_crash());
    clock_.advance(hours(1));
  }
  EXPECT_FALSE(managed_->next_untold());
  EXPECT_EQ(managed_->take_given_up().at(0).id, "a");
  EXPECT_TRUE(managed_->take_given_up().empty());
}

TEST_F(ManagedFibersTellingTest, ATellingThatEndsBreaksTheRowOfCrashes) {
  for (int i = 0; i < settings_.max_tell_interruptions * 3; ++i) {
    if (i % 5 == 4) {
      ASSERT_TRUE(managed_->next_untold());
      managed_->told("a", false);
      database_->commit();
      crash();
    } else {
      EXPECT_TRUE(tell_and_crash()) << i;
    }
    clock_.advance(hours(1));
  }
}

TEST_F(ManagedFibersTellingTest, AnInterruptionOnPurposeCountsForNothing) {
  for (int i = 0; i < settings_.max_tell_interruptions * 2; ++i) {
    ASSERT_TRUE(managed_->next_untold()) << i;
    managed_->interrupt_on_purpose();
    database_->commit();
    crash();
  }
  EXPECT_EQ(count("SELECT tell_interruptions FROM cf_agents_fibers"), 0);
}

TEST_F(ManagedFibersTellingTest, AnInterruptionOnPurposeLeavesWhatWasSettledAgainAlone) {
  settle(start("b").fiber, FiberStatus::kCompleted, "1");
  ASSERT_TRUE(managed_->next_untold());
  ASSERT_TRUE(managed_->next_untold());
  ASSERT_EQ(*managed_->remove({}), 2U);
  settle(start("a").fiber, FiberStatus::kError, "no");
  managed_->interrupt_on_purpose();
  database_->commit();
  crash();
  EXPECT_EQ(managed_->next_untold()->status, FiberStatus::kError);
}

}  // namespace
}  // namespace hearth::durable
