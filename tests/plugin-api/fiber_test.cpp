// Fibers on the mock host: running, checkpoints, the end of the agent, recovery.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using hearth::FiberContext;
using hearth::Json;
using hearth::RecoveredFiber;
using hearth::Task;
using hearth::testing::AgentHandle;
using hearth::testing::FiberRecord;
using hearth::testing::Host;

// What outlives an instance.
std::vector<std::string> notes;  // NOLINT

class Note {
 public:
  explicit Note(std::string text) : text_(std::move(text)) {}
  ~Note() { notes.push_back(text_); }
  Note(const Note&) = delete;
  Note& operator=(const Note&) = delete;

 private:
  std::string text_;
};

class Fibers : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Fibers>& m) {
    m.add("plain", &Fibers::plain);
    m.add("plain_text", &Fibers::plain_text);
    m.add("run", &Fibers::run);
    m.add("run_failing", &Fibers::run_failing);
    m.add("run_nested", &Fibers::run_nested);
    m.add("throws_a_type", &Fibers::throws_a_type);
    m.add("spawn", &Fibers::spawn);
    m.add("spawn_failing", &Fibers::spawn_failing);
    m.add("spawn_done", &Fibers::spawn_done);
    m.add("spawn_until_stopped", &Fibers::spawn_until_stopped);
    m.add("cancel", &Fibers::cancel);
    m.add("ambient", &Fibers::ambient);
    m.add("stash_here", &Fibers::stash_here);
    m.add("stash_after_fiber", &Fibers::stash_after_fiber);
    m.add("stash_late", &Fibers::stash_late);
    m.add("write_in_fiber", &Fibers::write_in_fiber);
    m.add("names", &Fibers::names);
    m.add("revive", &Fibers::revive);
    m.add("forever", &Fibers::forever);
  }

  // ---- run_fiber
  Task<int> plain() {
    auto work = [](FiberContext&) { return 5; };
    co_return co_await run_fiber("plain", work);
  }
  Task<std::string> plain_text(std::string text) {
    auto work = [text](FiberContext& fiber) { return fiber.name() + ": " + text; };
    co_return co_await run_fiber("label", work);
  }
  Task<int> run(int ms) {
    auto work = [this, ms](FiberContext& fiber) { return slow(fiber, ms); };
    co_return co_await run_fiber("slow", work);
  }
  Task<void> run_failing(bool late) {
    auto work = [this, late](FiberContext& fiber) -> Task<void> {
      if (late) co_await sleep(milliseconds(10));
      fiber.stash("half way");
      throw hearth::Error(HEARTH_E_CONFLICT, "broken");
    };
    co_await run_fiber("failing", work);
  }
  Task<bool> throws_a_type() {
    struct Special {
      int number;
    };
    auto work = [](FiberContext&) -> int { throw Special{7}; };
    try {
      co_await run_fiber("special", work);
    } catch (const Special& special) {
      co_return special.number == 7;
    }
    co_return false;
  }
  // The caller's own client and the outer fiber are still known after the wait.
  Task<Json> run_nested() {
    auto inner = [this](FiberContext& fiber) { return slow(fiber, 10); };
    auto outer = [this, inner](FiberContext& fiber) -> Task<int> {
      const int value = co_await run_fiber("inner", inner);
      stash("outer");  // to the outer one
      fiber.stash({{"outer", fiber.id()}});
      co_return value + 1;
    };
    const int value = co_await run_fiber("outer", outer);
    co_return Json{{"value", value}, {"caller", caller() ? caller()->id() : "none"}};
  }

  // ---- spawn_fiber
  std::string spawn(int ms) {
    return spawn_fiber("slow", [this, ms](FiberContext& fiber) { return slow(fiber, ms); });
  }
  std::string spawn_failing(bool late) {
    return spawn_fiber("failing", [this, late](FiberContext&) -> Task<void> {
      if (late) co_await sleep(milliseconds(10));
      throw std::runtime_error("nobody waits");
    });
  }
  std::string spawn_done() {
    return spawn_fiber("done", [](FiberContext& fiber) { fiber.stash(1); });
  }
  std::string spawn_until_stopped() {
    return spawn_fiber("patient", [this](FiberContext& fiber) -> Task<void> {
      while (!fiber.stop_token().stop_requested()) co_await sleep(milliseconds(10));
    });
  }
  bool cancel(const std::string& id) { return cancel_fiber(id); }
  void forever() {
    spawn_fiber("forever", [](FiberContext&) -> Task<void> {
      const Note note("frame");
      co_await std::suspend_always();
    });
  }

  // ---- stash
  std::string ambient(std::string text, int ms) {
    return spawn_fiber("ambient", [this, text, ms](FiberContext&) -> Task<void> {
      stash(text + " 1");
      co_await sleep(milliseconds(ms));
      co_await stash_soon(text + " 2");
      co_await sleep(milliseconds(ms));
    });
  }
  void stash_here() { stash(1); }
  void stash_after_fiber() {
    spawn(10);
    stash(1);  // the fiber waits: this is the caller again
  }
  Task<void> stash_late() {
    auto holder = std::make_shared<FiberContext*>(nullptr);
    auto work = [holder](FiberContext& fiber) { *holder = &fiber; };
    co_await run_fiber("short", work);
    stash(1);
  }
  Task<void> write_in_fiber() {
    auto work = [this](FiberContext&) -> Task<void> {
      co_await sleep(milliseconds(1));
      set_state("written");
    };
    co_await run_fiber("writer", work);
  }
  void names(const std::string& name) {
    spawn_fiber(name, [](FiberContext&) {});
  }
  bool revive(const std::string& id) { return retry_fiber(id); }

 protected:
  Task<int> slow(FiberContext& fiber, int ms) {
    const Note note("slow");
    for (int i = 1; i <= 3; ++i) {
      co_await sleep(milliseconds(ms));
      fiber.stash({{"step", i}});
    }
    co_return ms;
  }

 private:
  Task<void> stash_soon(std::string text) {
    co_await sleep(milliseconds(1));
    stash(text);
  }
};

