#include "durable/schedule_times.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace hearth::durable {
namespace {

// An interval of 100, whose occurrence at 1,000 is the next one.
ScheduleRow every_hundred() {
  ScheduleRow row;
  row.type = to_string(ScheduleType::kInterval);
  row.length_ms = 100;
  row.fixed_rate = true;
  row.set_at_ms = 900;
  row.next_at_ms = row.scheduled_for = 1'000;
  row.misfire_limit = 2;
  return row;
}

TEST(ScheduleTimesTest, NoWaitIsLongerThanItsLength) {
  ScheduleRow row = every_hundred();
  bound_wait(row, 950);
  EXPECT_EQ(row.next_at_ms, 1'000) << "the clock was not set back";
  bound_wait(row, 300);
  EXPECT_EQ(row.next_at_ms, 400);
  EXPECT_EQ(row.scheduled_for, 400);
}

TEST(ScheduleTimesTest, TheNextTimeForgetsTheLastOccurrence) {
  ScheduleRow row = every_hundred();
  row.attempts = 2;
  row.missed = 3;
  row.owed = row.over = true;
  row.begun_at = 7;
  EXPECT_TRUE(set_next(row, 1'100, 1'050));
  EXPECT_EQ(row.next_at_ms, 1'100);
  EXPECT_EQ(row.scheduled_for, 1'100);
  EXPECT_EQ(row.set_at_ms, 1'050);
  EXPECT_EQ(row.attempts + static_cast<int>(row.missed) + static_cast<int>(row.begun_at), 0);
  EXPECT_FALSE(row.owed || row.over || row.dead);
  EXPECT_FALSE(set_next(row, std::nullopt, 1'100));
  EXPECT_TRUE(row.dead);
  EXPECT_EQ(row.last_error, "it is never due again");
}

TEST(ScheduleTimesTest, MissedOccurrencesRunOneByOneUntilThereAreNoMore) {
  const Recurrence recurrence = Recurrence::every(100, 1'000);
  ScheduleRow row = every_hundred();
  EXPECT_FALSE(catch_up(row, recurrence, 1'500)) << "none was missed";
  row.catch_up_until = 1'400;
  EXPECT_TRUE(catch_up(row, recurrence, 1'500));
  EXPECT_EQ(row.next_at_ms, 1'300) << "the first of the last two";
  EXPECT_TRUE(row.owed);
  EXPECT_TRUE(catch_up(row, recurrence, 1'500));
  EXPECT_EQ(row.next_at_ms, 1'400);
  EXPECT_FALSE(catch_up(row, recurrence, 1'500));
}

TEST(ScheduleTimesTest, AnAbsenceIsCountedOrCaughtUpWith) {
  const ScheduleSettings settings;
  ScheduleRow once = every_hundred();
  EXPECT_EQ(reckon_absence(once, 1'000, 1'050, settings).value(), 0U);
  EXPECT_EQ(reckon_absence(once, 1'000, 1'350, settings).value(), 3U);
  EXPECT_EQ(once.missed, 3U);
  ScheduleRow all = every_hundred();
  all.misfire = Misfire::kAll;
  EXPECT_EQ(reckon_absence(all, 1'000, 1'350, settings).value(), 0U);
  EXPECT_EQ(all.catch_up_until, 1'350);
}

}  // namespace
}  // namespace hearth::durable
