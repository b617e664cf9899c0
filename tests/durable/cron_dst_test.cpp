// Cron expressions around changes of the clock. A program with Python's zoneinfo has computed the
// table minute by minute: every change of 2026 to 2030 in three zones, and one zone without
// changes.
#include "durable/cron.hpp"

#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {
namespace {

// What expressions name around changes of a zone's clock, in hours and minutes from each.
struct Around {
  std::string_view expression;
  std::string_view after;
  std::string_view expected;
};
struct Changes {
  std::string_view zone;
  std::string_view moments;  // in UTC
  std::array<Around, 4> times;
};

constexpr Changes kChanges[] = {
    // clang-format off
    // Forward.
    {"Europe/Berlin",
     "2026-03-29T01:00Z 2027-03-28T01:00Z 2028-03-26T01:00Z 2029-03-25T01:00Z 2030-03-31T01:00Z",
     {{{"30 2 * * *", "-30:00", "-23:30 +00:00 +23:30"},
       {"0 * * * *", "-02:00", "-01:00 +00:00 +01:00 +02:00 +03:00"},
       {"*/15 * * * *", "-00:31", "-00:30 -00:15 +00:00 +00:15 +00:30 +00:45"},
       {"0 12 * * *", "-30:00", "-14:00 +09:00 +33:00"}}}},
    // Back.
    {"Europe/Berlin",
     "2026-10-25T01:00Z 2027-10-31T01:00Z 2028-10-29T01:00Z 2029-10-28T01:00Z 2030-10-27T01:00Z",
     {{{"30 2 * * *", "-30:00", "-24:30 -00:30 +24:30"},
       {"0 * * * *", "-02:00", "-01:00 +00:00 +01:00 +02:00 +03:00"},
       {"*/15 * * * *", "-00:31", "-00:30 -00:15 +00:00 +00:15 +00:30 +00:45"},
       {"0 12 * * *", "-30:00", "-15:00 +10:00 +34:00"}}}},
    // Forward.
    {"America/New_York",
     "2026-03-08T07:00Z 2027-03-14T07:00Z 2028-03-12T07:00Z 2029-03-11T07:00Z 2030-03-10T07:00Z",
     {{{"30 2 * * *", "-30:00", "-23:30 +00:00 +23:30"},
       {"0 * * * *", "-02:00", "-01:00 +00:00 +01:00 +02:00 +03:00"},
       {"*/15 * * * *", "-00:31", "-00:30 -00:15 +00:00 +00:15 +00:30 +00:45"},
       {"0 12 * * *", "-30:00", "-14:00 +09:00 +33:00"}}}},
    // Back.
    {"America/New_York",
     "2026-11-01T06:00Z 2027-11-07T06:00Z 2028-11-05T06:00Z 2029-11-04T06:00Z 2030-11-03T06:00Z",
     {{{"30 1 * * *", "-30:00", "-24:30 -00:30 +24:30"},
       {"0 * * * *", "-02:00", "-01:00 +00:00 +01:00 +02:00 +03:00"},
       {"*/15 * * * *", "-00:31", "-00:30 -00:15 +00:00 +00:15 +00:30 +00:45"},
       {"0 12 * * *", "-30:00", "-14:00 +11:00 +35:00"}}}},
    // Back.
    {"Australia/Lord_Howe",
     "2026-04-04T15:00Z 2027-04-03T15:00Z 2028-04-01T15:00Z 2029-03-31T15:00Z 2030-04-06T15:00Z",
     {{{"45 1 * * *", "-30:00", "-24:15 -00:15 +24:15"},
       {"0 * * * *", "-02:00", "-01:00 +00:30 +01:30 +02:30 +03:30"},
       {"*/15 * * * *", "-00:31", "-00:30 -00:15 +00:00 +00:15 +00:30 +00:45"},
       {"0 12 * * *", "-30:00", "-14:00 +10:30 +34:30"}}}},
    // Forward.
    {"Australia/Lord_Howe",
     "2026-10-03T15:30Z 2027-10-02T15:30Z 2028-09-30T15:30Z 2029-10-06T15:30Z 2030-10-05T15:30Z",
     {{{"15 2 * * *", "-30:00", "-23:45 +00:00 +23:45"},
       {"0 * * * *", "-02:00", "-01:00 +00:30 +01:30 +02:30 +03:30"},
       {"*/15 * * * *", "-00:31", "-00:30 -00:15 +00:00 +00:15 +00:30 +00:45"},
       {"0 12 * * *", "-30:00", "-14:00 +09:30 +33:30"}}}},
    // clang-format on
};

struct Line {
  std::string_view zone;
  std::string_view expression;
  std::string_view after;
  std::string_view expected;  // in the year of `after`
};

constexpr Line kLines[] = {
    // clang-format off
    {"Europe/Berlin", "*/15 2 * * *", "2026-03-28T23:00Z",
     "03-29T01:00Z 03-30T00:00Z 03-30T00:15Z 03-30T00:30Z 03-30T00:45Z 03-31T00:00Z 03-31T00:15Z 03-31T00:30Z 03-31T00:45Z 04-01T00:00Z 04-01T00:15Z 04-01T00:30Z 04-01T00:45Z 04-02T00:00Z"},
    {"Europe/Berlin", "*/15 2 * * *", "2026-10-24T23:00Z",
     "10-25T00:00Z 10-25T00:15Z 10-25T00:30Z 10-25T00:45Z 10-26T01:00Z 10-26T01:15Z 10-26T01:30Z 10-26T01:45Z 10-27T01:00Z 10-27T01:15Z 10-27T01:30Z 10-27T01:45Z 10-28T01:00Z 10-28T01:15Z"},
    {"America/New_York", "*/15 1,2 * * *", "2026-03-08T05:00Z",
     "03-08T06:00Z 03-08T06:15Z 03-08T06:30Z 03-08T06:45Z 03-08T07:00Z 03-09T05:00Z 03-09T05:15Z 03-09T05:30Z 03-09T05:45Z 03-09T06:00Z 03-09T06:15Z 03-09T06:30Z 03-09T06:45Z 03-10T05:00Z"},
    {"America/New_York", "*/15 1,2 * * *", "2026-11-01T04:00Z",
     "11-01T05:00Z 11-01T05:15Z 11-01T05:30Z 11-01T05:45Z 11-01T07:00Z 11-01T07:15Z 11-01T07:30Z 11-01T07:45Z 11-02T06:00Z 11-02T06:15Z 11-02T06:30Z 11-02T06:45Z 11-02T07:00Z 11-02T07:15Z"},
    {"Europe/Berlin", "30 */2 * * *", "2026-03-28T23:00Z",
     "03-28T23:30Z 03-29T02:30Z 03-29T04:30Z 03-29T06:30Z 03-29T08:30Z 03-29T10:30Z"},
    {"Europe/Berlin", "30 */2 * * *", "2026-10-24T23:00Z",
     "10-25T00:30Z 10-25T01:30Z 10-25T03:30Z 10-25T05:30Z 10-25T07:30Z 10-25T09:30Z"},
    {"Australia/Lord_Howe", "*/10 1,2 * * *", "2026-04-04T13:00Z",
     "04-04T14:00Z 04-04T14:10Z 04-04T14:20Z 04-04T14:30Z 04-04T14:40Z 04-04T14:50Z 04-04T15:30Z 04-04T15:40Z 04-04T15:50Z 04-04T16:00Z 04-04T16:10Z 04-04T16:20Z 04-05T14:30Z"},
    {"Australia/Lord_Howe", "*/10 1,2 * * *", "2026-10-03T13:30Z",
     "10-03T14:30Z 10-03T14:40Z 10-03T14:50Z 10-03T15:00Z 10-03T15:10Z 10-03T15:20Z 10-03T15:30Z 10-03T15:40Z 10-03T15:50Z 10-04T14:00Z 10-04T14:10Z 10-04T14:20Z 10-04T14:30Z"},
    {"Asia/Kolkata", "30 2 * * *", "2026-03-29T00:00Z",
     "03-29T21:00Z 03-30T21:00Z 03-31T21:00Z"},
    {"Asia/Kolkata", "0 * * * *", "2026-03-29T00:00Z",
     "03-29T00:30Z 03-29T01:30Z 03-29T02:30Z 03-29T03:30Z"},
    {"Asia/Kolkata", "*/15 * * * *", "2026-03-29T00:00Z",
     "03-29T00:15Z 03-29T00:30Z 03-29T00:45Z 03-29T01:00Z 03-29T01:15Z"},
    {"Asia/Kolkata", "0 12 * * *", "2026-03-29T00:00Z",
     "03-29T06:30Z 03-30T06:30Z 03-31T06:30Z"},
    {"Asia/Kolkata", "30 2 * * *", "2030-10-27T00:00Z",
     "10-27T21:00Z 10-28T21:00Z 10-29T21:00Z"},
    {"Asia/Kolkata", "0 * * * *", "2030-10-27T00:00Z",
     "10-27T00:30Z 10-27T01:30Z 10-27T02:30Z 10-27T03:30Z"},
    {"Asia/Kolkata", "*/15 * * * *", "2030-10-27T00:00Z",
     "10-27T00:15Z 10-27T00:30Z 10-27T00:45Z 10-27T01:00Z 10-27T01:15Z"},
    {"Asia/Kolkata", "0 12 * * *", "2030-10-27T00:00Z",
     "10-27T06:30Z 10-28T06:30Z 10-29T06:30Z"},
    // clang-format on
};

int digits(std::string_view text, std::size_t from, std::size_t count) {
  int value = 0;
  std::from_chars(text.data() + from, text.data() + from + count, value);
  return value;
}

// 2026-03-29T01:00Z
std::int64_t millis(std::string_view text) {
  using namespace std::chrono;
  const sys_days date = year(digits(text, 0, 4)) / month(unsigned(digits(text, 5, 2))) /
                        std::chrono::day(unsigned(digits(text, 8, 2)));
  const auto time = hours(digits(text, 11, 2)) + minutes(digits(text, 14, 2));
  return milliseconds(date.time_since_epoch() + time).count();
}

// -30:00
std::int64_t offset(std::string_view text) {
  const std::int64_t minutes = digits(text, 1, 2) * 60 + digits(text, 4, 2);
  return (text.front() == '-' ? -minutes : minutes) * 60'000;
}

std::vector<std::string> words(std::string_view text) {
  std::istringstream stream{std::string(text)};
  return {std::istream_iterator<std::string>(stream), {}};
}

class CronDstTest : public ::testing::Test {
 protected:
  void expect_times(std::string_view zone_name, std::string_view expression, std::int64_t after,
                    const std::vector<std::int64_t>& expected) {
    ++lines_;
    const Result<TimeZone> zone = TimeZone::find(zone_name);
    ASSERT_TRUE(zone.has_value()) << zone.error().message;
    const Result<Cron> cron = Cron::parse(expression);
    ASSERT_TRUE(cron.has_value());
    for (const std::int64_t next : expected) {
      // From every moment before it, not only from the last occurrence.
      for (const std::int64_t from : {after, after + 1, after + (next - after) / 2, next - 1}) {
        const auto found = cron->next(from, *zone);
        ASSERT_TRUE(found.has_value());
        EXPECT_EQ(*found, next) << (*found - next) / 60'000 << " minutes off";
      }
      after = next;
    }
  }