class FiberTest : public ::testing::Test {
 protected:
  FiberTest() { notes.clear(); }

  [[nodiscard]] Json table() const {
    return agent_.sql("SELECT name, snapshot FROM cf_agents_runs ORDER BY id");
  }

  Host host_;
  AgentHandle agent_ = host_.create<Fibers>("a");
};

// ---- running ----------------------------------------------------------------------------------------------

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
  EXPECT_TRUE(host_.log().empty());  // somebody heard of it
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
  EXPECT_EQ(agent_.fiber_failures(),
            std::vector<std::string>({"failing: broken", "failing: nobody waits"}));
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

// ---- stash ------------------------------------------------------------------------------------------------

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

// ---- whose life it is -------------------------------------------------------------------------------------

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

TEST_F(FiberTest, AnEndThatOnlyTheEvictionCausedKeepsTheRow) {
  agent_.call("spawn", 10);
  host_.fail_submit(HEARTH_E_CLOSING);  // as a host that has begun to evict answers
  host_.advance(milliseconds(10));
  host_.fail_submit(HEARTH_OK);
  ASSERT_EQ(agent_.fibers().size(), 1U);
  agent_.evict();
  EXPECT_TRUE(agent_.fibers().at(0).interrupted());
}

TEST_F(FiberTest, WithoutTheHookInterruptedFibersAreDroppedWithAWarning) {
  agent_.call("spawn", 10);
  agent_.kill();
  host_.advance(seconds(0));  // nobody touches the agent
  EXPECT_TRUE(agent_.is_live());
  EXPECT_TRUE(agent_.fibers().empty());
  EXPECT_EQ(host_.log().back(), "warn the class recovers no fibers: slow was dropped");
}

// ---- recovery ---------------------------------------------------------------------------------------------

