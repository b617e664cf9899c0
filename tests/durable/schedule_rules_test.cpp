#include "durable/schedule_rules.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>

namespace hearth::durable {
namespace {

constexpr std::int64_t kNow = 1'767'312'000'000;  // 2 January 2026
constexpr std::int64_t kYear9999 = 253'402'300'799'999;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

ScheduleRequest of(ScheduleType type, std::int64_t when = 0) {
  ScheduleRequest request;
  request.type = type;
  request.callback = "tick";
  request.when_ms = when;
  if (type == ScheduleType::kCron) request.cron = "0 * * * *";
  return request;
}

// The message of a refusal; empty if it is accepted.
std::string request_refusal(const ScheduleRequest& request, Errc code = Errc::kInvalidArgument) {
  const auto row = checked_schedule(request, ScheduleSettings{}, kNow);
  if (row) return "";
  EXPECT_EQ(row.error().code, code);
  return row.error().message;
}

std::string likeness(const ScheduleRequest& request) {
  return checked_schedule(request, ScheduleSettings{}, kNow)->key.value_or("");
}

TEST(ScheduleRequestTest, TheFirstTimeIsReckonedByType) {
  const auto time = [](const ScheduleRequest& request) {
    return checked_schedule(request, ScheduleSettings{}, kNow)->next_at_ms;
  };
  EXPECT_EQ(time(of(ScheduleType::kDelay, 0)), kNow);
  EXPECT_EQ(time(of(ScheduleType::kDelay, 1'500)), kNow + 1'500);
  EXPECT_EQ(time(of(ScheduleType::kAt, 77)), 77);
  EXPECT_EQ(time(of(ScheduleType::kInterval, 1)), kNow + 1);
  EXPECT_EQ(time(of(ScheduleType::kCron)), kNow + 3'600'000);
}

TEST(ScheduleRequestTest, TimesThatHaveNoMeaningAreRefused) {
  for (const std::int64_t bad : {std::int64_t{-1}, kLeast, kYear9999 - kNow + 1, kMost})
    EXPECT_NE(request_refusal(of(ScheduleType::kDelay, bad)), "") << bad;
  for (const std::int64_t bad : {std::int64_t{-1}, kLeast, kYear9999 + 1, kMost})
    EXPECT_NE(request_refusal(of(ScheduleType::kAt, bad)), "") << bad;
  for (const std::int64_t bad :
       {std::int64_t{0}, std::int64_t{-1}, kLeast, kMost, std::int64_t{366} * 24 * 3'600'000 + 1})
    EXPECT_NE(request_refusal(of(ScheduleType::kInterval, bad)), "") << bad;
}

TEST(ScheduleRequestTest, TheLimitsThemselvesAreAccepted) {
  EXPECT_EQ(request_refusal(of(ScheduleType::kDelay, kYear9999 - kNow)), "");
  EXPECT_EQ(request_refusal(of(ScheduleType::kAt, kYear9999)), "");
  EXPECT_EQ(request_refusal(of(ScheduleType::kAt, 0)), "");
  EXPECT_EQ(request_refusal(of(ScheduleType::kInterval, std::int64_t{366} * 24 * 3'600'000)), "");
}

TEST(ScheduleRequestTest, CronAndZoneAreCheckedAtOnce) {
  ScheduleRequest request = of(ScheduleType::kCron);
  request.cron = "0 0 30 2 *";
  EXPECT_NE(request_refusal(request).find("cron"), std::string::npos);
  request.cron = "";
  EXPECT_NE(request_refusal(request), "");
  request = of(ScheduleType::kCron);
  request.time_zone = "Mars/Olympus";
  EXPECT_NE(request_refusal(request).find("Mars/Olympus"), std::string::npos);
  request = of(ScheduleType::kDelay, 1);
  request.cron = "* * * * *";
  EXPECT_NE(request_refusal(request).find("belong to the type cron"), std::string::npos);
  request = of(ScheduleType::kInterval, 1);
  request.time_zone = "UTC";
  EXPECT_NE(request_refusal(request), "");
}

TEST(ScheduleRequestTest, TheCallbackIsOneTo256BytesOfUtf8) {
  ScheduleRequest request = of(ScheduleType::kDelay);
  for (const std::string& bad : {std::string(), std::string(257, 'c'), std::string("\xff")}) {
    request.callback = bad;
    EXPECT_NE(request_refusal(request).find("callback"), std::string::npos);
  }
  const std::string longest(256, 'c');
  request.callback = longest;
  EXPECT_EQ(request_refusal(request), "");
}

TEST(ScheduleRequestTest, ThePayloadIsBoundedJson) {
  ScheduleRequest request = of(ScheduleType::kDelay);
  for (const char* bad : {"{", "[1] 2", "nan", "\xff", " "}) {
    request.payload = bad;
    EXPECT_NE(request_refusal(request).find("payload"), std::string::npos) << bad;
  }
  const std::string large = "\"" + std::string(std::size_t{1} << 20, 'x') + "\"";
  request.payload = large;
  EXPECT_NE(request_refusal(request, Errc::kLimitExceeded), "");
}

TEST(ScheduleRequestTest, ChoicesOutOfTheirRangeAreRefused) {
  EXPECT_NE(request_refusal(of(static_cast<ScheduleType>(0))), "");
  EXPECT_NE(request_refusal(of(static_cast<ScheduleType>(5))), "");
  const auto refuses = [](ScheduleType type, auto field, auto value, const char* word) {
    ScheduleRequest request = of(type);
    request.*field = value;
    return request_refusal(request).find(word) != std::string::npos;
  };
  using Request = ScheduleRequest;
  constexpr auto kDelay = ScheduleType::kDelay;
  EXPECT_TRUE(refuses(kDelay, &Request::idempotent, static_cast<Idempotent>(3), "idempotent"));
  EXPECT_TRUE(refuses(kDelay, &Request::misfire, static_cast<Misfire>(3), "misfire"));
  EXPECT_TRUE(refuses(kDelay, &Request::overlap, static_cast<Overlap>(3), "overlap"));
  EXPECT_TRUE(refuses(kDelay, &Request::misfire_limit, 1'001U, "misfire_limit"));
  EXPECT_TRUE(refuses(ScheduleType::kCron, &Request::fixed_rate, true, "fixed rate"));
  EXPECT_TRUE(refuses(kDelay, &Request::retry_base_ms, 5'000U, "retry")) << "above the default cap";
}

TEST(ScheduleRequestTest, DefaultsAreFilledIn) {
  const auto row = checked_schedule(of(ScheduleType::kCron), ScheduleSettings{}, kNow);
  EXPECT_EQ(row->misfire_limit, 10U);
  EXPECT_EQ(row->time_zone, "UTC");
  EXPECT_EQ(row->retry, RetryPolicy{});
}

TEST(ScheduleRequestTest, RequestsAreAlikeByWhatTheySay) {
  ScheduleRequest a = of(ScheduleType::kInterval, 1'000);
  ScheduleRequest b = a;
  a.payload = R"({"x":[1,{"y":null}],"a":"\u0041"})";
  b.payload = R"( {"a":"A", "x":[ 1,{"y" :null}]} )";
  EXPECT_EQ(likeness(a), likeness(b));
  b.fixed_rate = true;
  b.max_attempts = 9;
  b.overlap = Overlap::kQueue;
  EXPECT_EQ(likeness(a), likeness(b)) << "how it runs is not what it is";
  b.payload = R"({"a":"A","x":[{"y":null},1]})";
  EXPECT_NE(likeness(a), likeness(b)) << "the order in a list counts";
  EXPECT_NE(likeness(of(ScheduleType::kInterval, 1)), likeness(of(ScheduleType::kInterval, 2)));
  EXPECT_EQ(likeness(of(ScheduleType::kDelay, 1)), likeness(of(ScheduleType::kDelay, 2)));
  EXPECT_NE(likeness(of(ScheduleType::kDelay, 1)), likeness(of(ScheduleType::kAt, 1)));
  ScheduleRequest none = of(ScheduleType::kDelay);
  ScheduleRequest null = none;
  null.payload = "null";
  EXPECT_EQ(likeness(none), likeness(null));
}

TEST(ScheduleRequestTest, RecurringSchedulesAreIdempotentUnlessToldOtherwise) {
  EXPECT_TRUE(is_idempotent(of(ScheduleType::kCron)));
  EXPECT_TRUE(is_idempotent(of(ScheduleType::kInterval)));
  EXPECT_FALSE(is_idempotent(of(ScheduleType::kDelay)));
  EXPECT_FALSE(is_idempotent(of(ScheduleType::kAt)));
  ScheduleRequest request = of(ScheduleType::kAt);
  request.idempotent = Idempotent::kYes;
  EXPECT_TRUE(is_idempotent(request));
  request = of(ScheduleType::kCron);
  request.idempotent = Idempotent::kNo;
  EXPECT_FALSE(is_idempotent(request));
}

// ---- when a row is due --------------------------------------------------------------------------

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
