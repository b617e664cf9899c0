// How often a fiber is recovered in its whole life.
#include "durable/fibers_fixture.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hearth::durable {
namespace {

using std::chrono::hours;

constexpr std::string_view kTooOften =
    "recovered as often as fibers.max_recoveries allows, and interrupted once more";

class FibersBoundTest : public FibersFixture {
 protected:
  FibersBoundTest() { settings_.max_recoveries = 20; }

  // A fiber begins, and has a checkpoint.
  void begin() { stash(start("m").fiber); }
  // Another one than any before.
  void stash(FiberHandle fiber) { FibersFixture::stash(fiber, std::to_string(++stashed_)); }
  void resume() { stash(FibersFixture::resume("m")); }
  // Recovers by runs that stash and crash, until no recovery is offered; at most `limit`.
  int recoveries(int limit) {
    for (int count = 0; count < limit; ++count) {
      crash();
      if (!recover()) return count;
      resume();
    }
    return limit;
  }

  int stashed_ = 0;
};

TEST_F(FibersBoundTest, P7_CheckpointsThatAlwaysDifferDoNotKeepAFiberAliveForEver) {
  begin();
  EXPECT_EQ(recoveries(100), 20);
  EXPECT_TRUE(has(inspect("m"), {{"dead", true}, {"error", kTooOften}}));
  EXPECT_TRUE(fibers_->wake().none());
  crash();
  EXPECT_FALSE(recover());
}

TEST_F(FibersBoundTest, P7_ARevivedFiberBeginsBothCountsAnew) {
  begin();
  ASSERT_EQ(recoveries(100), 20);
  retry("m");
  EXPECT_EQ(recoveries(100), 20);
}

TEST_F(FibersBoundTest, P7_AThousandRecoveriesAreTheDefaultAndZeroIsNoBound) {
  settings_.max_recoveries = FiberSettings().max_recoveries;
  crash();
  begin();
  EXPECT_EQ(recoveries(30), 30);
  sql("UPDATE cf_agents_jobs SET claims = 990");
  EXPECT_EQ(recoveries(30), 10);
  settings_.max_recoveries = 0;
  retry("m");
  ASSERT_TRUE(recover());
  sql("UPDATE cf_agents_jobs SET claims = 5000");
  clock_.advance(hours(1));
  EXPECT_EQ(recoveries(30), 30);
}

TEST_F(FibersBoundTest, P7_WhatWasInterruptedOnPurposeIsRecoveredForNothing) {
  begin();
  for (int update = 0; update < 30; ++update) {
    leave_on_purpose();
    ASSERT_TRUE(recover()) << update;
    if (update % 2 == 0) {  // in its hook, too
      leave_on_purpose();
      ASSERT_TRUE(recover()) << update;
    }
    resume();
  }
  EXPECT_EQ(recoveries(100), 19) << "the first of its life is counted anyway";
}

TEST_F(FibersBoundTest, P7_WorkThatFailsAndIsTriedAgainIsNoCrash) {
  auto fiber = start({.name = "report", .id = "m", .max_retries = 100}).fiber;
  for (int failure = 0; failure < 100; ++failure) {
    settle(fiber, FiberStatus::kError, "not yet");
    clock_.advance(hours(1));
    ASSERT_TRUE(recover()) << failure;
    fiber = *fibers_->resume("m");
    EXPECT_FALSE(fibers_->recovery().recovered("m", "")) << "its hook has ended";
    database_->commit();
  }
  EXPECT_EQ(status("m"), "running");
}

}  // namespace
}  // namespace hearth::durable
