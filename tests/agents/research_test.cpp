// The research plugin on the mock host.

#include "research/research.cpp"  // NOLINT(bugprone-suspicious-include): an agent class needs no header

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <string>
#include <vector>

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using hearth::Json;
using hearth::testing::AgentHandle;
using hearth::testing::Host;

// Of a run, as its agent shows it.
Json progress(const char* topic, int completed, int total, const char* status, int recoveries = 0) {
  return {{"topic", topic},
          {"completed", completed},
          {"total", total},
          {"status", status},
          {"recoveries", recoveries}};
}

// As a version before fibers had inputs: all that is known of a run is in its checkpoint.
class EarlyResearch : public hearth::Agent {
 public:
  static void methods(hearth::Methods<EarlyResearch>& m) { m.add("start", &EarlyResearch::start); }
  EarlyResearch() { sql("CREATE TABLE steps (run TEXT, step INTEGER, at INTEGER)"); }
  void start(bool has_checkpoint) {
    const Json begun = progress("moss", 2, 4, "running");
    set_state({{"runs", {{"early", begun}}}});
    const auto work = [this, begun,
                       has_checkpoint](hearth::FiberContext& fiber) -> hearth::Task<void> {
      if (has_checkpoint) fiber.stash({{"run", "early"}, {"progress", begun}, {"step_ms", 10}});
      co_await sleep(seconds(9));
    };
    start_fiber("research", work, {.keep_record = true});
  }
};

class ResearchTest : public ::testing::Test {
 protected:
  std::string start(const std::string& topic, int steps, int step_ms) {
    return agent_.call("start", topic, steps, step_ms).get<std::string>();
  }
  // An agent whose run an earlier version has begun.
  AgentHandle early(bool has_checkpoint) {
    AgentHandle agent = host_.create<EarlyResearch>("early");
    agent.call("start", has_checkpoint);
    agent.become<Research>();
    agent.wake();
    return agent;
  }
  Json run(const std::string& id) { return agent_.state().at("runs").at(id); }
  // 1, 2, ... as they are in the table: none missing, none double, in order.
  static Json first(int count) {
    std::vector<int> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 1);
    return numbers;
  }

  Host host_;
  AgentHandle agent_ = host_.create<Research>("a");
};

