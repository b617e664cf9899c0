// Occurrences that could not run in time, and occurrences that are due while the last one runs.
#include "durable/recurrence.hpp"
#include "durable/schedules_fixture.hpp"

#include <set>

namespace hearth::durable {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::minutes;
using Next = ScheduleEnd::Next;
using What = ScheduleNote::What;

class ScheduleMisfireTest : public SchedulesFixture {};

// ---- misfire ------------------------------------------------------------------------------------

TEST_F(ScheduleMisfireTest, MisfireOnceIsOneRunForAll) {
  create(every(1'000));
  const auto hourly = create(cron("0 * * * *", "", "hourly"));
  crash();
  clock_.advance(10h + 30min);
  const auto first = begin();
  const auto second = begin();
  EXPECT_FALSE(begin());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->missed, kMostCounted) << "1,000 or more";
  EXPECT_EQ(second->callback, "hourly");
  EXPECT_EQ(second->missed, 9U);
  EXPECT_EQ(notes(What::kMissed), kMostCounted + 9U);
  end(*first);
  EXPECT_EQ(end(*second).next_ms, now() + milliseconds(30min).count());
  EXPECT_FALSE(schedules_->due());
}

TEST_F(ScheduleMisfireTest, AllOverdueOneShotRowsRun) {
  for (int i = 0; i < 5; ++i) create(delay(10));
  crash();
  clock_.advance(100h);
  EXPECT_EQ(run_all(), "tick tick tick tick tick ");
}

// Three occurrences were missed; the first of the runs for them takes so long that two more come.
TEST_F(ScheduleMisfireTest, WhatComesWhileMissedOccurrencesRunIsAnOverlap) {
  for (const Overlap overlap : {Overlap::kSkip, Overlap::kQueue}) {
    const ScheduleRequest request =
        with(with(every_fixed(60'000, overlap == Overlap::kSkip ? "skip" : "queue"), Misfire::kAll),
             overlap);
    const std::int64_t start = now();
    const std::string id = create(request).id;
    crash();
    clock_.advance(3min + 30s);
    std::vector<std::int64_t> ran;
    while (const auto run = begin()) {
      ran.push_back((body(*run)["scheduled_for"].get<std::int64_t>() - start) / 60'000);
      if (ran.size() == 1) clock_.advance(2min);
      end(*run);
    }
    if (overlap == Overlap::kSkip) {
      EXPECT_EQ(ran, (std::vector<std::int64_t>{1, 2, 3}));
      EXPECT_EQ(notes(What::kOverlapped), 2U);
    } else {
      EXPECT_EQ(ran, (std::vector<std::int64_t>{1, 2, 3, 4}));
      EXPECT_EQ(notes(What::kOverlapped), 1U);
    }
    schedules_->cancel(id);
  }
}

TEST_F(ScheduleMisfireTest, MisfireSkipRunsNothingThatIsMoreThanAMinuteLate) {
  const auto created = create(with(cron("0 * * * *"), Misfire::kSkip));
  clock_.advance(1h + 60s);
  auto run = begin();
  ASSERT_TRUE(run) << "a minute is not more than a minute";
  EXPECT_EQ(run->missed, 0U);
  end(*run);
  clock_.advance(4h);  // one minute past
  clock_.advance(1ms);
  EXPECT_FALSE(begin());
  EXPECT_EQ(notes(What::kMissed), 4U);
  EXPECT_EQ(record(created.id)["time"], now() - 60'001 + 3'600'000) << "at its own time";
  clock_.advance(59min);
  run = begin();
  ASSERT_TRUE(run);
  EXPECT_EQ(run->missed, 4U) << "skipped before it";
  end(*run);
  clock_.advance(1h);
  EXPECT_EQ(begin()->missed, 0U);
}

TEST_F(ScheduleMisfireTest, MisfireSkipLetsAOneShotRowGo) {
  create(with(delay(0), Misfire::kSkip));
  clock_.advance(61s);
  EXPECT_FALSE(begin());
  EXPECT_EQ(schedules_->size(), 0U);
  EXPECT_EQ(notes(What::kMissed), 1U);
}

TEST_F(ScheduleMisfireTest, MisfireSkipHoldsForNoRunThatWasBegun) {
  create(with(delay(0), Misfire::kSkip));
  ASSERT_TRUE(begin());
  crash();
  clock_.advance(3h);
  EXPECT_EQ(run_all(), "tick ");
}

TEST_F(ScheduleMisfireTest, MisfireAllRunsTheLastFewOldestFirst) {
  for (const bool by_cron : {true, false}) {
    const ScheduleRequest request =
        with(by_cron ? cron("0 * * * *") : every_fixed(3'600'000), Misfire::kAll, 3);
    const std::int64_t start = now();
    const auto created = create(request);
    clock_.advance(10h + 1min);
    std::vector<std::int64_t> ran;
    std::vector<std::uint32_t> missed;
    while (const auto run = begin()) {
      ran.push_back((body(*run)["scheduled_for"].get<std::int64_t>() - start) / 3'600'000);
      missed.push_back(run->missed);
      end(*run);
    }
    EXPECT_EQ(ran, (std::vector<std::int64_t>{8, 9, 10}));
    EXPECT_EQ(missed, (std::vector<std::uint32_t>{7, 0, 0}));
    EXPECT_EQ(notes(What::kMissed), 7U);
    EXPECT_EQ(record(created.id)["time"], start + 11 * 3'600'000);
    ASSERT_TRUE(schedules_->cancel(created.id));
    clock_.advance(59min);  // so that the next round begins at a full hour too
  }
}

TEST_F(ScheduleMisfireTest, MisfireAllOfAnIntervalEndsWithItsLength) {
  create(with(every(1'000), Misfire::kAll));
  clock_.advance(3'500ms);
  EXPECT_EQ(run_all(), "tick tick tick ");
  EXPECT_EQ(schedules_->wake().at_ms, now() + 1'000);
}

TEST_F(ScheduleMisfireTest, MisfireAllGoesOnAfterACrashInTheMiddle) {
  create(with(cron("0 * * * *"), Misfire::kAll));
  end(begin_in(3h));
  ASSERT_TRUE(begin());
  crash();
  clock_.advance(2h);
  EXPECT_EQ(run_all(), "tick tick tick tick ") << "2 and 3 from before, 4 and 5 from the absence";
}

TEST_F(ScheduleMisfireTest, WhatCameWhileAnInterruptedRunWasAwayIsMissed) {
  create(cron("0 * * * *"));
  clock_.advance(1h);
  ASSERT_TRUE(begin());
  crash();
  clock_.advance(3h);
  crash();
  const auto run = begin();
  EXPECT_EQ(run->missed, 3U);
  EXPECT_EQ(end(*run).next_ms, now() + 3'600'000);
  EXPECT_FALSE(begin());
}

TEST_F(ScheduleMisfireTest, YearsOfMissedTicksCostNothing) {
  create(with(cron("* * * * * *"), Misfire::kAll, 5));
  create(with(every_fixed(1, "fast"), Misfire::kAll, 5));
  clock_.advance(24h * 365 * 20);
  const auto start = std::chrono::steady_clock::now();
  std::string ran;
  for (int i = 0; i < 10; ++i) {
    const ScheduleRun run = begin().value();
    ran += run.callback + " ";
    end(run);
  }
  EXPECT_FALSE(begin());
  // One by one they would take many minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

// ---- overlap ------------------------------------------------------------------------------------

TEST_F(ScheduleMisfireTest, OverlapSkipLeavesOutWhatComesDuringARun) {
  create(cron("* * * * *"));
  const ScheduleRun run = begin_in(1min);
  clock_.advance(3min + 10s);
  EXPECT_FALSE(begin());
  EXPECT_EQ(end(run).next_ms, now() + 50'000);
  EXPECT_EQ(notes(What::kOverlapped), 3U);
  EXPECT_FALSE(schedules_->due());
}

TEST_F(ScheduleMisfireTest, OverlapQueueRunsOneRightAfter) {
  ScheduleRequest request = with(cron("* * * * *"), Overlap::kQueue);
  request.misfire = Misfire::kSkip;  // an occurrence that waits for a run is not too late
  create(request);
  clock_.advance(1min);
  const std::int64_t first = now();
  const auto run = begin();
  clock_.advance(3min + 10s);
  end(*run);
  const ScheduleRun queued = begin().value();
  EXPECT_EQ(body(queued)["scheduled_for"], first + 60'000);
  EXPECT_EQ(queued.missed, 2U);
  EXPECT_EQ(notes(What::kOverlapped), 2U);
  EXPECT_EQ(end(queued).next_ms, now() + 50'000) << "one, not three";
  EXPECT_FALSE(schedules_->due());
}

TEST_F(ScheduleMisfireTest, OverlapQueueAlsoSeesWhatCameBetweenTries) {
  create(with(cron("* * * * *"), Overlap::kQueue));
  end(begin_in(1min), TryOutcome::kFailed);
  const ScheduleRun second_try = begin_in(1min);
  EXPECT_EQ(second_try.attempt, 2);
  end(second_try);
  EXPECT_EQ(run_all(), "tick ");
}

TEST_F(ScheduleMisfireTest, OverlapAllowRunsBeside) {
  const auto created = create(with(cron("* * * * *"), Overlap::kAllow));
  std::vector<ScheduleRun> runs;
  for (int i = 0; i < 3; ++i) {
    const ScheduleRun run = begin_in(1min);
    EXPECT_EQ(run.id, created.id) << "its own id, not one of ours";
    EXPECT_EQ(body(run)["id"], created.id);
    runs.push_back(run);
  }
  EXPECT_EQ(schedules_->runs().line().claimed().size(), 3U);
  EXPECT_EQ(schedules_->size(), 1U);
  EXPECT_EQ(list().size(), 1U) << "runs are no schedules";
  EXPECT_EQ(state(created.id), "running");
  EXPECT_EQ(schedules_->wake().at_ms, now() + 60'000) << "its next time comes whatever runs";
  end(runs[1]);
  EXPECT_EQ(state(created.id), "running");
  const ScheduleEnd failed = end(runs[0], TryOutcome::kFailed, "oh");
  EXPECT_EQ(failed.next, Next::kRetry);
  EXPECT_EQ(failed.id, created.id);
  EXPECT_EQ(end(runs[2]).next, Next::kWaiting);
  EXPECT_EQ(state(created.id), "waiting");
  const ScheduleRun again = begin_in(1s);
  EXPECT_EQ(again.attempt, 2);
  EXPECT_EQ(state(created.id), "running");
  EXPECT_EQ(body(again)["scheduled_for"], body(runs[0])["scheduled_for"]);
  end(again);
  EXPECT_TRUE(has(record(created.id), {{"runs", 4}, {"failures", 1}}));
  EXPECT_FALSE(schedules_->due());
}

TEST_F(ScheduleMisfireTest, OverlappingRunsAreDeliveredAgainAfterACrash) {
  const auto created = create(with(every_fixed(1'000), Overlap::kAllow));
  for (int i = 0; i < 2; ++i) {
    clock_.advance(1s);
    ASSERT_TRUE(begin());
  }
  crash();
  EXPECT_EQ(state(created.id), "waiting");
  EXPECT_EQ(schedules_->size(), 1U);
  std::set<std::int64_t> again;
  while (const auto run = begin()) {
    again.insert(body(*run)["scheduled_for"].get<std::int64_t>());
    end(*run);
  }
  EXPECT_EQ(again, (std::set<std::int64_t>{now() - 1'000, now()}));
}

TEST_F(ScheduleMisfireTest, CancelAndPauseReachOverlappingRuns) {
  const auto created = create(with(every_fixed(1'000), Overlap::kAllow));
  const ScheduleRun first = begin_in(1s);
  end(first, TryOutcome::kFailed);
  ASSERT_TRUE(schedules_->pause(created.id, true));
  clock_.advance(5s);
  EXPECT_FALSE(begin()) << "neither the next nor the second try";
  ASSERT_TRUE(schedules_->pause(created.id, false));
  const ScheduleRun second = begin().value();
  ASSERT_TRUE(schedules_->cancel(created.id));
  EXPECT_EQ(end(second).next, Next::kCancelled);
  EXPECT_FALSE(begin());
  EXPECT_EQ(schedules_->size(), 0U);
  crash();
  EXPECT_TRUE(schedules_->wake().none());
}

TEST_F(ScheduleMisfireTest, OverlappingRunsThatPileUpAreLeftOut) {
  settings_.max_running = 2;
  crash();
  ScheduleRequest request = with_attempts(with(every_fixed(1'000), Overlap::kAllow), 1'000);
  request.retry_base_ms = request.retry_max_ms = 24 * 3'600'000;
  create(request);
  for (int i = 0; i < 10; ++i) {
    clock_.advance(1s);
    if (const auto run = begin()) end(*run, TryOutcome::kFailed);
  }
  EXPECT_EQ(notes(What::kOverlapped), 8U) << "two wait for their second try";
}

TEST_F(ScheduleMisfireTest, AnOverlappingRunThatKillsTheProcessMakesTheScheduleDead) {
  allow_crashes(2);
  const auto created = create(with(every_fixed(3'600'000), Overlap::kAllow));
  clock_.advance(1h);
  crash_in_runs(2);
  EXPECT_FALSE(begin());
  EXPECT_EQ(state(created.id), "dead");
  ASSERT_TRUE(schedules_->retry(created.id));
  EXPECT_EQ(run_all(), "tick ");
}

TEST_F(ScheduleMisfireTest, AnOverlappingRunThatEndsWellLeavesWhyTheScheduleDied) {
  allow_crashes(2);
  const auto created = create(with(every_fixed(3'600'000), Overlap::kAllow));
  clock_.advance(1h);
  crash_in_runs(1);
  clock_.advance(1h);
  ASSERT_TRUE(begin() && begin()) << "the interrupted one, and the next";
  crash_in_its_work();
  const ScheduleRun other = begin().value();
  const Json died = record(created.id);
  end(other);
  EXPECT_EQ(died["last_error"],
            "its work has ended the process as often as fibers.max_crashes allows");
  EXPECT_EQ(record(created.id)["last_error"], died["last_error"]);
  EXPECT_EQ(state(created.id), "dead");
}

TEST_F(ScheduleMisfireTest, AnOverlappingRunWithoutACallbackMakesTheScheduleMissing) {
  const auto created = create(with(cron("* * * * *"), Overlap::kAllow));
  clock_.advance(1min);
  const std::int64_t due = now();
  EXPECT_EQ(end(*begin(), TryOutcome::kNeedsCode).next, Next::kMissing);
  EXPECT_EQ(state(created.id), "missing");
  crash();
  const ScheduleRun run = begin().value();
  EXPECT_EQ(body(run)["scheduled_for"], due);
  end(run);
  EXPECT_EQ(state(created.id), "waiting");
}

// ---- crowds -------------------------------------------------------------------------------------

TEST_F(ScheduleMisfireTest, ManyDueOneShotRowsOfOneCallbackAreTold) {
  for (int i = 0; i < 3; ++i) create(delay(0, "few"));
  for (int i = 0; i < 15; ++i) create(delay(0, "many"));
  for (int i = 0; i < 12; ++i) create(every(1 + i, "interval"));
  clock_.advance(1s);
  std::size_t runs = 0;
  std::vector<ScheduleNote> notes;
  while (const auto run = begin()) {
    for (auto& note : schedules_->runs().take_notes())
      if (note.what == What::kManyDue) notes.push_back(note);
    end(*run);
    ++runs;
  }
  EXPECT_EQ(runs, 30U) << "all of them run";
  ASSERT_EQ(notes.size(), 1U) << "and it is told once";
  EXPECT_EQ(notes[0].callback, "many");
  EXPECT_EQ(notes[0].count, 15U);
  EXPECT_EQ(schedules_->size(), 12U);
}

}  // namespace
}  // namespace hearth::durable
