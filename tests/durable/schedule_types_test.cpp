#include "durable/schedule_types.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

TEST(ScheduleTypesTest, TheWordsAreThoseOfRecords) {
  EXPECT_EQ(to_string(ScheduleType::kDelay), "delay");
  EXPECT_EQ(to_string(ScheduleType::kAt), "at");
  EXPECT_EQ(to_string(ScheduleType::kCron), "cron");
  EXPECT_EQ(to_string(ScheduleType::kInterval), "interval");
  EXPECT_EQ(to_string(Misfire::kOnce), "once");
  EXPECT_EQ(to_string(Misfire::kSkip), "skip");
  EXPECT_EQ(to_string(Misfire::kAll), "all");
  EXPECT_EQ(to_string(Overlap::kSkip), "skip");
  EXPECT_EQ(to_string(Overlap::kQueue), "queue");
  EXPECT_EQ(to_string(Overlap::kAllow), "allow");
}

TEST(ScheduleTypesTest, ATypeIsFoundByItsWord) {
  for (const ScheduleType type :
       {ScheduleType::kDelay, ScheduleType::kAt, ScheduleType::kCron, ScheduleType::kInterval})
    EXPECT_EQ(schedule_type(to_string(type)), type);
  EXPECT_EQ(schedule_type(""), std::nullopt);
  EXPECT_EQ(schedule_type("delayed"), std::nullopt);
}

}  // namespace
}  // namespace hearth::durable