TEST_F(ResearchTest, ARunGoesThroughItsStepsAtItsPace) {
  const std::string id = agent_.call("start", "moss").get<std::string>();  // 5 steps, one a second
  EXPECT_EQ(run(id), progress("moss", 0, 5, "running"));
  host_.advance(seconds(3));
  EXPECT_EQ(agent_.call("status", id).at("completed"), 3);
  EXPECT_EQ(agent_.call("steps", id), first(3));
  host_.advance(seconds(2));
  EXPECT_EQ(run(id).at("status"), "completed");
  EXPECT_EQ(agent_.call("steps", id), first(5));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(ResearchTest, ARunOfAnEarlierVersionGoesOnFromItsCheckpoint) {
  auto agent = early(true);
  host_.advance(milliseconds(20));
  EXPECT_EQ(agent.call("steps", "early"), Json({3, 4}));
  EXPECT_EQ(agent.call("status", "early").at("status"), "completed");
  EXPECT_EQ(agent.fiber_records()[0].at("status"), "completed");
}

TEST_F(ResearchTest, ARunOfAnEarlierVersionIsCancelledByItsStatus) {
  auto agent = early(true);
  EXPECT_EQ(agent.call("cancel", "early"), true);
  host_.advance(seconds(1));
  EXPECT_EQ(agent.call("steps", "early"), Json::array());
  EXPECT_EQ(agent.call("status", "early").at("status"), "cancelled");
}

TEST_F(ResearchTest, ARunOfAnEarlierVersionThatHadNotBegunFailsAndSaysWhy) {
  auto agent = early(false);
  EXPECT_EQ(agent.fiber_records()[0].at("status"), "error");
  EXPECT_EQ(agent.fiber_records()[0].at("error"),
            "this run was begun without an order, and has no checkpoint");
}

TEST_F(ResearchTest, TellsTheVersionOfItsLibrary) {
  EXPECT_EQ(agent_.call("version"), RESEARCH_VERSION);
}

TEST_F(ResearchTest, AKeyIsOneRunHoweverOftenItIsAskedForAndItsResultCanBeWaitedFor) {
  const Json id = agent_.call("start_once", "order-1", "moss", 3, 100);
  EXPECT_EQ(agent_.call("start_once", "order-1", "moss", 3, 100), id);
  EXPECT_EQ(agent_.start("start_once", "order-1", "ferns", 3, 100).status(), HEARTH_E_CONFLICT);
  auto result = agent_.start("result", "order-1");
  host_.advance(milliseconds(300));
  EXPECT_EQ(result.value().at("status"), "completed");
  EXPECT_EQ(agent_.call("result", "order-1"), run(id));
  EXPECT_EQ(agent_.call("start_once", "order-1", "moss", 3, 100), id);  // also when it is over
  EXPECT_EQ(agent_.call("steps", id), first(3));
  EXPECT_EQ(agent_.state().at("runs").size(), 1U);
  EXPECT_EQ(agent_.start("result", "order-2").error(), "no such run");
}

TEST_F(ResearchTest,
       AFullAgentBeginsNothingNewButStillAnswersForAKeyItKnowsAndGoesOnWithWhatItAccepted) {
  const Json id = agent_.call("start_once", "order-1", "moss", 3, 100);
  Json full = agent_.state();
  for (int i = 1; i < 1'000; ++i)
    full["runs"]["old " + std::to_string(i)] = full["runs"][id.get<std::string>()];
  agent_.as<Research>().set_state(full);
  host_.advance(milliseconds(0));
  EXPECT_EQ(agent_.start("start", "ferns").error(), "this agent has had enough runs");
  EXPECT_EQ(agent_.start("start_once", "order-2", "ferns").error(),
            "this agent has had enough runs");
  EXPECT_EQ(agent_.call("start_once", "order-1", "moss", 3, 100), id);
  EXPECT_EQ(agent_.start("start_once", "order-1", "ferns", 3, 100).status(), HEARTH_E_CONFLICT)
      << "a conflict, as ever";
  agent_.kill();
  host_.advance(milliseconds(300));
  EXPECT_EQ(agent_.call("result", "order-1").at("status"), "completed");
}

TEST_F(ResearchTest, ARunOfAKeyGoesOnAfterAKillUnderTheSameRecord) {
  const Json id = agent_.call("start_once", "order-1", "moss", 5, 100);
  host_.advance(milliseconds(250));
  agent_.kill();
  host_.advance(milliseconds(300));
  EXPECT_EQ(agent_.call("result", "order-1").at("recoveries"), 1);
  EXPECT_EQ(agent_.call("steps", id), first(5));
  EXPECT_EQ(agent_.fiber_records().size(), 1U);
}

TEST_F(ResearchTest, ACancelledRunOfAKeyEndsWithItsResultAlsoAfterAKill) {
  const Json id = agent_.call("start_once", "order-1", "moss", 5, 100);
  host_.advance(milliseconds(150));
  agent_.call("cancel", id);
  agent_.kill();
  EXPECT_EQ(agent_.call("result", "order-1").at("status"), "cancelled");
  EXPECT_EQ(agent_.call("result", "order-1").at("completed"), 1);
}

TEST_F(ResearchTest, EveryClientHearsOfTheProgress) {
  auto client = agent_.connect();
  const std::string id = start("moss", 2, 10);
  host_.advance(milliseconds(20));
  const auto frames = client.take_received();
  ASSERT_EQ(frames.size(), 3U);
  for (int i = 0; i <= 2; ++i) {
    Json told = progress("moss", i, 2, i == 2 ? "completed" : "running");
    told.update({{"type", "progress"}, {"run", id}});
    EXPECT_EQ(hearth::parse_json(frames[static_cast<std::size_t>(i)].payload), told);
  }
  EXPECT_EQ(client.state(), agent_.state());
}

TEST_F(ResearchTest, AnEvictionInTheMiddleRepeatsAndSkipsNoStep) {
  const std::string id = start("moss", 5, 100);
  host_.advance(milliseconds(250));
  agent_.evict();
  host_.advance(milliseconds(100));  // the interrupted third step begins anew
  EXPECT_EQ(run(id), progress("moss", 3, 5, "running", 1));
  host_.advance(milliseconds(200));
  EXPECT_EQ(run(id).at("status"), "completed");
  EXPECT_EQ(agent_.call("steps", id), first(5));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(ResearchTest, AnInterruptionAtEveryMomentDoesEachStepOnce) {
  const std::string id = start("moss", 20, 100);
  int kills = 0;
  while (run(id).at("status") == "running") {
    host_.advance(milliseconds(100 + (kills * 37) % 100));
    agent_.kill();
    ++kills;
    host_.advance(milliseconds(0));
    ASSERT_LT(kills, 100);
  }
  EXPECT_GE(kills, 10);
  EXPECT_EQ(agent_.call("steps", id), first(20));
}

TEST_F(ResearchTest, RunsOfOneAgentDoNotDisturbEachOther) {
  const std::string slow = start("slow", 3, 100);
  const std::string fast = start("fast", 10, 20);
  host_.advance(milliseconds(150));
  agent_.evict();
  host_.advance(milliseconds(1'000));
  for (const auto& [id, steps] : {std::pair(slow, 3), std::pair(fast, 10)}) {
    EXPECT_EQ(run(id).at("status"), "completed");
    EXPECT_EQ(run(id).at("recoveries"), 1);
    EXPECT_EQ(agent_.call("steps", id), first(steps));
  }
}

TEST_F(ResearchTest, ACancelledRunStopsAndStaysCancelled) {
  const std::string id = start("moss", 5, 100);
  host_.advance(milliseconds(150));
  EXPECT_EQ(agent_.call("cancel", id), true);
  EXPECT_EQ(agent_.call("cancel", id), false);
  EXPECT_EQ(run(id).at("status"), "cancelled");
  host_.advance(seconds(1));
  EXPECT_EQ(agent_.call("steps", id), first(1));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(ResearchTest, ARunThatWasCancelledBeforeACrashIsNotRecovered) {
  const std::string id = start("moss", 5, 100);
  agent_.call("cancel", id);
  agent_.kill();
  host_.advance(seconds(1));
  EXPECT_EQ(run(id).at("status"), "cancelled");
  EXPECT_EQ(agent_.call("steps", id), first(0));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(ResearchTest, AFailureIsShownAndEndsTheRun) {
  const std::string id = start("moss", 5, 100);
  host_.fail_submit(HEARTH_E_LIMIT);  // the next sleep
  host_.advance(milliseconds(100));
  host_.fail_submit(HEARTH_OK);
  EXPECT_EQ(run(id).at("status"), "failed");
  EXPECT_EQ(agent_.call("steps", id), first(1));
  EXPECT_TRUE(agent_.fibers().empty());
  EXPECT_NE(host_.log().back().find("failed: submit fails in this test"), std::string::npos);
}

TEST_F(ResearchTest, WrongArgumentsAreNamedAndStartNothing) {
  EXPECT_EQ(agent_.start("start", "").error(), "topic: 1 to 200 bytes");
  EXPECT_EQ(agent_.start("start", "moss", 0).error(), "steps: 1 to 10000");
  EXPECT_EQ(agent_.start("start", "moss", 1, -1).error(), "step_ms: 0 to 3600000");
  for (const char* const method : {"status", "cancel"}) {
    EXPECT_EQ(agent_.start(method, "x").error(), "no such run");
    EXPECT_EQ(agent_.start(method, "x").status(), HEARTH_E_NOT_FOUND);
  }
  EXPECT_EQ(agent_.call("steps", "x"), Json::array());
  EXPECT_TRUE(agent_.fibers().empty());
  EXPECT_EQ(agent_.state(), Json({{"runs", Json::object()}}));
}

TEST_F(ResearchTest, ClientsCannotChangeTheState) {
  auto client = agent_.connect();
  client.set_state({{"runs", "gone"}});
  EXPECT_EQ(client.errors().size(), 1U);
  EXPECT_EQ(agent_.state(), Json({{"runs", Json::object()}}));
}

}  // namespace
