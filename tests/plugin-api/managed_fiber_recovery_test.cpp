// Managed fibers on the mock host that were interrupted.

#include "managed_fiber_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <string>

namespace managed_fiber_tests {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class ManagedFiberRecoveryTest : public ManagedFiberFixture {};

// ---- recovery -----------------------------------------------------------------------------------

TEST_F(ManagedFiberRecoveryTest, AnInterruptedFiberIsOfferedWithItsRecord) {
  const std::string id = interrupt_and_wake({.key = "k", .input = "in", .metadata = "meta"});
  ASSERT_EQ(offered.size(), 1U);
  EXPECT_EQ(offered[0].id, id);
  EXPECT_EQ(offered[0].reason, "interrupted");
  EXPECT_EQ(offered[0].snapshot, 1);
  EXPECT_EQ(offered[0].record->status, FiberStatus::kRecovering);
  EXPECT_EQ(offered[0].key, "k");
  EXPECT_EQ(offered[0].input, "in");
  EXPECT_EQ(offered[0].metadata, "meta");
}

TEST_F(ManagedFiberRecoveryTest, AContinuationKeepsTheIdAndTheCheckpoint) {
  const std::string id = interrupt_and_wake();
  EXPECT_EQ(record(id, {"status", "snapshot"}), Json({"running", 1}));
  host_.advance(milliseconds(20));
  EXPECT_EQ(inspect(id)->result.at("id"), id);
  EXPECT_EQ(done, Lines({"step 1", "asked for 1", "step 2", "step 3"}));
}

TEST_F(ManagedFiberRecoveryTest, AKillInsideTheHookOffersItAgain) {
  how = "slow";
  const std::string id = interrupt_and_wake();
  agent_.kill();
  EXPECT_EQ(inspect(id)->status, FiberStatus::kRecovering);
  host_.advance(minutes(1));
  EXPECT_EQ(offered.size(), 2U);
  EXPECT_EQ(offered[1].attempt, 2);
  EXPECT_EQ(inspect(id)->status, FiberStatus::kCompleted);
}

TEST_F(ManagedFiberRecoveryTest, NobodyGoesOnMeansInterruptedUntilItIsResolved) {
  how = "let go";
  const std::string id = interrupt_and_wake();
  EXPECT_EQ(record(id, {"status", "snapshot"}), Json({"interrupted", 1}));
  EXPECT_EQ(manager().delete_fibers(), 0U);
  FiberOutcome outcome = FiberOutcome::completed(5);
  outcome.metadata = "by hand";
  EXPECT_TRUE(manager().resolve_fiber(id, outcome));
  EXPECT_FALSE(manager().resolve_fiber(id, outcome));
  EXPECT_EQ(record(id, {"status", "result", "metadata"}), Json({"completed", 5, "by hand"}));
  EXPECT_EQ(manager().delete_fibers(), 1U);
}

TEST_F(ManagedFiberRecoveryTest, TheHooksOutcomeIsTheRecords) {
  how = "failed";
  const std::string id = interrupt_and_wake();
  EXPECT_EQ(record(id, {"status", "error", "snapshot", "metadata", "dead"}),
            Json({"error", "lost", "last words", "changed", false}));
}

TEST_F(ManagedFiberRecoveryTest, OnlyContinueFiberContinuesAManagedOne) {
  how = "spawn";
  const std::string id = interrupt_and_wake();
  EXPECT_TRUE(inspect(id)->waits_for_code);
}

TEST_F(ManagedFiberRecoveryTest, AHookThatFailsTooOftenLeavesADeadOneThatCanBeRetried) {
  hook_failures = 10;
  const std::string id = interrupt();
  host_.advance(minutes(60));
  EXPECT_EQ(offered.size(), 10U);
  const auto dead = manager().list_fibers({.dead = true});
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(fields(Json(dead[0]), {"status", "error"}), Json({"error", "not now"}));
  EXPECT_EQ(manager().list_dead_fibers().size(), 1U);
  EXPECT_TRUE(manager().revive_fiber(id));
  EXPECT_FALSE(manager().revive_fiber(id));
  host_.advance(milliseconds(20));
  EXPECT_EQ(offered.size(), 11U);
  EXPECT_EQ(offered.back().attempt, 1);
  EXPECT_EQ(inspect(id)->status, FiberStatus::kCompleted);
}

TEST_F(ManagedFiberRecoveryTest, AllDeadFibersAreListedWithARecordOrWithout) {
  hook_failures = 99'999;
  const std::string id = interrupt();
  for (int i = 0; i < 101; ++i)
    manager().start_fiber("plain " + std::to_string(i),
                          [](FiberContext&) -> Task<void> { co_await std::suspend_always(); });
  agent_.kill();
  host_.advance(minutes(300));
  const auto dead = manager().list_dead_fibers();
  ASSERT_EQ(dead.size(), 102U);
  EXPECT_EQ(dead.front().name, "plain 100");
  EXPECT_EQ(dead.front().attempts, 10);
  EXPECT_EQ(dead.front().last_error, "not now");
  EXPECT_EQ(dead.back().id, id);
  EXPECT_EQ(dead.back().snapshot, 1);
  EXPECT_EQ(dead.back().last_error, "not now");
}

class UndecidedFiberTest : public ManagedFiberRecoveryTest {
 protected:
  // One with a record and one without, interrupted, and offered to a hook that does `what`.
  void interrupt_both(const char* what) {
    how = what;
    const auto forever = [](FiberContext&) -> Task<void> { co_await std::suspend_always(); };
    kept_ = manager().start_fiber("kept", forever, {.keep_record = true}).id();
    brief_ = manager().start_fiber("brief", forever).id();
    agent_.kill();
    host_.advance(seconds(0));
  }
  std::size_t count(const std::string& step) {
    std::size_t times = 0;
    for (const std::string& each : agent_.steps()) times += each.starts_with(step) ? 1U : 0U;
    return times;
  }

