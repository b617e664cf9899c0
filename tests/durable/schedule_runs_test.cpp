// The runs of schedules: when each begins, and what becomes of it. (The list of expected
// behaviours: schedules_test.cpp.)
#include "durable/schedules_fixture.hpp"
#include "storage/statement.hpp"

namespace hearth::durable {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Next = ScheduleEnd::Next;
using What = ScheduleNote::What;

class ScheduleRunsTest : public SchedulesFixture {};

// ---- delivery -----------------------------------------------------------------------------------

TEST_F(ScheduleRunsTest, TheBodyTellsWhatIsRunAndWhen) {
  ScheduleRequest request = delay(100, "greet");
  request.payload = R"({"to":"you"})";
  const auto created = create(request);
  const ScheduleRun run = begin_in(130ms);
  EXPECT_EQ(run.callback, "greet");
  EXPECT_EQ(run.id, created.id);
  EXPECT_EQ(run.attempt, 1);
  EXPECT_EQ(run.late_ms, 30);
  const Json expected = {{"id", created.id},
                         {"type", "delay"},
                         {"payload", {{"to", "you"}}},
                         {"scheduled_for", now() - 30},
                         {"late_ms", 30},
                         {"attempt", 1},
                         {"missed", 0}};
  EXPECT_EQ(body(run), expected);
}

TEST_F(ScheduleRunsTest, NothingBeginsEarly) {
  create(delay(100));
  clock_.advance(99ms);
  EXPECT_FALSE(schedules_->due());
  EXPECT_FALSE(begin());
  clock_.advance(1ms);
  EXPECT_TRUE(schedules_->due());
  EXPECT_TRUE(begin());
}

TEST_F(ScheduleRunsTest, P2_AOneShotRowGoesInTheTransactionThatReportsItsRun) {
  const auto created = create(delay(0));
  const auto run = begin();
  EXPECT_EQ(schedules_->runs().ended(run->run, TryOutcome::kDone, "").next, Next::kGone);
  crash();  // before the commit
  EXPECT_EQ(schedules_->size(), 1U);
  const ScheduleRun again = begin().value();
  EXPECT_EQ(again.id, created.id);
  end(again);
  crash();
  EXPECT_EQ(schedules_->size(), 0U);
}

TEST_F(ScheduleRunsTest, P3_ARecurringRowGetsItsNextTimeInTheTransactionThatReportsTheRun) {
  const auto created = create(every(1'000));
  clock_.advance(1s);
  const std::int64_t due = now();
  auto run = begin();
  clock_.advance(300ms);
  const ScheduleEnd ended = schedules_->runs().ended(run->run, TryOutcome::kDone, "");
  EXPECT_EQ(ended.next, Next::kWaiting);
  EXPECT_EQ(ended.next_ms, now() + 1'000) << "counted from the end of the run";
  crash();
  EXPECT_TRUE(schedules_->due());
  EXPECT_EQ(record(created.id)["time"], due);
  run = begin();
  end(*run);
  crash();
  EXPECT_EQ(record(created.id)["time"], now() + 1'000);
}

TEST_F(ScheduleRunsTest, P5_DueRowsBeginInTheOrderOfTheirTimesThenOfTheirAge) {
  create(delay(30, "c"));
  create(delay(10, "a"));
  create(delay(30, "d"));
  create(delay(20, "b"));
  clock_.advance(1s);
  EXPECT_EQ(run_all(), "a b c d ");
}

TEST_F(ScheduleRunsTest, P5_ASlowRunHoldsUpNobody) {
  create(delay(0, "slow"));
  const auto slow = begin();
  create(delay(0, "quick"));
  EXPECT_EQ(run_all(), "quick ");
  EXPECT_EQ(schedules_->runs().line().claimed().size(), 1U);
  end(*slow);
  EXPECT_EQ(schedules_->runs().line().claimed().size(), 0U);
}

TEST_F(ScheduleRunsTest, P5_AsManyRunAtOnceAsMayAndTheNextBeginsWhenOneEnds) {
  settings_.max_running = 3;
  crash();
  for (int i = 0; i < 5; ++i) create(delay(0, std::string(1, static_cast<char>('a' + i))));
  std::vector<ScheduleRun> runs;
  while (auto run = begin()) runs.push_back(*run);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_FALSE(schedules_->due()) << "or the agent would be looked at again and again";
  EXPECT_EQ(schedules_->wake(), (Wake{true, std::nullopt}));
  end(runs[1]);
  EXPECT_TRUE(schedules_->due());
  EXPECT_EQ(begin()->callback, "d");
}

TEST_F(ScheduleRunsTest, AFixedRateKeepsItsBeat) {
  const auto created = create(every_fixed(1'000));
  const std::int64_t start = now();
  clock_.advance(1'010ms);
  for (int beat = 1; beat <= 5; ++beat) {
    const ScheduleRun run = begin().value();
    EXPECT_EQ(body(run)["scheduled_for"], start + beat * 1'000);
    clock_.advance(250ms);
    EXPECT_EQ(end(run).next_ms, start + (beat + 1) * 1'000);
    clock_.advance(750ms);
  }
}

TEST_F(ScheduleRunsTest, ACronScheduleRunsAtItsTimesAndNotTwice) {
  const auto created = create(cron("*/10 * * * *"));
  std::string minutes_of_runs;
  for (int second = 0; second < 3'600; second += 5) {
    clock_.advance(5s);
    while (const auto run = begin()) {
      minutes_of_runs += std::to_string((second + 5) / 60) + " ";
      end(*run);
    }
  }
  EXPECT_EQ(minutes_of_runs, "10 20 30 40 50 60 ");
  EXPECT_EQ(record(created.id)["runs"], 6);
}

TEST_F(ScheduleRunsTest, TheRecordTellsOfTheLastRun) {
  const auto created = create(with_attempts(every(1'000), 1));
  clock_.advance(1s);
  const std::int64_t began = now();
  auto run = begin();
  EXPECT_EQ(state(created.id), "running");
  clock_.advance(20ms);
  end(*run, TryOutcome::kFailed, "no \"coffee\"");
  Json seen = record(created.id);
  EXPECT_TRUE(has(seen, {{"last_run", began},
                         {"last_error", "no \"coffee\""},
                         {"runs", 1},
                         {"failures", 1},
                         {"time", now() + 1'000}}));
  end(begin_in(1s));
  seen = record(created.id);
  EXPECT_TRUE(has(seen, {{"last_error", nullptr}, {"runs", 2}, {"failures", 1}}));
}

TEST_F(ScheduleRunsTest, AnErrorOfAnyBytesAndLengthIsKeptShort) {
  const auto created = create(with_attempts(every(100), 1));
  end(begin_in(1s), TryOutcome::kFailed, "\xff" + std::string(100'000, 'e'));
  EXPECT_LE(record(created.id)["last_error"].get<std::string>().size(), 4'200U);
}

TEST_F(ScheduleRunsTest, AfterARunNothingSaysRunning) {
  const auto created = create(every(100));
  end(begin_in(100ms));
  EXPECT_EQ(state(created.id), "waiting");
  EXPECT_FALSE(schedules_->wake().working);
  EXPECT_EQ(record(created.id)["runs"], 1);
}

TEST_F(ScheduleRunsTest, APersistedIntervalRunsInANewInstance) {
  create(every(1'000));
  crash();
  clock_.advance(1s);
  EXPECT_EQ(run_all(), "tick ");
}

TEST_F(ScheduleRunsTest, ARowThatIsCancelledWhileItRunsIsCancelled) {
  for (const ScheduleRequest& request : {delay(0), every(1), cron("* * * * * *")}) {
    const auto created = create(request);
    const ScheduleRun run = begin_in(2s);
    ASSERT_TRUE(schedules_->cancel(created.id));
    const auto other = create(delay(60'000));  // may take its place in the table
    EXPECT_EQ(end(run, TryOutcome::kFailed).next, Next::kCancelled);
    EXPECT_EQ(state(other.id), "waiting");
    ASSERT_TRUE(schedules_->cancel(other.id));
    EXPECT_EQ(schedules_->size(), 0U);
    EXPECT_EQ(schedules_->runs().line().claimed().size(), 0U);
  }
}

// ---- tries --------------------------------------------------------------------------------------

TEST_F(ScheduleRunsTest, ARunIsTriedAgainUntilItSucceeds) {
  const auto created = create(with_attempts(delay(0), 5));
  const std::int64_t due = now();
  for (int attempt = 1; attempt <= 4; ++attempt) {
    const ScheduleRun run = begin().value();
    EXPECT_EQ(run.attempt, attempt);
    EXPECT_EQ(body(run)["scheduled_for"], due);
    const ScheduleEnd ended = end(run, TryOutcome::kFailed);
    EXPECT_EQ(ended.next, Next::kRetry);
    EXPECT_LT(ended.next_ms - now(), 100 << attempt) << "full jitter, below the doubled base";
    EXPECT_EQ(schedules_->wake().at_ms, ended.next_ms);
    crash();
    EXPECT_EQ(schedules_->wake().at_ms, ended.next_ms) << "the wait is on disk";
    clock_.advance(milliseconds(ended.next_ms - now()));
  }
  EXPECT_EQ(end(*begin()).next, Next::kGone);
  EXPECT_EQ(schedules_->size(), 0U);
}

TEST_F(ScheduleRunsTest, AnyErrorIsTriedAgainAndThenTheOneShotRowGoes) {
  for (const char* error : {"broken", "This script has been upgraded",
                            "reset because its code was updated", "Network connection lost."}) {
    create(delay(0));
    for (int attempt = 1; attempt <= 3; ++attempt) {
      const auto run = begin();
      ASSERT_TRUE(run) << error;
      EXPECT_EQ(end(*run, TryOutcome::kFailed, error).next,
                attempt < 3 ? Next::kRetry : Next::kGone);
      clock_.advance(3s);
    }
    EXPECT_EQ(schedules_->size(), 0U);
  }
}

TEST_F(ScheduleRunsTest, AFinalFailureEndsTheOccurrenceAndNotTheSchedule) {
  create(delay(0));
  EXPECT_EQ(end(*begin(), TryOutcome::kHopeless, "refused").next, Next::kGone);
  const auto created = create(every(1'000));
  EXPECT_EQ(end(begin_in(1s), TryOutcome::kHopeless, "refused").next, Next::kWaiting);
  EXPECT_FALSE(begin());
  clock_.advance(1s);
  EXPECT_TRUE(begin());
}

TEST_F(ScheduleRunsTest, AThrowingIntervalSurvives) {
  const auto created = create(every(1'000));
  for (int round = 0; round < 4; ++round) {
    clock_.advance(3s);
    for (int attempt = 1; attempt <= 3; ++attempt) {
      const ScheduleRun run = begin().value();
      EXPECT_EQ(run.attempt, attempt) << "each occurrence has all its tries";
      EXPECT_EQ(end(run, TryOutcome::kFailed).next, attempt < 3 ? Next::kRetry : Next::kWaiting);
      if (attempt < 3) clock_.advance(milliseconds(*schedules_->wake().at_ms - now()));
    }
  }
  EXPECT_EQ(state(created.id), "waiting");
  EXPECT_EQ(record(created.id)["failures"], 12);
}

// ---- interruptions ------------------------------------------------------------------------------

TEST_F(ScheduleRunsTest, ARunOfThisInstanceIsNotBegunASecondTime) {
  create(every(100));
  clock_.advance(100ms);
  ASSERT_TRUE(begin());
  clock_.advance(5h);
  EXPECT_FALSE(schedules_->due());
  EXPECT_FALSE(begin());
  EXPECT_EQ(schedules_->wake(), (Wake{true, std::nullopt}));
}

TEST_F(ScheduleRunsTest, ARunOfADeadInstanceIsDueAtOnce) {
  const auto created = create(every(60'000));
  clock_.advance(1min);
  ASSERT_TRUE(begin());
  crash();
  EXPECT_EQ(state(created.id), "waiting");
  EXPECT_TRUE(schedules_->due());
  const ScheduleRun again = begin().value();
  EXPECT_EQ(again.attempt, 1) << "a crash uses up no try";
  EXPECT_EQ(body(again)["scheduled_for"], now());
}

TEST_F(ScheduleRunsTest, P1_ARunThatKillsTheProcessAgainAndAgainIsDeadAndKept) {
  allow_crashes(4);
  const auto created = create(delay(0));
  crash_in_runs(4);
  EXPECT_FALSE(begin());
  EXPECT_EQ(notes(What::kDead), 1U);
  const Json dead = record(created.id);
  EXPECT_TRUE(has(dead, {{"state", "dead"}, {"time", nullptr}}));
  EXPECT_NE(dead["last_error"].get<std::string>().find("fibers.max_crashes"), std::string::npos);
  EXPECT_TRUE(schedules_->wake().none()) << "a dead one wakes nobody";
  crash();
  EXPECT_FALSE(begin());
  EXPECT_EQ(notes(What::kDead), 0U) << "it is told once";
  ASSERT_TRUE(schedules_->retry(created.id));
  database_->commit();
  crash_in_runs(3);
  EXPECT_EQ(end(begin_in(10s)).next, Next::kGone);
}

TEST_F(ScheduleRunsTest, ARunThatComesToAnEndForgetsTheInterruptions) {
  allow_crashes(3);
  create(every(1'000));
  for (int round = 0; round < 5; ++round) {
    clock_.advance(1s);
    crash_in_runs(2);
    end(begin_in(3s));
  }
  EXPECT_EQ(schedules_->size(), 1U);
  EXPECT_EQ(notes(What::kDead), 0U);
}

TEST_F(ScheduleRunsTest, FailuresAreNoInterruptions) {
  allow_crashes(2);
  create(with_attempts(delay(0), 10));
  for (int attempt = 1; attempt < 10; ++attempt) {
    EXPECT_EQ(end(*begin(), TryOutcome::kFailed).next, Next::kRetry);
    clock_.advance(3s);
  }
  EXPECT_EQ(end(*begin(), TryOutcome::kFailed).next, Next::kGone);
  EXPECT_EQ(notes(What::kDead), 0U);
}

TEST_F(ScheduleRunsTest, AnEndOnPurposeKeepsTheRowAndCountsForNothing) {
  allow_crashes(3);
  const auto created = create(delay(0));
  for (int update = 0; update < 20; ++update) {
    const auto run = begin();
    ASSERT_TRUE(run) << update;
    EXPECT_EQ(run->attempt, 1);
    leave();
    EXPECT_EQ(state(created.id), "waiting");
  }
  ASSERT_TRUE(begin());
  EXPECT_EQ(notes(What::kDead), 0U);
}

TEST_F(ScheduleRunsTest, AnInstanceThatGoesBeginsNothingMoreAndIsToBeWokenAtOnce) {
  create(delay(0, "runs"));
  create(delay(0, "waits"));
  const auto run = begin();
  schedules_->interrupt_on_purpose();
  EXPECT_FALSE(schedules_->due());
  EXPECT_FALSE(begin());
  EXPECT_EQ(schedules_->wake(), (Wake{false, now()}));
  EXPECT_EQ(end(*run).next, Next::kCancelled) << "it came too late";
  crash();
  EXPECT_EQ(run_all(), "runs waits ");
}

TEST_F(ScheduleRunsTest, AHostFailureNeverTakesARow) {
  const auto created = create(with_attempts(delay(0), 2));
  end(*begin(), TryOutcome::kFailed);
  for (int failure = 0; failure < 5; ++failure) {
    clock_.advance(2s);
    ASSERT_TRUE(begin());
    failure % 2 == 0 ? crash() : leave();
  }
  const ScheduleRun last = begin_in(2s);
  EXPECT_EQ(last.attempt, 2) << "the tries are what they were";
  EXPECT_EQ(end(last, TryOutcome::kFailed).next, Next::kGone);
}

// ---- missing callbacks --------------------------------------------------------------------------

TEST_F(ScheduleRunsTest, R12_AMissingCallbackIsKeptAndTriedAgain) {
  const auto once = create(delay(0, "later"));
  std::int64_t last_wait = 0;
  for (int round = 1; round <= 8; ++round) {
    const auto run = begin();
    ASSERT_TRUE(run) << round;
    EXPECT_EQ(run->attempt, 1) << "it was never tried";
    const ScheduleEnd ended = end(*run, TryOutcome::kNeedsCode);
    EXPECT_EQ(ended.next, Next::kMissing);
    EXPECT_EQ(state(once.id), "missing");
    const std::int64_t wait = ended.next_ms - now();
    EXPECT_GT(wait, last_wait * 3 / 2) << "it waits longer each time";
    last_wait = wait;
    EXPECT_FALSE(begin());
    clock_.advance(milliseconds(wait));
  }
  end(*begin(), TryOutcome::kNeedsCode);
  EXPECT_EQ(record(once.id)["runs"], 0);
  EXPECT_FALSE(record(once.id)["last_error"].is_null());
  crash();
  EXPECT_TRUE(schedules_->due()) << "the class that starts now may have it";
  EXPECT_EQ(end(*begin()).next, Next::kGone);
}

TEST_F(ScheduleRunsTest, AMissingCallbackOfARecurringRowStandsForWhatItMissed) {
  const auto created = create(cron("0 * * * *"));
  end(begin_in(1h), TryOutcome::kNeedsCode);
  const ScheduleRun run = begin_in(milliseconds(5h));
  EXPECT_EQ(run.missed, 5U);
  end(run);
  EXPECT_EQ(state(created.id), "waiting");
}

TEST_F(ScheduleRunsTest, AMissingOneShotIsKeptHoweverLateAndStrict) {
  create(with(delay(0), Misfire::kSkip));
  end(*begin(), TryOutcome::kNeedsCode);
  clock_.advance(48h);
  EXPECT_TRUE(begin());
}

// ---- what lies beneath --------------------------------------------------------------------------

TEST_F(ScheduleRunsTest, AScheduleWhoseZoneIsGoneIsDeadAndKept) {
  const auto due = create(cron("0 * * * *", "Europe/Berlin"));
  const auto running = create(cron("1 * * * *", "Europe/Berlin"));
  const ScheduleRun run = begin_in(1min);
  database_->begin_write();
  storage::Statement(database_->connection(), "UPDATE cf_agents_jobs SET time_zone = 'Gone/Land'")
      .execute();
  EXPECT_EQ(end(run).next_ms, 0) << "never";
  clock_.advance(1h);
  EXPECT_FALSE(begin());
  EXPECT_EQ(notes(What::kDead), 2U);
  for (const std::string& id : {due.id, running.id}) {
    EXPECT_EQ(state(id), "dead");
    EXPECT_NE(record(id)["last_error"].get<std::string>().find("Gone/Land"), std::string::npos);
  }
  crash();
  EXPECT_TRUE(schedules_->wake().none());
}

TEST_F(ScheduleRunsTest, ARowThatIsTakenAwayBeneathIsPassedOver) {
  create(delay(0, "gone"));
  create(delay(0, "stays"));
  const auto run = begin();
  database_->begin_write();
  storage::Statement(database_->connection(), "DELETE FROM cf_agents_jobs WHERE name = 'gone'")
      .execute();
  EXPECT_EQ(end(*run).next, Next::kCancelled);
  EXPECT_EQ(run_all(), "stays ");
}

}  // namespace
}  // namespace hearth::durable
