// Agents change from one version of their class to another, or wait for it.
#include "runtime/class_rollout.hpp"

#include "runtime/fakes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using namespace testing;

class ClassRolloutTest : public ::testing::Test {
 protected:
  ClassRolloutTest() {
    answer_as("old", shard_.script);
    shard_.runtime().classes().news()->listen([this] { has_news_ = true; });
    shard_.runtime().classes().news()->want(true);
  }
  ~ClassRolloutTest() override { shard_.runtime().classes().news()->listen(nullptr); }

  // Its agents answer calls with `text`.
  static void answer_as(const std::string& text, Script& script) {
    script.on_event = [text = "\"" + text + "\"", &script](
                          HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kCall && event.name == "wait") {
        script.open_calls.push_back(event.call);
        return {};
      }
      if (event.kind == EventKind::kCall && event.name == "finish") {
        if (const auto done = host.complete(script.open_calls.back(), std::string_view(text));
            !done)
          return done;
      }
      if (event.call == 0) return {};
      return host.complete(
          event.call, event.kind == EventKind::kCall ? std::string_view(text) : std::string_view());
    };
  }
  std::shared_ptr<const ServedClass> version(const std::string& text, Script& script) {
    answer_as(text, script);
    return std::make_shared<const ServedClass>(
        ServedClass{"counter", std::make_shared<ScriptedClass>(script), {}});
  }
  // No agent can start on it.
  std::shared_ptr<const ServedClass> failing_version() {
    auto next = version("new", next_script_);
    next_script_.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kStart)
        return host.complete(event.call, Error{Errc::kPlugin, "cannot start"});
      return complete(host, event);
    };
    return next;
  }
  void take_away() {
    const auto old = shard_.runtime().classes().remove("counter");
    shard_.versions().leave(old, EvictReason::kPluginRemoved, false);
    shard_.settle();
  }
  static std::ptrdiff_t starts(const Script& script) {
    return std::ranges::count(script.history, "start |");
  }
  std::shared_ptr<const ServedClass> served() { return shard_.runtime().classes().find("counter"); }

  // What another thread does while the shard runs.
  void meanwhile(const std::function<void()>& act) {
    std::atomic<bool> over = false;
    std::thread other([&] {
      act();
      over = true;
      shard_.loop.post([] {});
    });
    EXPECT_TRUE(shard_.loop.settle_until([&] { return over.load(); }));
    other.join();
    shard_.settle();
  }
  void begin(std::shared_ptr<const ServedClass> next) {
    meanwhile([&] {
      rollout_ = std::make_unique<ClassRollout>(shard_.runtime(), served(), next, settings_,
                                                shard_.loop.clock());
    });
    has_news_ = true;  // the code that begins a rollout looks at it
  }
  // Without news, and before its deadline, a look finds nothing: that is why nothing polls.
  RolloutState look() {
    const auto deadline = rollout_->next_deadline();
    const bool is_due = deadline && *deadline <= shard_.loop.clock().steady_now();
    const bool may_change = has_news_.exchange(false) || is_due;
    const RolloutState before = rollout_->state();
    RolloutState state{};
    meanwhile([&] { state = rollout_->look(); });
    EXPECT_TRUE(may_change || state == before) << to_string(before) << " " << to_string(state);
    return state;
  }
  std::string ask(const ShardFixture::Client& client) {
    return shard_.ask(client, "who")->end.value_or("no answer");
  }
  // A client whose agent runs the old version.
  ShardFixture::Client old_client(const std::string& name = "a") {
    auto client = shard_.connect(name);
    EXPECT_EQ(ask(client), R"(ok "old")");
    return client;
  }
  // Its agent is the one that tries the next version, and cannot start on it.
  ShardFixture::Client client_of_a_failed_trial() {
    settings_.trial_agents = 1;
    auto client = old_client();
    shard_.script.history.clear();
    begin(failing_version());
    return client;
  }

  Script next_script_;
  ShardFixture shard_;
  RolloutSettings settings_{.trial_agents = 0};
  std::unique_ptr<ClassRollout> rollout_;
  std::atomic<bool> has_news_ = false;
};

