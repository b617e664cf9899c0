// Fibers that a fiber or a handler waits for: their keys, how they are cancelled, and functions
// that only one instance has.
#include "one_agent.hpp"

#include <hearth/agent.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace nested_fiber_tests {
namespace {

using hearth::FiberContext;
using hearth::FiberOptions;
using hearth::Json;
using hearth::Task;
using hearth::testing::AgentHandle;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using Lines = std::vector<std::string>;

Lines done;             // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
int ticks = 0;          // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
int failures_left = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

// Its coroutine is destroyed.
struct Leaver {
  Leaver() = default;
  Leaver(const Leaver&) = delete;
  Leaver& operator=(const Leaver&) = delete;
  ~Leaver() { done.emplace_back("left"); }
};

class Parent : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Parent>& m) { list(m); }

  Task<int> slow(FiberContext& /*fiber*/) {  // and looks at no stop token
    co_await sleep(hours(1));
    done.emplace_back("ended");
    co_return 7;
  }
  int gives_up(FiberContext& fiber) {
    cancel_fiber(fiber.id(), "enough");
    return 7;
  }
  Task<int> gives_up_slowly(FiberContext& fiber) {
    cancel_fiber(fiber.id(), "enough");
    co_return co_await slow(fiber);
  }
  Task<int> await_listed(std::string name) {
    const FiberOptions options = {.key = "awaited"};
    co_return co_await run_fiber<int>(name, Json(), options);
  }
  Task<int> await_given(std::string name) {
    const auto work = [this, name](FiberContext& fiber) -> Task<int> {
      if (name == "gives up") co_return gives_up(fiber);
      if (name == "gives up slowly") cancel_fiber(fiber.id(), "enough");
      co_return co_await slow(fiber);
    };
    const FiberOptions options = {.key = "awaited"};
    co_return co_await run_fiber("given", work, options);
  }
  bool cancel() { return cancel_fiber_by_key("awaited", "enough"); }

  // Waits for a step that only the instance that asks for it can do.
  Task<int> steps(FiberContext& /*fiber*/) {
    const auto step = [this](FiberContext&) -> Task<int> {
      co_await sleep(milliseconds(10));
      co_return 1;
    };
    co_return co_await run_fiber("step", step);
  }

  int charge(const std::string& order, FiberContext& /*fiber*/) {
    done.push_back("charge " + order);
    if (failures_left-- > 0) throw std::runtime_error("no card");
    return 5;
  }
  Task<int> order(FiberContext& /*fiber*/) {
    const FiberOptions options = {.key = "order 1"};
    co_return co_await run_fiber<int>("charge", "1", options);
  }

  Task<Json> echo(Json input, FiberContext& /*fiber*/) {
    co_await sleep(milliseconds(10));
    done.emplace_back("echo");
    co_return input;
  }
  Task<Json> timed(FiberContext& /*fiber*/) {
    const Json input = {{"at", now().time_since_epoch().count()}};
    const Json heard = co_await run_fiber<Json>("echo", input);
    co_await sleep(milliseconds(10));
    co_return heard;
  }

  int tick(FiberContext& /*fiber*/) { return ++ticks; }
  Task<Json> cyclic(FiberContext& fiber) {
    const FiberOptions kept = {.keep_record = true};
    Json seen = Json::array();
    for (const char* const phase : {"red", "green", "red"}) {
      fiber.stash(phase);
      const int tick = co_await run_fiber<int>("tick", Json(), kept);
      seen.push_back(tick);
    }
    co_return seen;
  }

  // Waits for one inner fiber after the other; each waits for one more.
  Task<void> whole(FiberContext& /*fiber*/) {
    try {
      for (int i = 0; i < 3; ++i) co_await run_fiber<int>("part", i);
    } catch (const hearth::Error& failure) {
      done.emplace_back(failure.what());
    }
    try {
      co_await run_fiber<int>("part", 9);
    } catch (const hearth::HostError& refusal) {
      done.emplace_back(hearth::status_name(refusal.code()));
    }
  }
  Task<int> part(int number, FiberContext& /*fiber*/) {
    const Leaver leaver;
    const auto leaf = [this](FiberContext&) -> Task<int> {
      const Leaver inner_leaver;
      co_await sleep(milliseconds(10));
      co_return 1;
    };
    co_await run_fiber("leaf", leaf);
    done.push_back("part " + std::to_string(number));
    co_return number;
  }
  // The work cancels the outermost fiber that it belongs to.
  Task<void> traitor(FiberContext& /*fiber*/) {
    const auto leaf = [this](FiberContext&) -> Task<int> {
      const Leaver leaver;
      co_await sleep(milliseconds(10));
      cancel_fiber_by_key("traitor", "enough");
      done.emplace_back("told");
      co_await sleep(milliseconds(10));
      done.emplace_back("went on");
      co_return 1;
    };
    co_await run_fiber("leaf", leaf);
  }
  void begin_traitor() { start_fiber("traitor", nullptr, {.key = "traitor"}); }
  bool cancel_id(const std::string& id) { return cancel_fiber(id, "enough"); }

  std::string begin(const std::string& name) {
    return start_fiber(name, nullptr, {.keep_record = true, .max_retries = 1}).id();
  }

 protected:
  template <class T>
  static void list(hearth::Methods<T>& m) {
    m.fiber("slow", &T::slow);
    m.fiber("gives up", &T::gives_up);
    m.fiber("gives up slowly", &T::gives_up_slowly);
    m.fiber("steps", &T::steps);
    m.fiber("charge", &T::charge);
    m.fiber("order", &T::order);
    m.fiber("echo", &T::echo);
    m.fiber("timed", &T::timed);
    m.fiber("tick", &T::tick);
    m.fiber("cyclic", &T::cyclic);
    m.fiber("whole", &T::whole);
    m.fiber("part", &T::part);
    m.fiber("traitor", &T::traitor);
    m.add("await_listed", &T::await_listed);
    m.add("await_given", &T::await_given);
    m.add("cancel", &T::cancel);
    m.add("cancel_id", &T::cancel_id);
    m.add("begin_traitor", &T::begin_traitor);
    m.add("begin", &T::begin);
  }
};

