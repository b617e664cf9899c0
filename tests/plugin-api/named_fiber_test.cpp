// Fibers whose function is listed under a name, so that the host can call it again.
#include "fields.hpp"
#include "one_agent.hpp"

#include <hearth/agent.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace named_fiber_tests {
namespace {

using hearth::FiberContext;
using hearth::FiberOptions;
using hearth::FiberRecord;
using hearth::Json;
using hearth::RecoveredFiber;
using hearth::Task;
using hearth::testing::AgentHandle;
using std::chrono::milliseconds;
using std::chrono::minutes;
using Lines = std::vector<std::string>;

Lines done;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): across instances
int failures_left = 0;      // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::string hook = "none";  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::string plan;           // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

struct Trip {
  std::string to;
  int steps = 3;
  HEARTH_FIELDS(to, steps)
  HEARTH_REQUIRED(to)
};

// Versions of it differ in what they list.
class Traveller : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Traveller>& m) {
    m.fiber("trip", &Traveller::trip);
    m.fiber("tick", &Traveller::tick);
    m.fiber("flaky", &Traveller::flaky);
    m.fiber("tour", &Traveller::tour);
    m.fiber("stages", &Traveller::stages);
    m.fiber("patient", &Traveller::patient);
    m.add("go", &Traveller::go);
    m.add("travel", &Traveller::travel);
    m.add("unknown", &Traveller::unknown);
    m.add("wrong", &Traveller::wrong);
    m.add("missing", &Traveller::missing);
    m.add("on_tour", &Traveller::on_tour);
    m.add("wait", &Traveller::wait);
    m.add("two", &Traveller::two);
  }

  // A step of 10 ms each.
  Task<std::string> trip(Trip trip, FiberContext& fiber) {
    for (int step = fiber.snapshot<int>().value_or(0) + 1; step <= trip.steps; ++step) {
      co_await sleep(milliseconds(10));
      done.push_back(trip.to + " " + std::to_string(step));
      if (fiber.stop_token().stop_requested()) co_return "stopped";
      fiber.stash(step);
    }
    co_return "in " + trip.to;
  }
  void tick(FiberContext& fiber) const { done.push_back("tick " + fiber.name()); }
  Task<int> flaky(FiberContext& /*fiber*/) {
    co_await sleep(milliseconds(1));
    done.emplace_back("tried");
    if (failures_left-- > 0) throw std::runtime_error("no luck");
    co_return 7;
  }
  // Two trips. The next instance need not repeat a finished trip.
  Task<Json> tour(FiberContext& fiber) {
    done.emplace_back("tour");
    Json been = Json::array();
    const Trip rome = {"Rome", 2};
    const Trip oslo = {"Oslo", 2};
    been.push_back(co_await run_fiber<std::string>("trip", rome));
    const auto rest = [this](FiberContext&) -> Task<int> {
      co_await sleep(milliseconds(10));
      done.emplace_back("rest");
      if (failures_left-- > 0) throw std::runtime_error("no rest");
      co_return 1;
    };
    been.push_back(co_await run_fiber("rest", rest));
    been.push_back(co_await run_fiber<std::string>("trip", oslo));
    static_cast<void>(fiber);
    co_return been;
  }

  // A step and a checkpoint, again and again.
  Task<Json> stages(FiberContext& fiber) {
    Json been = fiber.snapshot().is_null() ? Json::array() : fiber.snapshot();
    while (been.size() < 4) {
      const int stage = static_cast<int>(been.size()) + 1;
      const auto step = [this, stage](FiberContext&) -> Task<int> {
        co_await sleep(milliseconds(10));
        done.push_back("stage " + std::to_string(stage));
        co_return stage;
      };
      been.push_back(co_await run_fiber("stage", step));
      fiber.stash(been);
      co_await sleep(milliseconds(10));
    }
    co_return been;
  }
  // The fiber that it waits for fails first, and has retries.
  Task<int> patient(FiberContext& /*fiber*/) {
    const auto step = [this](FiberContext& step) { return flaky(step); };
    const FiberOptions options = {.max_retries = 3};
    co_return co_await run_fiber("step", step, options);
  }

  std::string go(const Trip& trip, const std::optional<std::string>& key,
                 std::optional<bool> keep) {
    FiberOptions options;
    options.key = key;
    options.keep_record = keep.value_or(false);
    return start_fiber("trip", trip, options).id();
  }
  Task<std::string> travel(Trip trip) { co_return co_await run_fiber<std::string>("trip", trip); }
  void unknown() { start_fiber("no such fiber", 1); }
  void wrong() { start_fiber("trip", {{"to", 5}}); }
  void missing() { start_fiber("trip", {{"steps", 5}}); }
  std::string on_tour() { return start_fiber("tour", nullptr, {.keep_record = true}).id(); }
  Task<FiberRecord> wait(std::string id) { co_return co_await wait_fiber(id); }
  std::vector<std::string> two() {
    return {start_fiber("trip", Trip{"A", 1}).id(), start_fiber("trip", Trip{"B", 1}).id()};
  }
};

