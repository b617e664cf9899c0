// The rows of fibers through every state, with restarts in between.
#include "durable/fibers.hpp"

#include "support/manual_clock.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace hearth::durable {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class FibersTest : public ::testing::Test {
 protected:
  FibersTest() { open(); }

  // What a kill of the process leaves: only what was committed.
  void crash() {
    fibers_.reset();
    database_.reset();
    open();
  }
  void open() {
    database_ = std::make_unique<storage::AgentDatabase>(directory_.path() / "a.db",
                                                         storage::AgentKey{"Worker", "a"});
    fibers_.emplace(*database_, clock_, random_, settings_);
    fibers_->load();
  }
  Fibers::Started start(std::string_view name, std::string_view replaces = "") {
    auto started = fibers_->start(name, replaces);
    EXPECT_TRUE(started.has_value());
    database_->commit();
    return *started;
  }
  std::optional<Interrupted> recover() {
    auto found = fibers_->begin_recovery();
    database_->commit();
    return found;
  }

  hearth::testing::TempDirectory directory_;
  hearth::testing::ManualClock clock_;
  hearth::testing::SeededRandom random_{42};
  FiberSettings settings_;
  std::unique_ptr<storage::AgentDatabase> database_;
  std::optional<Fibers> fibers_;
};

TEST_F(FibersTest, P1_AStartedFiberIsARowAndIsOfferedAfterACrash) {
  const auto started = start("research");
  EXPECT_EQ(started.id.size(), 36U);
  EXPECT_FALSE(fibers_->due()) << "it runs here";
  EXPECT_TRUE(fibers_->wake().working);
  crash();
  ASSERT_TRUE(fibers_->due());
  const auto fiber = recover();
  ASSERT_TRUE(fiber);
  EXPECT_EQ(fiber->id, started.id);
  EXPECT_EQ(fiber->name, "research");
  EXPECT_EQ(fiber->snapshot, std::nullopt);
  EXPECT_EQ(fiber->attempt, 1);
  EXPECT_EQ(fiber->created_at_ms, unix_millis(clock_.wall_now()));
}

TEST_F(FibersTest, TheLastCheckpointIsOfferedWhole) {
  const auto started = start("research");
  ASSERT_TRUE(fibers_->stash(started.handle, R"({"step":1})"));
  ASSERT_TRUE(fibers_->stash(started.handle, R"({"step":2})"));
  database_->commit();
  crash();
  EXPECT_EQ(recover()->snapshot, R"({"step":2})");
}

TEST_F(FibersTest, P2_FinishedWorkIsNotOfferedAndUncommittedFinishIs) {
  const auto done = start("done");
  ASSERT_TRUE(fibers_->finish(done.handle));
  database_->commit();
  const auto half = start("half");
  ASSERT_TRUE(fibers_->finish(half.handle));
  crash();  // before the commit of the turn that finished it
  EXPECT_EQ(recover()->name, "half");
  EXPECT_FALSE(recover());
}

TEST_F(FibersTest, P3_AContinuationTakesItsPredecessorsPlaceInOneTransaction) {
  const auto first = start("research");
  ASSERT_TRUE(fibers_->stash(first.handle, "7"));
  database_->commit();
  crash();
  const auto fiber = recover();
  ASSERT_TRUE(fibers_->start("research", fiber->id));
  crash();  // before the commit: the old row is still the only one
  clock_.advance(seconds(10));
  const auto again = recover();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, first.id);
  const auto next = start("research", again->id);
  fibers_->recovered(again->id);  // the hook ends well: nothing is left to remove
  database_->commit();
  crash();
  clock_.advance(seconds(10));
  const auto last = recover();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->id, next.id);
  EXPECT_EQ(last->snapshot, "7") << "the checkpoint was taken over";
  EXPECT_FALSE(recover()) << "one row, not two";
}

TEST_F(FibersTest, P4_AnAttemptCountsAlsoIfTheHookTakesTheProcessWithIt) {
  start("poison");
  for (int attempt = 1; attempt <= 3; ++attempt) {
    crash();
    clock_.advance(seconds(400));
    EXPECT_EQ(recover()->attempt, attempt);
  }
}

TEST_F(FibersTest, AFailedRecoveryWaitsLongerEachTimeAndTheWaitSurvivesARestart) {
  start("poison");
  crash();
  std::int64_t last_wait = 0;
  for (int failures = 1; failures <= 4; ++failures) {
    const auto fiber = recover();
    ASSERT_TRUE(fiber);
    const auto failure = fibers_->failed(fiber->id, "no");
    database_->commit();
    crash();
    EXPECT_FALSE(fibers_->due()) << "the wait is on disk";
    EXPECT_EQ(fibers_->wake().at_ms, failure.next_at_ms);
    const std::int64_t wait = failure.next_at_ms - unix_millis(clock_.wall_now());
    EXPECT_GT(wait, last_wait * 3 / 2);
    last_wait = wait;
    clock_.advance(milliseconds(wait));
    EXPECT_TRUE(fibers_->due());
  }
}

TEST_F(FibersTest, AfterMaxAttemptsAFiberIsDeadUntilItIsRetried) {
  settings_.max_attempts = 3;
  start("poison");
  crash();
  std::string id;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    clock_.advance(seconds(400));
    const auto fiber = recover();
    ASSERT_TRUE(fiber);
    id = fiber->id;
    EXPECT_EQ(fibers_->failed(id, "no").dead, attempt == 3);
    database_->commit();
  }
  crash();
  clock_.advance(std::chrono::hours(24));
  EXPECT_FALSE(fibers_->due());
  EXPECT_TRUE(fibers_->wake().none()) << "a dead fiber wakes nobody";
  EXPECT_EQ(fibers_->counts().dead, 1U);
  EXPECT_FALSE(fibers_->retry("unknown"));
  ASSERT_TRUE(fibers_->retry(id));
  database_->commit();
  EXPECT_EQ(recover()->attempt, 1);
}