// It is asked about each, and leaves them alone.
class Asked : public Parent {
 public:
  static void methods(hearth::Methods<Asked>& m) { list(m); }
  Task<void> on_fiber_recovered(const hearth::RecoveredFiber& /*fiber*/) override { return {}; }
};

class NestedFiberTest : public OneAgent<Parent> {
 protected:
  NestedFiberTest() {
    done.clear();
    ticks = failures_left = 0;
  }
  // Of the fiber with this id.
  Json record(const AgentHandle& agent, const Json& id) {
    for (const Json& each : agent.fiber_records()) {
      if (each.at("id") == id) return each;
    }
    return {};
  }
};

// ---- a cancel -----------------------------------------------------------------------------------

TEST_F(NestedFiberTest, WhoRunsAFiberHearsOfItsCancelAtOnceWhateverTheWorkDoes) {
  for (const char* const method : {"await_listed", "await_given"}) {
    done.clear();
    auto waits = agent_.start(method, "slow");
    host_.advance(milliseconds(1));
    EXPECT_EQ(agent_.call("cancel"), true);
    ASSERT_TRUE(waits.done()) << method;
    EXPECT_EQ(waits.error(), "enough") << method;
    host_.advance(hours(1));
    EXPECT_EQ(done, Lines({"ended"})) << method;
    EXPECT_TRUE(agent_.fibers().empty()) << method;
  }
}

TEST_F(NestedFiberTest, WhoRunsAFiberThatCancelsItselfHearsOfThat) {
  for (const char* const method : {"await_listed", "await_given"}) {
    for (const char* const name : {"gives up", "gives up slowly"}) {
      const auto waits = agent_.start(method, name);
      ASSERT_TRUE(waits.done()) << method << " " << name;
      EXPECT_EQ(waits.error(), "enough") << method << " " << name;
    }
  }
  host_.advance(hours(1));
  EXPECT_EQ(done, Lines({"ended", "ended"}));
}