// The same, and decides itself.
class Decider : public Traveller {
 public:
  static void methods(hearth::Methods<Decider>& m) {
    m.fiber("trip", &Decider::trip);
    m.add("go", &Decider::go);
    m.add("wait", &Decider::wait);
    m.add("two", &Decider::two);
  }
  Task<void> on_fiber_recovered(const RecoveredFiber& fiber) override {
    done.push_back("asked about " + fiber.input.at("to").get<std::string>());
    if (hook == "settle") settle_fiber(fiber, hearth::FiberOutcome::completed("by the hook"));
    if (hook == "continue") continue_fiber(fiber);
    if (hook == "cancel") cancel_fiber(fiber.id);
    if (hook == "begin") start_fiber(fiber.name, Trip{"Oslo", 1});
    if (hook == "begin it") start_fiber(fiber.name, fiber.input);
    if (hook == "other")
      continue_fiber(fiber, [](FiberContext& next) { done.push_back("other " + next.name()); });
    return {};
  }
  Task<hearth::RecoveryPlan> on_fibers_recovered(
      const std::vector<hearth::InterruptedFiber>& fibers) override {
    done.push_back("planned " + std::to_string(fibers.size()));
    hearth::RecoveryPlan answer;
    if (plan == "skip the first") answer.skip = {fibers.front().id};
    if (plan == "skip the last") answer.skip = {fibers.back().id};
    return answer;
  }
};

// Its hook waits for the end of the fiber.
class Awaiter : public Traveller {
 public:
  static void methods(hearth::Methods<Awaiter>& m) {
    m.fiber("flaky", &Awaiter::flaky);
    m.add("begin", &Awaiter::begin);
  }
  void begin() { start_fiber("flaky", nullptr, {.keep_record = true, .max_retries = 5}); }
  Task<void> on_fiber_recovered(const RecoveredFiber& fiber) override {
    if (fiber.reason != "retry") continue_fiber(fiber);
    if (fiber.reason == "retry") co_return;
    const FiberRecord record = co_await wait_fiber(fiber.id);
    done.push_back("heard of " + hearth::to_text(record.result));
  }
};

// A version that has never heard of trips.
class Homebody : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Homebody>& m) {
    m.add("list", &Homebody::list);
    m.add("dead", &Homebody::dead);
    m.add("wait", &Homebody::wait);
    m.add("cancel", &Homebody::cancel);
  }
  std::vector<FiberRecord> list() { return list_fibers(); }
  std::vector<FiberRecord> dead() { return list_fibers({.dead = true}); }
  Task<FiberRecord> wait(std::string id) { co_return co_await wait_fiber(id); }
  bool cancel(const std::string& key) { return cancel_fiber_by_key(key, "nobody can"); }
};

