// The rows of fibers through every state, with restarts in between.
//
// The behaviours that users of such platforms rely on, by number in the list of acceptance
// behaviours (section 4.2), and the test of each.
//
//   14      P1_AStartedFiberIsARowAndIsOfferedAfterACrash
//   15      TheLastCheckpointIsOfferedWhole
//   16, 19  ARecoveredFiberIsNotOfferedAgain
//   17      P1_AStartedFiberIsARowAndIsOfferedAfterACrash
//   18      P5_InterruptedFibersAreOfferedOldestFirst
//   20      R7_AFailedRecoveryWaitsLongerEachTimeAndTheWaitSurvivesARestart
//   21      ours: a limit of attempts, not of age: fiber_recovery_test.cpp:
//           AHookThatThrowsTooOftenMakesItDead
//   22      nothing external is restored before hooks; they run after the agent has started
//   23, 24  R7_AFailedRecoveryWaitsLongerEachTimeAndTheWaitSurvivesARestart
//   25      ours: each fiber has its own wait, and its own progress: R7_ProgressForgetsTheAttempts
//   26      ARecoveredFiberIsNotOfferedAgain
//   27      every crash() here
//   G1      P2_SettledWorkIsNotOfferedAndAnUncommittedEndIs
//   G3      P4_AnAttemptCountsAlsoIfTheHookTakesTheProcessWithIt
//   G5      P1_AResumedFiberKeepsItsRowAndItsCheckpoint
#include "durable/fibers_fixture.hpp"
#include "support/counted_steps.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace hearth::durable {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class FibersTest : public FibersFixture {
 protected:
  Fibers::Started start_named(std::string_view name) { return start({.name = name}); }
  // The next fiber that is offered. What was given up before it is settled, as DurableWork does.
  std::optional<Interrupted> offer() {
    auto found = fibers_->recovery().begin();
    given_up_ = fibers_->recovery().line().take_given_up();
    database_->commit();
    return found;
  }

  std::vector<GivenUp> given_up_;
};

TEST_F(FibersTest, P1_AStartedFiberIsARowAndIsOfferedAfterACrash) {
  const auto started = start_named("research");
  EXPECT_EQ(started.id.size(), 36U);
  EXPECT_FALSE(fibers_->due()) << "it runs here";
  EXPECT_TRUE(fibers_->wake().working);
  crash();
  ASSERT_TRUE(fibers_->due());
  const Interrupted fiber = offer().value();
  EXPECT_EQ(fiber.id, started.id);
  EXPECT_EQ(fiber.name, "research");
  EXPECT_EQ(fiber.snapshot, std::nullopt);
  EXPECT_EQ(fiber.attempt, 1);
  EXPECT_EQ(fiber.created_at_ms, now());
}

TEST_F(FibersTest, TheLastCheckpointIsOfferedWhole) {
  const auto started = start_named("research");
  ASSERT_TRUE(fibers_->stash(started.fiber, R"({"step":1})"));
  stash(started.fiber, R"({"step":2})");
  crash();
  EXPECT_EQ(offer()->snapshot, R"({"step":2})");
}

TEST_F(FibersTest, ACheckpointRewritesItsDocumentAndNotTheRow) {
  const auto started = start_named("research");
  int rows = 0;
  sqlite3_update_hook(
      &database_->connection(),
      [](void* count, int, const char*, const char*, sqlite3_int64) {
        ++*static_cast<int*>(count);
      },
      &rows);
  ASSERT_TRUE(fibers_->stash(started.fiber, "1"));
  stash(started.fiber, "2");
  EXPECT_EQ(rows, 0);
  ASSERT_TRUE(fibers_->settle(started.fiber, FiberStatus::kCompleted, ""));
  EXPECT_EQ(rows, 2) << "its row, and that of its telling";
  sqlite3_update_hook(&database_->connection(), nullptr, nullptr);
}

TEST_F(FibersTest, P2_SettledWorkIsNotOfferedAndAnUncommittedEndIs) {
  settle(start_named("done").fiber, FiberStatus::kCompleted);
  const auto half = start_named("half");
  ASSERT_TRUE(fibers_->settle(half.fiber, FiberStatus::kCompleted, ""));
  crash();  // before the commit of the turn that settled it
  EXPECT_EQ(offer()->name, "half");
  EXPECT_FALSE(offer());
}

