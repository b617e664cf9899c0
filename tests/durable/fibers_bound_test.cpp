// How often a fiber is recovered in its whole life, and how long a dead fiber stays.
#include "durable/managed_fibers_fixture.hpp"
#include "support/counted_steps.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kTooOften =
    "recovered as often as fibers.max_recoveries allows, and interrupted once more";

class FibersBoundTest : public ManagedFibersFixture {
 protected:
  FibersBoundTest() { fiber_settings_.max_recoveries = 20; }

  // A fiber begins, and has a checkpoint.
  Fibers::Started begin(std::string_view replaces = "") {
    auto started = fibers_->start("work", replaces);
    EXPECT_TRUE(started.has_value());
    stash(started->handle);
    return *started;
  }
  // Another one than any before.
  void stash(FiberHandle fiber) {
    EXPECT_TRUE(fibers_->stash(fiber, std::to_string(++stashed_)));
    database_->commit();
  }
  std::optional<Interrupted> offer() {
    auto found = fibers_->begin_recovery();
    database_->commit();
    return found;
  }
  // Recovers by continuations that stash and crash, until no recovery is offered; at most `limit`.
  int recoveries(int limit) {
    for (int count = 0; count < limit; ++count) {
      crash();
      const auto fiber = offer();
      if (!fiber) return count;
      begin(fiber->id);
    }
    return limit;
  }
  void leave_on_purpose() {
    fibers_->interrupt_on_purpose();
    database_->commit();
    crash();
  }
  std::string die() {
    begin();
    crash();
    const std::string id = offer()->id;
    EXPECT_TRUE(fibers_->failed(id, "no").dead);
    database_->commit();
    return id;
  }
  std::vector<std::string> sweep() {
    auto ids = fibers_->sweep();
    database_->commit();
    return ids;
  }

  int stashed_ = 0;
};

// ---- recoveries in all --------------------------------------------------------------------------

TEST_F(FibersBoundTest, P7_CheckpointsThatAlwaysDifferDoNotKeepAFiberAliveForEver) {
  begin();
  EXPECT_EQ(recoveries(100), 20);
  const auto passed_over = fibers_->take_given_up();
  ASSERT_EQ(passed_over.size(), 1U);
  EXPECT_EQ(passed_over[0].why, kTooOften);
  EXPECT_EQ(fibers_->last_error(passed_over[0].id), kTooOften);
  EXPECT_NE(fibers_->list_dead("", 0)->find(passed_over[0].id), std::string::npos);
  EXPECT_EQ(fibers_->counts().dead, 1U);
  EXPECT_TRUE(fibers_->wake().none());
  crash();
  EXPECT_FALSE(offer());
}

TEST_F(FibersBoundTest, P7_ARetryBeginsBothCountsAnew) {
  begin();
  ASSERT_EQ(recoveries(100), 20);
  ASSERT_TRUE(fibers_->retry(fibers_->take_given_up().at(0).id));
  database_->commit();
  EXPECT_EQ(recoveries(100), 20);
}

TEST_F(FibersBoundTest, P7_WhatIsResumedUnderItsIdIsBoundedAsWell) {
  auto fiber = start("m").fiber;
  int count = 0;
  for (; count < 100; ++count) {
    stash(fiber);
    crash();
    if (!recover()) break;
    fiber = *managed_->resume("m");
    database_->commit();
  }
  EXPECT_EQ(count, 20);
  EXPECT_EQ(inspect("m")["dead"], true);
  ASSERT_TRUE(managed_->retry("m"));
  database_->commit();
  EXPECT_TRUE(recover());
}

TEST_F(FibersBoundTest, P7_AThousandRecoveriesAreTheDefaultAndZeroIsNoBound) {
  fiber_settings_.max_recoveries = FiberSettings().max_recoveries;
  crash();
  begin();
  EXPECT_EQ(recoveries(30), 30);
  sql("UPDATE cf_agents_jobs SET claims = 990");
  EXPECT_EQ(recoveries(30), 10);
  fiber_settings_.max_recoveries = 0;
  ASSERT_TRUE(fibers_->retry(fibers_->take_given_up().at(0).id));
  database_->commit();
  ASSERT_TRUE(offer());
  sql("UPDATE cf_agents_jobs SET claims = 5000");
  clock_.advance(hours(1));
  EXPECT_EQ(recoveries(30), 30);
}

TEST_F(FibersBoundTest, P7_WhatWasInterruptedOnPurposeIsRecoveredForNothing) {
  begin();
  for (int update = 0; update < 30; ++update) {
    leave_on_purpose();
    auto fiber = offer();
    ASSERT_TRUE(fiber) << update;
    if (update % 2 == 0) {  // in its hook, too
      leave_on_purpose();
      fiber = offer();
      ASSERT_TRUE(fiber) << update;
    }
    begin(fiber->id);
  }
  EXPECT_EQ(recoveries(100), 19) << "the first of its life is counted anyway";
}