// Asks for its work whenever it starts.
class Starter : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Starter>& m) { m.fiber("listed", &Starter::work); }
  Task<void> on_start() override {
    start_fiber("listed", nullptr, {.key = "listed"});
    start_fiber("lambda", [this](FiberContext& fiber) { return work(fiber); }, {.key = "lambda"});
    return {};
  }
  Task<void> work(FiberContext& fiber) {
    for (int step = fiber.snapshot<int>().value_or(0) + 1; step <= 3; ++step) {
      co_await sleep(milliseconds(10));
      done.push_back(fiber.name() + " " + std::to_string(step));
      fiber.stash(step);
    }
  }
};

class NamedFiberTest : public OneAgent<Traveller> {
 protected:
  NamedFiberTest() {
    done.clear();
    failures_left = 0;
    hook = "none";
    plan.clear();
  }
  std::size_t count(const std::string& step) {
    std::size_t times = 0;
    for (const std::string& each : agent_.steps()) times += each.starts_with(step) ? 1U : 0U;
    return times;
  }
};

// ---- beginning ----------------------------------------------------------------------------------

TEST_F(NamedFiberTest, ItsFunctionGetsTheInputAndItsValueReachesWhoWaits) {
  auto travel = agent_.start("travel", Trip{"Rome", 2});
  host_.advance(milliseconds(20));
  EXPECT_EQ(travel.value(), "in Rome");
  EXPECT_EQ(done, Lines({"Rome 1", "Rome 2"}));
  EXPECT_EQ(agent_.fiber_records(), Json::array()) << "without keep_record nothing is left";
}

TEST_F(NamedFiberTest, AKeyWithAnotherInputIsAConflictForTheCallerToo) {
  agent_.call("go", Trip{"Rome", 1}, "k");
  const auto other = agent_.start("go", Trip{"Oslo", 1}, "k");
  EXPECT_EQ(other.status(), HEARTH_E_CONFLICT);
  EXPECT_EQ(other.error(), "a fiber of this id or key has another name or input");
}

TEST_F(NamedFiberTest, WithARecordItsValueIsThereLater) {
  const Json id = agent_.call("go", Trip{"Rome", 1}, "k", true);
  host_.advance(milliseconds(10));
  EXPECT_EQ(fields(agent_.call("wait", id), {"result", "input"}),
            Json({"in Rome", Trip{"Rome", 1}}));
  EXPECT_EQ(agent_.call("go", Trip{"Rome", 1}, "k", true), id) << "the key is taken";
}

TEST_F(NamedFiberTest, WithoutARecordAKeyIsFreeAgainWhenTheWorkHasEnded) {
  const Json id = agent_.call("go", Trip{"Rome", 1}, "k");
  EXPECT_EQ(agent_.call("go", Trip{"Rome", 1}, "k"), id) << "it runs";
  host_.advance(milliseconds(10));
  EXPECT_NE(agent_.call("go", Trip{"Rome", 1}, "k"), id);
  EXPECT_EQ(agent_.start("go", Trip{"Oslo", 1}, "k").error(),
            "a fiber of this id or key has another name or input");
}

TEST_F(NamedFiberTest, AnUnknownNameAndAWrongInputBeginNothing) {
  EXPECT_EQ(agent_.start("unknown").error(),
            "the class AgentUnderTest lists no fiber no such fiber: m.fiber(\"...\", "
            "&Class::function)");
  EXPECT_EQ(agent_.start("wrong").error(), "input.to: expected string");
  EXPECT_EQ(agent_.start("missing").error(), "input.to: missing, expected string");
  EXPECT_TRUE(agent_.fibers().empty());
}

// ---- beginning again ----------------------------------------------------------------------------

