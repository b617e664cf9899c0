// Schedules and the queue through the whole runtime: a restart is a new runtime on the same files.
#include "work_fixture.hpp"

#include <gtest/gtest.h>

namespace hearth::runtime {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Strings = std::vector<std::string>;

class LiveAgentWorkTest : public testing::WorkTest {};

Result<void> fail(AgentHost&, const AgentEvent&) {
  return Error{Errc::kPlugin, "no"};
}
Result<void> hang(AgentHost&, const AgentEvent&) {
  return {};
}

// ---- schedules ----

TEST_F(LiveAgentWorkTest, ADelayedScheduleRunsOnceAtItsTime) {
  visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(after(5'000, "tick"))); });
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

TEST_F(LiveAgentWorkTest, AnAgentThatOnlyWaitsForItsScheduleLeavesMemoryAndIsWokenForIt) {
  visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(after(3'600'000, "tick"))); });
  shard_.loop.advance(minutes(10));
  EXPECT_EQ(shard_.script.alive, 0);
  ASSERT_TRUE(wake_of());
  shard_.loop.advance(minutes(51));
  EXPECT_EQ(runs().size(), 1U);
  shard_.loop.advance(minutes(2));
  EXPECT_EQ(shard_.script.alive, 0);
}

TEST_F(LiveAgentWorkTest, AScheduleFiresOnAReconstructedAgentAfterItsStart) {
  visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(every(60'000, "tick"))); });
  shard_.restart();
  shard_.script.history.clear();
  shard_.loop.advance(seconds(61));
  ASSERT_EQ(shard_.script.history.size(), 2U);
  EXPECT_EQ(shard_.script.history[0], "start |");
  EXPECT_TRUE(shard_.script.history[1].starts_with("schedule tick|"));
  shard_.loop.advance(seconds(120));
  EXPECT_EQ(runs().size(), 3U) << "and goes on";
}

TEST_F(LiveAgentWorkTest, WhatBecameDueWhileTheServerWasDownRunsAtOnceAfterItsStart) {
  visit([](AgentHost& host) {
    EXPECT_TRUE(host.create_schedule(after(1'000, "tick")));
    EXPECT_TRUE(host.create_schedule(every(1'000, "tock")));
  });
  shard_.loop.let_pass(hours(1));
  shard_.restart();
  shard_.settle();
  EXPECT_EQ(order, (Strings{"tick", "tock"})) << "once each, though the interval was missed often";
}

TEST_F(LiveAgentWorkTest, ARunThatFailsIsTriedAgainAndThenTold) {
  on_work = fail;
  visit([](AgentHost& host) {
    EXPECT_TRUE(host.create_schedule(after(0, "once")));
    EXPECT_TRUE(host.create_schedule(every(60'000, "often")));
  });
  shard_.loop.advance(seconds(10));
  EXPECT_EQ(order, (Strings{"once", "once", "once"}));
  EXPECT_EQ(shard_.logger.count("warn schedule:retry"), 2U);
  EXPECT_EQ(shard_.logger.count("warn schedule:error"), 1U);
  shard_.loop.advance(seconds(120));
  EXPECT_GE(order.size(), 6U) << "one that repeats survives its failure";
}

TEST_F(LiveAgentWorkTest, ARunThatDoesNotAnswerIsGivenUpAfterItsLimit) {
  ClassSettings settings;
  settings.schedules.timeout = seconds(20);
  shard_.restart({}, settings);
  on_work = hang;
  visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(after(0, "slow"))); });
  shard_.loop.advance(seconds(19));
  EXPECT_EQ(runs().size(), 1U);
  EXPECT_EQ(shard_.script.alive, 1) << "an agent with a run in progress is not idle";
  shard_.loop.advance(seconds(5));
  EXPECT_EQ(runs().size(), 2U);
  EXPECT_EQ(std::ranges::count(shard_.script.history, "cancel"), 1);
}

TEST_F(LiveAgentWorkTest, ASlowRunHoldsUpNeitherOtherRunsNorTheQueueNorClients) {
  on_work = [](AgentHost& host, const AgentEvent& event) -> Result<void> {
    if (event.name == "slow") return {};
    return host.complete(event.call, std::string_view());
  };
  visit([](AgentHost& host) {
    EXPECT_TRUE(host.create_schedule(after(0, "slow")));
    EXPECT_TRUE(host.create_schedule(after(0, "quick")));
    EXPECT_TRUE(host.push_item(item("item")));
  });
  EXPECT_EQ(std::ranges::count(order, "quick"), 1);
  EXPECT_EQ(std::ranges::count(order, "item"), 1);
  const auto answer = shard_.request("GET");
  shard_.settle();
  EXPECT_EQ(answer->end, "ok ");
}

TEST_F(LiveAgentWorkTest, WorkThatIsAlwaysDueHoldsBackNoOtherKind) {
  on_work = [](AgentHost& host, const AgentEvent& event) -> Result<void> {
    if (event.name == "again") EXPECT_TRUE(host.create_schedule(after(0, "again")));
    return host.complete(event.call, std::string_view());
  };
  on_request = [](AgentHost& host) {
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

TEST_F(LiveAgentWorkTest, OneRoundOfTheLoopBeginsOnePieceOfWork) {
  on_request = [](AgentHost& host) {
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

TEST_F(LiveAgentWorkTest, RunsAndClientsEventsHaveLimitsOfTheirOwn) {
  ClassSettings settings;
  settings.max_events = 1;
  settings.schedules.max_running = 2;
  shard_.restart({}, settings);
  on_work = hang;
  visit([](AgentHost& host) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(host.create_schedule(after(0, "tick")));
  });
  EXPECT_EQ(runs().size(), 2U);
  EXPECT_EQ(visit([](AgentHost&) {})->end, "ok ") << "runs take no client's place";
  shard_.script.on_event = [scripted = shard_.script.on_event](
                               AgentHost& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest) {
      EXPECT_TRUE(host.push_item(item("item")));
      return {};  // stays in progress
    }
    return scripted(host, event);
  };
  shard_.request("POST");
  shard_.settle();
  EXPECT_EQ(items().size(), 1U) << "nor does a client's event take a place of durable work";
}

TEST_F(LiveAgentWorkTest, ACallbackThatIsNotThereIsKeptReportedAndTriedByTheNextInstance) {
  on_work = [](AgentHost& host, const AgentEvent& event) -> Result<void> {
    return host.complete(event.call, Error{Errc::kNotFound, "no such callback"});
  };
  visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(after(0, "later"))); });
  EXPECT_EQ(runs().size(), 1U);
  EXPECT_EQ(shard_.logger.count("warn schedule:missing_callback"), 1U);
  on_work = nullptr;
  shard_.restart();
  visit([](AgentHost&) {});
  EXPECT_EQ(runs().size(), 2U) << "before its wait is over";
  shard_.restart();
  shard_.loop.advance(hours(3));
  EXPECT_EQ(runs().size(), 2U);
}

TEST_F(LiveAgentWorkTest, ACallbackMayScheduleItselfAnew) {
  on_work = [](AgentHost& host, const AgentEvent& event) -> Result<void> {
    durable::ScheduleRequest again = after(1'000, "tick");
    again.idempotent = durable::Idempotent::kYes;
    const auto made = host.create_schedule(again);
    EXPECT_TRUE(made && made->created);
    return host.complete(event.call, std::string_view());
  };
  visit([](AgentHost& host) {
    durable::ScheduleRequest first = after(1'000, "tick");
    first.idempotent = durable::Idempotent::kYes;
    EXPECT_TRUE(host.create_schedule(first));
  });
  shard_.loop.advance(milliseconds(5'500));
  EXPECT_EQ(runs().size(), 5U);
}

TEST_F(LiveAgentWorkTest, ARunThatBrokeItsAgentIsDeliveredAgain) {
  on_work = [this](AgentHost& host, const AgentEvent& event) -> Result<void> {
    if (runs().size() == 1) host.storage_failed("as a test says");
    return host.complete(event.call, std::string_view());
  };
  visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(after(0, "tick"))); });
  EXPECT_EQ(runs().size(), 1U);
  shard_.loop.advance(seconds(10));
  EXPECT_EQ(runs().size(), 2U) << "its end was not committed";
}

TEST_F(LiveAgentWorkTest, AShutdownInterruptsARunWhichThenRunsAgain) {
  on_work = hang;
  visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(after(0, "slow"))); });
  for (std::size_t restart = 1; restart <= 15; ++restart) {
    ASSERT_EQ(runs().size(), restart) << "a restart on purpose is no fault of the work";
    shard_.restart();
    shard_.settle();
  }
}

TEST_F(LiveAgentWorkTest,
       AScheduleThatIsMadeWhileTheAgentStartsIsWarnedOfOnceUnlessItSaysWhatItMeans) {
  on_start = [](AgentHost& host) {
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
  visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(after(3'600'000, "in a turn"))); });
  EXPECT_EQ(shard_.logger.count("warn schedule:duplicate_warning"), 1U);
  EXPECT_TRUE(shard_.logger.contains("careless"));
}

TEST_F(LiveAgentWorkTest, ManyStaleRowsOfOneCallbackAllRunAndAreWarnedOf) {
  const auto pile_up = [this](int rows, const std::string& agent) {
    visit(
        [rows](AgentHost& host) {
          for (int i = 0; i < rows; ++i) EXPECT_TRUE(host.create_schedule(after(1'000, "stale")));
        },
        agent);
  };
  pile_up(3, "few");
  shard_.loop.let_pass(hours(1));
  shard_.restart();
  shard_.settle();
  EXPECT_EQ(runs().size(), 3U);
  EXPECT_FALSE(shard_.logger.contains("schedule:duplicate_warning"));
  pile_up(15, "many");
  shard_.loop.let_pass(hours(1));
  shard_.restart();
  shard_.settle();
  EXPECT_EQ(runs().size(), 18U);
  EXPECT_TRUE(shard_.logger.contains("schedule:duplicate_warning"));
}

TEST_F(LiveAgentWorkTest, ALostAlarmComesBackWithTheNextRequestForTheSameInterval) {
  visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(every(60'000, "tick"))); });
  shard_.restart();
  shard_.settle();
  storage::Directory(shard_.data().directory_path()).clear_wake({"Counter", "a"});
  shard_.restart();
  shard_.loop.advance(minutes(5));
  ASSERT_TRUE(runs().empty()) << "nobody knows that it must be woken";
  visit([](AgentHost& host) {
    const auto made = host.create_schedule(every(60'000, "tick"));
    EXPECT_TRUE(made && !made->created);
  });
  shard_.settle();
  EXPECT_EQ(runs().size(), 1U) << "it was overdue";
  shard_.loop.advance(minutes(3));
  EXPECT_EQ(runs().size(), 4U);
}

// ---- the clock ----

TEST_F(LiveAgentWorkTest, WhenTheClockIsSetBackIntervalsAndDelaysGoOnInTheirOwnTime) {
  visit([](AgentHost& host) {
    EXPECT_TRUE(host.create_schedule(every(10'000, "interval")));
    EXPECT_TRUE(host.create_schedule(after(25'000, "delay")));
  });
  shard_.loop.advance(milliseconds(15'000));
  EXPECT_EQ(order, (Strings{"interval"}));
  shard_.loop.jump(-hours(1));
  shard_.loop.advance(milliseconds(11'000));
  EXPECT_EQ(order, (Strings{"interval", "interval", "delay"})) << "none waits for the lost hour";
  shard_.loop.advance(milliseconds(60'000));
  EXPECT_EQ(runs().size(), 9U) << "and there is no storm";
}

TEST_F(LiveAgentWorkTest, WhenTheClockIsSetAheadNothingStormsOrStalls) {
  visit([](AgentHost& host) {
    EXPECT_TRUE(host.create_schedule(every(10'000, "interval")));
    EXPECT_TRUE(host.create_schedule(after(25'000, "delay")));
  });
  shard_.loop.advance(milliseconds(15'000));
  shard_.loop.jump(hours(1));
  shard_.loop.advance(milliseconds(11'000));
  EXPECT_LE(std::ranges::count(order, "interval"), 3);
  shard_.loop.advance(milliseconds(60'000));
  EXPECT_EQ(std::ranges::count(order, "delay"), 1);
  EXPECT_GE(std::ranges::count(order, "interval"), 7);
  EXPECT_LE(std::ranges::count(order, "interval"), 9);
}

TEST_F(LiveAgentWorkTest, AColdAgentIsLookedAtInTimeThoughTheClockWasSetBack) {
  visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(after(600'000, "delay"))); });
  shard_.loop.advance(minutes(5));
  ASSERT_EQ(shard_.script.alive, 0);
  shard_.loop.jump(-hours(1));
  shard_.loop.advance(minutes(16));
  EXPECT_EQ(runs().size(), 1U) << "at most its own length later";
}

// ---- the queue ----

TEST_F(LiveAgentWorkTest, ItemsAreDeliveredInOrderOneAtATime) {
  std::vector<CallId> open;
  on_work = [&](AgentHost&, const AgentEvent& event) -> Result<void> {
    open.push_back(event.call);
    return {};
  };
  visit([](AgentHost& host) {
    for (const char* name : {"one", "two", "three"}) EXPECT_TRUE(host.push_item(item(name, "[1]")));
  });
  for (std::size_t n = 1; n <= 3; ++n) {
    ASSERT_EQ(open.size(), n);
    act([&](AgentHost& host) { EXPECT_TRUE(host.complete(open.back(), std::string_view())); });
  }
  EXPECT_EQ(order, (Strings{"one", "two", "three"}));
  EXPECT_NE(items()[0].find(R"("payload":[1])"), std::string::npos);
  EXPECT_FALSE(wake_of());
}

TEST_F(LiveAgentWorkTest, AQueueDrainsAfterARestartThoughNobodyAsks) {
  on_work = hang;
  visit([](AgentHost& host) {
    for (const char* name : {"one", "two", "three"}) EXPECT_TRUE(host.push_item(item(name)));
  });
  EXPECT_EQ(order, (Strings{"one"}));
  on_work = nullptr;
  order.clear();
  shard_.restart();
  shard_.settle();
  EXPECT_EQ(order, (Strings{"one", "two", "three"})) << "the one that was interrupted comes again";
  shard_.restart();
  shard_.settle();
  EXPECT_EQ(order.size(), 3U);
}

TEST_F(LiveAgentWorkTest, AnItemThatFailsIsKeptAsDeadAndTheOthersGoOn) {
  on_work = [](AgentHost& host, const AgentEvent& event) -> Result<void> {
    if (event.name == "bad") return Error{Errc::kPlugin, std::string(100, 'x')};
    if (event.name == "nobody") return host.complete(event.call, Error{Errc::kUnsupported, ""});
    return host.complete(event.call, std::string_view());
  };
  visit([](AgentHost& host) {
    for (const char* name : {"bad", "nobody", "good"}) EXPECT_TRUE(host.push_item(item(name)));
  });
  shard_.loop.advance(seconds(10));
  EXPECT_EQ(order, (Strings{"bad", "bad", "bad", "nobody", "good"}));
  EXPECT_EQ(shard_.logger.count("warn queue:retry"), 2U);
  EXPECT_EQ(shard_.logger.count("warn queue:error"), 1U);
  EXPECT_EQ(shard_.logger.count("warn queue:dead"), 2U);
  visit([](AgentHost& host) {
    durable::QueueFilter dead;
    dead.state = "dead";
    const auto list = host.list_items(dead);
    ASSERT_TRUE(list);
    EXPECT_NE(list->find("\"bad\""), std::string::npos);
    EXPECT_NE(list->find("\"last_error\":\"" + std::string(100, 'x') + "\""), std::string::npos)
        << *list;
    EXPECT_NE(list->find("\"nobody\""), std::string::npos);
    EXPECT_EQ(list->find("\"good\""), std::string::npos);
  });
}

TEST_F(LiveAgentWorkTest, ADeliveryThatDoesNotAnswerIsGivenUpAfterItsLimit) {
  ClassSettings settings;
  settings.queue.timeout = seconds(20);
  shard_.restart({}, settings);
  on_work = hang;
  visit([](AgentHost& host) {
    durable::QueueRequest request = item("slow");
    request.max_attempts = 1;
    EXPECT_TRUE(host.push_item(request));
    EXPECT_TRUE(host.push_item(item("next")));
  });
  shard_.loop.advance(seconds(19));
  EXPECT_EQ(order, (Strings{"slow"}));
  shard_.loop.advance(seconds(2));
  EXPECT_EQ(order, (Strings{"slow", "next"}));
}

// ---- who wakes whom ----

TEST_F(LiveAgentWorkTest, AHookOfOneAgentDelaysNoScheduleOfAnother) {
  RuntimeLimits limits;
  limits.max_recovering = 1;
  shard_.restart(limits);
  visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(after(5'000, "cold"))); }, "cold");
  visit([](AgentHost& host) { EXPECT_TRUE(host.push_item(item("queued"))); }, "queued");
  visit([](AgentHost& host) { EXPECT_TRUE(host.start_fiber("work", "")); }, "slow");
  order.clear();
  on_work = [](AgentHost& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kFiberRecovered) return {};  // hangs
    return host.complete(event.call, std::string_view());
  };
  shard_.restart(limits);
  shard_.settle();
  ASSERT_EQ(recovered().size(), 1U);
  visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(after(5'000, "live"))); }, "live");
  shard_.loop.advance(seconds(6));
  EXPECT_EQ(std::ranges::count(order, "cold"), 1);
  EXPECT_EQ(std::ranges::count(order, "live"), 1);
  EXPECT_EQ(recovered().size(), 1U) << "the hook is still in progress";
}

TEST_F(LiveAgentWorkTest, AnAgentWhoseRecoveryWaitsRunsItsSchedulesMeanwhile) {
  RuntimeLimits limits;
  limits.max_recovering = 1;
  for (const char* name : {"first", "second"}) {
    visit(
        [](AgentHost& host) {
          EXPECT_TRUE(host.start_fiber("work", ""));
          EXPECT_TRUE(host.create_schedule(after(2'000, "tick")));
        },
        name);
  }
  on_work = [](AgentHost& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kFiberRecovered) return {};  // hangs
    return host.complete(event.call, std::string_view());
  };
  shard_.restart(limits);
  visit([](AgentHost&) {}, "first");
  visit([](AgentHost&) {}, "second");
  EXPECT_EQ(recovered().size(), 1U);
  shard_.loop.advance(seconds(3));
  EXPECT_EQ(runs().size(), 2U);
  EXPECT_EQ(recovered().size(), 1U);
}

TEST_F(LiveAgentWorkTest, ManyColdAgentsThatAreDueTogetherAllComeThoughFewStartAtOnce) {
  RuntimeLimits limits;
  limits.max_waking = 2;
  for (int i = 0; i < 20; ++i) {
    visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(after(1'000, "tick"))); },
          "agent" + std::to_string(i));
  }
  std::vector<std::pair<AgentHost*, CallId>> starting;
  shard_.script.on_event = [&, scripted = shard_.script.on_event](
                               AgentHost& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kStart) return scripted(host, event);
    starting.emplace_back(&host, event.call);
    return {};
  };
  shard_.loop.let_pass(seconds(2));
  shard_.restart(limits);
  shard_.settle();
  ASSERT_EQ(starting.size(), 2U);
  shard_.script.on_result = [&](AgentHost& host, const OperationResult&) {
    for (const auto& [who, call] : starting) {
      if (who == &host) (void)host.complete(call, std::string_view());
    }
  };
  for (std::size_t i = 0; i < starting.size(); ++i) {
    shard_.runtime().post(starting[i].first->handle(), 1);
    shard_.settle();
    EXPECT_LE(starting.size(), i + 3) << "one starts when another has";
  }
  EXPECT_EQ(runs().size(), 20U);
}

TEST_F(LiveAgentWorkTest, AStartThatFailsGivesItsPermitBackAndIsTriedAgain) {
  RuntimeLimits limits;
  limits.max_waking = 1;
  for (const char* name : {"bad", "good"}) {
    visit([](AgentHost& host) { EXPECT_TRUE(host.create_schedule(after(1'000, "tick"))); }, name);
  }
  int creations = 0;
  shard_.script.on_create = [&](AgentHost&) -> Result<void> {
    if (++creations == 1) return Error{Errc::kPlugin, "not yet"};
    return {};
  };
  shard_.loop.let_pass(seconds(2));
  shard_.restart(limits);
  shard_.settle();
  EXPECT_EQ(runs().size(), 1U);
  shard_.loop.advance(seconds(6));
  EXPECT_EQ(runs().size(), 2U);
}

// ---- keep-alive ----

TEST_F(LiveAgentWorkTest, ReleasingTheLastReferenceFallsBackToTheNextSchedule) {
  visit([](AgentHost& host) {
    EXPECT_TRUE(host.create_schedule(after(3'600'000, "tick")));
    EXPECT_TRUE(host.acquire_keep_alive());
    EXPECT_TRUE(host.acquire_keep_alive());
  });
  ASSERT_TRUE(wake_of());
  EXPECT_TRUE(wake_of()->working);
  visit([](AgentHost& host) { EXPECT_TRUE(host.release_keep_alive()); });
  EXPECT_TRUE(wake_of()->working) << "until the last of several";
  visit([](AgentHost& host) {
    EXPECT_TRUE(host.release_keep_alive());
    EXPECT_TRUE(host.acquire_keep_alive());
  });
  EXPECT_TRUE(wake_of()->working) << "released and taken again";
  visit([](AgentHost& host) { EXPECT_TRUE(host.release_keep_alive()); });
  ASSERT_TRUE(wake_of());
  EXPECT_FALSE(wake_of()->working);
  EXPECT_TRUE(wake_of()->at_ms);
}

TEST_F(LiveAgentWorkTest, AReferenceAloneIsInTheWakeIndexWhileItIsHeld) {
  visit([](AgentHost& host) { EXPECT_TRUE(host.acquire_keep_alive()); });
  ASSERT_TRUE(wake_of());
  visit([](AgentHost& host) { EXPECT_TRUE(host.release_keep_alive()); });
  EXPECT_FALSE(wake_of()) << "an agent with nothing pending is never woken";
}

TEST_F(LiveAgentWorkTest, AKeptAliveAgentWhoseStorageFailedIsBackWithinItsInterval) {
  ClassSettings settings;
  settings.keep_alive_interval = seconds(1);
  for (const bool kept_alive : {true, false}) {
    shard_.restart({}, settings);
    visit([=](AgentHost& host) {
      EXPECT_TRUE(host.create_schedule(after(3'600'000, "tick")));
      if (kept_alive) EXPECT_TRUE(host.acquire_keep_alive());
    });
    visit([](AgentHost& host) { host.storage_failed("as a test says"); });
    EXPECT_EQ(shard_.script.alive, 0);
    shard_.loop.advance(milliseconds(900));
    EXPECT_EQ(shard_.script.alive, 0) << "not in a loop";
    shard_.loop.advance(milliseconds(200));
    EXPECT_EQ(shard_.script.alive, kept_alive ? 1 : 0);
  }
}

TEST_F(LiveAgentWorkTest, AKeptAliveAgentThatCannotStartIsTriedAgainOnceInEachInterval) {
  const auto tries_in_ten_minutes = [this](seconds interval) {
    ClassSettings settings;
    settings.keep_alive_interval = interval;
    shard_.script.on_create = nullptr;
    shard_.restart({}, settings);
    visit([](AgentHost& host) { EXPECT_TRUE(host.acquire_keep_alive()); });
    int tries = 0;
    shard_.script.on_create = [&tries](AgentHost&) -> Result<void> {
      ++tries;
      return Error{Errc::kPlugin, "not yet"};
    };
    shard_.restart({}, settings);
    shard_.loop.advance(std::chrono::minutes(10));
    shard_.script.on_create = nullptr;
    return tries;
  };
  const int often = tries_in_ten_minutes(seconds(10));
  EXPECT_GE(often, 55);
  EXPECT_LE(often, 65);
  const int seldom = tries_in_ten_minutes(seconds(3600));
  EXPECT_GE(seldom, 6) << "as often as any agent whose start fails";
  EXPECT_LE(seldom, 9);
}

// ---- what is refused ----

TEST_F(LiveAgentWorkTest, InATransactionOfTheAgentsOwnNothingIsChanged) {
  visit([](AgentHost& host) {
    const std::string id = host.create_schedule(after(60'000, "tick"))->id;
    const auto savepoint = host.sql().begin_savepoint();
    ASSERT_TRUE(savepoint);
    EXPECT_EQ(host.create_schedule(after(0, "x")).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(host.cancel_schedule(id).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(host.pause_schedule(id, true).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(host.push_item(item("x")).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(host.start_managed(managed("x", "x")).error().code, Errc::kInvalidArgument);
    EXPECT_TRUE(host.get_schedule(id)) << "looking is free";
    EXPECT_TRUE(host.sql().rollback_to(savepoint.value()));
    EXPECT_TRUE(host.cancel_schedule(id));
    EXPECT_EQ(host.cancel_schedule(id).error().code, Errc::kNotFound);
  });
  EXPECT_EQ(shard_.logger.count("schedule:cancel"), 1U);
}

TEST_F(LiveAgentWorkTest, ThePluginsSqlCannotWriteTheTables) {
  visit([](AgentHost& host) {
    EXPECT_TRUE(host.create_schedule(after(60'000, "tick")));
    EXPECT_TRUE(host.push_item(item("x")));
    EXPECT_TRUE(host.start_managed(managed("x", "x")));
    for (const char* table :
         {"cf_agents_schedules", "cf_agents_queues", "cf_agents_fibers", "cf_agents_runs"}) {
      EXPECT_TRUE(host.sql().prepare("SELECT count(*) FROM " + std::string(table))) << table;
      EXPECT_FALSE(host.sql().prepare("DELETE FROM " + std::string(table))) << table;
    }
  });
}

}  // namespace
}  // namespace hearth::runtime