TEST_F(ClassRolloutTest, LiveAgentsMoveAndTheirClientsStay) {
  const auto client = old_client();
  begin(version("new", next_script_));
  EXPECT_EQ(look(), RolloutState::kDone);
  EXPECT_EQ(shard_.script.alive, 0);
  EXPECT_EQ(ask(client), R"(ok "new")");
  EXPECT_EQ(client.sight->size(), 1U) << "the handshake, and no second one";
}

TEST_F(ClassRolloutTest, ColdAgentsGetTheNewVersion) {
  begin(version("new", next_script_));
  EXPECT_EQ(ask(shard_.connect()), R"(ok "new")");
  EXPECT_EQ(look(), RolloutState::kDone);
}

TEST_F(ClassRolloutTest, ACallInProgressIsToldToTryAgain) {
  const auto answer = shard_.ask(shard_.connect(), "wait");
  begin(version("new", next_script_));
  EXPECT_EQ(answer->end, "error closing: the agent was evicted (code_update); try again");
}

TEST_F(ClassRolloutTest, AFewAgentsTryBeforeTheOthersMove) {
  settings_.trial_agents = 2;
  for (const char* name : {"a", "b", "c", "d"}) (void)old_client(name);
  begin(version("new", next_script_));
  EXPECT_EQ(rollout_->tried(), 2U);
  EXPECT_EQ(shard_.script.alive, 2);
  EXPECT_EQ(next_script_.alive, 2) << "woken at once, though nobody asked them anything";
  EXPECT_EQ(rollout_->state(), RolloutState::kTrying);
  look();
  EXPECT_EQ(shard_.script.alive, 0);
  EXPECT_EQ(look(), RolloutState::kDone);
}

TEST_F(ClassRolloutTest, AVersionOnWhichTooManyFailToStartIsTakenBack) {
  settings_.trial_agents = 2;
  const auto a = old_client("a");
  (void)old_client("b");
  const auto c = old_client("c");
  begin(failing_version());
  EXPECT_EQ(look(), RolloutState::kRolledBack);
  EXPECT_EQ(rollout_->reason(), "2 of the first 2 agents could not start on it");
  EXPECT_EQ(served()->agent_class->version(), "1.0.0");
  EXPECT_EQ(ask(a), R"(ok "old")");
  EXPECT_EQ(ask(c), R"(ok "old")");
  EXPECT_EQ(next_script_.alive, 0);
}

TEST_F(ClassRolloutTest, AVersionThatCannotReadTheWorkInProgressIsTakenBack) {
  settings_.trial_agents = 1;
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kCall)
      EXPECT_TRUE(host.start_managed({.name = "import", .keeping = durable::FiberKeeping::kBrief}));
    return complete(host, event);
  };
  ask(shard_.connect("a"));
  auto next = version("new", next_script_);
  next_script_.on_event =
      on(EventKind::kFiberRecovered,
         fail_with(Errc::kUnreadable, "checkpoint.shop: missing, expected string"));
  begin(std::move(next));
  EXPECT_EQ(look(), RolloutState::kRolledBack);
  EXPECT_EQ(rollout_->reason(),
            "1 of the first 1 agents could not start on it, or not read the work of earlier "
            "versions");
  shard_.settle();
  EXPECT_TRUE(std::ranges::any_of(shard_.script.history, [](const std::string& event) {
    return event.starts_with("fiber_recovered import|");
  })) << "the version before goes on with it";
}

TEST_F(ClassRolloutTest, AgentsOnTheirWayFromElsewhereAreWaitedFor) {
  settings_.trial_agents = 2;
  settings_.awaited = 1;
  begin(failing_version());
  EXPECT_EQ(look(), RolloutState::kTrying) << "though no agent lives";
  ask(shard_.connect("a"));
  EXPECT_EQ(look(), RolloutState::kRolledBack);
  EXPECT_EQ(rollout_->reason(), "1 of the first 1 agents could not start on it");
}