std::vector<RecoveredFiber> offered;  // NOLINT: outlives the instances
int failures_left = 0;                // NOLINT

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
    if (how == "drop") co_return;
    if (how == "late") co_await sleep(milliseconds(5));
    if (how == "other name") {
      spawn_fiber("another", [this](FiberContext& next) { return slow(next, 10); });
      co_return;
    }
    if (how == "same name" || how == "late") {
      spawn_fiber(fiber.name, [this](FiberContext& next) { return go_on(next); });
      spawn_fiber(fiber.name, [this](FiberContext& next) { return go_on(next); });
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

class RecoveryTest : public FiberTest {
 protected:
  RecoveryTest() {
    offered.clear();
    failures_left = 0;
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
};

TEST_F(RecoveryTest, AnInterruptedFiberIsOfferedWithAllThatIsKnown) {
  const auto before = agent_.as<Recovers>().now();
  const std::string id = interrupt();
  agent_.wake();
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
  agent_.as<Recovers>().spawn_fiber("deep", [deep](FiberContext& fiber) -> Task<void> {
    fiber.stash(deep);
    co_await std::suspend_always();
  });
  agent_.evict();
  agent_.wake();
  ASSERT_EQ(offered.size(), 1U);
  EXPECT_EQ(offered[0].snapshot, deep);
}

TEST_F(RecoveryTest, ARecoveredFiberThatWasNotContinuedIsGoneForGood) {
  Recovers::how = "drop";
  interrupt();
  agent_.wake();
  EXPECT_TRUE(agent_.fibers().empty());
  agent_.evict();
  agent_.wake();
  EXPECT_EQ(offered.size(), 1U);
}

TEST_F(RecoveryTest, AContinuationTakesTheRowAndTheCheckpointOver) {
  const std::string id = interrupt();
  agent_.wake();
  ASSERT_EQ(agent_.fibers().size(), 1U);
  EXPECT_NE(agent_.fibers()[0].id, id);
  EXPECT_EQ(agent_.fibers()[0].snapshot, R"({"step":1})");
  EXPECT_EQ(agent_.as<Recovers>().begun_with, std::vector<Json>({{{"step", 1}}}));
  host_.advance(milliseconds(50));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(RecoveryTest, AFiberIsContinuedOnce) {
  interrupt();
  agent_.wake();
  EXPECT_EQ(agent_.call("continue_twice"), "NOT_FOUND");
  EXPECT_EQ(agent_.fibers().size(), 1U);
}

TEST_F(RecoveryTest, TheFirstFiberOfTheSameNameContinuesAlsoAfterAWait) {
  for (const char* const how : {"same name", "late"}) {
    Recovers::how = how;
    interrupt();
    agent_.wake();
    host_.advance(milliseconds(5));
    EXPECT_EQ(agent_.as<Recovers>().begun_with, std::vector<Json>({{{"step", 1}}, nullptr}));
    EXPECT_EQ(agent_.fibers().size(), 2U);
    host_.advance(milliseconds(50));
    EXPECT_TRUE(agent_.fibers().empty());
  }
}

TEST_F(RecoveryTest, AnAwaitedContinuationKeepsTheHookOpen) {
  Recovers::how = "awaited";
  interrupt();
  agent_.wake();
  EXPECT_EQ(agent_.unfinished(), 1U);
  EXPECT_EQ(agent_.fibers().size(), 1U);
  host_.advance(milliseconds(50));
  EXPECT_EQ(agent_.unfinished(), 0U);
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(RecoveryTest, AFiberOfAnotherNameReplacesNothing) {
  Recovers::how = "other name";
  interrupt();
  agent_.wake();
  ASSERT_EQ(agent_.fibers().size(), 1U);
  EXPECT_EQ(agent_.fibers()[0].name, "another");
  EXPECT_EQ(agent_.fibers()[0].snapshot, std::nullopt);
}

TEST_F(RecoveryTest, RunningFibersAreNotOffered) {
  agent_.as<Recovers>().spawn(10);
  agent_.wake();
  host_.advance(milliseconds(30));
  EXPECT_TRUE(offered.empty());
}

TEST_F(RecoveryTest, AllAreOfferedOldestFirst) {
  for (const char* const name : {"one", "two", "three"}) {
    agent_.as<Recovers>().spawn_fiber(
        name, [](FiberContext&) -> Task<void> { co_await std::suspend_always(); });
  }
  agent_.kill();
  host_.advance(seconds(0));
  ASSERT_EQ(offered.size(), 3U);
  EXPECT_EQ(offered[0].name, "one");
  EXPECT_EQ(offered[1].name, "two");
  EXPECT_EQ(offered[2].name, "three");
}

TEST_F(RecoveryTest, AFailingHookKeepsTheRowAndIsAskedAgainLater) {
  failures_left = 2;
  interrupt();
  agent_.wake();
  EXPECT_EQ(offered.size(), 1U);
  EXPECT_EQ(agent_.fibers().at(0).last_error, "not now");
  agent_.evict();
  host_.advance(seconds(10));  // its own time wakes the agent
  ASSERT_EQ(offered.size(), 3U);
  EXPECT_EQ(offered[1].attempt, 2);
  EXPECT_EQ(offered[2].attempt, 3);
  EXPECT_TRUE(agent_.fibers().empty());  // continued, and over
}

TEST_F(RecoveryTest, AGivenUpFiberIsKeptAndRecoveredAfterRetry) {
  failures_left = 10;
  const std::string id = interrupt();
  host_.advance(seconds(3600));
  ASSERT_EQ(agent_.fibers().size(), 1U);
  EXPECT_TRUE(agent_.fibers()[0].dead);
  EXPECT_EQ(offered.size(), 10U);
  EXPECT_EQ(agent_.sql("SELECT dead, last_error FROM cf_agents_runs"),
            Json::parse(R"([[1, "not now"]])"));
  EXPECT_FALSE(agent_.as<Recovers>().revive("no such id"));
  EXPECT_TRUE(agent_.as<Recovers>().revive(id));
  host_.advance(seconds(0));
  EXPECT_EQ(offered.back().attempt, 1);
}

}  // namespace