  int lines_ = 0;
};

TEST_F(CronDstTest, EveryLineOfTheTable) {
  for (const Changes& change : kChanges) {
    for (const std::string& moment : words(change.moments)) {
      for (const auto& [expression, after, expected] : change.times) {
        SCOPED_TRACE(std::string(change.zone) + " " + std::string(expression) + " " + moment);
        std::vector<std::int64_t> times;
        for (const std::string& word : words(expected))
          times.push_back(millis(moment) + offset(word));
        expect_times(change.zone, expression, millis(moment) + offset(after), times);
      }
    }
  }
  for (const auto& [zone, expression, after, expected] : kLines) {
    SCOPED_TRACE(std::string(zone) + " " + std::string(expression) + " " + std::string(after));
    std::vector<std::int64_t> times;
    for (const std::string& word : words(expected))
      times.push_back(millis(std::string(after.substr(0, 5)) + word));
    expect_times(zone, expression, millis(after), times);
  }
  EXPECT_EQ(lines_, 136);
}

TEST_F(CronDstTest, WhatFollowsRealTimeIsAnHourThatIsAStarOrAStepOfIt) {
  for (const char* real :
       {"0 * * * *", "0 */3 * * *", "0 ? * * *", "@hourly", "@minutely", "0 0 * * * *"})
    EXPECT_TRUE(Cron::parse(real)->follows_real_time()) << real;
  for (const char* fixed : {"0 2 * * *", "0 0-23 * * *", "0 1,2 * * *", "@daily", "* 0-23/2 * * *"})
    EXPECT_FALSE(Cron::parse(fixed)->follows_real_time()) << fixed;
}

TEST_F(CronDstTest, ADayThatAPlaceSkippedWholeRunsOnceAtItsEnd) {
  // Samoa left out 30 December 2011; it went from 29 December 24:00 (10:00Z) to 31 December.
  const TimeZone samoa = *TimeZone::find("Pacific/Apia");
  const auto next = Cron::parse("0 12 * * *")->next(millis("2011-12-29T22:30Z"), samoa);
  EXPECT_EQ(*next, millis("2011-12-30T10:00Z"));
  EXPECT_EQ(*Cron::parse("0 12 * * *")->next(*next, samoa), millis("2011-12-30T22:00Z"));
}

TEST_F(CronDstTest, MidnightThatIsSkippedIsTheFirstMomentOfTheDay) {
  // Havana goes from 0:00 to 1:00 on 8 March 2026.
  const TimeZone havana = *TimeZone::find("America/Havana");
  EXPECT_EQ(*Cron::parse("@daily")->next(millis("2026-03-08T04:00Z"), havana),
            millis("2026-03-08T05:00Z"));
}

}  // namespace
}  // namespace hearth::durable