TEST_F(FibersBoundTest, P7_WorkThatFailsAndIsTriedAgainIsNoCrash) {
  ManagedRequest wanted = request("m");
  wanted.max_retries = 100;
  auto fiber = start(wanted).fiber;
  for (int failure = 0; failure < 100; ++failure) {
    settle(fiber, FiberStatus::kError, "not yet");
    clock_.advance(hours(1));
    ASSERT_TRUE(recover()) << failure;
    fiber = *managed_->resume("m");
    EXPECT_FALSE(managed_->recovered("m", "")) << "its hook has ended";
    database_->commit();
  }
  EXPECT_EQ(status("m"), "running");
}

// ---- how long dead ones stay --------------------------------------------------------------------

TEST_F(FibersBoundTest, DeadFibersGoWhenTheyHaveHadTheirTime) {
  fiber_settings_.max_attempts = 1;
  crash();
  const std::string first = die();
  clock_.advance(hours(24));
  const std::string second = die();
  EXPECT_TRUE(sweep().empty());
  clock_.advance(hours(24 * 6) - milliseconds(1));
  EXPECT_TRUE(sweep().empty());
  clock_.advance(milliseconds(1));
  crash();  // it is found by another instance as well
  ASSERT_TRUE(fibers_->may_have_dead());
  EXPECT_EQ(sweep(), std::vector<std::string>{first});
  EXPECT_TRUE(sweep().empty());
  EXPECT_EQ(fibers_->retry(first).error().code, Errc::kNotFound);
  clock_.advance(hours(24));
  EXPECT_EQ(sweep(), std::vector<std::string>{second});
  EXPECT_FALSE(fibers_->may_have_dead());
  EXPECT_EQ(fibers_->counts().dead, 0U);
}

TEST_F(FibersBoundTest, TheTimeOfADeadFiberBeginsWithItsDeath) {
  fiber_settings_.max_attempts = 1;
  begin();
  crash();
  ASSERT_TRUE(offer());
  crash();  // the attempt took the process with it
  clock_.advance(hours(24 * 30));
  EXPECT_FALSE(offer());
  ASSERT_EQ(fibers_->take_given_up().size(), 1U);
  clock_.advance(hours(24 * 7) - milliseconds(1));
  EXPECT_TRUE(sweep().empty());
  clock_.advance(milliseconds(1));
  EXPECT_EQ(sweep().size(), 1U);
}

TEST_F(FibersBoundTest, ARetriedFiberIsSparedHoweverLongItWasDead) {
  fiber_settings_.max_attempts = 1;
  crash();
  const std::string id = die();
  clock_.advance(hours(24 * 30));
  ASSERT_TRUE(fibers_->retry(id));
  database_->commit();
  EXPECT_TRUE(sweep().empty());
  EXPECT_EQ(offer()->id, id);
}

TEST_F(FibersBoundTest, NothingIsKeptIfThatIsHowLong) {
  fiber_settings_.max_attempts = 1;
  fiber_settings_.keep_dead = milliseconds(0);
  crash();
  const std::string id = die();
  EXPECT_EQ(sweep(), std::vector<std::string>{id});
}

TEST_F(FibersBoundTest, WhoHasNoDeadFibersIsNotSearchedForThem) {
  EXPECT_FALSE(fibers_->may_have_dead());
  begin();
  const hearth::testing::CountedSteps steps(*database_);
  EXPECT_TRUE(sweep().empty());
  EXPECT_EQ(steps.count(), 0U);
}

// ---- databases of before ------------------------------------------------------------------------

TEST_F(FibersBoundTest, ADatabaseOfAnEarlierVersionGoesOn) {
  sql("CREATE TABLE cf_agents_runs(id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, snapshot "
      "TEXT, created_at INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT "
      "NULL DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0, last_error TEXT) WITHOUT ROWID");
  sql("INSERT INTO cf_agents_runs VALUES('alive', 'work', '0', 10, 2, 30, 0, NULL)");
  sql("INSERT INTO cf_agents_runs VALUES('dead', 'work', '0', 10, 9, 30, 1, 'no')");
  sql("UPDATE cf_agents_meta SET value = 1 WHERE key = 'schema'");
  crash();
  database_->commit();
  const auto fiber = offer();
  ASSERT_TRUE(fiber);
  EXPECT_EQ(fiber->id, "alive");
  EXPECT_EQ(fiber->attempt, 3);
  begin(fiber->id);
  EXPECT_EQ(recoveries(100), 19);
  EXPECT_TRUE(sweep().empty()) << "its week begins when it is first seen";
  clock_.advance(hours(24 * 7));
  EXPECT_EQ(sweep().size(), 2U);
  EXPECT_EQ(fibers_->counts().dead, 0U);
}

}  // namespace
}  // namespace hearth::durable
