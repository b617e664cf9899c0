#include "durable/recurrence.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t kYear = 365 * kDay;

TEST(RecurrenceTest, AnIntervalIsReckonedFromItsAnchorBothWays) {
  const Recurrence every = Recurrence::every(100, 1'050);
  EXPECT_EQ(every.next(1'049), 1'050);
  EXPECT_EQ(every.next(1'050), 1'150);
  EXPECT_EQ(every.next(1'151), 1'250);
  EXPECT_EQ(every.next(949), 950);
  EXPECT_EQ(every.next(950), 1'050);
  EXPECT_EQ(every.next(-1'000), -950);
}

TEST(RecurrenceTest, OccurrencesAreCountedUpToAThousand) {
  const Recurrence every = Recurrence::every(100, 0);
  EXPECT_EQ(every.count(0, 0), 0U);
  EXPECT_EQ(every.count(0, 99), 0U);
  EXPECT_EQ(every.count(0, 100), 1U);
  EXPECT_EQ(every.count(0, 250), 2U);
  EXPECT_EQ(every.count(250, 0), 0U) << "the clock was set back";
  EXPECT_EQ(every.count(0, 100 * kYear), kMostCounted);
  const Recurrence hourly = *Recurrence::cron("0 * * * *", "");
  EXPECT_EQ(hourly.count(0, kHour - 1), 0U);
  EXPECT_EQ(hourly.count(0, kHour), 1U);
  EXPECT_EQ(hourly.count(1, kDay), 24U);
  EXPECT_EQ(hourly.count(0, kYear), kMostCounted);
}

TEST(RecurrenceTest, TheLastFewOfManyAreFoundWithoutLookingAtAll) {
  const Recurrence each_second = *Recurrence::cron("* * * * * *", "");
  EXPECT_EQ(each_second.first_of_last(3, 0, 20 * kYear), 20 * kYear - 2'000);
  EXPECT_EQ(each_second.first_of_last(1'000, 0, 20 * kYear), 20 * kYear - 999'000);
  const Recurrence daily = *Recurrence::cron("0 12 * * *", "");
  EXPECT_EQ(daily.first_of_last(2, 0, 10 * kDay), 8 * kDay + 12 * kHour);
  EXPECT_EQ(daily.first_of_last(50, 0, 10 * kDay), 12 * kHour) << "there are only ten";
  EXPECT_EQ(daily.first_of_last(5, 0, kHour), std::nullopt);
  EXPECT_EQ(daily.first_of_last(0, 0, kDay), std::nullopt);
  const Recurrence every = Recurrence::every(7, 3);
  EXPECT_EQ(every.first_of_last(2, 0, 3 + 7 * 1'000'000'000LL), 3 + 7 * 999'999'999LL);
}

TEST(RecurrenceTest, WhatAClockShowsAgainComesAgainOnlyIfItFollowsRealTime) {
  const std::int64_t now = 10 * kDay;
  const Recurrence daily = *Recurrence::cron("0 12 * * *", "");
  const Recurrence hourly = *Recurrence::cron("0 * * * *", "");
  const Recurrence every = Recurrence::every(kMinute, 0);
  for (const Recurrence& each : {daily, hourly, every})
    EXPECT_EQ(each.search_from(now - kHour, now), now) << "as ever";
  EXPECT_EQ(daily.search_from(now + kHour, now), now + kHour) << "once a day is once";
  EXPECT_EQ(hourly.search_from(now + kHour, now), now);
  EXPECT_EQ(every.search_from(now + kHour, now), now);
  EXPECT_EQ(daily.search_from(now + kYear, now), now) << "it was wrong by a year";
}

TEST(RecurrenceTest, WhatIsWrongIsRefused) {
  EXPECT_EQ(Recurrence::cron("61 * * * *", "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(Recurrence::cron("* * * * *", "Nowhere/Land").error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace hearth::durable
