// While all agents of a version leave, other agents come and go. The change to another version:
// class_rollout_test.cpp.
#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

namespace hearth::runtime {
namespace {

using namespace testing;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The old version has many agents. Each takes kCost to leave, a fifth of the time between requests
// of clients.
class ShardVersionsTest : public WorkTest {
 protected:
  static constexpr int kMany = 20;
  static constexpr milliseconds kCost{20};
  static constexpr milliseconds kTurn{100};  // kCost, and the pause after it

  ShardVersionsTest() {
    shard_.restart({}, settings_with(&ClassSettings::evict_grace, seconds(1)));
    old_ = shard_.runtime().classes().find("counter");
    next_script_.on_event = shard_.script.on_event;
    shard_.script.on_event = do_on(
        EventKind::kEvict, [this](HostCalls&, const AgentEvent&) { shard_.loop.let_pass(kCost); });
    for (int i = 0; i < kMany; ++i) shard_.request("GET", "", "old" + std::to_string(i));
    shard_.settle();
  }
  ~ShardVersionsTest() override { shard_.restart(); }  // its agents run next_script_
  // Agents that wake from now on have the new version, and leave after a second without events.
  void replace() {
    const auto settings = settings_with(&ClassSettings::idle_timeout, seconds(1));
    shard_.runtime().classes().put(std::make_shared<const ServedClass>(
        ServedClass{"counter", std::make_shared<ScriptedClass>(next_script_), settings}));
  }
  void old_ones_leave() { shard_.versions().leave(old_, EvictReason::kCodeUpdate, false); }
  [[nodiscard]] int old_ones() const { return shard_.script.alive; }
  // Clients use the shard: leaving agents get their share of the time, and no more.
  void let_pass(int turns) {
    for (int i = 0; i < turns; ++i) {
      shard_.request("GET", "", "busy");
      shard_.loop.advance(kTurn);
    }
  }
  // "idle" is an agent of the new version, which leaves behind the old ones.
  void let_an_idle_one_wait_to_leave() {
    replace();
    shard_.ask("GET", "", "idle");
    old_ones_leave();
    let_pass(12);
    ASSERT_EQ(state_of("idle"), AgentState::kEnding);
  }
  AgentState state_of(const std::string& name) {
    return shard_.admin().standing({"Counter", name}).state;
  }

  std::shared_ptr<const ServedClass> old_;
  Script next_script_;
};

TEST_F(ShardVersionsTest, TheMostRecentlyUsedTryTheNextVersionWhileThereArePlaces) {
  replace();
  std::string tried;
  next_script_.on_create = [&](HostCalls& host) -> Result<void> {
    tried += host.key().name + " ";
    return {};
  };
  const auto trial = std::make_shared<VersionTrial>(2U, false);
  shard_.versions().begin_trial(old_, trial);
  shard_.settle();
  EXPECT_EQ(tried, "old19 old18 ");
  EXPECT_EQ(trial->places, 0U);
  EXPECT_EQ(trial->tried, 2U);
}

TEST_F(ShardVersionsTest, OneThatHasTheNextVersionByItsTurnStays) {
  replace();
  old_ones_leave();
  shard_.request("GET", "", "old9");
  shard_.loop.advance(milliseconds(900));  // less than its idle timeout
  EXPECT_EQ(old_ones(), 0);
  EXPECT_EQ(next_script_.alive, 1);
  EXPECT_EQ(std::ranges::count(next_script_.history, "destroyed"), 0);
}

TEST_F(ShardVersionsTest, WhileClientsUseTheShardThoseWhoLeaveHaveTheirShareOfIt) {
  replace();
  old_ones_leave();
  let_pass(10);
  EXPECT_GE(old_ones(), 8);
  EXPECT_LE(old_ones(), 12);
  let_pass(12);
  EXPECT_EQ(old_ones(), 0);
}

TEST_F(ShardVersionsTest, WhileNoneDoesTheyHaveAllOfIt) {
  old_ones_leave();
  shard_.loop.advance(kMany * kTurn / 2);
  EXPECT_EQ(old_ones(), 0);
}

TEST_F(ShardVersionsTest, AnEventForAnIdleAgentThatIsLeavingDoesNotWaitForThoseWhoLeaveBeforeIt) {
  let_an_idle_one_wait_to_leave();
  ASSERT_GT(old_ones(), 5);
  EXPECT_EQ(shard_.ask("GET", "", "idle")->end, "ok ");
  EXPECT_GT(old_ones(), 5);
  let_pass(15);
  EXPECT_EQ(old_ones(), 0);
}

TEST_F(ShardVersionsTest, AnEndThatWasHurriedDoesNotComeTwice) {
  let_an_idle_one_wait_to_leave();
  for (int i = 0; i < 15; ++i) {  // its turn comes meanwhile
    shard_.request("GET", "", "idle");
    let_pass(1);
  }
  EXPECT_EQ(old_ones(), 0);
  EXPECT_EQ(state_of("idle"), AgentState::kLive);
  EXPECT_EQ(std::ranges::count(next_script_.history, "destroyed"), 1);
}

TEST_F(ShardVersionsTest, AStopOfTheServerDoesNotWaitForIdleAgentsToHaveTheirTurn) {
  let_an_idle_one_wait_to_leave();
  shard_.restart();  // fails if it takes more than a moment
  EXPECT_EQ(next_script_.alive, 0);
}

TEST_F(ShardVersionsTest, WhatIsDueWakesItsAgentBeforeThoseWhoLeaveAreGone) {
  replace();
  on_request = [](HostCalls& host) { EXPECT_TRUE(host.create_schedule(after(2'500, "tick"))); };
  shard_.ask("GET", "", "sleeper");
  on_request = nullptr;
  shard_.loop.advance(milliseconds(1'500));
  ASSERT_EQ(state_of("sleeper"), AgentState::kCold);
  old_ones_leave();
  let_pass(12);
  EXPECT_EQ(runs().size(), 1U);
  EXPECT_GT(old_ones(), 5);
}

TEST_F(ShardVersionsTest, WhatIsDueForAnIdleAgentThatIsLeavingDoesNotWaitForThemEither) {
  replace();
  on_request = [](HostCalls& host) { EXPECT_TRUE(host.create_schedule(after(1'300, "tick"))); };
  shard_.ask("GET", "", "idle");
  on_request = nullptr;
  old_ones_leave();
  let_pass(12);
  ASSERT_EQ(state_of("idle"), AgentState::kEnding);
  EXPECT_TRUE(runs().empty());
  let_pass(2);
  EXPECT_EQ(runs().size(), 1U);
  EXPECT_GT(old_ones(), 3);
}

}  // namespace
}  // namespace hearth::runtime
