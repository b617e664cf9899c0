// Schedules while the wall clock is set.
#include "durable/schedules_fixture.hpp"

namespace hearth::durable {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class ScheduleClockTest : public SchedulesFixture {
 protected:
  // When the only schedule of a callback is due.
  std::int64_t time_of(std::string_view callback) {
    return list({.callback = callback})[0]["time"].get<std::int64_t>();
  }
  // How many runs begin within a time, looked at each second.
  int runs_within(std::chrono::seconds time) {
    int runs = 0;
    for (seconds passed{0}; passed < time; passed += seconds(1)) {
      clock_.advance(seconds(1));
      while (const auto run = begin()) {
        end(*run);
        if (++runs > 100'000) return runs;
      }
    }
    return runs;
  }
};

TEST_F(ScheduleClockTest, P4_IntervalsAndDelaysKeepTheirLengthThroughAnyJump) {
  for (const hours jump : {hours(-1), hours(1), hours(-24 * 400), hours(24 * 400)}) {
    for (const bool fixed : {false, true}) {
      ScheduleRequest request = fixed ? every_fixed(10'000) : every(10'000);
      request.misfire = Misfire::kAll;  // the one that would storm
      const auto interval = create(request);
      const auto once = create(delay(10'000, "once"));
      EXPECT_EQ(runs_within(seconds(4)), 0);
      set_wall_by(jump);
      EXPECT_TRUE(schedules_->due()) << "a jump is looked at at once";
      EXPECT_FALSE(begin());
      EXPECT_FALSE(schedules_->due());
      EXPECT_EQ(schedules_->wake().at_ms, now() + 6'000);
      EXPECT_EQ(runs_within(seconds(5)), 0);
      EXPECT_EQ(runs_within(seconds(1)), 2);
      EXPECT_EQ(runs_within(seconds(100)), 10);
      ASSERT_TRUE(schedules_->cancel(interval.id));
    }
  }
}

TEST_F(ScheduleClockTest, P4_AJumpDuringARunNeitherStormsNorStalls) {
  for (const hours jump : {hours(-1), hours(1)}) {
    for (const Overlap overlap : {Overlap::kSkip, Overlap::kQueue}) {
      const auto interval = create(with(every_fixed(10'000), overlap));
      const ScheduleRun run = begin_in(seconds(10));
      set_wall_by(jump);
      clock_.advance(seconds(1));
      end(run);
      const int runs = runs_within(seconds(100));
      EXPECT_GE(runs, 9);
      EXPECT_LE(runs, 11);
      ASSERT_TRUE(schedules_->cancel(interval.id));
    }
  }
}

TEST_F(ScheduleClockTest, P4_AWaitForTheNextTryKeepsItsLength) {
  ScheduleRequest request = at(now());
  request.retry_base_ms = 1'000'000;
  request.retry_max_ms = 1'000'000;
  create(request);
  const std::int64_t wait = end(*begin(), TryOutcome::kFailed).next_ms - now();
  ASSERT_GT(wait, 1'000);
  set_wall_by(hours(-5));
  EXPECT_FALSE(begin());
  clock_.advance(milliseconds(wait - 1));
  EXPECT_FALSE(begin());
  clock_.advance(milliseconds(1));
  EXPECT_TRUE(begin());
}

TEST_F(ScheduleClockTest, DatesFollowTheWall) {
  create(at(now() + 3'600'000));
  set_wall_by(hours(-1));
  EXPECT_EQ(runs_within(seconds(3'700)), 0);
  set_wall_by(hours(1));
  EXPECT_EQ(runs_within(seconds(1)), 1);
}

TEST_F(ScheduleClockTest, ADailyTimeThatTheClockShowsAgainRunsOnce) {
  create(cron("30 0 * * *"));  // in half an hour
  EXPECT_EQ(runs_within(minutes(40)), 1);
  set_wall_by(hours(-1));  // 23:40 of the day before
  EXPECT_EQ(runs_within(hours(2)), 0);
  EXPECT_EQ(runs_within(hours(23)), 1) << "and the next day it comes again";
}

TEST_F(ScheduleClockTest, ADailyTimeThatWasJumpedOverRunsOnceAtOnce) {
  create(cron("30 0 * * *"));
  set_wall_by(hours(1));
  EXPECT_EQ(runs_within(seconds(1)), 1);
  EXPECT_EQ(runs_within(hours(23)), 0);
}

TEST_F(ScheduleClockTest, AnExpressionThatFollowsRealTimeDoesNotStall) {
  create(cron("* * * * *"));
  EXPECT_EQ(runs_within(minutes(5)), 5);
  set_wall_by(hours(-1));
  EXPECT_EQ(runs_within(minutes(10)), 10);
  set_wall_by(hours(1));
  const int runs = runs_within(minutes(10));
  EXPECT_GE(runs, 10);
  EXPECT_LE(runs, 11) << "one for all that was jumped over";
}

TEST_F(ScheduleClockTest, AClockThatWasWrongByAYearPostponesNothingByAYear) {
  create(cron("30 0 * * *"));
  set_wall_by(hours(24 * 365));
  EXPECT_EQ(runs_within(hours(1)), 2) << "what was jumped over, and half past midnight";
  set_wall_by(-hours(24 * 365));
  EXPECT_EQ(runs_within(hours(24)), 1);
}

TEST_F(ScheduleClockTest, P4_ARowThatAClockAheadWroteWaitsNoLongerThanItsLengthAfterARestart) {
  set_wall_by(hours(24 * 365));
  create(every(60'000, "interval"));
  create(every_fixed(60'000, "fixed"));
  create(delay(60'000, "delay"));
  create(cron("0 12 * * *", "", "daily"));
  create(cron("*/30 * * * *", "", "real"));
  drop();
  set_wall_by(-hours(24 * 365));
  open();
  EXPECT_EQ(runs_within(seconds(59)), 0);
  EXPECT_EQ(runs_within(seconds(1)), 3);
  EXPECT_EQ(time_of("daily"), now() - 60'000 + milliseconds(hours(12)).count());
  EXPECT_EQ(time_of("real"), now() - 60'000 + milliseconds(minutes(30)).count());
}

TEST_F(ScheduleClockTest, ARunThatAClockAheadBeganIsDueAtOnceAfterARestart) {
  create(every(60'000));
  set_wall_by(hours(5));
  EXPECT_FALSE(begin());
  clock_.advance(minutes(1));
  ASSERT_TRUE(begin());
  drop();
  set_wall_by(hours(-5));
  open();
  const ScheduleRun run = begin().value();
  EXPECT_EQ(run.late_ms, 0) << "never less";
  EXPECT_EQ(end(run).next_ms, now() + 60'000);
}

TEST_F(ScheduleClockTest, SmallStepsAreNoJumps) {
  create(delay(60'000));
  for (int i = 0; i < 100; ++i) {
    set_wall_by(milliseconds(-400));
    clock_.advance(milliseconds(400));
    EXPECT_FALSE(begin());
  }
  database_->commit();
  EXPECT_FALSE(database_->dirty());
}

}  // namespace
}  // namespace hearth::durable
