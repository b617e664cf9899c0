#include "durable/time_zone.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace hearth::durable {
namespace {

constexpr std::int64_t kHourInSeconds = 3600;

std::int64_t seconds_at(int y, unsigned m, unsigned d, int hour = 0, int minute = 0) {
  const std::chrono::sys_days day =
      std::chrono::year(y) / std::chrono::month(m) / std::chrono::day(d);
  return std::int64_t{day.time_since_epoch().count()} * 86'400 + hour * kHourInSeconds +
         minute * 60;
}

TEST(TimeZoneTest, P1_UtcNeedsNoDatabase) {
  for (const TimeZone& zone : {TimeZone(), *TimeZone::find(""), *TimeZone::find("UTC")}) {
    EXPECT_EQ(zone.stretch(seconds_at(2026, 7, 1)).offset, 0);
    EXPECT_EQ(zone.instant(seconds_at(2300, 7, 1)), seconds_at(2300, 7, 1));
  }
}

TEST(TimeZoneTest, AStretchLastsFromOneChangeToTheNext) {
  const TimeZone berlin = *TimeZone::find("Europe/Berlin");
  const TimeZone::Stretch summer = berlin.stretch(seconds_at(2026, 7, 1));
  EXPECT_EQ(summer.offset, 2 * kHourInSeconds);
  EXPECT_EQ(summer.from, seconds_at(2026, 3, 29, 1));
  EXPECT_EQ(summer.until, seconds_at(2026, 10, 25, 1));
  EXPECT_EQ(berlin.stretch(summer.from - 1).offset, kHourInSeconds);
  EXPECT_EQ(berlin.stretch(summer.until).offset, kHourInSeconds);
}

TEST(TimeZoneTest,
     ALocalTimeThatIsSkippedIsTheFirstInstantAfterTheGapAndOneThatComesTwiceTheFirst) {
  const TimeZone berlin = *TimeZone::find("Europe/Berlin");
  EXPECT_EQ(berlin.instant(seconds_at(2026, 3, 29, 1, 59)), seconds_at(2026, 3, 29, 0, 59));
  EXPECT_EQ(berlin.instant(seconds_at(2026, 3, 29, 2, 0)), seconds_at(2026, 3, 29, 1, 0));
  EXPECT_EQ(berlin.instant(seconds_at(2026, 3, 29, 2, 59)), seconds_at(2026, 3, 29, 1, 0));
  EXPECT_EQ(berlin.instant(seconds_at(2026, 3, 29, 3, 0)), seconds_at(2026, 3, 29, 1, 0));
  EXPECT_EQ(berlin.instant(seconds_at(2026, 10, 25, 2, 30)), seconds_at(2026, 10, 25, 0, 30));
  EXPECT_EQ(berlin.instant(seconds_at(2026, 10, 25, 3, 0)), seconds_at(2026, 10, 25, 2, 0));
}

TEST(TimeZoneTest, P2_YearsAfter2037FollowTheSameRules) {
  const TimeZone berlin = *TimeZone::find("Europe/Berlin");
  // The last Sundays of March and October: 2050 has them on the 27th and the 30th.
  EXPECT_EQ(berlin.stretch(seconds_at(2050, 3, 27, 0, 59)).offset, kHourInSeconds);
  EXPECT_EQ(berlin.stretch(seconds_at(2050, 3, 27, 1, 0)).offset, 2 * kHourInSeconds);
  EXPECT_EQ(berlin.stretch(seconds_at(2050, 10, 30, 0, 59)).offset, 2 * kHourInSeconds);
  EXPECT_EQ(berlin.stretch(seconds_at(2050, 10, 30, 1, 0)).offset, kHourInSeconds);
  EXPECT_EQ(berlin.instant(seconds_at(2050, 3, 27, 2, 30)), seconds_at(2050, 3, 27, 1, 0));
  const TimeZone::Stretch summer = berlin.stretch(seconds_at(2050, 7, 1));
  EXPECT_EQ(summer.from, seconds_at(2050, 3, 27, 1));
  EXPECT_EQ(summer.until, seconds_at(2050, 10, 30, 1));
  // The summer of the south goes across the new year.
  const TimeZone sydney = *TimeZone::find("Australia/Sydney");
  EXPECT_EQ(sydney.stretch(seconds_at(2060, 12, 31, 23)).offset, 11 * kHourInSeconds);
  EXPECT_EQ(sydney.stretch(seconds_at(2061, 1, 1)).offset, 11 * kHourInSeconds);
  EXPECT_EQ(sydney.stretch(seconds_at(2061, 6, 1)).offset, 10 * kHourInSeconds);
}

TEST(TimeZoneTest, P2_AClockThatRestsGoesOnResting) {
  // Moscow changed its clock in the model years of long ago, and does not any more.
  const TimeZone moscow = *TimeZone::find("Europe/Moscow");
  for (int year = 2038; year < 2070; ++year) {
    EXPECT_EQ(moscow.stretch(seconds_at(year, 1, 10)).offset, 3 * kHourInSeconds) << year;
    EXPECT_EQ(moscow.stretch(seconds_at(year, 7, 10)).offset, 3 * kHourInSeconds) << year;
  }
}

TEST(TimeZoneTest, StretchesFollowEachOtherWithoutAHole) {
  for (const char* name : {"Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata"}) {
    const TimeZone zone = *TimeZone::find(name);
    std::int64_t instant = seconds_at(2036, 5, 1);
    int steps = 0;
    while (instant < seconds_at(2042, 1, 1)) {
      const TimeZone::Stretch stretch = zone.stretch(instant);
      ASSERT_LE(stretch.from, instant) << name;
      ASSERT_GT(stretch.until, instant) << name;
      instant = stretch.until;
      ASSERT_LT(++steps, 100);
    }
  }
}

TEST(TimeZoneTest, AnUnknownNameIsRefusedAndQuoted) {
  const auto unknown = TimeZone::find("Europe/Atlantis");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, Errc::kInvalidArgument);
  EXPECT_NE(unknown.error().message.find("\"Europe/Atlantis\""), std::string::npos);
  for (const std::string& bad :
       {std::string("europe/berlin"), std::string("../../etc/passwd"),
        std::string("/etc/localtime"), std::string("a\0b", 3), std::string("\xff"),
        std::string(65, 'a'), std::string(100'000, 'a')}) {
    const auto refused = TimeZone::find(bad);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
    EXPECT_LT(refused.error().message.size(), 120U);
  }
}

TEST(TimeZoneTest, SeveralThreadsMayAskAtOnce) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int& mine : wrong) {
    threads.emplace_back([&mine] {
      for (const char* name : {"Asia/Tokyo", "Europe/Paris", "America/Chicago", "Africa/Cairo"}) {
        const auto zone = TimeZone::find(name);
        if (!zone || zone->instant(seconds_at(2026, 1, 1)) == seconds_at(2026, 1, 1)) ++mine;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace hearth::durable