TEST_F(NamedFiberTest, AfterAKillItIsCalledAgainWithItsInputAndItsLastCheckpoint) {
  const Json id = agent_.call("go", Trip{"Rome", 3}, "k", true);
  host_.advance(milliseconds(15));
  agent_.kill();
  host_.advance(milliseconds(20));
  EXPECT_EQ(done, Lines({"Rome 1", "Rome 2", "Rome 3"}));
  EXPECT_EQ(agent_.call("wait", id).at("result"), "in Rome");
  EXPECT_EQ(count("fiber:recovery:handled"), 1U);
}

TEST_F(NamedFiberTest, AHookMayWaitForTheFiberThatItContinuesThoughThatFailsAndBeginsAgain) {
  auto agent = host_.create<Awaiter>("awaiter");
  failures_left = 2;
  agent.call("begin");
  agent.kill();
  host_.advance(std::chrono::minutes(5));
  EXPECT_EQ(done, Lines({"tried", "tried", "tried", "heard of 7"}));
  EXPECT_TRUE(agent.fibers().empty());
}

TEST_F(NamedFiberTest, ItIsCalledAgainInEachInstanceAndEndsOnce) {
  agent_.call("go", Trip{"Rome", 9}, "k", true);
  for (int kill = 0; kill < 8; ++kill) {
    host_.advance(milliseconds(10));
    kill % 2 == 0 ? agent_.kill() : agent_.evict();
    host_.advance(milliseconds(0));
  }
  host_.advance(milliseconds(20));
  EXPECT_EQ(agent_.fiber_records()[0].at("result"), "in Rome");
  EXPECT_EQ(done.size(), 9U);
}

TEST_F(NamedFiberTest, AFailedAttemptBeginsAgainAndIsNoRecovery) {
  failures_left = 2;
  auto& traveller = agent_.as<Traveller>();
  const std::string id =
      traveller.start_fiber("flaky", nullptr, {.keep_record = true, .max_retries = 3}).id();
  auto wait = agent_.start("wait", id);
  host_.advance(minutes(1));
  EXPECT_EQ(wait.value().at("result"), 7);
  EXPECT_EQ(done.size(), 3U);
  EXPECT_EQ(count("fiber:run:started"), 3U);
  EXPECT_EQ(count("fiber:run:retry no luck"), 2U);
  EXPECT_EQ(count("fiber:run:completed"), 1U);
  EXPECT_EQ(count("fiber:recovery"), 0U);
}

TEST_F(NamedFiberTest, ARetryThatWaitsSurvivesARestartWithItsErrorAndItsCount) {
  failures_left = 1;
  agent_.as<Traveller>().start_fiber("flaky", nullptr, {.keep_record = true, .max_retries = 3});
  host_.advance(milliseconds(1));
  agent_.kill();
  const Json record = agent_.fiber_records()[0];
  EXPECT_EQ(fields(record, {"status", "error", "failures"}), Json({"pending", "no luck", 1}));
  EXPECT_TRUE(record.at("next_at").is_number());
  host_.advance(minutes(1));
  EXPECT_EQ(agent_.fiber_records()[0].at("result"), 7);
  EXPECT_EQ(count("fiber:recovery:attempt"), 0U) << "a retry, also in another instance";
}

TEST_F(NamedFiberTest, WhoRunsAFiberWaitsForItsRetriesToo) {
  failures_left = 1;
  class Waits : public Traveller {
   public:
    static void methods(hearth::Methods<Waits>& m) {
      m.fiber("flaky", &Waits::flaky);
      m.add("named", &Waits::named);
      m.add("lambda", &Waits::lambda);
    }
    Task<int> named() {
      const FiberOptions once_more = {.max_retries = 1};
      co_return co_await run_fiber<int>("flaky", nullptr, once_more);
    }
    Task<int> lambda() {
      const auto work = [this](FiberContext& fiber) { return flaky(fiber); };
      const FiberOptions once_more = {.max_retries = 1};
      co_return co_await run_fiber("work", work, once_more);
    }
  };
  auto waits = host_.create<Waits>("w");
  for (const char* const method : {"named", "lambda"}) {
    failures_left = 1;
    auto call = waits.start(method);
    host_.advance(minutes(1));
    EXPECT_EQ(call.value(), 7) << method;
    failures_left = 2;
    auto fails = waits.start(method);
    host_.advance(minutes(1));
    EXPECT_EQ(fails.error(), "no luck") << method;
  }
}