TEST_F(ClassRolloutTest, AVersionThatAllHaveIsTakenBackForAnotherClassOfItsLibrary) {
  const auto a = old_client("a");
  begin(version("new", next_script_));
  EXPECT_EQ(look(), RolloutState::kDone);
  EXPECT_EQ(ask(a), R"(ok "new")");
  meanwhile([&] { rollout_->roll_back("another class failed"); });
  EXPECT_EQ(look(), RolloutState::kRolledBack);
  EXPECT_EQ(ask(a), R"(ok "old")");
  EXPECT_EQ(next_script_.alive, 0);
}

TEST_F(ClassRolloutTest, ATrialEndsThoughSomeNeverStart) {
  settings_.trial_agents = 1;
  settings_.trial_time = seconds(5);
  (void)old_client();
  auto next = version("new", next_script_);
  next_script_.on_event = [](HostCalls&, const AgentEvent&) -> Result<void> { return {}; };
  begin(next);
  EXPECT_EQ(look(), RolloutState::kTrying);
  shard_.loop.advance(seconds(5));
  look();  // the loop may or may not have come to it when this returns
  EXPECT_EQ(look(), RolloutState::kDone);
}

TEST_F(ClassRolloutTest, DrainingWaitsForTheNextIdleMoment) {
  settings_.drain = true;
  const auto busy = shard_.connect("a");
  const auto idle = old_client("b");
  const auto answer = shard_.ask(busy, "wait");
  HostCalls* const busy_host = shard_.script.host;
  EXPECT_EQ(ask(busy), R"(ok "old")");
  begin(version("new", next_script_));
  EXPECT_EQ(shard_.script.alive, 1) << "the idle one has moved";
  EXPECT_EQ(look(), RolloutState::kMoving);
  EXPECT_EQ(ask(busy), R"(ok "old")") << "it works on";
  ASSERT_NE(busy_host, nullptr);
  EXPECT_EQ(answer->end, std::nullopt);
  shard_.loop.advance(settings_.drain_deadline);
  look();
  EXPECT_EQ(look(), RolloutState::kDone);
  EXPECT_EQ(answer->end, "error closing: the agent was evicted (code_update); try again");
  EXPECT_EQ(ask(busy), R"(ok "new")");
}

// ---- draining, and a trial ----------------------------------------------------------------------

TEST_F(ClassRolloutTest, DrainingTriesWithAgentsThatAreIdle) {
  settings_ = {.drain = true, .trial_agents = 1};
  const auto idle = old_client("b");
  const auto busy = shard_.connect("a");
  const auto answer = shard_.ask(busy, "wait");
  begin(version("new", next_script_));
  EXPECT_EQ(rollout_->tried(), 1U);
  EXPECT_EQ(ask(idle), R"(ok "new")");
  EXPECT_EQ(look(), RolloutState::kMoving);
  EXPECT_EQ(ask(busy), R"(ok "old")");
  EXPECT_EQ(answer->end, std::nullopt);
  EXPECT_EQ(shard_.call(busy, "finish")->end, R"(ok "old")");
  shard_.settle();
  EXPECT_EQ(answer->end, R"(ok "old")");
  EXPECT_EQ(look(), RolloutState::kDone);
  EXPECT_EQ(ask(busy), R"(ok "new")");
}

TEST_F(ClassRolloutTest, WhenAllAreBusyDrainingTriesWithWhoeverIsIdleFirst) {
  settings_ = {.drain = true, .trial_agents = 1};
  const auto a = shard_.connect("a");
  const auto b = shard_.connect("b");
  const auto first = shard_.ask(a, "wait");
  const auto second = shard_.ask(b, "wait");
  begin(version("new", next_script_));
  EXPECT_EQ(look(), RolloutState::kTrying);
  EXPECT_EQ(rollout_->tried(), 0U);
  shard_.ask(b, "finish");
  EXPECT_EQ(second->end, R"(ok "old")");
  EXPECT_EQ(rollout_->tried(), 1U);
  EXPECT_EQ(next_script_.alive, 1) << "woken at once, though nobody asked it anything";
  EXPECT_EQ(look(), RolloutState::kMoving);
  EXPECT_EQ(first->end, std::nullopt);
  EXPECT_EQ(ask(b), R"(ok "new")");
  EXPECT_EQ(ask(a), R"(ok "old")");
}

