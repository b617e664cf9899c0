// What an agent's work costs with 10 and with 10,000 waiting jobs, in instructions of the database.
#include "durable/alarms.hpp"
#include "durable/fibers.hpp"
#include "durable/notices.hpp"
#include "durable/queue.hpp"
#include "durable/schedules.hpp"
#include "support/counted_steps.hpp"
#include "support/manual_clock.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace hearth::durable {
namespace {

struct Cost {
  const char* what;
  std::uint64_t steps;
};

// Claims, lists and computes the wake time of each kind, with `jobs` of each that wait.
std::vector<Cost> costs_with(int jobs) {
  const hearth::testing::TempDirectory directory;
  hearth::testing::ManualClock clock;
  hearth::testing::SeededRandom random{7};
  storage::AgentDatabase database(directory.path() / "a.db", {"Worker", "a"});
  const FiberSettings fiber_settings{.max_running = 20'000, .max_records = 20'000};
  ScheduleSettings schedule_settings;
  schedule_settings.max_schedules = 20'000;
  const AlarmSettings alarm_settings{.max_alarms = 20'000};
  const auto in_a_minute = [&clock](int more_ms) {
    return unix_millis(clock.wall_now()) + 60'000 + more_ms;
  };
  {
    Alarms alarms(database, clock, random, alarm_settings);
    for (int i = 0; i < jobs; ++i)
      EXPECT_TRUE(alarms.set({"ring" + std::to_string(i), "[1]", in_a_minute(i)}));
    Fibers fibers(database, clock, random, fiber_settings);
    Schedules schedules(database, clock, random, schedule_settings);
    Queue queue(database, clock, random, {});
    Notices notices(database, clock, random);
    for (int i = 0; i < jobs; ++i) {
      EXPECT_TRUE(fibers.start(FiberRequest{.name = "report", .input = "[1]"}));
      ScheduleRequest delay;
      delay.type = ScheduleType::kDelay;
      delay.callback = "tick";
      delay.when_ms = 60'000 + i;
      EXPECT_TRUE(schedules.create(delay));
      EXPECT_TRUE(queue.push(QueueRequest{.callback = "mail", .payload = "[1]"}));
      EXPECT_TRUE(notices.push({"ChatRoom", std::to_string(i), "note", "[1]", ""}));
    }
    database.commit();
  }
  // Another instance finds them.
  Fibers fibers(database, clock, random, fiber_settings);
  fibers.load();
  Schedules schedules(database, clock, random, schedule_settings);
  schedules.load();
  Queue queue(database, clock, random, {});
  queue.load();
  Notices notices(database, clock, random);
  notices.load();
  Alarms alarms(database, clock, random, alarm_settings);
  alarms.load();
  const auto parent = fibers.start(FiberRequest{.name = "report", .id = "parent"});
  const auto child = fibers.start(FiberRequest{
      .name = "report", .id = "child", .keeping = FiberKeeping::kBrief, .parent = "parent"});
  EXPECT_TRUE(parent && child);
  EXPECT_TRUE(fibers.settle(child->fiber, FiberStatus::kCompleted, "7"));
  database.commit();
  clock.advance(std::chrono::milliseconds(60'000));
  hearth::testing::compiled_again(database);  // those that were compiled before the tables

  std::vector<Cost> costs;
  const auto measure = [&](const char* what, const std::function<bool()>& run) {
    const hearth::testing::CountedSteps steps(database);
    EXPECT_TRUE(run()) << what;
    EXPECT_EQ(hearth::testing::compiled_again(database), 0) << what;
    costs.push_back({what, steps.count()});
    database.commit();
  };
  measure("wake time", [&] {
    return fibers.wake().at_ms && schedules.wake().at_ms && queue.wake().working &&
           fibers.ends().tellings().wake().none();
  });
  measure("claim a fiber", [&] { return fibers.recovery().begin().has_value(); });
  measure("wake time after it", [&] { return fibers.wake().at_ms.has_value(); });
  std::string item;
  measure("claim an item", [&] {
    const auto next = queue.begin_next();
    item = next ? next->id : "";
    return next.has_value();
  });
  measure("end of an item",
          [&] { return queue.ended(item, TryOutcome::kDone).next == TryEnd::kDone; });
  measure("claim a run", [&] { return schedules.runs().begin_due().has_value(); });
  measure("wake time of schedules", [&] { return schedules.wake().at_ms.has_value(); });
  measure("list 5 records", [&] { return fibers.records().list({.limit = 5}).has_value(); });
  measure("list 5 open records",
          [&] { return fibers.records().list({.statuses = 7, .limit = 5}).has_value(); });
  measure("list 5 schedules", [&] { return schedules.list({.limit = 5}).size() > 10; });
  measure("list 5 items", [&] { return queue.list({.limit = 5}).has_value(); });
  measure("push an item", [&] { return queue.push({.callback = "mail"}).has_value(); });
  measure("start a fiber",
          [&] { return fibers.start(FiberRequest{.name = "report"}).has_value(); });
  // The list of alarms is not measured: it sorts all, and an agent has at most alarms.max_alarms.
  measure("wake time of alarms", [&] { return alarms.wake().working; });
  measure("claim an alarm", [&] { return alarms.begin_next().has_value(); });
  measure("set an alarm", [&] { return alarms.set({"ring", "[1]", in_a_minute(0)}).has_value(); });
  measure("wake time of notices", [&] { return notices.wake().working; });
  std::string notice;
  measure("claim a notice", [&] {
    const auto next = notices.begin_next();
    notice = next ? next->id : "";
    return next.has_value();
  });
  measure("end of a notice",
          [&] { return notices.ended(notice, TryOutcome::kDone).next == TryEnd::kDone; });
  measure("list 5 notices", [&] { return notices.list("", 5).has_value(); });
  measure("push a notice",
          [&] { return notices.push({"ChatRoom", "new", "note", "[1]", ""}).has_value(); });
  measure("checkpoint of a parent", [&] {
    EXPECT_TRUE(fibers.stash(parent->fiber, "1"));
    return !fibers.records().inspect("child", "");
  });
  measure("end of a parent",
          [&] { return fibers.settle(parent->fiber, FiberStatus::kCompleted, "").has_value(); });
  alarms.close();
  notices.close();
  schedules.close();
  queue.close();
  fibers.ends().tellings().close();
  fibers.close();
  return costs;
}

TEST(JobsCostTest, TenThousandJobsThatWaitCostNoMoreThanTwiceWhatTenDo) {
  const std::vector<Cost> few = costs_with(10);
  const std::vector<Cost> many = costs_with(10'000);
  ASSERT_EQ(few.size(), many.size());
  for (std::size_t i = 0; i < few.size(); ++i) {
    std::printf("%-24s %6llu with 10 jobs of each kind, %6llu with 10,000\n", few[i].what,
                static_cast<unsigned long long>(few[i].steps),
                static_cast<unsigned long long>(many[i].steps));
    EXPECT_LE(many[i].steps, 2 * few[i].steps) << few[i].what;
  }
}

}  // namespace
}  // namespace hearth::durable
