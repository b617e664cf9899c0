#include "runtime/durable_counts.hpp"

#include "support/exposition.hpp"
#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {
namespace {

using hearth::testing::Exposition;
using hearth::testing::RecordingLogger;
using std::chrono::seconds;

constexpr const char* kFamily = "hearth_durable_events_total";

// ---- one report ----

class DurableCountsTest : public ::testing::Test {
 protected:
  std::optional<double> count(std::string_view event, const std::string& agent_class = "Research") {
    return Exposition(metrics_.text())
        .value(kFamily, {{"class", agent_class}, {"event", std::string(event)}});
  }

  RecordingLogger logger_;
  Metrics metrics_;
  DurableCounts events_{logger_, metrics_};
};

TEST_F(DurableCountsTest, OperationsAreCountedByTheKindsThatTheClassLists) {
  using durable::OperationState;
  DurableCounts counts(logger_, metrics_, [](std::string_view agent_class, std::string_view kind) {
    return agent_class == "Shop" && kind == "charge";
  });
  counts.operation_changed("Shop", "charge", OperationState::kRunning);
  counts.operation_changed("Shop", "charge", OperationState::kUnknown);
  for (const char* const made_up : {"a", "b", "charge"})
    counts.operation_changed("Other", made_up, OperationState::kCompleted);
  const auto count = [&](const char* agent_class, const char* kind, const char* state) {
    return Exposition(metrics_.text())
        .value("hearth_operations_total",
               {{"class", agent_class}, {"kind", kind}, {"state", state}});
  };
  EXPECT_EQ(count("Shop", "charge", "running"), 1);
  EXPECT_EQ(count("Shop", "charge", "unknown"), 1);
  EXPECT_EQ(count("Shop", "charge", "not_executed"), 0);
  EXPECT_EQ(count("Other", "", "completed"), 3) << "what code makes up is no label";
  EXPECT_FALSE(count("Other", "a", "completed"));
}

TEST_F(DurableCountsTest, NamesAreUniqueAndOfTheirSubject) {
  std::set<std::string_view> names;
  for (const extensions::DurableEventTraits& traits : extensions::kDurableEvents) {
    EXPECT_TRUE(names.insert(traits.name).second) << traits.name;
    const std::string_view area = traits.name.substr(0, traits.name.find(':'));
    // These events of the alarm clock are about whole agents, not about one alarm.
    const bool is_of_agent = traits.name == "alarm:woken" || traits.name == "alarm:no_room" ||
                             traits.name == "alarm:class_missing";
    const std::string_view subject = area == "queue"    ? "item"
                                     : area == "notify" ? "notification"
                                     : is_of_agent      ? ""
                                                        : area;
    EXPECT_EQ(traits.subject, subject) << traits.name;
  }
}

TEST_F(DurableCountsTest, KnowsEveryNameThatUsersOfOtherPlatformsSearchFor) {
  for (const std::string_view name :
       {"fiber:run:started", "fiber:run:completed", "fiber:run:failed", "fiber:run:interrupted",
        "fiber:recovery:detected", "fiber:recovery:attempt", "fiber:recovery:handled",
        "fiber:recovery:skipped", "fiber:recovery:failed", "schedule:create", "schedule:execute",
        "schedule:retry", "schedule:error", "schedule:cancel", "schedule:duplicate_warning",
        "queue:create", "queue:retry", "queue:error"}) {
    EXPECT_TRUE(std::ranges::any_of(extensions::kDurableEvents, [&](const auto& each) {
      return each.name == name;
    })) << name;
  }
}

TEST_F(DurableCountsTest, EachEventIsLoggedAtItsLevelAndCountedUnderItsName) {
  for (std::size_t place = 0; place < extensions::kDurableEventCount; ++place) {
    const extensions::DurableEventTraits& traits = extensions::kDurableEvents[place];
    logger_.clear();
    const auto before = count(traits.name).value_or(0);
    events_.report(static_cast<extensions::DurableEvent>(place),
                   {.agent_class = "Research", .agent = "a"}, "id-1", "why not");
    EXPECT_EQ(count(traits.name), before + 1) << traits.name;
    // One that was given up is in the audit log as well.
    ASSERT_EQ(logger_.events().size(), traits.name == "alarm:dead" ? 2U : 1U) << traits.name;
    const std::string line = logger_.events().front();
    EXPECT_TRUE(line.find(" " + std::string(traits.name) + " class=Research agent=a ") !=
                std::string::npos)
        << line;
    const std::string id = traits.subject.empty() ? "" : std::string(traits.subject) + "=id-1 ";
    EXPECT_TRUE(line.ends_with("agent=a " + id + "detail=\"why not\"")) << line;
    EXPECT_EQ(line.starts_with("debug "), traits.level == LogLevel::kDebug) << line;
  }
  double sum = 0;
  for (const extensions::DurableEventTraits& traits : extensions::kDurableEvents)
    sum += *count(traits.name);
  EXPECT_EQ(sum, extensions::kDurableEventCount)
      << "each was counted once, and under no other name";
}

TEST_F(DurableCountsTest, AnEmptyIdOrDetailIsNoField) {
  events_.report(extensions::DurableEvent::kFiberRunCompleted,
                 {.agent_class = "Research", .agent = "a"}, "", "");
  EXPECT_TRUE(logger_.events().back().ends_with("fiber:run:completed class=Research agent=a"));
  events_.report(extensions::DurableEvent::kFiberRunCompleted,
                 {.agent_class = "Research", .agent = "a"}, "", "d");
  EXPECT_TRUE(logger_.events().back().ends_with(" agent=a detail=d"));
  events_.report(extensions::DurableEvent::kFiberRunCompleted,
                 {.agent_class = "Research", .agent = "a"}, "7", "");
  EXPECT_TRUE(logger_.events().back().ends_with(" agent=a fiber=7"));
}

TEST_F(DurableCountsTest, ALineNamesTheEventInWhichItWasWritten) {
  events_.report(
      extensions::DurableEvent::kFiberRunCompleted,
      {.agent_class = "Research", .agent = "a", .call = 3, .method = "begin", .trace = "00-1-2-01"},
      "7", "d");
  EXPECT_TRUE(logger_.events().back().ends_with(
      " agent=a fiber=7 detail=d call=3 method=begin trace=00-1-2-01"));
}

TEST_F(DurableCountsTest, CountsAlsoWhatTheLogDoesNotWant) {
  const auto silent = make_null_logger();
  DurableCounts events(*silent, metrics_);
  EXPECT_FALSE(events.is_logged(extensions::DurableEvent::kScheduleExecute));
  events.report(extensions::DurableEvent::kScheduleExecute,
                {.agent_class = "Research", .agent = "a"}, "s", "");
  EXPECT_EQ(count("schedule:execute"), 1);
}

TEST_F(DurableCountsTest, AClassHasAllItsSeriesFromItsFirstEventOn) {
  events_.report(extensions::DurableEvent::kQueueCreate, {.agent_class = "Research", .agent = "a"},
                 "1", "");
  EXPECT_EQ(count("fiber:run:failed"), 0);
  EXPECT_EQ(count("queue:create"), 1);
  EXPECT_EQ(count("queue:create", "Other"), std::nullopt);
}

TEST_F(DurableCountsTest, NamesOfAgentsAndTextsReachNoLabel) {
  events_.report(extensions::DurableEvent::kFiberRunFailed,
                 {.agent_class = "Research", .agent = "secret-agent"}, "secret-id", "secret-text");
  EXPECT_EQ(metrics_.text().find("secret"), std::string::npos);
}

// ---- the life of a fiber, through the whole runtime ----

class DurableLifeTest : public testing::WorkTest {
 protected:
  // What was logged of durable work since the last call, by name.
  std::vector<std::string> steps() {
    std::vector<std::string> names;
    for (const std::string& line : shard_.logger.events()) {
      const std::string name =
          line.substr(line.find(' ') + 1, line.find(' ', line.find(' ') + 1) - line.find(' ') - 1);
      if (name.find(':') != std::string::npos && !name.starts_with("alarm:")) names.push_back(name);
    }
    shard_.logger.clear();
    return names;
  }
  double count(const std::string& event) {
    return Exposition(shard_.metrics.text()).sum(kFamily, {{"class", "Counter"}, {"event", event}});
  }
  using Steps = std::vector<std::string>;
};

TEST_F(DurableLifeTest, AFiberThatEndsWellStartsAndCompletes) {
  visit([](HostCalls& host) { EXPECT_TRUE(host.finish_fiber(host.start_fiber("work")->handle)); });
  EXPECT_EQ(steps(), (Steps{"fiber:run:started", "fiber:run:completed"}));
  EXPECT_EQ(count("fiber:run:started"), 1);
  EXPECT_EQ(count("fiber:run:completed"), 1);
  EXPECT_EQ(count("fiber:run:failed"), 0);
}

TEST_F(DurableLifeTest, AFiberThatFailsSaysWhyAndIsNeverOffered) {
  visit([](HostCalls& host) {
    EXPECT_TRUE(host.fail_fiber(host.start_fiber("work")->handle, "no such page"));
  });
  EXPECT_EQ(shard_.logger.count("warn fiber:run:failed class=Counter agent=a fiber="), 1U);
  EXPECT_EQ(shard_.logger.count("detail=\"no such page\""), 1U);
  EXPECT_EQ(steps(), (Steps{"fiber:run:started", "fiber:run:failed"}));
  EXPECT_EQ(count("fiber:run:failed"), 1);
  shard_.restart_and_settle();
  EXPECT_EQ(steps(), Steps{});
}

TEST_F(DurableLifeTest, AFiberThatHasEndedCannotFailOrFinishAgain) {
  visit([](HostCalls& host) {
    const auto handle = host.start_fiber("work")->handle;
    EXPECT_TRUE(host.fail_fiber(handle, "x"));
    EXPECT_EQ(host.fail_fiber(handle, "x").error().code, Errc::kNotFound);
    EXPECT_EQ(host.finish_fiber(handle).error().code, Errc::kNotFound);
  });
  EXPECT_EQ(count("fiber:run:failed"), 1);
}

TEST_F(DurableLifeTest, ARunThatARestartInterruptsIsDetectedAttemptedAndHandled) {
  start_fiber("work");
  steps();
  shard_.restart_and_settle();
  EXPECT_EQ(steps(), (Steps{"fiber:run:interrupted", "fiber:recovery:detected",
                            "fiber:recovery:attempt", "fiber:recovery:handled"}));
  for (const char* event : {"fiber:run:interrupted", "fiber:recovery:detected",
                            "fiber:recovery:attempt", "fiber:recovery:handled"}) {
    EXPECT_EQ(count(event), 1) << event;
  }
}

TEST_F(DurableLifeTest, ARecoveryThatFailsIsDetectedAgainButItsRunIsNotInterruptedTwice) {
  start_fiber("work");
  on_work = on(EventKind::kFiberRecovered, fail_with(Errc::kPlugin, "no"));
  shard_.restart_and_settle();
  steps();
  shard_.restart_and_advance(seconds(3));
  const Steps seen = steps();
  EXPECT_EQ(std::ranges::count(seen, "fiber:run:interrupted"), 0);
  EXPECT_EQ(std::ranges::count(seen, "fiber:recovery:detected"), 1);
  EXPECT_GE(std::ranges::count(seen, "fiber:recovery:failed"), 1);
  shard_.loop.advance(seconds(36'000));
  EXPECT_EQ(count("fiber:recovery:attempt"), 10);
  EXPECT_EQ(count("fiber:recovery:failed"), 10);
  EXPECT_EQ(count("fiber:recovery:dead"), 1);
}

TEST_F(DurableLifeTest, ADeadFiberIsNotDetected) {
  start_fiber("work");
  on_work = on(EventKind::kFiberRecovered, fail_with(Errc::kPlugin, "no"));
  shard_.restart_and_advance(seconds(36'000));
  steps();
  shard_.restart();
  visit([](HostCalls&) {});
  EXPECT_EQ(steps(), Steps{});
}

TEST_F(DurableLifeTest, WhatAClassDoesNotRecoverWaitsForCode) {
  start_fiber("work");
  on_work = on(EventKind::kFiberRecovered, fail_with(Errc::kUnsupported, ""));
  shard_.restart_and_settle();
  EXPECT_EQ(count("fiber:unknown"), 1);
  EXPECT_EQ(count("fiber:recovery:handled"), 0);
}

TEST_F(DurableLifeTest, AWakeByAlarmIsReportedAndOneByAClientIsNot) {
  visit([](HostCalls& host) { EXPECT_TRUE(host.acquire_keep_alive()); });
  EXPECT_EQ(count("alarm:woken"), 0);
  shard_.restart_and_settle();
  EXPECT_EQ(count("alarm:woken"), 1);
  EXPECT_EQ(Exposition(shard_.metrics.text()).value("hearth_alarm_wakes_total"), 1);
}

}  // namespace
}  // namespace hearth::runtime