  std::string kept_;
  std::string brief_;
};

TEST_F(UndecidedFiberTest, WaitsForAnotherInstanceAtNoCost) {
  interrupt_both("nothing");
  EXPECT_EQ(count("fiber:unknown"), 2U);
  EXPECT_EQ(count("fiber:recovery:handled"), 0U);
  for (int life = 0; life < 20; ++life) {  // more often than there are attempts
    host_.advance(minutes(60));
    EXPECT_TRUE(inspect(kept_)->waits_for_code);
    EXPECT_TRUE(inspect(brief_)->waits_for_code);
    agent_.kill();
    agent_.wake();
  }
  how = "continue";
  agent_.kill();
  agent_.wake();
  host_.advance(milliseconds(30));
  EXPECT_EQ(inspect(kept_)->status, FiberStatus::kCompleted);
  EXPECT_FALSE(inspect(brief_));
}

TEST_F(UndecidedFiberTest, IsLetGoIfTheHookSaysSo) {
  interrupt_both("let go");
  EXPECT_EQ(inspect(kept_)->status, FiberStatus::kInterrupted);
  EXPECT_FALSE(inspect(brief_));
  EXPECT_EQ(count("fiber:recovery:handled"), 2U);
}

TEST_F(ManagedFiberRecoveryTest, OutcomesAreForTheFiberOfTheHook) {
  RecoveredFiber other;
  other.id = "other";
  EXPECT_THROW(manager().settle_fiber(other, FiberOutcome::completed()), hearth::Error);
}

// ---- several at once ----------------------------------------------------------------------------

TEST_F(ManagedFiberRecoveryTest, SeveralAreRecoveredInTheOrderOfTheClass) {
  for (const char* const name : {"one", "two", "three"}) manager().begin({}, name);
  agent_.kill();
  plan.order = {"three"};
  agent_.wake();
  EXPECT_EQ(done.front(), "asked for 3");
  EXPECT_EQ(offered_names(), Lines({"three", "one", "two"}));
}

TEST_F(ManagedFiberRecoveryTest, AsManyHooksRunAtOnceAsTheClassSays) {
  how = "slow";
  for (const char* const name : {"one", "two", "three"}) manager().begin({}, name);
  agent_.kill();
  plan.parallel = 2;
  agent_.wake();
  EXPECT_EQ(offered.size(), 2U);
  host_.advance(milliseconds(50));
  EXPECT_EQ(offered.size(), 3U);
}

}  // namespace
}  // namespace managed_fiber_tests
