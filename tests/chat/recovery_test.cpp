#include "rows.hpp"

#include <hearth/chat/recovery.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const Time kStart = Time(hours(500'000));

// A turn on a clock of its own. Each incident is stored and read back, as after a crash.
class InterruptedTurn {
 public:
  RecoveryConfig config;
  Interruption counters;
  Time now = kStart;

  Verdict interrupt(Trigger trigger, std::optional<milliseconds> retry_after = {}) {
    Interruption interruption = counters;
    interruption.trigger = trigger;
    interruption.retry_after = retry_after;
    const auto stored = read_json<Incident>(parse_json(to_text(Json(incident_))), "incident");
    Verdict verdict = judge(stored, interruption, config, now);
    incident_ = verdict.incident;
    return verdict;
  }
  void make(std::int64_t rows, bool is_progress) {
    counters.work += rows;
    if (is_progress) counters.progress += rows;
  }

 private:
  Incident incident_;
};

std::string outcome(const Verdict& verdict) {
  if (verdict.give_up) return std::string(reason_text(*verdict.give_up));
  return std::to_string(verdict.incident.attempt);
}

// Interrupts a turn that makes nothing at these seconds, and writes what comes of it.
std::string outcomes(InterruptedTurn turn, Trigger trigger, const std::vector<int>& at_seconds) {
  std::string text;
  for (const int second : at_seconds) {
    turn.now = kStart + seconds(second);
    text += (text.empty() ? "" : " ") + outcome(turn.interrupt(trigger));
  }
  return text;
}

TEST(RecoveryTest, C40_InterruptionsWithinThirtySecondsCountOnce) {
  EXPECT_EQ(outcomes({}, Trigger::kRestart, {0, 1, 29, 30, 59, 60, 61}), "1 1 1 2 2 3 3");
}

TEST(RecoveryTest, C40_AttemptsWithoutProgressAreLimited) {
  InterruptedTurn turn;
  turn.config.no_progress_timeout_ms = 3'600'000;
  std::vector<int> at_seconds;
  for (int i = 0; i < 12; ++i) at_seconds.push_back(i * 31);
  EXPECT_EQ(outcomes(turn, Trigger::kRestart, at_seconds),
            "1 2 3 4 5 6 7 8 9 max_attempts_exceeded max_attempts_exceeded max_attempts_exceeded");
  turn.config.max_attempts = 0;  // counts as 1
  EXPECT_EQ(outcomes(turn, Trigger::kRestart, {0}), "max_attempts_exceeded");
}

TEST(RecoveryTest, C40_ProgressBeginsTheCountAgain) {
  InterruptedTurn turn;
  turn.config.max_attempts = 3;
  for (int i = 0; i < 20; ++i) {
    turn.now += seconds(31);
    EXPECT_EQ(outcome(turn.interrupt(Trigger::kRestart)), i % 2 == 0 ? "1" : "2");
    if (i % 2 == 1) turn.make(1, true);
  }
}

TEST(RecoveryTest, C41_ATurnWithoutProgressForFiveMinutesIsGivenUp) {
  EXPECT_EQ(outcomes({}, Trigger::kRestart, {0, 300}), "1 2");
  EXPECT_EQ(outcomes({}, Trigger::kRestart, {0, 301}), "1 no_progress_timeout");
}

TEST(RecoveryTest, C41_WorkIsCountedFromTheFirstInterruption) {
  struct Row {
    std::optional<std::int64_t> max;
    std::int64_t before, then;
    const char* outcome;
  };
  for (const Row& row : {Row{std::nullopt, 50, 1'000'000, "1"}, Row{10, 50, 10, "1"},
                         Row{10, 50, 11, "work_budget_exceeded"}, Row{0, 50, 0, "1"},
                         Row{0, 50, 1, "work_budget_exceeded"}}) {
    InterruptedTurn turn;
    turn.config.max_recovery_work = row.max;
    turn.make(row.before, true);
    EXPECT_EQ(outcome(turn.interrupt(Trigger::kRestart)), "1");
    turn.make(row.then, true);
    const Verdict verdict = turn.interrupt(Trigger::kRestart);
    EXPECT_EQ(outcome(verdict), row.outcome) << row.then;
    EXPECT_EQ(verdict.work, row.then);
  }
}

