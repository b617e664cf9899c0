// Fibers on the mock host: how interrupted fibers are offered and continued.

#include "fiber_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fiber_tests {
namespace {

using hearth::RecoveredFiber;
using std::chrono::seconds;

std::vector<RecoveredFiber> offered;  // NOLINT: outlives the instances
int failures_left = 0;                // NOLINT
bool hook_hangs = false;              // NOLINT
bool stashes_and_dies = false;        // NOLINT

class Recovers : public Fibers {
 public:
  static void methods(hearth::Methods<Recovers>& m) {
    m.add("continue_twice", &Recovers::continue_twice);
    m.add("mode", &Recovers::mode);
  }
  Task<void> on_fiber_recovered(const RecoveredFiber& fiber) override {
    offered.push_back(fiber);
    if (failures_left > 0) {
      --failures_left;
      throw std::runtime_error("not now");
    }
    if (hook_hangs) co_await std::suspend_always();
    if (stashes_and_dies) {
      continue_fiber(fiber, [](FiberContext& next) -> Task<void> {
        next.stash(offered.size());
        co_await std::suspend_always();
      });
      co_return;
    }
    if (how == "drop") {
      settle_fiber(fiber, hearth::FiberOutcome::interrupted());
      co_return;
    }
    if (how == "late") co_await sleep(milliseconds(5));
    if (how == "other name") {
      start_fiber("another", [this](FiberContext& next) { return slow(next, 10); });
      co_return;
    }
    if (how == "same name" || how == "late") {
      start_fiber(fiber.name, [this](FiberContext& next) { return go_on(next); });
      start_fiber(fiber.name, [this](FiberContext& next) { return go_on(next); });
      co_return;
    }
    if (how == "awaited") {
      auto work = [this](FiberContext& next) { return go_on(next); };
      co_await run_fiber(fiber.name, work);
      co_return;
    }
    continue_fiber(fiber, [this](FiberContext& next) { return go_on(next); });
    last = fiber;
  }
  std::string continue_twice() {
    try {
      continue_fiber(last, [](FiberContext&) {});
    } catch (const hearth::HostError& error) {
      return std::string(hearth::status_name(error.code()));
    }
    return "continued";
  }
  void mode(const std::string& text) { how = text; }

  static inline std::string how;  // NOLINT: survives evictions
  std::vector<Json> begun_with;
  RecoveredFiber last;