TEST_F(FibersTest, AContinuationThatDiesWithoutProgressGoesOnCounting) {
  settings_.max_attempts = 3;
  start("crashes at once");
  for (int attempt = 1; attempt <= 3; ++attempt) {
    crash();
    clock_.advance(seconds(400));
    const auto fiber = recover();
    ASSERT_TRUE(fiber) << attempt;
    EXPECT_EQ(fiber->attempt, attempt);
    start("crashes at once", fiber->id);
  }
  crash();
  clock_.advance(seconds(400));
  EXPECT_EQ(fibers_->take_passed_over(), std::vector<std::string>{});
  EXPECT_FALSE(recover());
  EXPECT_EQ(fibers_->counts().dead, 1U);
  EXPECT_EQ(fibers_->take_passed_over().size(), 1U);
  EXPECT_FALSE(recover());
  EXPECT_EQ(fibers_->take_passed_over(), std::vector<std::string>{}) << "it is told once";
}

TEST_F(FibersTest, InterruptionsOnPurposeDoNotCount) {
  settings_.max_attempts = 3;
  start("one long step");
  for (int restart = 0; restart < 20; ++restart) {
    fibers_->interrupt_on_purpose();
    database_->commit();
    crash();
    const auto fiber = recover();
    ASSERT_TRUE(fiber) << restart << ": at once, and alive";
    EXPECT_EQ(fiber->attempt, 1);
    start("one long step", fiber->id);
  }
}

TEST_F(FibersTest, AClockThatWasAheadPostponesNothingForLong) {
  const WallTime right = clock_.wall_now();
  start("poison");
  crash();
  clock_.set_wall(right + std::chrono::hours(24 * 365));
  const auto fiber = recover();
  ASSERT_TRUE(fiber);
  (void)fibers_->failed(fiber->id, "no");
  database_->commit();
  clock_.set_wall(right);
  crash();
  clock_.advance(seconds(375));
  EXPECT_TRUE(fibers_->due());
}

TEST_F(FibersTest, AShutdownInTheMiddleOfAHookDoesNotCount) {
  start("slow hook");
  for (int restart = 0; restart < 20; ++restart) {
    crash();
    const auto fiber = recover();
    ASSERT_TRUE(fiber) << restart;
    EXPECT_EQ(fiber->attempt, 1);
    fibers_->interrupt_on_purpose();
    database_->commit();
  }
}

TEST_F(FibersTest, OnlyAFiberThatIsBeingRecoveredCanBeReplaced) {
  const auto first = start("work");
  crash();
  EXPECT_EQ(fibers_->start("work", first.id).error().code, Errc::kNotFound) << "not offered yet";
  ASSERT_TRUE(recover());
  (void)fibers_->failed(first.id, "no");
  EXPECT_EQ(fibers_->start("work", first.id).error().code, Errc::kNotFound) << "its hook has ended";
}

TEST_F(FibersTest, ProgressForgetsTheAttempts) {
  start("slow but steady");
  for (int round = 0; round < 20; ++round) {
    crash();
    const auto fiber = recover();
    ASSERT_TRUE(fiber) << round;
    EXPECT_EQ(fiber->attempt, 1);
    const auto next = start("slow but steady", fiber->id);
    ASSERT_TRUE(fibers_->stash(next.handle, std::to_string(round)));
    database_->commit();
  }
}

TEST_F(FibersTest, P5_InterruptedFibersAreOfferedOldestFirst) {
  for (const char* name : {"a", "b", "c"}) {
    start(name);
    clock_.advance(milliseconds(5));
  }
  crash();
  std::string order;
  while (const auto fiber = recover()) {
    order += fiber->name;
    fibers_->recovered(fiber->id);
  }
  EXPECT_EQ(order, "abc");
}

TEST_F(FibersTest, WrongUsesAreRefused) {
  EXPECT_EQ(fibers_->start("", "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(fibers_->start(std::string(257, 'n'), "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(fibers_->start("\xff", "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(fibers_->start("x", "nothing to replace").error().code, Errc::kNotFound);
  const auto fiber = start("x");
  EXPECT_EQ(
      fibers_->stash(fiber.handle, std::string(settings_.max_snapshot_bytes + 1, '1')).error().code,
      Errc::kLimitExceeded);
  ASSERT_TRUE(fibers_->finish(fiber.handle));
  EXPECT_EQ(fibers_->finish(fiber.handle).error().code, Errc::kNotFound);
  EXPECT_EQ(fibers_->stash(fiber.handle, "1").error().code, Errc::kNotFound);
}

TEST_F(FibersTest, AnAgentWithoutFibersHasNoTableAndNeedsNoWake) {
  EXPECT_TRUE(fibers_->wake().none());
  EXPECT_FALSE(fibers_->due());
  EXPECT_FALSE(database_->exists());
}

TEST_F(FibersTest, TooManyAtOnceAreRefused) {
  for (std::size_t i = 0; i < settings_.max_running; ++i) ASSERT_TRUE(fibers_->start("x", ""));
  EXPECT_EQ(fibers_->start("x", "").error().code, Errc::kLimitExceeded);
}

}  // namespace
}  // namespace hearth::durable