TEST(RecoveryTest, C41_WorkComesBeforeTimeAndTimeBeforeAttempts) {
  InterruptedTurn turn;
  turn.config = {.max_attempts = 1, .no_progress_timeout_ms = 1000, .max_recovery_work = 0};
  (void)turn.interrupt(Trigger::kRestart);
  turn.now += seconds(60);
  turn.make(1, false);
  EXPECT_EQ(outcome(turn.interrupt(Trigger::kRestart)), "work_budget_exceeded");
  turn.config.max_recovery_work.reset();
  EXPECT_EQ(outcome(turn.interrupt(Trigger::kRestart)), "no_progress_timeout");
  turn.config.no_progress_timeout_ms = 3'600'000;
  EXPECT_EQ(outcome(turn.interrupt(Trigger::kRestart)), "max_attempts_exceeded");
}

TEST(RecoveryTest, C41_TheHookIsAskedFromTheSecondAttemptAndNotOnceALimitIsHit) {
  InterruptedTurn turn;
  turn.config.max_attempts = 3;
  EXPECT_FALSE(turn.interrupt(Trigger::kRestart).asks_hook);
  turn.now += seconds(31);
  EXPECT_TRUE(turn.interrupt(Trigger::kRestart).asks_hook);
  turn.now += seconds(31);
  EXPECT_FALSE(turn.interrupt(Trigger::kRestart).asks_hook);
  EXPECT_EQ(reason_text(GiveUp::kRecoveryAborted), "recovery_aborted");
}

TEST(RecoveryTest, C41_ALaneThatIsNeverFreeEndsTheTurn) {
  InterruptedTurn turn;
  turn.config.max_attempts = 3;
  const Verdict first = turn.interrupt(Trigger::kRestart);
  EXPECT_EQ(first.at, turn.now);
  turn.now += seconds(10);
  const Verdict second = turn.interrupt(Trigger::kUnstable);
  EXPECT_EQ(outcome(second), "2") << "it counts, also within 30 s";
  EXPECT_EQ(second.at, turn.now + seconds(3));
  turn.now += seconds(13);
  EXPECT_EQ(outcome(turn.interrupt(Trigger::kUnstable)), "stable_timeout");
}

// A provider that dies after each empty start, with the waits that judge() asks for.
TEST(RecoveryTest, C42_AProviderThatDiesAfterEachEmptyStartIsGivenUp) {
  InterruptedTurn turn;
  int calls = 0;
  Verdict verdict;
  do {
    ++calls;
    turn.make(2, false);  // start-step, text-start
    verdict = turn.interrupt(Trigger::kFailure);
    turn.now = verdict.at;
  } while (!verdict.give_up && calls < 1000);
  EXPECT_EQ(outcome(verdict), "max_attempts_exceeded");
  EXPECT_LE(calls, 15);
  EXPECT_LE(turn.now - kStart, minutes(6));
}

TEST(RecoveryTest, C43_TwentyRestartsWhileAnApprovalIsPendingCostNothing) {
  InterruptedTurn turn;
  turn.config.max_attempts = 3;
  (void)turn.interrupt(Trigger::kRestart);
  turn.now += seconds(31);
  EXPECT_EQ(outcome(turn.interrupt(Trigger::kRestart)), "2");
  turn.counters.awaits_client = true;
  for (int i = 0; i < 20; ++i) {
    turn.now += hours(1);
    turn.make(1'000, false);
    const Verdict verdict = turn.interrupt(Trigger::kRestart);
    EXPECT_EQ(outcome(verdict), "2");
    EXPECT_FALSE(verdict.asks_hook);
  }
  turn.counters.awaits_client = false;
  turn.now += seconds(299);
  EXPECT_EQ(outcome(turn.interrupt(Trigger::kRestart)), "max_attempts_exceeded")
      << "the time has begun again, the attempts have not";
}

TEST(RecoveryTest, C44_SixHoursOfATurnThatProgressesAreNotEnded) {
  InterruptedTurn turn;
  turn.make(1, true);
  int interruptions = 0;
  while (turn.now < kStart + hours(6)) {
    const Trigger trigger = interruptions % 3 == 0   ? Trigger::kRestart
                            : interruptions % 3 == 1 ? Trigger::kStall
                                                     : Trigger::kFailure;
    const Verdict verdict = turn.interrupt(trigger);
    ASSERT_FALSE(verdict.give_up) << "after " << interruptions << " interruptions";
    EXPECT_LE(verdict.incident.attempt, 2);
    turn.now = verdict.at + seconds(45);
    if (interruptions % 2 == 0) turn.make(1, true);
    ++interruptions;
  }
  EXPECT_GT(interruptions, 400);
}

TEST(RecoveryTest, C35_TheWaitDoublesUpToThirtySeconds) {
  InterruptedTurn turn;
  turn.config.no_progress_timeout_ms = 3'600'000;
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 8; ++i) {
    const Verdict verdict = turn.interrupt(i % 2 == 0 ? Trigger::kFailure : Trigger::kStall);
    waits.push_back((verdict.at - turn.now).count() / 1000);
    turn.now = verdict.at;
  }
  EXPECT_EQ(waits, (std::vector<std::int64_t>{1, 2, 4, 8, 16, 30, 30, 30}));
  turn.make(1, true);
  EXPECT_EQ(turn.interrupt(Trigger::kFailure).at - turn.now, seconds(1)) << "after progress";
}

