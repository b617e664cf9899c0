// The grammar of cron expressions and the times they name. Changes of the clock: cron_dst_test.cpp.
#include "durable/cron.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {
namespace {

using namespace std::chrono_literals;

std::int64_t ms_at(std::chrono::sys_days day, std::chrono::seconds time = 0s) {
  return (day.time_since_epoch() + time) / 1ms;
}
std::chrono::sys_days day(int y, unsigned m, unsigned d) {
  return std::chrono::year(y) / std::chrono::month(m) / std::chrono::day(d);
}

std::string show(std::int64_t ms) {
  const std::chrono::sys_seconds second{std::chrono::seconds(ms / 1000)};
  const auto days = std::chrono::floor<std::chrono::days>(second);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss time(second - days);
  char text[64];
  std::snprintf(text, sizeof(text), "%04d-%02u-%02u %02d:%02d", int(date.year()),
                unsigned(date.month()), unsigned(date.day()), int(time.hours().count()),
                int(time.minutes().count()));
  if (time.seconds().count() == 0) return text;
  return text + (":" + std::to_string(time.seconds().count()));
}

// The times in UTC that follow `after`: "2026-01-02 12:00, 2026-01-02 12:01:30".
std::string times(std::string_view expression, std::int64_t after, int count) {
  const Result<Cron> cron = Cron::parse(expression);
  EXPECT_TRUE(cron.has_value()) << expression << ": " << cron.error().message;
  std::string result;
  for (int i = 0; cron && i < count; ++i) {
    const auto next = cron->next(after, TimeZone());
    if (!next) break;
    after = *next;
    result += (i == 0 ? "" : ", ") + show(after);
  }
  return result;
}

std::string cron_refusal(std::string_view expression) {
  const Result<Cron> cron = Cron::parse(expression);
  EXPECT_FALSE(cron.has_value()) << expression;
  if (cron) return "";
  EXPECT_EQ(cron.error().code, Errc::kInvalidArgument);
  return cron.error().message;
}

const std::int64_t kFriday = ms_at(day(2026, 1, 2));  // 2 January 2026, 00:00

TEST(CronTest, FiveFieldsAreMinuteHourDayMonthWeekday) {
  EXPECT_EQ(times("30 4 1 * *", kFriday, 2), "2026-02-01 04:30, 2026-03-01 04:30");
  EXPECT_EQ(times("0 12 * 6 *", kFriday, 1), "2026-06-01 12:00");
  EXPECT_EQ(times("5 0 * * 3", kFriday, 1), "2026-01-07 00:05");
}

TEST(CronTest, SixFieldsBeginWithTheSecond) {
  EXPECT_EQ(times("*/20 * * * * *", kFriday, 4),
            "2026-01-02 00:00:20, 2026-01-02 00:00:40, 2026-01-02 00:01, 2026-01-02 00:01:20");
  EXPECT_EQ(times("15 30 4 * * *", kFriday, 1), "2026-01-02 04:30:15");
}

TEST(CronTest, TheNextTimeIsStrictlyAfterAndOnAWholeSecond) {
  const std::int64_t noon = ms_at(day(2026, 1, 2), 12h);
  EXPECT_EQ(times("0 12 * * *", noon - 1, 1), "2026-01-02 12:00");
  EXPECT_EQ(times("0 12 * * *", noon, 1), "2026-01-03 12:00");
  EXPECT_EQ(times("0 12 * * *", noon + 1, 1), "2026-01-03 12:00");
  EXPECT_EQ(Cron::parse("* * * * * *")->next(noon + 1, TimeZone()), noon + 1000);
}

TEST(CronTest, ListsRangesStepsAndNames) {
  EXPECT_EQ(times("5,10-12 0 * * *", kFriday, 4),
            "2026-01-02 00:05, 2026-01-02 00:10, 2026-01-02 00:11, 2026-01-02 00:12");
  EXPECT_EQ(times("0 8-18/5 * * *", kFriday, 4),
            "2026-01-02 08:00, 2026-01-02 13:00, 2026-01-02 18:00, 2026-01-03 08:00");
  EXPECT_EQ(times("0 0 1 JAN,jul *", kFriday, 2), "2026-07-01 00:00, 2027-01-01 00:00");
  EXPECT_EQ(times("0 0 * * Mon-wed", kFriday, 4),
            "2026-01-05 00:00, 2026-01-06 00:00, 2026-01-07 00:00, 2026-01-12 00:00");
  EXPECT_EQ(times("0 0 ? * ?", kFriday, 1), "2026-01-03 00:00");
  EXPECT_EQ(times("  0\t0  1 * * ", kFriday, 1), "2026-02-01 00:00");
}

TEST(CronTest, SundayIs0And7AndEndsAWeekByName) {
  for (const char* sunday : {"0 0 * * 0", "0 0 * * 7", "0 0 * * sun", "0 0 * * 7-7"})
    EXPECT_EQ(times(sunday, kFriday, 2), "2026-01-04 00:00, 2026-01-11 00:00") << sunday;
  for (const char* weekend : {"0 0 * * 6,0", "0 0 * * 6-7", "0 0 * * sat-sun"})
    EXPECT_EQ(times(weekend, kFriday, 3), "2026-01-03 00:00, 2026-01-04 00:00, 2026-01-10 00:00")
        << weekend;
  EXPECT_EQ(times("0 0 * * */3", kFriday, 3),  // 0, 3 and 6
            "2026-01-03 00:00, 2026-01-04 00:00, 2026-01-07 00:00");
}

TEST(CronTest, IfDayAndWeekdayAreRestrictedEitherSuffices) {
  EXPECT_EQ(times("0 0 13 * 5", ms_at(day(2026, 2, 1)), 5),
            "2026-02-06 00:00, 2026-02-13 00:00, 2026-02-20 00:00, 2026-02-27 00:00, "
            "2026-03-06 00:00");
  EXPECT_EQ(times("0 0 13 * *", ms_at(day(2026, 2, 1)), 2), "2026-02-13 00:00, 2026-03-13 00:00");
  EXPECT_EQ(times("0 0 1-31 * 5", ms_at(day(2026, 2, 1)), 2), "2026-02-06 00:00, 2026-02-13 00:00")
      << "every day is no restriction";
}

TEST(CronTest, WordsStandForExpressions) {
  EXPECT_EQ(times("@yearly", kFriday, 1), "2027-01-01 00:00");
  EXPECT_EQ(times("@annually", kFriday, 1), "2027-01-01 00:00");
  EXPECT_EQ(times("@monthly", kFriday, 1), "2026-02-01 00:00");
  EXPECT_EQ(times("@weekly", kFriday, 1), "2026-01-04 00:00");
  EXPECT_EQ(times("@daily", kFriday, 1), "2026-01-03 00:00");
  EXPECT_EQ(times("@midnight", kFriday, 1), "2026-01-03 00:00");
  EXPECT_EQ(times(" @Hourly ", kFriday, 1), "2026-01-02 01:00");
  EXPECT_EQ(times("@minutely", kFriday, 1), "2026-01-02 00:01");
  EXPECT_NE(cron_refusal("@reboot").find("not known"), std::string::npos);
}

TEST(CronTest, ARefusalNamesTheFieldAndTheReason) {
  struct Bad {
    const char* expression;
    const char* says;
  };
  for (const Bad& bad : {Bad{"60 * * * *", "minute \"60\": must be 0 to 59"},
                         Bad{"* 24 * * *", "hour \"24\": must be 0 to 23"},
                         Bad{"* * 0 * *", "day \"0\": must be 1 to 31"},
                         Bad{"* * * 13 *", "month \"13\": must be 1 to 12"},
                         Bad{"* * * * 8", "weekday \"8\": must be 0 to 7"},
                         Bad{"60 * * * * *", "second \"60\""},
                         Bad{"10-5 * * * *", "minute \"10-5\": the range is reversed"},
                         Bad{"* * * * fri-mon", "reversed"},
                         Bad{"*/0 * * * *", "the step may not be 0"},
                         Bad{"*/x * * * *", "the step is no number"},
                         Bad{"*/ * * * *", "the step is no number"},
                         Bad{"5/15 * * * *", "5-59/15"},
                         Bad{"0 5/2 * * *", "5-23/2"},
                         Bad{"1,,2 * * * *", "an item is empty"},
                         Bad{"1, * * * *", "an item is empty"},
                         Bad{"1- * * * *", "is no number"},
                         Bad{"-1 * * * *", "is no number"},
                         Bad{"+1 * * * *", "is no number"},
                         Bad{"1.5 * * * *", "is no number"},
                         Bad{"99999999999 * * * *", "is no number"},
                         Bad{"* * * foo *", "no number and no name"},
                         Bad{"* * * mon *", "no number and no name"},
                         Bad{"* jan * * *", "is no number"},
                         Bad{"* * L * *", "L, W and # are not supported"},
                         Bad{"* * 15W * *", "L, W and # are not supported"},
                         Bad{"* * LW * *", "L, W and # are not supported"},
                         Bad{"* * L-3 * *", "L, W and # are not supported"},
                         Bad{"* * * * 5L", "L, W and # are not supported"},
                         Bad{"* * * * mon#2", "L, W and # are not supported"},
                         Bad{"* * * *", "not 4"},
                         Bad{"* * * * * * *", "not 7"},
                         Bad{"", "not 0"},
                         Bad{"*\xc3\xa9 * * * *", "ASCII"},
                         Bad{"* * * *\n*", "ASCII"}}) {
    EXPECT_NE(cron_refusal(bad.expression).find(bad.says), std::string::npos)
        << bad.expression << ": " << cron_refusal(bad.expression);
  }
  EXPECT_NE(cron_refusal(std::string(513, '*')).find("512"), std::string::npos);
}

TEST(CronTest, DatesThatNeverComeAreRefused) {
  for (const char* never : {"0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30-31 feb ?"})
    EXPECT_NE(cron_refusal(never).find("no month"), std::string::npos) << never;
  EXPECT_EQ(times("0 0 31 2 mon", kFriday, 1), "2026-02-02 00:00") << "a weekday suffices";
  EXPECT_EQ(times("0 0 31 2,3 *", kFriday, 1), "2026-03-31 00:00");
}

TEST(CronTest, TheLeapDayIsFoundAcrossTheYear2100) {
  EXPECT_EQ(times("0 0 29 2 *", ms_at(day(2094, 5, 1)), 3),
            "2096-02-29 00:00, 2104-02-29 00:00, 2108-02-29 00:00");
}

TEST(CronTest, MonthsAndYearsRollOver) {
  EXPECT_EQ(times("59 23 31 12 *", ms_at(day(2026, 12, 31), 23h + 59min), 1), "2027-12-31 23:59");
  EXPECT_EQ(times("0 0 31 * *", ms_at(day(2026, 1, 31)), 3),
            "2026-03-31 00:00, 2026-05-31 00:00, 2026-07-31 00:00");
  EXPECT_EQ(times("58 59 23 * * *", ms_at(day(2026, 2, 28), 23h + 59min + 58s), 1),
            "2026-03-01 23:59:58");
}

TEST(CronTest, ThereIsNothingAfterTheYear9999) {
  EXPECT_EQ(times("0 0 1 1 *", ms_at(day(9998, 6, 1)), 5), "9999-01-01 00:00");
  EXPECT_EQ(times("0 */12 1 1 *", ms_at(day(9998, 6, 1)), 5), "9999-01-01 00:00, 9999-01-01 12:00");
  const TimeZone berlin = *TimeZone::find("Europe/Berlin");
  for (const char* expression : {"0 0 1 1 *", "0 * 1 1 *"})
    EXPECT_EQ(Cron::parse(expression)->next(ms_at(day(9999, 6, 1)), berlin), std::nullopt);
  const Cron cron = *Cron::parse("* * * * *");
  EXPECT_EQ(cron.next(std::numeric_limits<std::int64_t>::max(), TimeZone()), std::nullopt);
  EXPECT_EQ(cron.next(std::numeric_limits<std::int64_t>::min(), TimeZone()), std::nullopt);
}

TEST(CronTest, TimesBefore1970AreReckonedAlike) {
  const std::int64_t before = -90'000'500;  // 1969-12-30 22:59:59.5
  EXPECT_EQ(*Cron::parse("* * * * * *")->next(before, TimeZone()), -90'000'000);
  EXPECT_EQ(*Cron::parse("0 0 * * *")->next(before, TimeZone()), -86'400'000);
}

TEST(CronTest, EveryTimeOfAYearIsFoundOnceInOrder) {
  // Compared with a look at each minute of the year, which is what next() must not do.
  const Cron cron = *Cron::parse("7,37 */5 1,15,31 2-11 2");
  std::vector<std::int64_t> slow;
  for (std::int64_t minute = ms_at(day(2028, 1, 1)); minute < ms_at(day(2029, 1, 1));
       minute += 60'000) {
    const std::chrono::sys_seconds second{std::chrono::seconds(minute / 1000)};
    const auto date = std::chrono::floor<std::chrono::days>(second);
    const std::chrono::year_month_day ymd(date);
    const auto of_day = second - date;
    const unsigned d(ymd.day());
    const bool on_day =
        d == 1 || d == 15 || d == 31 || std::chrono::weekday(date) == std::chrono::Tuesday;
    const unsigned m(ymd.month());
    const auto minutes = of_day / 1min;
    if (m >= 2 && m <= 11 && on_day && minutes / 60 % 5 == 0 &&
        (minutes % 60 == 7 || minutes % 60 == 37))
      slow.push_back(minute);
  }
  std::vector<std::int64_t> found;
  for (auto next = cron.next(ms_at(day(2028, 1, 1)) - 1, TimeZone());
       *next < ms_at(day(2029, 1, 1)); next = cron.next(*next, TimeZone()))
    found.push_back(*next);
  EXPECT_EQ(found, slow);
  EXPECT_GT(slow.size(), 400U);
}

}  // namespace
}  // namespace hearth::durable