TEST_F(ClassRolloutTest, TheDeadlineOfDrainingHoldsForTheTrialToo) {
  settings_ = {.drain = true, .drain_deadline = seconds(5), .trial_agents = 1};
  const auto busy = shard_.connect("a");
  const auto answer = shard_.ask(busy, "wait");
  begin(version("new", next_script_));
  shard_.loop.advance(milliseconds(4'990));
  EXPECT_EQ(look(), RolloutState::kTrying);
  EXPECT_EQ(answer->end, std::nullopt);
  shard_.loop.advance(milliseconds(10));
  look();
  EXPECT_EQ(answer->end, "error closing: the agent was evicted (code_update); try again");
  EXPECT_EQ(rollout_->tried(), 1U);
  look();  // the loop may or may not have come to it when this returns
  EXPECT_EQ(look(), RolloutState::kDone);
  EXPECT_EQ(ask(busy), R"(ok "new")");
}

TEST_F(ClassRolloutTest, ABusyAgentThatLeavesForAnotherReasonIsNotAwaitedInTheTrial) {
  settings_ = {.drain = true, .trial_agents = 1};
  const auto busy = shard_.connect("a");
  shard_.ask(busy, "wait");
  begin(version("new", next_script_));
  EXPECT_EQ(look(), RolloutState::kTrying);
  shard_.evict("a");
  look();
  EXPECT_EQ(look(), RolloutState::kDone);
  EXPECT_EQ(rollout_->tried(), 0U);
  EXPECT_EQ(ask(busy), R"(ok "new")");
}

// ---- agents that fail while a version is on trial -----------------------------------------------

TEST_F(ClassRolloutTest, WhatWaitsBehindAFailedTrialGoesToTheVersionBefore) {
  const auto client = client_of_a_failed_trial();
  ASSERT_EQ(rollout_->failed(), 1U);
  shard_.say(client, "one");
  shard_.say(client, "two");
  const auto answer = shard_.call(client, "who");
  const auto request = shard_.request("GET");
  const auto stranger = shard_.join();
  EXPECT_EQ(answer->end, std::nullopt);
  EXPECT_EQ(starts(next_script_), 1) << "it is not made again for what comes";
  EXPECT_EQ(look(), RolloutState::kRolledBack);
  EXPECT_EQ(answer->end, R"(ok "old")");
  EXPECT_EQ(request->end, "ok ");
  EXPECT_EQ(client.sight->size(), 1U) << client.sight->back();
  EXPECT_EQ(stranger.sight->size(), 1U);
  EXPECT_TRUE(stranger.sight->back().starts_with("handshake"));
  EXPECT_EQ(shard_.script.history,
            (std::vector<std::string>{
                "destroyed", "start |", "message |one", "message |two", "call who|[]",
                "request GET|", "connecting /agents/counter/a|", "connect /agents/counter/a|"}));
  EXPECT_EQ(starts(next_script_), 1);
}

TEST_F(ClassRolloutTest, WhatWasInterruptedGoesOnOnTheVersionBefore) {
  settings_.trial_agents = 1;
  shard_.script.idempotent_methods = {"wait"};
  const auto client = shard_.connect();
  const auto answer = shard_.ask(client, "wait");
  begin(failing_version());
  EXPECT_EQ(look(), RolloutState::kRolledBack);
  EXPECT_EQ(answer->end, std::nullopt);
  shard_.ask(client, "finish");
  EXPECT_EQ(answer->end, R"(ok "old")");
}

TEST_F(ClassRolloutTest, WhoWaitsBehindAFailedTrialIsToldIfTheVersionStays) {
  settings_.max_failed_percent = 100;
  const auto client = client_of_a_failed_trial();
  const auto answer = shard_.call(client, "who");
  shard_.say(client, "one");
  EXPECT_EQ(answer->end, std::nullopt);
  look();
  EXPECT_EQ(look(), RolloutState::kDone);
  EXPECT_EQ(answer->end, kFailedToStart);
  EXPECT_EQ(client.sight->back(), kClosedForFailedStart);
  EXPECT_EQ(starts(next_script_), 1);
}

TEST_F(ClassRolloutTest, NobodyWaitsForEverForADecision) {
  settings_.trial_time = seconds(5);
  const auto client = client_of_a_failed_trial();
  const auto answer = shard_.call(client, "who");
  shard_.loop.advance(seconds(14));
  EXPECT_EQ(answer->end, std::nullopt);
  shard_.loop.advance(seconds(1));  // without a look
  EXPECT_EQ(answer->end, kFailedToStart);
  EXPECT_EQ(ask(client), kFailedToStart);
  EXPECT_EQ(starts(next_script_), 2);
}

TEST_F(ClassRolloutTest, ARolloutThatIsDroppedLeavesNobodyWaiting) {
  const auto client = client_of_a_failed_trial();
  const auto answer = shard_.ask(client, "who");
  rollout_.reset();
  shard_.settle();
  EXPECT_EQ(answer->end, kFailedToStart);
}

TEST_F(ClassRolloutTest, WhoWaitsBehindAFailedTrialMeetsTheVersionThatOvertakesIt) {
  const auto client = client_of_a_failed_trial();
  const auto answer = shard_.ask(client, "who");
  meanwhile([&] { rollout_->hurry(); });
  auto overtaken = std::move(rollout_);
  Script third;
  begin(version("third", third));
  EXPECT_EQ(answer->end, R"(ok "third")");
  overtaken.reset();
  rollout_.reset();
  shard_.restart();  // its agents run `third`
}

TEST_F(ClassRolloutTest, WhoWaitsBehindAFailedTrialIsToldWhenTheServerStops) {
  const auto client = old_client();
  const auto next = failing_version();
  next->starts->undecided_until = shard_.loop.clock().steady_now() + seconds(60);
  shard_.runtime().classes().put(next);
  shard_.admin().evict({"Counter", "a"});
  const auto answer = shard_.ask(client, "who");
  EXPECT_EQ(answer->end, std::nullopt);
  shard_.restart();
  EXPECT_EQ(answer->end, "error closing: the server is shutting down");
}

TEST_F(ClassRolloutTest, AnAgentThatIsStartingMovesOnceItHasStarted) {
  CallId start = 0;
  shard_.script.on_event = [&](HostCalls&, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kStart) start = event.call;
    return {};
  };
  const auto client = shard_.join();
  ASSERT_NE(start, 0U);
  begin(version("new", next_script_));
  EXPECT_EQ(look(), RolloutState::kMoving);
  // Usually the shard calls the instance. Here the instance answers outside of a call, as a resumed
  // coroutine does.
  shard_.loop.advance(seconds(11));
  EXPECT_EQ(shard_.script.alive, 0) << "its start has timed out";
  EXPECT_EQ(look(), RolloutState::kDone);
}

TEST_F(ClassRolloutTest, AHurryMovesEverybodyAtOnce) {
  settings_.drain = true;
  const auto busy = shard_.connect();
  const auto answer = shard_.ask(busy, "wait");
  begin(version("new", next_script_));
  EXPECT_EQ(look(), RolloutState::kMoving);
  meanwhile([&] { rollout_->hurry(); });
  EXPECT_EQ(look(), RolloutState::kDone);
  EXPECT_EQ(ask(busy), R"(ok "new")");
}

TEST_F(ClassRolloutTest, WhatIsExpelledIsGoneWhateverItDoes) {
  shard_.restart({}, settings_with(&ClassSettings::evict_grace, seconds(20)));
  shard_.script.on_event = [&script = shard_.script](HostCalls& host,
                                                     const AgentEvent& event) -> Result<void> {
    const bool hangs = event.kind == EventKind::kEvict || event.name == "wait" ||
                       (event.kind == EventKind::kStart && starts(script) == 3);
    return hangs ? Result<void>() : complete(host, event);
  };
  const auto leaving = shard_.connect("leaving");
  const auto busy = shard_.connect("busy");
  const auto starting = shard_.connect("starting");
  const auto answer = shard_.ask(busy, "wait");
  shard_.evict("leaving");
  ASSERT_EQ(shard_.script.alive, 3);
  const auto old = served();
  shard_.runtime().classes().put(version("new", next_script_));
  const auto answers = shard_.runtime().ask(
      [old](ShardVersions& versions) { versions.expel(old, EvictReason::kCodeUpdate); });
  shard_.settle();
  EXPECT_TRUE(answers->complete());
  EXPECT_EQ(old->starts->agents, 0U);
  EXPECT_EQ(answer->end, "error closing: the agent was evicted (code_update); try again");
  for (const auto& client : {leaving, busy, starting}) EXPECT_EQ(ask(client), R"(ok "new")");
}

TEST_F(ClassRolloutTest, NewSettingsAreAnotherVersionOfTheSameCode) {
  const auto client = old_client();
  ServedClass next = *served();
  next.starts = std::make_shared<StartCounts>();
  next.settings.idle_timeout = seconds(2);
  begin(std::make_shared<const ServedClass>(next));
  EXPECT_EQ(look(), RolloutState::kDone);
  EXPECT_EQ(ask(client), R"(ok "old")");
  EXPECT_EQ(client.sight->size(), 1U) << "the handshake, and no second one";
  EXPECT_EQ(shard_.script.alive, 1);
  shard_.loop.advance(seconds(5));
  EXPECT_EQ(shard_.script.alive, 0) << "it leaves as soon as the new settings say";
}

TEST_F(ClassRolloutTest, AShardThatIsHeldUpIsNotWaitedForAndTakesPartLater) {
  settings_.trial_agents = 1;
  settings_.patience = milliseconds(1);
  const auto client = old_client();
  // The loop does not run meanwhile.
  ClassRollout rollout(shard_.runtime(), served(), version("new", next_script_), settings_,
                       shard_.loop.clock());
  EXPECT_EQ(rollout.silent_shards(), std::vector<unsigned>{0});
  EXPECT_EQ(rollout.look(), RolloutState::kTrying);
  EXPECT_EQ(shard_.script.alive, 1);
  shard_.settle();
  EXPECT_EQ(rollout.tried(), 1U);
  EXPECT_TRUE(rollout.silent_shards().empty());
  EXPECT_EQ(rollout.look(), RolloutState::kMoving);
  EXPECT_EQ(rollout.look(), RolloutState::kMoving) << "the shard has not said that none is left";
  shard_.settle();
  EXPECT_EQ(rollout.look(), RolloutState::kDone);
  EXPECT_EQ(ask(client), R"(ok "new")");
}

TEST_F(ClassRolloutTest, AShardThatIsTooLateForTheTrialMovesWithTheOthers) {
  settings_.trial_agents = 1;
  settings_.patience = milliseconds(1);
  settings_.trial_time = milliseconds(0);
  const auto client = old_client();
  ClassRollout rollout(shard_.runtime(), served(), version("new", next_script_), settings_,
                       shard_.loop.clock());
  EXPECT_EQ(rollout.look(), RolloutState::kMoving);
  shard_.settle();
  EXPECT_EQ(rollout.tried(), 0U);
  EXPECT_EQ(rollout.look(), RolloutState::kDone);
  EXPECT_EQ(ask(client), R"(ok "new")");
}

TEST_F(ClassRolloutTest, FramesOfClientsWaitForAClassThatIsAwaited) {
  const auto client = old_client();
  take_away();
  EXPECT_EQ(shard_.script.alive, 0);
  const auto waiting = shard_.call(client, "who");
  const auto stranger = shard_.request("GET", "", "b");
  shard_.settle();
  EXPECT_EQ(waiting->end, std::nullopt);
  EXPECT_EQ(stranger->end, "error unavailable: the class is not loaded");
  begin(version("new", next_script_));
  EXPECT_EQ(waiting->end, R"(ok "new")");
}

TEST_F(ClassRolloutTest, ClientsAreClosedWhenAClassIsGivenUp) {
  const auto client = old_client();
  take_away();
  const auto waiting = shard_.call(client, "who");
  shard_.runtime().classes().give_up("counter");
  shard_.versions().class_is_gone("counter");
  EXPECT_EQ(waiting->end, "error unavailable: the class is not loaded");
  EXPECT_EQ(client.sight->back(), "close 1012 the class is not loaded");
}

}  // namespace
}  // namespace hearth::runtime