TEST(RecoveryTest, C35_TheProvidersWaitIsKeptUpToAMinute) {
  const std::pair<milliseconds, milliseconds> rows[] = {{seconds(20), seconds(20)},
                                                        {seconds(60), seconds(60)},
                                                        {hours(2), seconds(60)},
                                                        {milliseconds(0), seconds(1)},
                                                        {milliseconds(-5), seconds(1)}};
  for (const auto& [asked, waited] : rows) {
    InterruptedTurn turn;
    EXPECT_EQ(turn.interrupt(Trigger::kFailure, asked).at - kStart, waited) << asked.count();
  }
}

TEST(RecoveryTest, ARestartDoesNotShortenAWait) {
  InterruptedTurn turn;
  const Time promised = turn.interrupt(Trigger::kFailure, seconds(50)).at;
  turn.now += seconds(10);
  EXPECT_EQ(turn.interrupt(Trigger::kRestart).at, promised);
  turn.now = promised + seconds(5);
  EXPECT_EQ(turn.interrupt(Trigger::kRestart).at, turn.now);
  turn.now = kStart - hours(5);
  EXPECT_LE(turn.interrupt(Trigger::kRestart).at, turn.now + seconds(60))
      << "the clock has gone back";
}

TEST(RecoveryTest, C42_OnlyWhatCanBeUsedAgainIsProgress) {
  struct Row {
    const char* chunk;
    bool is_progress, if_resumed;
  };
  for (const Row& row : {
           Row{R"({"type":"start-step"})", false, false},
           Row{R"({"type":"text-start","id":"t0"})", false, false},
           Row{R"({"type":"text-delta","id":"t0","delta":""})", false, false},
           Row{R"({"type":"text-delta","id":"t0","delta":"x"})", true, true},
           Row{R"({"type":"reasoning-start","id":"r0"})", false, false},
           Row{R"({"type":"reasoning-delta","id":"r0","delta":"x"})", false, true},
           Row{R"({"type":"tool-input-start","toolCallId":"c"})", false, false},
           Row{R"({"type":"tool-input-delta","toolCallId":"c","inputTextDelta":"{"})", false, true},
           Row{R"({"type":"tool-input-available","toolCallId":"c","input":{}})", true, true},
           Row{R"({"type":"tool-output-available","toolCallId":"c","output":1})", true, true},
           Row{R"({"type":"tool-output-error","toolCallId":"c","errorText":"x"})", true, true},
       }) {
    EXPECT_EQ(is_progress(json(row.chunk), false), row.is_progress) << row.chunk;
    EXPECT_EQ(is_progress(json(row.chunk), true), row.if_resumed) << row.chunk;
  }
}

TEST(RecoveryTest, C41_AClockThatHasGoneBackCountsFromThen) {
  InterruptedTurn turn;
  turn.config.max_attempts = 3;
  EXPECT_EQ(outcomes(turn, Trigger::kRestart, {0, -3600, -3571, -3570, -3540}),
            "1 1 1 2 max_attempts_exceeded");
  turn.config.max_attempts = 10;
  EXPECT_EQ(outcomes(turn, Trigger::kRestart, {0, -3600, -3300, -3299}),
            "1 1 2 no_progress_timeout");
}

}  // namespace
}  // namespace hearth::chat