 private:
  Task<void> go_on(FiberContext& fiber) {
    begun_with.push_back(fiber.snapshot());
    co_await sleep(milliseconds(50));
  }
};

class RecoveryTest : public FiberFixture {
 protected:
  RecoveryTest() {
    offered.clear();
    failures_left = 0;
    hook_hangs = stashes_and_dies = false;
    Recovers::how = "continue";
    agent_ = host_.create<Recovers>("r");
  }
  // A fiber with a checkpoint of step 1, interrupted.
  std::string interrupt() {
    std::string id = agent_.as<Recovers>().spawn(10);
    host_.advance(milliseconds(10));
    agent_.evict();
    return id;
  }
  std::string interrupt_and_wake() {
    std::string id = interrupt();
    agent_.wake();
    return id;
  }
};

TEST_F(RecoveryTest, R3_AnInterruptedFiberIsOfferedWithAllThatIsKnown) {
  const auto before = agent_.as<Recovers>().now();
  const std::string id = interrupt_and_wake();
  ASSERT_EQ(offered.size(), 1U);
  EXPECT_EQ(offered[0].id, id);
  EXPECT_EQ(offered[0].name, "slow");
  EXPECT_EQ(offered[0].snapshot, Json({{"step", 1}}));
  EXPECT_EQ(offered[0].created_at, before);
  EXPECT_EQ(offered[0].attempt, 1);
}

TEST_F(RecoveryTest, ACheckpointAsDeepAsAllowedComesBack) {
  Json deep = 1;
  for (int i = 0; i < hearth::kMaxJsonDepth; ++i) deep = Json::array({std::move(deep)});
  agent_.as<Recovers>().start_fiber("deep", [deep](FiberContext& fiber) -> Task<void> {
    fiber.stash(deep);
    co_await std::suspend_always();
  });
  agent_.evict();
  agent_.wake();
  ASSERT_EQ(offered.size(), 1U);
  EXPECT_EQ(offered[0].snapshot, deep);
}

TEST_F(RecoveryTest, ARecoveredFiberThatIsLetGoIsGoneForGood) {
  Recovers::how = "drop";
  interrupt_and_wake();
  EXPECT_TRUE(agent_.fibers().empty());
  agent_.evict();
  agent_.wake();
  EXPECT_EQ(offered.size(), 1U);
}

TEST_F(RecoveryTest, AContinuationGoesOnUnderTheSameIdWithTheCheckpoint) {
  const std::string id = interrupt_and_wake();
  ASSERT_EQ(agent_.fibers().size(), 1U);
  EXPECT_EQ(agent_.fibers()[0].id, id);
  EXPECT_EQ(agent_.fibers()[0].snapshot, R"({"step":1})");
  EXPECT_EQ(agent_.as<Recovers>().begun_with, std::vector<Json>({{{"step", 1}}}));
  host_.advance(milliseconds(50));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(RecoveryTest, AFiberIsContinuedOnce) {
  interrupt_and_wake();
  EXPECT_EQ(agent_.call("continue_twice"), "NOT_FOUND");
  EXPECT_EQ(agent_.fibers().size(), 1U);
}

TEST_F(RecoveryTest, TheFirstFiberOfTheSameNameContinuesAlsoAfterAWait) {
  for (const char* const how : {"same name", "late"}) {
    Recovers::how = how;
    interrupt_and_wake();
    host_.advance(milliseconds(5));
    EXPECT_EQ(agent_.as<Recovers>().begun_with, std::vector<Json>({{{"step", 1}}, nullptr}));
    EXPECT_EQ(agent_.fibers().size(), 2U);
    host_.advance(milliseconds(50));
    EXPECT_TRUE(agent_.fibers().empty());
  }
}

TEST_F(RecoveryTest, AnAwaitedContinuationKeepsTheHookOpen) {
  Recovers::how = "awaited";
  interrupt_and_wake();
  EXPECT_EQ(agent_.unfinished(), 1U);
  EXPECT_EQ(agent_.fibers().size(), 1U);
  host_.advance(milliseconds(50));
  EXPECT_EQ(agent_.unfinished(), 0U);
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(RecoveryTest, AFiberOfAnotherNameReplacesNothing) {
  Recovers::how = "other name";
  interrupt_and_wake();
  ASSERT_EQ(agent_.fibers().size(), 2U) << "what nobody has decided about waits";
  EXPECT_EQ(agent_.fibers()[0].name, "slow");
  EXPECT_EQ(agent_.fibers()[1].name, "another");
  EXPECT_EQ(agent_.fibers()[1].snapshot, std::nullopt);
}

// Another one is looked for and offered meanwhile.
TEST_F(RecoveryTest, R2_RunningFibersAreNotOffered) {
  failures_left = 1;
  const std::string orphan = interrupt_and_wake();
  const std::string running = agent_.as<Recovers>().spawn(60'000);
  host_.advance(seconds(10));
  ASSERT_EQ(offered.size(), 2U) << "its hook has failed once";
  for (const RecoveredFiber& each : offered) EXPECT_EQ(each.id, orphan);
  ASSERT_EQ(agent_.fibers().size(), 1U);
  EXPECT_EQ(agent_.fibers()[0].id, running);
}

TEST_F(RecoveryTest, AllAreOfferedOldestFirst) {
  for (const char* const name : {"one", "two", "three"}) {
    agent_.as<Recovers>().start_fiber(
        name, [](FiberContext&) -> Task<void> { co_await std::suspend_always(); });
  }
  agent_.kill();
  host_.advance(seconds(0));
  std::vector<std::string> names;
  for (const RecoveredFiber& each : offered) names.push_back(each.name);
  EXPECT_EQ(names, std::vector<std::string>({"one", "two", "three"}));
}

TEST_F(RecoveryTest, AFailingHookKeepsTheRowAndIsAskedAgainLater) {
  failures_left = 2;
  interrupt_and_wake();
  EXPECT_EQ(offered.size(), 1U);
  EXPECT_EQ(agent_.fibers().at(0).last_error, "not now");
  agent_.evict();
  host_.advance(seconds(10));  // its own time wakes the agent
  ASSERT_EQ(offered.size(), 3U);
  EXPECT_EQ(offered[1].attempt, 2);
  EXPECT_EQ(offered[2].attempt, 3);
  EXPECT_TRUE(agent_.fibers().empty());  // continued, and over
}

TEST_F(RecoveryTest, AFiberThatStashesAndDiesIsGivenUpAfterAThousandRecoveries) {
  stashes_and_dies = true;
  interrupt();
  for (int kill = 0; kill < 1'100 && !agent_.fibers().at(0).dead; ++kill) {
    agent_.kill();
    host_.advance(seconds(0));
  }
  EXPECT_EQ(offered.size(), 1'000U);
  ASSERT_EQ(agent_.fibers().size(), 1U);
  EXPECT_TRUE(agent_.fibers()[0].dead);
  EXPECT_EQ(agent_.fibers()[0].recoveries, 1'000);
  EXPECT_EQ(agent_.fibers()[0].last_error,
            "recovered as often as fibers.max_recoveries allows, and interrupted once more");
  EXPECT_TRUE(agent_.as<Recovers>().revive(agent_.fibers()[0].id));
  host_.advance(seconds(0));
  EXPECT_EQ(offered.size(), 1'001U);
  stashes_and_dies = false;
}

TEST_F(RecoveryTest, AHookThatDiesWithItsAgentIsGivenUpAfterAHundredKills) {
  hook_hangs = true;
  interrupt();
  // (Not every time has a hook begun: the wait before it grows. None may time out.)
  for (int kill = 0; kill < 1'000 && !agent_.fibers().at(0).dead; ++kill) {
    host_.advance(seconds(20));
    agent_.kill();
  }
  hook_hangs = false;
  EXPECT_EQ(offered.size(), 100U);
  ASSERT_EQ(agent_.fibers().size(), 1U);
  EXPECT_TRUE(agent_.fibers()[0].dead);
  EXPECT_EQ(agent_.fibers()[0].last_error, "interrupted again and again without an end");
}

TEST_F(RecoveryTest, AGivenUpFiberIsKeptAndRecoveredAfterRetry) {
  failures_left = 10;
  const std::string id = interrupt();
  host_.advance(seconds(3600));
  ASSERT_EQ(agent_.fibers().size(), 1U);
  EXPECT_TRUE(agent_.fibers()[0].dead);
  EXPECT_EQ(offered.size(), 10U);
  EXPECT_EQ(agent_.sql("SELECT dead, error FROM cf_agents_fibers"),
            Json::parse(R"([[1, "not now"]])"));
  EXPECT_FALSE(agent_.as<Recovers>().revive("no such id"));
  EXPECT_TRUE(agent_.as<Recovers>().revive(id));
  host_.advance(seconds(0));
  EXPECT_EQ(offered.back().attempt, 1);
}

}  // namespace
}  // namespace fiber_tests