TEST_F(NestedFiberTest, ACancelEndsTheInnerFibersAndBeginsNoOthers) {
  const Json id = agent_.call("begin", "whole");
  host_.advance(milliseconds(15));
  ASSERT_EQ(done, Lines({"left", "part 0", "left"})) << "the second part waits for its leaf";
  done.clear();
  EXPECT_EQ(agent_.call("cancel_id", id), true);
  EXPECT_EQ(done, Lines({"left", "left", "enough", "GONE"}));
  EXPECT_TRUE(agent_.fibers().empty());
  host_.advance(minutes(1));
  agent_.kill();
  host_.advance(minutes(1));
  EXPECT_EQ(done, Lines({"left", "left", "enough", "GONE"}));
}

TEST_F(NestedFiberTest, ACancelEndsThoseThatAreInterruptedToo) {
  const Json id = agent_.call("begin", "whole");
  host_.advance(milliseconds(5));
  agent_.kill();
  done.clear();
  EXPECT_EQ(agent_.call("cancel_id", id), true);
  host_.advance(minutes(1));
  EXPECT_TRUE(agent_.fibers().empty());
  EXPECT_EQ(std::ranges::count(done, "part 0"), 0);
}

TEST_F(NestedFiberTest, AnInnerFiberThatCancelsItsOuterOneGoesOnToItsNextWait) {
  agent_.call("begin_traitor");
  host_.advance(milliseconds(10));
  EXPECT_EQ(done, Lines({"told", "left"}));
  host_.advance(minutes(1));
  EXPECT_EQ(done, Lines({"told", "left"}));
  EXPECT_TRUE(agent_.fibers().empty());
}

// ---- functions that only one instance has -------------------------------------------------------

TEST_F(NestedFiberTest, AStepThatHasToWaitGoesOnUnderAHookToo) {
  // Whether the step or its parent has to wait longer is chance.
  constexpr std::size_t kAgents = 12;
  std::vector<AgentHandle> agents;
  std::vector<Json> ids;
  for (std::size_t i = 0; i < kAgents; ++i) {
    agents.push_back(host_.create<Asked>("asked " + std::to_string(i)));
    ids.push_back(agents.back().call("begin", "steps"));
  }
  for (int kill = 0; kill < 2; ++kill) {
    host_.advance(milliseconds(5));
    for (AgentHandle& agent : agents) agent.kill();
    host_.advance(milliseconds(0));
  }
  host_.advance(minutes(1));
  for (std::size_t i = 0; i < kAgents; ++i) {
    EXPECT_EQ(record(agents[i], ids[i]).at("result"), 1) << i;
    EXPECT_EQ(agents[i].fiber_records().size(), 1U) << i;
  }
}

// ---- keys ---------------------------------------------------------------------------------------

TEST_F(NestedFiberTest, ARetryOfTheParentBeginsAnewWhatHasFailedUnderItsOwnKey) {
  failures_left = 1;
  const Json id = agent_.call("begin", "order");
  host_.advance(minutes(1));
  EXPECT_EQ(record(agent_, id).at("result"), 5);
  EXPECT_EQ(done, Lines({"charge 1", "charge 1"}));
}

TEST_F(NestedFiberTest, WhatGoesOnKeepsItsInputThoughItsParentComputesAnotherOne) {
  const Json id = agent_.call("begin", "timed");
  const Json begun_at = agent_.as<Parent>().now().time_since_epoch().count();
  host_.advance(milliseconds(5));
  agent_.kill();  // in the middle of the echo
  host_.advance(milliseconds(15));
  agent_.kill();  // after it
  host_.advance(minutes(1));
  EXPECT_EQ(record(agent_, id).at("result"), Json({{"at", begun_at}}));
  EXPECT_EQ(done, Lines({"echo"}));
}

TEST_F(NestedFiberTest, TheSameCheckpointAgainIsAnotherPlaceInTheRun) {
  const Json id = agent_.call("begin", "cyclic");
  EXPECT_EQ(record(agent_, id).at("result"), Json({1, 2, 3}));
  EXPECT_EQ(agent_.fiber_records().size(), 4U) << "their records are kept";
}

}  // namespace
}  // namespace nested_fiber_tests