TEST_F(FibersTest, P1_AResumedFiberKeepsItsRowAndItsCheckpoint) {
  const auto first = start_named("research");
  stash(first.fiber, "7");
  crash();
  ASSERT_TRUE(fibers_->resume(offer()->id));
  crash();  // before the commit
  clock_.advance(seconds(10));
  const Interrupted again = offer().value();
  EXPECT_EQ(again.id, first.id);
  resume(again.id);
  crash();
  clock_.advance(seconds(10));
  const Interrupted last = offer().value();
  EXPECT_EQ(last.id, first.id);
  EXPECT_EQ(last.snapshot, "7");
  EXPECT_FALSE(offer()) << "one row, not two";
}

TEST_F(FibersTest, P4_AnAttemptCountsAlsoIfTheHookTakesTheProcessWithIt) {
  start_named("poison");
  for (int attempt = 1; attempt <= 3; ++attempt) {
    crash();
    clock_.advance(seconds(400));
    EXPECT_EQ(offer()->attempt, attempt);
  }
}

TEST_F(FibersTest, R7_AFailedRecoveryWaitsLongerEachTimeAndTheWaitSurvivesARestart) {
  start_named("poison");
  crash();
  std::int64_t last_wait = 0;
  for (int failures = 1; failures <= 4; ++failures) {
    const Interrupted fiber = offer().value();
    EXPECT_EQ(fiber.attempt, failures) << "the count is on disk too";
    const auto failure = fibers_->recovery().failed(fiber.id, "no");
    database_->commit();
    crash();
    EXPECT_FALSE(fibers_->due()) << "the wait is on disk";
    EXPECT_EQ(fibers_->wake().at_ms, failure.next_at_ms);
    const std::int64_t wait = failure.next_at_ms - now();
    EXPECT_GT(wait, last_wait * 3 / 2);
    last_wait = wait;
    clock_.advance(milliseconds(wait));
    EXPECT_TRUE(fibers_->due());
  }
}

TEST_F(FibersTest, AFiberThatDiesWithoutProgressGoesOnCounting) {
  settings_.max_attempts = 3;
  settings_.max_crashes = 0;
  const std::string id = start_named("crashes at once").id;
  crash();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    if (attempt > 1) crash_in_its_code();
    clock_.advance(seconds(400));
    const auto fiber = offer();
    ASSERT_TRUE(fiber) << attempt;
    EXPECT_EQ(fiber->attempt, attempt);
    EXPECT_EQ(given_up_, std::vector<GivenUp>{});
    resume(id);
  }
  crash_in_its_code();
  clock_.advance(seconds(400));
  EXPECT_FALSE(offer());
  ASSERT_EQ(given_up_.size(), 1U);
  EXPECT_EQ(given_up_[0].why, "interrupted again and again without progress");
  EXPECT_TRUE(has(inspect(id), {{"status", "error"}, {"dead", true}}));
  EXPECT_FALSE(offer());
  EXPECT_EQ(given_up_, std::vector<GivenUp>{}) << "it is told once";
}

TEST_F(FibersTest, InterruptionsOnPurposeDoNotCount) {
  settings_.max_attempts = 3;
  const std::string id = start_named("one long step").id;
  for (int restart = 0; restart < 20; ++restart) {
    leave_on_purpose();
    const auto fiber = offer();
    ASSERT_TRUE(fiber) << restart << ": at once, and alive";
    EXPECT_EQ(fiber->attempt, 1);
    if (restart % 2 == 0) resume(id);  // otherwise its hook runs
  }
}

TEST_F(FibersTest, AWaitKeepsItsLengthIfTheClockWasAheadWhenItBegan) {
  const WallTime right = clock_.wall_now();
  const std::string id = start_named("poison").id;
  crash();
  clock_.set_wall(right + std::chrono::hours(24 * 365));
  ASSERT_TRUE(offer());
  hook_fails(id, "no");
  const std::int64_t wait = *fibers_->wake().at_ms - now();
  clock_.set_wall(right);
  crash();
  EXPECT_EQ(fibers_->wake().at_ms, unix_millis(right) + wait);
}