TEST_F(NamedFiberTest, CheckpointsAreSteps) {
  agent_.call("go", Trip{"Rome", 3});
  host_.advance(milliseconds(30));
  EXPECT_EQ(count("fiber:stash"), 3U);
}

// ---- versions -----------------------------------------------------------------------------------

TEST_F(NamedFiberTest, AVersionThatDoesNotKnowTheNameLeavesItForOneThatDoes) {
  agent_.call("go", Trip{"Rome", 3}, "k");
  host_.advance(milliseconds(10));
  agent_.become<Homebody>();
  for (int life = 0; life < 30; ++life) {  // more often than there are attempts
    agent_.wake();
    host_.advance(minutes(60));
    agent_.evict();
  }
  agent_.wake();
  host_.advance(milliseconds(0));
  EXPECT_EQ(fields(agent_.call("list").at(0), {"waits_for_code", "status", "attempts"}),
            Json({true, "recovering", 0}))
      << "it costs no attempt";
  agent_.become<Traveller>();
  agent_.wake();
  host_.advance(milliseconds(20));
  EXPECT_EQ(done, Lines({"Rome 1", "Rome 2", "Rome 3"}));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(NamedFiberTest, WhatWaitsForAVersionWaitsForAsLongAsItTakesUnlessItIsCancelled) {
  const Json id = agent_.call("go", Trip{"Rome", 3}, "k");
  agent_.call("go", Trip{"Oslo", 3}, "other");
  agent_.become<Homebody>();
  agent_.wake();
  host_.advance(milliseconds(0));
  EXPECT_EQ(agent_.call("cancel", "other"), true);
  auto wait = agent_.start("wait", id);
  host_.advance(std::chrono::hours(24 * 30));
  agent_.call("list");  // then its work is looked at
  host_.advance(minutes(2));
  EXPECT_EQ(wait.error(), "the agent did not answer in time");
  EXPECT_EQ(agent_.call("list").size(), 1U);
  EXPECT_EQ(agent_.call("dead"), Json::array());
  EXPECT_EQ(count("fiber:expired"), 0U);
  agent_.become<Traveller>();
  agent_.wake();
  host_.advance(minutes(1));
  agent_.become<Homebody>();
  EXPECT_EQ(agent_.call("list"), Json::array()) << "a version that knows it has ended it";
}

// ---- the hook -----------------------------------------------------------------------------------

class DeciderTest : public NamedFiberTest {
 protected:
  // Interrupted after its first step.
  void interrupt() {
    decider_.call("go", Trip{"Rome", 2}, "k", true);
    host_.advance(milliseconds(10));
    decider_.kill();
    host_.advance(milliseconds(20));
  }
  Json record() { return decider_.fiber_records()[0]; }

  AgentHandle decider_ = host_.create<Decider>("d");
};

TEST_F(DeciderTest, AHookThatDoesNothingLetsTheListedFunctionGoOn) {
  interrupt();
  EXPECT_EQ(done, Lines({"Rome 1", "planned 1", "asked about Rome", "Rome 2"}));
  EXPECT_EQ(record().at("result"), "in Rome");
}

TEST_F(DeciderTest, AHookMayContinueSettleCancelOrTakeAnotherFunction) {
  struct Case {
    std::string hook, status;
    Lines done;
  };
  for (const Case& each : std::vector<Case>{
           {"continue", "completed", {"Rome 1", "planned 1", "asked about Rome", "Rome 2"}},
           {"settle", "completed", {"Rome 1", "planned 1", "asked about Rome"}},
           {"cancel", "aborted", {"Rome 1", "planned 1", "asked about Rome"}},
           {"other", "completed", {"Rome 1", "planned 1", "asked about Rome", "other trip"}}}) {
    done.clear();
    hook = each.hook;
    decider_ = host_.create<Decider>(each.hook);
    interrupt();
    EXPECT_EQ(done, each.done) << each.hook;
    EXPECT_EQ(record().at("status"), each.status) << each.hook;
  }
}

TEST_F(DeciderTest, AListedFiberThatItsHookBeginsContinuesItIfTheInputIsTheSame) {
  for (const auto& [what, is_another] : {std::pair("begin", true), std::pair("begin it", false)}) {
    done.clear();
    hook = what;
    auto agent = host_.create<Decider>(what);
    agent.call("go", Trip{"Rome", 2});
    host_.advance(milliseconds(10));
    agent.kill();
    host_.advance(milliseconds(0));
    EXPECT_EQ(agent.fibers().size(), is_another ? 2U : 1U) << what;
    host_.advance(milliseconds(20));
    EXPECT_EQ(std::count(done.begin(), done.end(), "Rome 2"), 1) << what;
    EXPECT_EQ(std::count(done.begin(), done.end(), "Oslo 1"), is_another ? 1 : 0) << what;
  }
}

TEST_F(DeciderTest, APlanSkipsWhatItNames) {
  for (const auto& [what, left] :
       {std::pair("skip the first", "B 1"), std::pair("skip the last", "A 1")}) {
    done.clear();
    plan = what;
    auto agent = host_.create<Decider>(what);
    agent.call("two");
    agent.kill();
    host_.advance(milliseconds(20));
    EXPECT_EQ(done.front(), "planned 2");
    EXPECT_EQ(done.back(), left);
    EXPECT_EQ(done.size(), 3U) << what;
    EXPECT_TRUE(agent.fibers().empty());
  }
}

// ---- keys ---------------------------------------------------------------------------------------

TEST_F(NamedFiberTest, WorkThatEachStartAsksForUnderAKeyIsThereOnceAndGoesOn) {
  auto starter = host_.create<Starter>("s");
  starter.wake();
  for (int life = 0; life < 3; ++life) {
    host_.advance(milliseconds(10));
    EXPECT_EQ(starter.fibers().size(), life < 2 ? 2U : 0U);
    starter.kill();
    if (life < 2) host_.advance(milliseconds(0));
  }
  EXPECT_EQ(done, Lines({"listed 1", "lambda 1", "listed 2", "lambda 2", "listed 3", "lambda 3"}));
}

TEST_F(NamedFiberTest, AfterAKillAFiberFindsTheValuesOfThoseItWaitedFor) {
  const Json id = agent_.call("on_tour");
  host_.advance(milliseconds(25));  // Rome is behind it, and it rests
  agent_.kill();
  host_.advance(milliseconds(15));
  agent_.kill();                       // on the way to Oslo
  host_.advance(milliseconds(2'000));  // the wait before a recovery that follows an interrupted one
  const Json record = agent_.call("wait", id);
  EXPECT_EQ(record.at("result"), Json({"in Rome", 1, "in Oslo"}));
  EXPECT_EQ(std::count(done.begin(), done.end(), "Rome 1"), 1);
  EXPECT_EQ(std::count(done.begin(), done.end(), "rest"), 1);
  EXPECT_EQ(std::count(done.begin(), done.end(), "Oslo 2"), 1);
  EXPECT_EQ(std::count(done.begin(), done.end(), "tour"), 3);
  EXPECT_EQ(agent_.fiber_records().size(), 1U) << "their values go with the one that needed them";
}

TEST_F(NamedFiberTest, AfterACheckpointTheNextFiberOfTheSameNameIsAnotherOne) {
  auto& traveller = agent_.as<Traveller>();
  traveller.start_fiber("stages", nullptr, {.keep_record = true});
  for (int kill = 0; kill < 6; ++kill) {
    host_.advance(milliseconds(15));
    EXPECT_LE(agent_.fiber_records().size(), 2U) << "what a checkpoint covers is not kept";
    agent_.kill();
    host_.advance(milliseconds(0));
  }
  host_.advance(milliseconds(100));
  EXPECT_EQ(done, Lines({"stage 1", "stage 2", "stage 3", "stage 4"}));
  ASSERT_EQ(agent_.fiber_records().size(), 1U);
  EXPECT_EQ(agent_.fiber_records()[0].at("result"), Json({1, 2, 3, 4}));
}

TEST_F(NamedFiberTest, AFunctionThatIsNotListedGoesOnAfterItsWaitIfItWasAskedForAgain) {
  failures_left = 2;
  agent_.as<Traveller>().start_fiber("patient", nullptr, {.keep_record = true});
  host_.advance(milliseconds(1));  // it has failed, and waits for its retry
  agent_.kill();
  host_.advance(milliseconds(0));  // its parent asks for it again, and it has to wait
  host_.advance(minutes(1));
  EXPECT_EQ(agent_.fiber_records()[0].at("result"), 7);
  EXPECT_EQ(done.size(), 3U);
}

TEST_F(NamedFiberTest, DeletingRecordsLeavesTheValuesThatAFiberNeeds) {
  const Json id = agent_.call("on_tour");
  host_.advance(milliseconds(25));
  EXPECT_EQ(agent_.as<Traveller>().delete_fibers(), 0U);
  agent_.kill();
  host_.advance(milliseconds(60));
  EXPECT_EQ(agent_.call("wait", id).at("result"), Json({"in Rome", 1, "in Oslo"}));
  EXPECT_EQ(std::count(done.begin(), done.end(), "Rome 1"), 1);
}

TEST_F(NamedFiberTest, ARetriedFiberAsksAgainOnlyForWhatHasFailed) {
  failures_left = 1;  // of the rest
  agent_.as<Traveller>().start_fiber("tour", nullptr, {.keep_record = true, .max_retries = 1});
  host_.advance(minutes(1));
  EXPECT_EQ(agent_.fiber_records()[0].at("result"), Json({"in Rome", 1, "in Oslo"}));
  EXPECT_EQ(std::count(done.begin(), done.end(), "Rome 1"), 1);
  EXPECT_EQ(std::count(done.begin(), done.end(), "rest"), 2);
}

// ---- the end ------------------------------------------------------------------------------------

TEST_F(NamedFiberTest, ACancelledFiberStaysCancelledAfterAKillWithARecordOrWithout) {
  for (const bool keep : {false, true}) {
    done.clear();
    const std::string id = agent_.call("go", Trip{"Rome", 5}, "k", keep).get<std::string>();
    host_.advance(milliseconds(10));
    EXPECT_TRUE(agent_.as<Traveller>().cancel_fiber(id, "not now"));
    EXPECT_FALSE(agent_.as<Traveller>().cancel_fiber(id));
    agent_.kill();
    host_.advance(minutes(1));
    EXPECT_EQ(done, Lines({"Rome 1"}));
    EXPECT_EQ(agent_.fiber_records().size(), keep ? 1U : 0U);
    EXPECT_EQ(count("fiber:cancelled"), keep ? 2U : 1U);
  }
  EXPECT_EQ(fields(agent_.fiber_records()[0], {"status", "error"}), Json({"aborted", "not now"}));
}

TEST_F(NamedFiberTest, WhoWaitsForOneWithoutARecordGetsItsEndOnce) {
  const Json id = agent_.call("go", Trip{"Rome", 1});
  auto first = agent_.start("wait", id);
  host_.advance(milliseconds(10));
  EXPECT_EQ(first.value().at("result"), "in Rome");
  EXPECT_EQ(agent_.start("wait", id).error(), "no fiber has this id");
}

}  // namespace
}  // namespace named_fiber_tests
