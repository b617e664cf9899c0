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

}  // namespace
}  // namespace hearth::durable
