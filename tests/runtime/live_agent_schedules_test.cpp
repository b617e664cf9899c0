// Schedules through the whole runtime: a restart is a new runtime on the same files.
#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Strings = std::vector<std::string>;

class LiveAgentSchedulesTest : public testing::WorkTest {};

// ---- schedules ----

TEST_F(LiveAgentSchedulesTest, ADelayedScheduleRunsOnceAtItsTime) {
  schedule({after(5'000, "tick")});
  shard_.loop.advance(milliseconds(4'990));
  EXPECT_TRUE(runs().empty());
  shard_.loop.advance(milliseconds(20));
  ASSERT_EQ(runs().size(), 1U);
  EXPECT_TRUE(runs()[0].starts_with("tick {"));
  EXPECT_EQ(member(runs()[0], "type"), "\"delay\"");
  EXPECT_EQ(member(runs()[0], "attempt"), "1");
  shard_.loop.advance(hours(2));
  EXPECT_EQ(runs().size(), 1U);
  EXPECT_FALSE(wake_of()) << "nothing is left to wake it for";
}

TEST_F(LiveAgentSchedulesTest, AnAgentThatOnlyWaitsForItsScheduleLeavesMemoryAndIsWokenForIt) {
  schedule({after(3'600'000, "tick")});
  shard_.loop.advance(minutes(10));
  EXPECT_EQ(shard_.script.alive, 0);
  ASSERT_TRUE(wake_of());
  shard_.loop.advance(minutes(51));
  EXPECT_EQ(runs().size(), 1U);
  shard_.loop.advance(minutes(2));
  EXPECT_EQ(shard_.script.alive, 0);
}

TEST_F(LiveAgentSchedulesTest, AScheduleFiresOnAReconstructedAgentAfterItsStart) {
  schedule({every(60'000, "tick")});
  shard_.restart();
  shard_.script.history.clear();
  shard_.loop.advance(seconds(61));
  ASSERT_EQ(shard_.script.history.size(), 2U);
  EXPECT_EQ(shard_.script.history[0], "start |");
  EXPECT_TRUE(shard_.script.history[1].starts_with("schedule tick|"));
  shard_.loop.advance(seconds(120));
  EXPECT_EQ(runs().size(), 3U) << "and goes on";
}

TEST_F(LiveAgentSchedulesTest, WhatBecameDueWhileTheServerWasDownRunsAtOnceAfterItsStart) {
  schedule({after(1'000, "tick"), every(1'000, "tock")});
  shard_.loop.let_pass(hours(1));
  shard_.restart_and_settle();
  EXPECT_EQ(order, (Strings{"tick", "tock"})) << "once each, though the interval was missed often";
  EXPECT_EQ(shard_.logger.count("warn schedule:missed class=Counter agent=a"), 1U);
}

TEST_F(LiveAgentSchedulesTest, WhatAVersionCannotReadWaitsAndIsChargedToTheVersionOnce) {
  on_work = fail_with(Errc::kUnreadable, "the member `text` is missing");
  schedule({after(0, "once"), after(0, "another")});
  shard_.loop.advance(seconds(5));
  EXPECT_EQ(order, (Strings{"once", "another"})) << "a failure would be tried again by now";
  const auto starts = shard_.runtime().classes().find("counter")->starts;
  EXPECT_TRUE(starts->unreadable);
  EXPECT_EQ(starts->failed, 1U);
}

TEST_F(LiveAgentSchedulesTest, ARunThatFailsIsTriedAgainAndThenTold) {
  on_work = fail_with(Errc::kPlugin, "no");
  schedule({after(0, "once"), every(60'000, "often")});
  shard_.loop.advance(seconds(10));
  EXPECT_EQ(order, (Strings{"once", "once", "once"}));
  EXPECT_EQ(shard_.logger.count("warn schedule:retry"), 2U);
  EXPECT_EQ(shard_.logger.count("warn schedule:error"), 1U);
  shard_.loop.advance(seconds(120));
  EXPECT_GE(order.size(), 6U) << "one that repeats survives its failure";
}

TEST_F(LiveAgentSchedulesTest, ARunThatDoesNotAnswerIsGivenUpAfterItsLimit) {
  ClassSettings settings;
  settings.schedules.timeout = seconds(20);
  shard_.restart({}, settings);
  on_work = hang;
  schedule({after(0, "slow")});
  shard_.loop.advance(seconds(19));
  EXPECT_EQ(runs().size(), 1U);
  EXPECT_EQ(shard_.script.alive, 1) << "an agent with a run in progress is not idle";
  shard_.loop.advance(seconds(5));
  EXPECT_EQ(runs().size(), 2U);
  EXPECT_EQ(std::ranges::count(shard_.script.history, "cancel"), 1);
}

TEST_F(LiveAgentSchedulesTest, ASlowRunHoldsUpNeitherOtherRunsNorTheQueueNorClients) {
  on_work = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.name == "slow") return {};
    return complete(host, event);
  };
  visit([](HostCalls& host) {
    EXPECT_TRUE(host.create_schedule(after(0, "slow")));
    EXPECT_TRUE(host.create_schedule(after(0, "quick")));
    EXPECT_TRUE(host.push_item(item("item")));
  });
  EXPECT_EQ(std::ranges::count(order, "quick"), 1);
  EXPECT_EQ(std::ranges::count(order, "item"), 1);
  EXPECT_EQ(shard_.ask("GET")->end, "ok ");
}

TEST_F(LiveAgentSchedulesTest, WorkThatIsAlwaysDueHoldsBackNoOtherKind) {
  on_work = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.name == "again") EXPECT_TRUE(host.create_schedule(after(0, "again")));
    return complete(host, event);
  };
  on_request = [](HostCalls& host) {
    EXPECT_TRUE(host.create_schedule(after(0, "again")));
    EXPECT_TRUE(host.push_item(item("item")));
  };
  shard_.request("POST");
  on_request = nullptr;
  for (int step = 0; step < 100; ++step) shard_.loop.step();
  EXPECT_EQ(items().size(), 1U);
  EXPECT_GE(runs().size(), 5U);
  on_work = nullptr;
}

TEST_F(LiveAgentSchedulesTest, OneRoundOfTheLoopBeginsOnePieceOfWork) {
  on_request = [](HostCalls& host) {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(host.create_schedule(after(0, "tick")));
  };
  shard_.request("POST");
  on_request = nullptr;
  std::size_t before = 0;
  for (int step = 0; step < 100; ++step) {
    shard_.loop.step();
    EXPECT_LE(runs().size(), before + 1);
    before = runs().size();
  }
  EXPECT_EQ(runs().size(), 5U);
}

TEST_F(LiveAgentSchedulesTest, RunsAndClientsEventsHaveLimitsOfTheirOwn) {
  ClassSettings settings;
  settings.max_events = 1;
  settings.schedules.max_running = 2;
  shard_.restart({}, settings);
  on_work = hang;
  schedule(std::vector(3, after(0, "tick")));
  EXPECT_EQ(runs().size(), 2U);
  EXPECT_EQ(visit([](HostCalls&) {})->end, "ok ") << "runs take no client's place";
  shard_.script.on_event = [scripted = shard_.script.on_event](HostCalls& host,
                                                               const AgentEvent& event) {
    if (event.kind != EventKind::kRequest) return scripted(host, event);
    EXPECT_TRUE(host.push_item(item("item")));
    return Result<void>();  // it stays in progress
  };
  shard_.ask("POST");
  EXPECT_EQ(items().size(), 1U) << "nor does a client's event take a place of durable work";
}

TEST_F(LiveAgentSchedulesTest, ACallbackThatIsNotThereIsKeptReportedAndTriedByTheNextInstance) {
  on_work = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    return host.complete(event.call, Error{Errc::kNotFound, "no such callback"});
  };
  schedule({after(0, "later")});
  EXPECT_EQ(runs().size(), 1U);
  EXPECT_EQ(shard_.logger.count("warn schedule:missing_callback"), 1U);
  on_work = nullptr;
  shard_.restart();
  visit([](HostCalls&) {});
  EXPECT_EQ(runs().size(), 2U) << "before its wait is over";
  shard_.restart_and_advance(hours(3));
  EXPECT_EQ(runs().size(), 2U);
}

TEST_F(LiveAgentSchedulesTest, ACallbackMayScheduleItselfAnew) {
  on_work = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    durable::ScheduleRequest again = after(1'000, "tick");
    again.idempotent = durable::Idempotent::kYes;
    const auto made = host.create_schedule(again);
    EXPECT_TRUE(made && made->created);
    return complete(host, event);
  };
  visit([](HostCalls& host) {
    durable::ScheduleRequest first = after(1'000, "tick");
    first.idempotent = durable::Idempotent::kYes;
    EXPECT_TRUE(host.create_schedule(first));
  });
  shard_.loop.advance(milliseconds(5'500));
  EXPECT_EQ(runs().size(), 5U);
}

TEST_F(LiveAgentSchedulesTest, ARunThatBrokeItsAgentIsDeliveredAgain) {
  on_work = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (runs().size() == 1) host.storage_failed("as a test says");
    return complete(host, event);
  };
  schedule({after(0, "tick")});
  EXPECT_EQ(runs().size(), 1U);
  shard_.loop.advance(seconds(10));
  EXPECT_EQ(runs().size(), 2U) << "its end was not committed";
}

TEST_F(LiveAgentSchedulesTest, AShutdownInterruptsARunWhichThenRunsAgain) {
  on_work = hang;
  schedule({after(0, "slow")});
  for (std::size_t restart = 1; restart <= 15; ++restart) {
    ASSERT_EQ(runs().size(), restart) << "a restart on purpose is no fault of the work";
    shard_.restart_and_settle();
  }
}

TEST_F(LiveAgentSchedulesTest,
       AScheduleThatIsMadeWhileTheAgentStartsIsWarnedOfOnceUnlessItSaysWhatItMeans) {
  on_start = [](HostCalls& host) {
    for (const auto how :
         {durable::Idempotent::kByType, durable::Idempotent::kYes, durable::Idempotent::kNo}) {
      for (int i = 0; i < 2; ++i) {
        durable::ScheduleRequest request =
            after(3'600'000, how == durable::Idempotent::kByType ? "careless" : "careful");
        request.idempotent = how;
        EXPECT_TRUE(host.create_schedule(request));
      }
    }
    EXPECT_TRUE(host.create_schedule(every(3'600'000, "interval")));
  };
  schedule({after(3'600'000, "in a turn")});
  EXPECT_EQ(shard_.logger.count("warn schedule:duplicate_warning"), 1U);
  EXPECT_TRUE(shard_.logger.contains("careless"));
}

TEST_F(LiveAgentSchedulesTest, ManyStaleRowsOfOneCallbackAllRunAndAreWarnedOf) {
  const auto pile_up = [this](std::size_t rows, const std::string& agent) {
    schedule(std::vector(rows, after(1'000, "stale")), agent);
    shard_.loop.let_pass(hours(1));
    shard_.restart_and_settle();
  };
  pile_up(3, "few");
  EXPECT_EQ(runs().size(), 3U);
  EXPECT_FALSE(shard_.logger.contains("schedule:duplicate_warning"));
  pile_up(15, "many");
  EXPECT_EQ(runs().size(), 18U);
  EXPECT_TRUE(shard_.logger.contains("schedule:duplicate_warning"));
}

TEST_F(LiveAgentSchedulesTest, ALostAlarmComesBackWithTheNextRequestForTheSameInterval) {
  schedule({every(60'000, "tick")});
  shard_.restart_and_settle();
  storage::Directory(shard_.data().directory_path()).clear_wake({"Counter", "a"});
  shard_.restart_and_advance(minutes(5));
  ASSERT_TRUE(runs().empty()) << "nobody knows that it must be woken";
  visit([](HostCalls& host) {
    const auto made = host.create_schedule(every(60'000, "tick"));
    EXPECT_TRUE(made && !made->created);
  });
  shard_.settle();
  EXPECT_EQ(runs().size(), 1U) << "it was overdue";
  shard_.loop.advance(minutes(3));
  EXPECT_EQ(runs().size(), 4U);
}

// ---- the clock ----

TEST_F(LiveAgentSchedulesTest, WhenTheClockIsSetBackIntervalsAndDelaysGoOnInTheirOwnTime) {
  schedule({every(10'000, "interval"), after(25'000, "delay")});
  shard_.loop.advance(milliseconds(15'000));
  EXPECT_EQ(order, (Strings{"interval"}));
  shard_.loop.jump(-hours(1));
  shard_.loop.advance(milliseconds(11'000));
  EXPECT_EQ(order, (Strings{"interval", "interval", "delay"})) << "none waits for the lost hour";
  shard_.loop.advance(milliseconds(60'000));
  EXPECT_EQ(runs().size(), 9U) << "and there is no storm";
}

TEST_F(LiveAgentSchedulesTest, WhenTheClockIsSetAheadNothingStormsOrStalls) {
  schedule({every(10'000, "interval"), after(25'000, "delay")});
  shard_.loop.advance(milliseconds(15'000));
  shard_.loop.jump(hours(1));
  shard_.loop.advance(milliseconds(11'000));
  EXPECT_LE(std::ranges::count(order, "interval"), 3);
  shard_.loop.advance(milliseconds(60'000));
  EXPECT_EQ(std::ranges::count(order, "delay"), 1);
  EXPECT_GE(std::ranges::count(order, "interval"), 7);
  EXPECT_LE(std::ranges::count(order, "interval"), 9);
}

TEST_F(LiveAgentSchedulesTest, AColdAgentIsLookedAtInTimeThoughTheClockWasSetBack) {
  schedule({after(600'000, "delay")});
  shard_.loop.advance(minutes(5));
  ASSERT_EQ(shard_.script.alive, 0);
  shard_.loop.jump(-hours(1));
  shard_.loop.advance(minutes(16));
  EXPECT_EQ(runs().size(), 1U) << "at most its own length later";
}

}  // namespace
}  // namespace hearth::runtime
