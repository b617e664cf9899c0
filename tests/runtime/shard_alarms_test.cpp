// Which agents an alarm wakes, and when; agents that it does not wake again and again; and those of
// a class that may not run. The work of woken agents: live_agent_schedules_test.cpp and
// live_agent_work_test.cpp.
#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

namespace hearth::runtime {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class ShardAlarmsTest : public testing::WorkTest {
 protected:
  std::size_t starts() const {
    return static_cast<std::size_t>(std::ranges::count(shard_.script.history, "start |"));
  }
};

TEST_F(ShardAlarmsTest, AShortIntervalOfALiveAgentIsOnTime) {
  schedule({every(100, "tick")});
  shard_.loop.advance(milliseconds(2'050));
  EXPECT_EQ(runs().size(), 20U);
}

TEST_F(ShardAlarmsTest, WhatIsDueSoonOnALiveAgentIsOnTime) {
  schedule({after(200, "soon"), after(210, "a moment later")});
  shard_.loop.advance(milliseconds(205));
  EXPECT_EQ(runs().size(), 1U);
  shard_.loop.advance(milliseconds(10));
  EXPECT_EQ(runs().size(), 2U);
}

TEST_F(ShardAlarmsTest, TheDiskKnowsTheMomentsOfAnAgentThatWorks) {
  start_fiber("work");
  schedule({after(60'000, "tick")});
  ASSERT_TRUE(wake_of());
  EXPECT_TRUE(wake_of()->working);
  EXPECT_TRUE(wake_of()->at_ms)
      << "after a crash it is not due when others have recovered, but now";
}

TEST_F(ShardAlarmsTest, AgentsThatFoundNoClassComeAsSoonAsItIsBack) {
  schedule({after(5'000, "tick")});
  const auto served = shard_.runtime().classes().remove("counter");
  shard_.versions().leave(served, EvictReason::kPluginRemoved, false);
  shard_.loop.advance(seconds(10));
  ASSERT_EQ(shard_.script.alive, 0);
  EXPECT_TRUE(runs().empty());
  EXPECT_EQ(shard_.logger.count("debug alarm:class_missing class=Counter agent=a"), 1U);
  shard_.runtime().classes().put(served);
  shard_.versions().class_is_back("counter");
  shard_.loop.advance(milliseconds(1));
  EXPECT_EQ(runs().size(), 1U);
}

TEST_F(ShardAlarmsTest, ABusyNeighbourDoesNotHideThatTheClockWasSetBack) {
  schedule({after(600'000, "delay")}, "cold");
  shard_.loop.advance(minutes(5));
  ASSERT_EQ(shard_.script.alive, 0);
  shard_.loop.jump(-hours(1));
  for (int i = 0; i < 30; ++i) {  // each arms the alarm anew
    visit([](HostCalls& host) { EXPECT_TRUE(host.acquire_keep_alive()); }, "busy");
    visit([](HostCalls& host) { EXPECT_TRUE(host.release_keep_alive()); }, "busy");
    shard_.loop.advance(seconds(30));
  }
  EXPECT_EQ(runs().size(), 1U);
}

TEST_F(ShardAlarmsTest, WhenThereIsNoRoomOneOfThoseThatAreDueAsksNowAndThen) {
  for (int i = 0; i < 50; ++i) schedule({after(1'000, "tick")}, "agent" + std::to_string(i));
  shard_.restart({.max_live_agents = 1});
  visit([](HostCalls& host) { EXPECT_TRUE(host.acquire_keep_alive()); }, "busy");
  shard_.loop.advance(seconds(11));
  EXPECT_TRUE(runs().empty());
  EXPECT_GE(shard_.logger.count("debug alarm:no_room"), 5U);
  EXPECT_LE(shard_.logger.count("debug alarm:no_room"), 12U);
  visit([](HostCalls& host) { EXPECT_TRUE(host.release_keep_alive()); }, "busy");
  shard_.loop.advance(seconds(60));
  EXPECT_EQ(runs().size(), 50U) << "and all come when there is";
}

TEST_F(ShardAlarmsTest, WhoStandsInLineToRecoverIsNotWokenAgainAndAgain) {
  RuntimeLimits limits;
  limits.max_recovering = 1;
  for (int i = 0; i < 6; ++i) start_fiber("work", "agent" + std::to_string(i));
  on_work = fail_with(Errc::kPlugin, "not yet");
  shard_.restart_and_settle(limits);  // all have failed once, and are due again by time
  ASSERT_EQ(recovered().size(), 6U);
  on_work = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kFibersRecovered) return complete(host, event);
    return {};  // the hook hangs
  };
  limits.max_live_agents = 2;
  shard_.restart(limits);
  shard_.script.history.clear();
  shard_.loop.advance(seconds(30));
  EXPECT_LE(starts(), 12U) << "each once for its time and once for its permit, at most";
  EXPECT_EQ(recovered().size(), 7U) << "the first of them hangs";
  shard_.loop.advance(minutes(8));
  EXPECT_GE(recovered().size(), 12U) << "a hook that hangs is given up, and the others follow";
}

TEST_F(ShardAlarmsTest, AnAgentThatCannotStartIsTriedLessAndLessOftenUntilItHasStarted) {
  schedule({after(1'000, "tick")});
  int creations = 0;
  bool fails = true;
  shard_.script.on_create = [&](HostCalls&) -> Result<void> {
    ++creations;
    if (fails) return Error{Errc::kPlugin, "not yet"};
    return {};
  };
  shard_.restart_and_advance(minutes(10));
  EXPECT_GE(creations, 6);
  EXPECT_LE(creations, 9);
  fails = false;
  shard_.loop.advance(minutes(5));
  EXPECT_EQ(runs().size(), 1U);
}

class RefusedClassTest : public testing::WorkTest {
 protected:
  void set_refusal(const std::string& why) {
    auto next = std::make_shared<ServedClass>(*shard_.runtime().classes().find("counter"));
    next->refusal = why;
    shard_.runtime().classes().put(std::move(next));
  }
};

TEST_F(RefusedClassTest, AnAlarmWaitsUntilTheClassMayRun) {
  schedule({after(600'000, "tick")});
  shard_.loop.advance(minutes(5));
  ASSERT_EQ(shard_.script.alive, 0);
  set_refusal("in quarantine");
  shard_.loop.advance(minutes(60));
  EXPECT_EQ(shard_.script.alive, 0);
  EXPECT_TRUE(runs().empty());
  EXPECT_TRUE(wake_of());
  set_refusal("");
  shard_.loop.advance(minutes(2));
  EXPECT_EQ(runs().size(), 1U);
}

TEST_F(RefusedClassTest, ARequestAndAClientAreToldWhy) {
  set_refusal("in quarantine");
  const auto answer = visit([](HostCalls&) { FAIL() << "it was woken"; });
  EXPECT_EQ(answer->end, "error unavailable: in quarantine");
  EXPECT_EQ(shard_.join().sight->back(), "close 1013 in quarantine");
  EXPECT_EQ(shard_.script.alive, 0);
}

}  // namespace
}  // namespace hearth::runtime
