// Fibers on the mock host: running, checkpoints, the end of the agent. Recovery:
// fiber_recovery_test.cpp.

#include "fiber_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace fiber_tests {
namespace {

using hearth::testing::FiberRecord;
using std::chrono::seconds;

class FiberTest : public FiberFixture {};

// ---- running ------------------------------------------------------------------------------------

TEST_F(FiberTest, AFiberGivesItsValueToWhoAwaits) {
  EXPECT_EQ(agent_.call("plain"), 5);
  EXPECT_EQ(agent_.call("plain_text", "hello"), "label: hello");
  auto call = agent_.start("run", 10);
  EXPECT_FALSE(call.done());
  host_.advance(milliseconds(30));
  EXPECT_EQ(call.value(), 10);
}

TEST_F(FiberTest, TheRowIsThereWhileItRunsAndGoesWithItsEnd) {
  auto call = agent_.start("run", 10);
  ASSERT_EQ(agent_.fibers().size(), 1U);
  EXPECT_TRUE(agent_.fibers()[0].running);
  EXPECT_EQ(agent_.fibers()[0].id.size(), 36U);
  EXPECT_EQ(table(), Json::parse(R"([["slow", null]])"));
  host_.advance(milliseconds(30));
  EXPECT_TRUE(call.done());
  EXPECT_EQ(table(), Json::array());
}

TEST_F(FiberTest, AnErrorReachesWhoAwaitsUnchangedAndTheRowGoes) {
  for (const bool late : {false, true}) {
    auto call = agent_.start("run_failing", late);
    host_.advance(milliseconds(10));
    EXPECT_EQ(call.error(), "broken");
    EXPECT_EQ(call.status(), HEARTH_E_CONFLICT);
    EXPECT_EQ(table(), Json::array());
  }
  EXPECT_EQ(agent_.call("throws_a_type"), true);
  EXPECT_TRUE(host_.log().empty());  // the awaiting code got the error, so it is not logged
}

TEST_F(FiberTest, ASpawnedFiberWaitsForNothingAndReturnsItsId) {
  const Json id = agent_.call("spawn", 10);
  EXPECT_EQ(id, agent_.fibers().at(0).id);
  host_.advance(milliseconds(30));
  EXPECT_TRUE(agent_.fibers().empty());
  EXPECT_EQ(agent_.call("spawn_done").get<std::string>().size(), 36U);
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(FiberTest, AnErrorThatNobodyAwaitsIsLoggedAndTheRowGoes) {
  for (const bool late : {false, true}) {
    agent_.call("spawn_failing", late);
    host_.advance(milliseconds(10));
    EXPECT_TRUE(agent_.fibers().empty());
  }
  const std::string line = "error fiber failing failed: nobody waits";
  EXPECT_EQ(host_.log(), std::vector<std::string>({line, line}));
}

TEST_F(FiberTest, TheHostHearsOfAFiberThatFailedAndWhyAndOfNoneThatEndedWell) {
  agent_.call("spawn_failing", true);
  agent_.start("run_failing", false);
  agent_.call("spawn", 1);
  host_.advance(milliseconds(10));
  EXPECT_TRUE(agent_.fibers().empty());
  std::vector<std::string> failures = agent_.steps();
  std::erase_if(failures, [](const auto& step) { return !step.starts_with("fiber:run:failed"); });
  EXPECT_EQ(failures,
            std::vector<std::string>({"fiber:run:failed broken", "fiber:run:failed nobody waits"}));
}

TEST_F(FiberTest, CheckpointsReplaceEachOtherInOrder) {
  agent_.call("spawn", 10);
  for (int step = 1; step <= 2; ++step) {
    host_.advance(milliseconds(10));
    EXPECT_EQ(agent_.fibers().at(0).snapshot, "{\"step\":" + std::to_string(step) + "}");
  }
}

TEST_F(FiberTest, SeveralFibersRunAtOnceAndAllEnd) {
  for (int i = 1; i <= 20; ++i) agent_.call("spawn", i);
  EXPECT_EQ(agent_.fibers().size(), 20U);
  host_.advance(milliseconds(30));
  EXPECT_EQ(agent_.fibers().size(), 10U);
  host_.advance(milliseconds(30));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(FiberTest, AFiberMayAwaitAnotherAndTheContextsDoNotMix) {
  auto client = agent_.connect({}, "me");
  auto call = client.start("run_nested");
  ASSERT_EQ(agent_.fibers().size(), 2U);
  host_.advance(milliseconds(30));
  EXPECT_EQ(call.value(), Json({{"value", 11}, {"caller", "me"}}));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(FiberTest, ABadNameAndAHostThatRefusesAreErrorsOfTheCaller) {
  EXPECT_EQ(agent_.start("names", "").error(), "a fiber's name is 1 to 256 bytes of UTF-8");
  host_.fail_start_fiber(HEARTH_E_LIMIT);
  EXPECT_EQ(agent_.start("run", 1).error(), "start fails in this test");
  host_.fail_start_fiber(HEARTH_OK);
  EXPECT_TRUE(agent_.fibers().empty());
  EXPECT_EQ(agent_.call("plain"), 5);
}

TEST_F(FiberTest, AStoppedFiberNoticesAtItsNextLook) {
  const Json id = agent_.call("spawn_until_stopped");
  host_.advance(seconds(1));
  EXPECT_EQ(agent_.fibers().size(), 1U);
  EXPECT_EQ(agent_.call("cancel", id), true);
  EXPECT_EQ(agent_.call("cancel", id), false);  // it was asked already
  host_.advance(milliseconds(10));
  EXPECT_TRUE(agent_.fibers().empty());
  EXPECT_EQ(agent_.call("cancel", id), false);
  EXPECT_EQ(agent_.call("cancel", "no such id"), false);
}

// ---- stash --------------------------------------------------------------------------------------

TEST_F(FiberTest, TheAgentsStashGoesToTheFiberThatRuns) {
  agent_.call("ambient", "one", 10);
  agent_.call("ambient", "two", 10);
  EXPECT_EQ(table(), Json::parse(R"([["ambient", "\"one 1\""], ["ambient", "\"two 1\""]])"));
  host_.advance(milliseconds(11));
  EXPECT_EQ(table(), Json::parse(R"([["ambient", "\"one 2\""], ["ambient", "\"two 2\""]])"));
  host_.advance(milliseconds(11));
  EXPECT_EQ(table(), Json::array());
}

TEST_F(FiberTest, StashOutsideAFiberIsAClearError) {
  const char* const text = "stash() was called outside a fiber";
  EXPECT_EQ(agent_.start("stash_here").error(), text);
  EXPECT_EQ(agent_.start("stash_after_fiber").error(), text);
  EXPECT_EQ(agent_.start("stash_late").error(), text);
  EXPECT_EQ(agent_.fibers().at(0).snapshot, std::nullopt);  // and reached no fiber
}

TEST_F(FiberTest, AFiberOfAReadonlyClientMayNotChangeTheState) {
  class Readonly : public Fibers {
   public:
    void on_connecting(hearth::Connecting& client) override { client.set_readonly(); }
  };
  auto agent = host_.create<Readonly>("b");
  auto client = agent.connect();
  auto refused = client.start("write_in_fiber");
  host_.advance(milliseconds(1));
  EXPECT_EQ(refused.error(), "Connection is readonly");
  auto own = agent.start("write_in_fiber");
  host_.advance(milliseconds(1));
  EXPECT_FALSE(own.failed());
  EXPECT_EQ(agent.state(), "written");
}

// ---- lifetime -----------------------------------------------------------------------------------

TEST_F(FiberTest, ACancelledCallerDoesNotStopTheFiber) {
  auto call = agent_.start("run", 10);
  call.cancel();
  EXPECT_EQ(agent_.unfinished(), 0U);
  ASSERT_EQ(agent_.fibers().size(), 1U);
  host_.advance(milliseconds(20));
  EXPECT_EQ(agent_.fibers().at(0).snapshot, R"({"step":2})");
  host_.advance(milliseconds(10));
  EXPECT_TRUE(agent_.fibers().empty());
  EXPECT_EQ(notes, std::vector<std::string>({"slow"}));
}

TEST_F(FiberTest, ACancelledCallersFiberThatFailsIsLogged) {
  auto call = agent_.start("run_failing", true);
  call.cancel();
  host_.advance(milliseconds(10));
  EXPECT_EQ(host_.log(), std::vector<std::string>({"error fiber failing failed: broken"}));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(FiberTest, AnEvictionDestroysTheFramesAndKeepsTheRows) {
  agent_.call("forever");
  auto call = agent_.start("run", 10);
  auto nested = agent_.start("run_nested");
  host_.advance(milliseconds(10));
  agent_.evict();
  EXPECT_EQ(notes, std::vector<std::string>({"slow", "slow", "frame"}));
  ASSERT_EQ(agent_.fibers().size(), 4U);
  for (const FiberRecord& fiber : agent_.fibers()) EXPECT_TRUE(fiber.interrupted());
  EXPECT_EQ(agent_.fibers()[1].snapshot, R"({"step":1})");
}

TEST_F(FiberTest, NoneIsBegunInTheConstructor) {
  class Early : public hearth::Agent {
   public:
    Early() {
      start_fiber("work", [this](FiberContext&) -> Task<void> { co_await sleep(seconds(1)); });
    }
  };
  try {
    host_.create<Early>("early");
    FAIL() << "it was begun";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "begin fibers in on_start() or later: not in the constructor");
  }
}

TEST_F(FiberTest, AnEndThatOnlyTheEvictionCausedKeepsTheRow) {
  agent_.call("spawn", 10);
  host_.fail_submit(HEARTH_E_CLOSING);  // as a host that has begun to evict answers
  host_.advance(milliseconds(10));
  host_.fail_submit(HEARTH_OK);
  ASSERT_EQ(agent_.fibers().size(), 1U);
  agent_.evict();
  EXPECT_TRUE(agent_.fibers().at(0).interrupted());
}

TEST_F(FiberTest, WithoutTheHookAFunctionThatIsNotListedWaitsForAVersionThatKnowsIt) {
  agent_.call("spawn", 10);
  agent_.kill();
  host_.advance(seconds(0));  // no event reaches the agent
  EXPECT_TRUE(agent_.is_live());
  ASSERT_EQ(agent_.fibers().size(), 1U);
  EXPECT_TRUE(agent_.fibers()[0].interrupted());
  EXPECT_TRUE(agent_.steps().back().starts_with("fiber:unknown")) << agent_.steps().back();
}

}  // namespace
}  // namespace fiber_tests
