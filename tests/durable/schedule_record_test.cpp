#include "durable/schedule_record.hpp"

#include "json/json.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

TEST(ScheduleRecordTest, TheStateIsTheFirstThatHolds) {
  ScheduleRow row;
  EXPECT_EQ(state_of(row), "waiting");
  row.missing = 2;
  EXPECT_EQ(state_of(row), "missing");
  row.paused = true;
  EXPECT_EQ(state_of(row), "paused");
  row.dead = true;
  EXPECT_EQ(state_of(row), "dead");
  row.running = 1;
  EXPECT_EQ(state_of(row), "running");
}

TEST(ScheduleRecordTest, OnlyWhatBelongsToTheTypeIsTold) {
  ScheduleRow row;
  const auto has = [&row](const char* name) {
    return parse_json(schedule_record(row, "null"))->contains(name);
  };
  row.type = ScheduleType::kDelay;
  EXPECT_TRUE(has("delay_ms"));
  EXPECT_FALSE(has("interval_ms") || has("cron") || has("time_zone"));
  row.type = ScheduleType::kAt;
  EXPECT_FALSE(has("delay_ms") || has("interval_ms") || has("cron"));
  row.type = ScheduleType::kInterval;
  EXPECT_TRUE(has("interval_ms"));
  row.type = ScheduleType::kCron;
  EXPECT_TRUE(has("cron") && has("time_zone"));
}

TEST(ScheduleRecordTest, AnyTextMakesValidJson) {
  ScheduleRow row;
  row.type = ScheduleType::kAt;
  row.callback = "say \"hi\"\n";
  row.last_error = "\xff\x01";
  const auto record = parse_json(schedule_record(row, R"({"deep":[1,2]})"));
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ((*record)["callback"], row.callback);
  EXPECT_EQ((*record)["payload"]["deep"][1], 2);
  ASSERT_TRUE(parse_json(run_body(row, "[]", 0)).has_value());
}

TEST(ScheduleRecordTest, ARunBearsTheNameOfItsSchedule) {
  ScheduleRow row;
  row.type = ScheduleType::kCron;
  row.id = "run";
  EXPECT_EQ((*parse_json(run_body(row, "1", 5)))["id"], "run");
  row.parent = "schedule";
  row.attempts = 2;
  row.missed = 9;
  const Json body = *parse_json(run_body(row, "1", 5));
  EXPECT_EQ(body["id"], "schedule");
  EXPECT_EQ(body["attempt"], 3);
  EXPECT_EQ(body["missed"], 9);
  EXPECT_EQ(body["late_ms"], 5);
}

}  // namespace
}  // namespace hearth::durable