TEST_F(FibersTest, AWaitKeepsItsLengthWhenTheClockIsSetBackWhileItLasts) {
  start_named("poison");
  crash();
  const Interrupted fiber = offer().value();
  const auto failure = fibers_->recovery().failed(fiber.id, "no");
  const std::int64_t wait = failure.next_at_ms - now();
  clock_.set_wall(clock_.wall_now() - std::chrono::hours(1));
  EXPECT_FALSE(fibers_->due());
  EXPECT_LE(*fibers_->wake().at_ms, now() + wait + 2'000);
  clock_.advance(milliseconds(wait));
  EXPECT_TRUE(fibers_->due());
}

TEST_F(FibersTest, OnlyAFiberThatIsBeingRecoveredCanBeResumed) {
  const std::string id = start_named("work").id;
  crash();
  EXPECT_EQ(fibers_->resume(id).error().code, Errc::kNotFound) << "not offered yet";
  ASSERT_TRUE(offer());
  hook_fails(id, "no");
  EXPECT_EQ(fibers_->resume(id).error().code, Errc::kNotFound) << "its hook has ended";
}

TEST_F(FibersTest, OnlyADeadFiberIsRevived) {
  const std::string id = start_named("work").id;
  EXPECT_EQ(fibers_->records().retry(id).error().code, Errc::kNotFound) << "it runs";
  crash();
  EXPECT_EQ(fibers_->records().retry(id).error().code, Errc::kNotFound) << "it waits";
  ASSERT_TRUE(offer());
  EXPECT_EQ(fibers_->records().retry(id).error().code, Errc::kNotFound) << "it is being offered";
  EXPECT_FALSE(offer());
}

TEST_F(FibersTest, R7_ProgressForgetsTheAttempts) {
  const std::string id = start_named("slow but steady").id;
  for (int round = 0; round < 20; ++round) {
    crash();
    const auto fiber = offer();
    ASSERT_TRUE(fiber) << round;
    EXPECT_EQ(fiber->attempt, 1);
    stash(resume(id), std::to_string(round));
  }
}

TEST_F(FibersTest, TheSameCheckpointAgainIsNoProgress) {
  const auto first = start_named("stands still");
  stash(first.fiber, R"({"step":1})");
  int offered = 0;
  for (; offered < 1'000; ++offered) {
    crash();
    clock_.advance(std::chrono::hours(1));  // longer than any wait
    const auto fiber = offer();
    if (!fiber) break;
    EXPECT_EQ(fiber->attempt, offered + 1);
    stash(resume(first.id), R"({"step":1})");
  }
  EXPECT_EQ(offered, kMostInterruptions);
}

TEST_F(FibersTest, P5_InterruptedFibersAreOfferedOldestFirst) {
  for (const char* name : {"a", "b", "c"}) {
    start_named(name);
    clock_.advance(milliseconds(5));
  }
  crash();
  std::string order;
  while (const auto fiber = offer()) {
    order += fiber->name;
    recovered(fiber->id);
  }
  EXPECT_EQ(order, "abc");
}

TEST_F(FibersTest, ARecoveredFiberIsNotOfferedAgain) {
  start_named("a");
  crash();
  recovered(offer()->id);
  EXPECT_FALSE(offer());
  EXPECT_TRUE(fibers_->wake().none());
  crash();
  EXPECT_FALSE(offer());
  EXPECT_TRUE(fibers_->wake().none());
}

TEST_F(FibersTest, TheDueOnesAreListedWithoutBeingOffered) {
  const auto old = start_named("old");
  clock_.advance(milliseconds(5));
  start_named("young");
  clock_.advance(milliseconds(5));
  const auto waits = start_named("waits");
  crash();
  ASSERT_TRUE(offer());
  ASSERT_TRUE(offer());
  ASSERT_TRUE(offer());
  hook_fails(old.id, "no");
  clock_.advance(milliseconds(300));  // more than the random part of a wait
  hook_fails(waits.id, "no");
  EXPECT_TRUE(fibers_->recovery().due_list().empty()) << "one has a hook, the others wait";
  clock_.advance(seconds(2));
  const auto due = fibers_->recovery().due_list();
  ASSERT_EQ(due.size(), 2U);
  EXPECT_EQ(due[0].name, "old");
  EXPECT_EQ(due[0].attempt, 2);
  EXPECT_EQ(due[1].name, "waits");
  EXPECT_EQ(offer()->attempt, 2) << "listing counts for nothing";
}

TEST_F(FibersTest, P5_APlanSaysWhoComesFirstAndTheOthersFollowOldestFirst) {
  std::vector<std::string> ids;
  for (const char* name : {"a", "b", "c", "d"}) {
    ids.push_back(start_named(name).id);
    clock_.advance(milliseconds(5));
  }
  crash();
  const std::vector<std::string> order{ids[2], "unknown", ids[1], ids[2]};
  fibers_->recovery().plan(order);
  EXPECT_EQ(fibers_->recovery().due_list().front().name, "c");
  std::string offered;
  while (const auto fiber = offer()) offered += fiber->name;
  EXPECT_EQ(offered, "cbad");
}

TEST_F(FibersTest, P6_AFiberIsNotOfferedWhileAHookIsToDecideAboutIt) {
  start({.name = "report", .id = "x", .max_retries = 1});
  crash();
  ASSERT_TRUE(offer());
  EXPECT_FALSE(fibers_->due());
  EXPECT_FALSE(offer());
  EXPECT_TRUE(fibers_->wake().working);
  const auto fiber = fibers_->resume("x").value();
  settle(fiber, FiberStatus::kError, "once more");
  clock_.advance(seconds(2));
  EXPECT_TRUE(fibers_->due()) << "though the hook that went on with it may not have ended";
  EXPECT_EQ(offer()->attempt, 1);
}

// What an agent does at each wake and in each turn, in instructions of the database.
TEST_F(FibersTest, TensOfThousandsOfDeadFibersCostALiveOneNothing) {
  const std::string interrupted = start_named("interrupted").id;
  const auto effort = [&] {
    crash();
    const hearth::testing::CountedSteps steps(*database_);
    fibers_.emplace(*database_, clock_, random_, settings_);
    fibers_->load();
    EXPECT_TRUE(fibers_->due());
    EXPECT_EQ(fibers_->recovery().due_list().size(), 1U);
    EXPECT_EQ(fibers_->recovery().next_due_id(), interrupted);
    return steps.count();
  };
  const auto alone = effort();
  sql("INSERT INTO cf_agents_jobs(kind, state, id, name, created_at, next_at, attempts, dead, "
      "ended_at, status, type) "
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 30000) "
      "SELECT 2, 3, 'dead ' || i, 'x', i, 0, 10, 1, i, 'error', 'kept' FROM n");
  EXPECT_LE(effort(), alone + 20) << "a jump more here and there";
  const hearth::testing::CountedSteps steps(*database_);
  EXPECT_EQ(ids(listed({.after = "dead 15000", .limit = 1, .dead = true})), "dead 14999 ");
  EXPECT_TRUE(fibers_->records().retry("dead 20000"));
  EXPECT_LT(steps.count(), 2'000U)
      << "a page, and one of them, are found without a look at the others";
}

TEST_F(FibersTest, WrongUsesAreRefused) {
  const std::string too_long(257, 'n');
  for (const std::string_view name :
       {std::string_view(), std::string_view(too_long), std::string_view("\xff")})
    EXPECT_EQ(refusal({.name = name}), Errc::kInvalidArgument);
  const FiberHandle fiber = start_named("x").fiber;
  const std::string large(settings_.max_snapshot_bytes + 1, '1');
  EXPECT_EQ(fibers_->stash(fiber, large).error().code, Errc::kLimitExceeded);
  settle(fiber, FiberStatus::kCompleted);
  EXPECT_EQ(fibers_->stash(fiber, "1").error().code, Errc::kNotFound);
}

TEST_F(FibersTest, AnAgentWithoutFibersHasNoTableAndNeedsNoWake) {
  EXPECT_TRUE(fibers_->wake().none());
  EXPECT_FALSE(fibers_->due());
  EXPECT_FALSE(database_->exists());
}

}  // namespace
}  // namespace hearth::durable
