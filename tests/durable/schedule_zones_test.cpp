// Cron schedules on a machine that cannot read its time zones for a while, or has lost a zone for
// good.
#include "durable/schedules_fixture.hpp"

namespace hearth::durable {
namespace {

using namespace std::chrono_literals;
using What = ScheduleNote::What;

enum class Zones { kThere, kUnavailable, kGone };
Zones zones = Zones::kThere;  // NOLINT: a plain function looks at it

Result<TimeZone> find_zone(std::string_view name) {
  if (zones == Zones::kUnavailable) return Error{Errc::kUnavailable, "zones cannot be read"};
  if (zones == Zones::kGone) return Error{Errc::kInvalidArgument, "there is no such zone"};
  return TimeZone::find(name);
}

// Each schedule is due at full hours; it is 22:13:20 when a test begins.
class ScheduleZonesTest : public SchedulesFixture {
 protected:
  ScheduleZonesTest() {
    zones = Zones::kThere;
    settings_.find_zone = &find_zone;
    crash();
  }
  ~ScheduleZonesTest() override { zones = Zones::kThere; }

  static ScheduleRequest hourly() { return cron("0 * * * *", "Europe/Berlin"); }
  void advance_to_full_hour() {
    constexpr std::int64_t kWholeHour = 3'600'000;
    clock_.advance(std::chrono::milliseconds(kWholeHour - now() % kWholeHour));
  }
  // At the end of the next run zones cannot be read any more. Returns when it was due.
  std::int64_t run_and_lose_zones() {
    advance_to_full_hour();
    const ScheduleRun run = begin().value();
    zones = Zones::kUnavailable;
    end(run);
    return now();
  }
  // The reasons of the notes of one kind since the last look.
  std::vector<std::string> reasons(What what) {
    std::vector<std::string> result;
    for (const auto& note : schedules_->runs().take_notes())
      if (note.what == what) result.push_back(note.reason);
    return result;
  }
  std::int64_t next_look(std::string_view id) { return record(id).value("time", std::int64_t{}); }
};

using Reasons = std::vector<std::string>;

TEST_F(ScheduleZonesTest, ARequestIsRefusedAsUnavailableWhileZonesCannotBeRead) {
  zones = Zones::kUnavailable;
  const auto refused = schedules_->create(hourly());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kUnavailable);
}

TEST_F(ScheduleZonesTest, OneThatIsDueWhileZonesCannotBeReadIsKeptAndRunsOnceTheyCan) {
  const auto created = create(hourly());
  zones = Zones::kUnavailable;
  advance_to_full_hour();
  const std::int64_t due = now();
  EXPECT_FALSE(begin());
  EXPECT_EQ(reasons(What::kPutOff), Reasons{"zones cannot be read"});
  EXPECT_EQ(state(created.id), "missing");
  EXPECT_EQ(record(created.id)["last_error"], "zones cannot be read");
  EXPECT_FALSE(begin());
  EXPECT_EQ(reasons(What::kPutOff), Reasons{}) << "it is told once a look";
  const std::int64_t first = next_look(created.id) - now();
  EXPECT_GE(first, 10'000);
  EXPECT_EQ(schedules_->wake().at_ms, next_look(created.id));
  clock_.advance(std::chrono::milliseconds(first));
  EXPECT_FALSE(begin());
  EXPECT_EQ(reasons(What::kPutOff).size(), 1U);
  EXPECT_GE(next_look(created.id) - now(), 20'000) << "the waits grow";
  zones = Zones::kThere;
  const ScheduleRun run = begin_in(1min);
  EXPECT_EQ(body(run)["scheduled_for"], due);
  end(run);
  EXPECT_EQ(state(created.id), "waiting");
  EXPECT_TRUE(record(created.id)["last_error"].is_null());
  EXPECT_EQ(next_look(created.id), due + 3'600'000);
}

TEST_F(ScheduleZonesTest,
       ARunThatEndsWhileZonesCannotBeReadIsNotRunAgainAndItsNextTimeIsFoundLater) {
  const auto created = create(hourly());
  const std::int64_t due = run_and_lose_zones();
  EXPECT_EQ(reasons(What::kPutOff), Reasons{"zones cannot be read"});
  EXPECT_EQ(state(created.id), "missing");
  clock_.advance(20s);
  EXPECT_FALSE(begin());
  EXPECT_EQ(reasons(What::kPutOff).size(), 1U);
  crash();
  EXPECT_FALSE(begin()) << "a new instance looks at once, in vain";
  EXPECT_EQ(reasons(What::kPutOff).size(), 1U);
  zones = Zones::kThere;
  crash();
  EXPECT_FALSE(begin()) << "it has run";
  EXPECT_EQ(state(created.id), "waiting");
  EXPECT_EQ(next_look(created.id), due + 3'600'000);
  EXPECT_TRUE(has(record(created.id), {{"last_error", nullptr}, {"runs", 1}}));
}

TEST_F(ScheduleZonesTest, WhatPassedUntilTheNextTimeCouldBeFoundIsMissedLikeAnyOther) {
  create(with(hourly(), Misfire::kAll));
  const std::int64_t due = run_and_lose_zones();
  for (int i = 0; i < 4; ++i) {
    clock_.advance(40min);
    EXPECT_FALSE(begin());
  }
  zones = Zones::kThere;
  clock_.advance(70min);  // past the third hour, and the longest wait
  for (int missed = 1; missed <= 3; ++missed) {
    const auto next = begin();
    ASSERT_TRUE(next) << missed;
    EXPECT_EQ(body(*next)["scheduled_for"], due + missed * 3'600'000);
    end(*next);
  }
  EXPECT_FALSE(begin());
  EXPECT_EQ(notes(What::kOverlapped), 0U) << "no run was in their way";
}

TEST_F(ScheduleZonesTest, AnOverlappingScheduleIsKeptAsWell) {
  const auto created = create(with(hourly(), Overlap::kAllow));
  advance_to_full_hour();
  zones = Zones::kUnavailable;
  EXPECT_FALSE(begin());
  EXPECT_EQ(state(created.id), "missing");
  zones = Zones::kThere;
  clock_.advance(1min);
  EXPECT_EQ(run_all(), "tick ");
  EXPECT_EQ(state(created.id), "waiting");
}

TEST_F(ScheduleZonesTest, AnInterruptedRunWaitsForTheZonesAndWhatItMissedIsReckonedThen) {
  const auto created = create(hourly());
  advance_to_full_hour();
  ASSERT_TRUE(begin());
  zones = Zones::kUnavailable;
  crash();
  EXPECT_FALSE(begin());
  EXPECT_EQ(reasons(What::kPutOff).size(), 1U);
  clock_.advance(2h);
  zones = Zones::kThere;
  const ScheduleRun again = begin().value();
  EXPECT_EQ(body(again)["missed"], 2);
  EXPECT_EQ(state(created.id), "running");
}

TEST_F(ScheduleZonesTest, RetryLooksAtOnceAndRunsNothingASecondTime) {
  const auto created = create(hourly());
  const std::int64_t due = run_and_lose_zones();
  zones = Zones::kThere;
  EXPECT_FALSE(schedules_->due());
  ASSERT_TRUE(schedules_->retry(created.id));
  EXPECT_TRUE(schedules_->due());
  EXPECT_FALSE(begin());
  EXPECT_EQ(next_look(created.id), due + 3'600'000);
}

TEST_F(ScheduleZonesTest, AZoneThatIsGoneIsTheDeathOfItsSchedulesAndTheReasonIsTold) {
  const auto due = create(hourly());
  const auto ending = create(cron("0 * * * *", "Europe/Paris"));
  advance_to_full_hour();
  const auto first = begin();
  const auto second = begin();
  ASSERT_TRUE(first && second);
  zones = Zones::kGone;
  end(*second);
  EXPECT_EQ(reasons(What::kDead), Reasons{"there is no such zone"});
  EXPECT_EQ(state(ending.id), "dead");
  EXPECT_EQ(record(ending.id)["last_error"], "there is no such zone");
  zones = Zones::kThere;
  end(*first);
  zones = Zones::kGone;
  advance_to_full_hour();
  EXPECT_FALSE(begin());
  EXPECT_EQ(reasons(What::kDead), Reasons{"there is no such zone"});
  EXPECT_EQ(state(due.id), "dead");
}

}  // namespace
}  // namespace hearth::durable
