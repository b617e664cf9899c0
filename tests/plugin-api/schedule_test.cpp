// Callbacks and schedules on the mock host.

#include "fields.hpp"
#include "one_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

using hearth::Cron;
using hearth::Json;
using hearth::QueueItem;
using hearth::RetryOptions;
using hearth::Schedule;
using hearth::ScheduleFilter;
using hearth::ScheduleRun;
using hearth::ScheduleState;
using hearth::ScheduleType;
using hearth::Task;

// What outlives an instance.
std::vector<std::string> heard;  // NOLINT
int run_failures_left = 0;       // NOLINT

struct Note {
  std::string text;
  int size = 0;
  HEARTH_FIELDS(text, size)
};

class Planner : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Planner>& m) {
    m.add("both", &Planner::both);
    m.callback("both", &Planner::both);
    m.callback("text", &Planner::text);
    m.callback("note", &Planner::note);
    m.callback("nothing", &Planner::nothing);
    m.callback("run_only", &Planner::run_only);
    m.callback("with_run", &Planner::with_run);
    m.callback("with_item", &Planner::with_item);
    m.callback("slow", &Planner::slow);
    m.callback("flaky", &Planner::flaky);
    m.callback("again", &Planner::again);
  }
  void both(const std::string& text) { heard.push_back("both " + text); }
  void text(const std::string& text) { heard.push_back(text); }
  void note(Note note) { heard.push_back(note.text + " " + std::to_string(note.size)); }
  void nothing() { heard.emplace_back("nothing"); }
  void run_only(const ScheduleRun& run) { last_run = run; }
  Task<void> with_run(std::string text, const ScheduleRun& run) {
    co_await sleep(milliseconds(5));
    heard.push_back(text + " " + run.callback + " " + std::to_string(run.attempt));
  }
  void with_item(const std::string& text, const QueueItem&) { heard.push_back(text); }
  Task<int> slow(int ms) {
    heard.emplace_back("begins");
    co_await sleep(milliseconds(ms));
    heard.emplace_back("ends");
    co_return 7;
  }
  void flaky(const std::string& text) {
    heard.push_back("tries " + text);
    if (run_failures_left-- > 0) throw std::runtime_error("not yet");
    heard.push_back(text);
  }
  // Schedules itself anew, as one that waits, from inside its run.
  void again(int left) {
    heard.push_back(std::to_string(left));
    if (left > 0) schedule(seconds(1), "again", left - 1, {.idempotent = true});
  }
  RetryOptions retry_defaults() override {
    RetryOptions options;
    options.max_attempts = defaults_attempts;
    return options;
  }

  ScheduleRun last_run;
  int defaults_attempts = 3;
};

class ScheduleTest : public OneAgent<Planner> {
 protected:
  ScheduleTest() {
    heard.clear();
    run_failures_left = 0;
  }
  Planner& planner() { return agent_.as<Planner>(); }
  using Lines = std::vector<std::string>;
};

// ---- callbacks ----------------------------------------------------------------------------------

TEST_F(ScheduleTest, ACallbackThatIsNoMethodCannotBeCalledByClients) {
  EXPECT_EQ(agent_.start("text", "x").error(), "Method text is not callable");
  agent_.call("both", "by a client");
  planner().schedule(seconds(0), "both", "by itself");
  host_.advance(seconds(0));
  EXPECT_EQ(heard, Lines({"both by a client", "both by itself"}));
}

TEST_F(ScheduleTest, PayloadsAreReadAsTheParameterSays) {
  planner().schedule(seconds(0), "text", "plain");
  planner().schedule(seconds(0), "note", Note{"typed", 3});
  planner().schedule(seconds(0), "nothing", {{"more", "than it takes"}});
  planner().schedule(seconds(0), "with_run", "waiting");
  host_.advance(milliseconds(5));
  EXPECT_EQ(heard, Lines({"plain", "typed 3", "nothing", "waiting with_run 1"}));
}

TEST_F(ScheduleTest, APayloadOfTheWrongTypeWaitsForAVersionThatReadsIt) {
  const Schedule schedule = planner().schedule(hours(1), "note", {{"text", 5}});
  host_.advance(hours(1) + milliseconds(0));
  EXPECT_EQ(planner().get_schedule(schedule.id)->last_error, "payload.text: expected string");
  EXPECT_EQ(planner().get_schedule(schedule.id)->state, ScheduleState::kMissing);
}

TEST_F(ScheduleTest, ACallbackThatIsNotListedForSchedulesIsRefused) {
  const auto refusal = [](const auto& schedule) {
    const Refusal refusal = refusal_of(schedule);
    EXPECT_EQ(refusal.code, HEARTH_E_INVALID);
    return refusal.text;
  };
  const std::string known =
      ": the class AgentUnderTest lists them with m.callback(\"...\", &Class::function)";
  for (const auto& [name, why] :
       {std::pair<std::string, std::string>("no_such", "Callback no_such does not exist"),
        {"with_item", "Callback with_item is for the queue"}}) {
    EXPECT_EQ(refusal([&] { planner().schedule(seconds(1), name); }), why + known);
    EXPECT_EQ(refusal([&] { planner().schedule(std::chrono::sys_time<seconds>(), name); }),
              why + known);
    EXPECT_EQ(refusal([&] { planner().schedule(Cron("@daily"), name); }), why + known);
    EXPECT_EQ(refusal([&] { planner().schedule_every(seconds(1), name); }), why + known);
  }
  EXPECT_EQ(agent_.schedules(), Json::array());
}

TEST_F(ScheduleTest, ARunKnowsWhatItIs) {
  const auto begun = planner().now();
  const Schedule schedule = planner().schedule(milliseconds(1'500), "run_only");
  host_.advance(seconds(2));
  const ScheduleRun& run = planner().last_run;
  EXPECT_EQ(run.id, schedule.id);
  EXPECT_EQ(run.callback, "run_only");
  EXPECT_EQ(run.type, ScheduleType::kDelay);
  EXPECT_EQ(run.scheduled_for, begun + milliseconds(1'500));
  EXPECT_EQ(run.late.count(), 0);
  EXPECT_EQ(run.attempt, 1);
}

// ---- one-shot schedules -------------------------------------------------------------------------

TEST_F(ScheduleTest, ADelayRunsOnceAtItsTimeAndTheRowGoes) {
  const Schedule schedule = planner().schedule(milliseconds(1'250), "text", "tea");
  EXPECT_TRUE(schedule.created);
  EXPECT_EQ(fields(Json(schedule), {"type", "delay_ms", "payload", "state"}),
            Json({"delay", 1'250, "tea", "waiting"}));
  EXPECT_EQ(schedule.time, planner().now() + milliseconds(1'250));
  host_.advance(milliseconds(1'249));
  EXPECT_TRUE(heard.empty());
  host_.advance(milliseconds(1));
  EXPECT_EQ(heard, Lines({"tea"}));
  EXPECT_EQ(planner().get_schedule(schedule.id), std::nullopt);
}

TEST_F(ScheduleTest, ADateRunsAtThatTimeAndAtOnceIfItHasPassed) {
  const auto at = planner().now() + hours(24);
  planner().schedule(at, "text", "tomorrow");
  planner().schedule(std::chrono::sys_time<seconds>(seconds(0)), "text", "long ago");
  host_.advance(seconds(0));
  EXPECT_EQ(heard, Lines({"long ago"}));
  host_.advance(hours(24));
  EXPECT_EQ(heard.back(), "tomorrow");
}

TEST_F(ScheduleTest, TimesThatAreNoneAreRefusedAtTheCall) {
  const auto code = [&](auto when) {
    return refusal_of([&] { return planner().schedule(when, "text", "x"); }).code;
  };
  using Minutes = std::chrono::duration<double, std::ratio<60>>;
  EXPECT_EQ(code(Minutes(std::numeric_limits<double>::quiet_NaN())), HEARTH_E_INVALID);
  EXPECT_EQ(code(Minutes(std::numeric_limits<double>::infinity())), HEARTH_E_INVALID);
  EXPECT_EQ(code(hours::max()), HEARTH_E_INVALID);
  EXPECT_EQ(code(seconds(-1)), HEARTH_E_INVALID);
  EXPECT_EQ(code(Cron("nonsense")), HEARTH_E_INVALID);
  EXPECT_THROW(planner().schedule_every(seconds(0), "text"), hearth::Error);
  EXPECT_EQ(agent_.schedules(), Json::array());
}

TEST_F(ScheduleTest, FractionsOfAMillisecondAreRoundedUp) {
  EXPECT_EQ(planner().schedule(std::chrono::microseconds(1), "text").delay, milliseconds(1));
  EXPECT_EQ(planner().schedule(std::chrono::duration<double>(0.0125), "text").delay,
            milliseconds(13));
}

TEST_F(ScheduleTest, WhatIsDueTogetherRunsInOrderAndASlowOneHoldsUpNobody) {
  planner().schedule(milliseconds(20), "text", "second");
  planner().schedule(milliseconds(10), "slow", 1'000);
  host_.advance(milliseconds(20));
  EXPECT_EQ(heard, Lines({"begins", "second"}));
  host_.advance(seconds(1));
  EXPECT_EQ(heard.back(), "ends");
}

// ---- recurring ones -----------------------------------------------------------------------------

TEST_F(ScheduleTest, AnIntervalRunsAgainAsLongAfterTheEndOfEachRun) {
  const Schedule schedule = planner().schedule_every(seconds(1), "slow", 500);
  EXPECT_EQ(schedule.interval, seconds(1));
  host_.advance(milliseconds(3'400));
  EXPECT_EQ(heard, Lines({"begins", "ends", "begins", "ends"}));  // at 1 and at 2.5; the next at 4
  EXPECT_EQ(planner().get_schedule(schedule.id)->runs, 2U);
}

TEST_F(ScheduleTest, AtAFixedRateTheTimesDoNotDriftAndOverlapsAreLeftOut) {
  planner().schedule_every(seconds(1), "slow", 1'500, {.fixed_rate = true});
  host_.advance(milliseconds(5'100));
  EXPECT_EQ(heard, Lines({"begins", "ends", "begins", "ends", "begins"}));  // at 1, 3 and 5
}

TEST_F(ScheduleTest, AQueuedOverlapRunsRightAfter) {
  planner().schedule_every(seconds(1), "slow", 1'500,
                           {.overlap = hearth::Overlap::kQueue, .fixed_rate = true});
  host_.advance(milliseconds(4'100));
  EXPECT_EQ(heard, Lines({"begins", "ends", "begins", "ends", "begins"}));  // at 1, 2.5 and 4
}

TEST_F(ScheduleTest, CronKeepsItsExpressionAndItsZone) {
  const Schedule schedule =
      planner().schedule(Cron("*/5 * * * *", "Europe/Berlin"), "text", "five");
  EXPECT_EQ(fields(Json(schedule), {"type", "cron", "time_zone"}),
            Json({"cron", "*/5 * * * *", "Europe/Berlin"}));
  EXPECT_EQ(planner().schedule(Cron("@daily"), "text").time_zone, "UTC");
  host_.fire(schedule.id);
  host_.fire(schedule.id);
  EXPECT_EQ(heard, Lines({"five", "five"}));
  EXPECT_EQ(planner().get_schedule(schedule.id)->runs, 2U);
}

TEST_F(ScheduleTest, WhatWasMissedIsRunAsThePolicySays) {
  using hearth::Misfire;
  const auto runs = [&](Misfire misfire) {
    const Schedule schedule =
        planner().schedule_every(minutes(1), "run_only", static_cast<int>(misfire),
                                 {.misfire = misfire, .misfire_limit = 3, .fixed_rate = true});
    const auto now = planner().now();
    agent_.kill();
    host_.set_wall(now + minutes(10) + seconds(30));  // nothing ran meanwhile
    host_.advance(seconds(0));
    const std::uint64_t count = planner().get_schedule(schedule.id)->runs;
    planner().cancel_schedule(schedule.id);
    return count;
  };
  EXPECT_EQ(runs(Misfire::kOnce), 1U);
  EXPECT_EQ(planner().last_run.missed, 9U);
  EXPECT_EQ(runs(Misfire::kSkip), 0U);
  EXPECT_EQ(runs(Misfire::kAll), 3U);
}

// ---- the same again -----------------------------------------------------------------------------

TEST_F(ScheduleTest, A9_ACronScheduleRunsOnceAMinuteHoweverOftenTheClockIsLookedAt) {
  planner().schedule(Cron("* * * * *"), "text", "tick");
  for (int i = 0; i < 5 * 60; ++i) {
    host_.advance(milliseconds(500));
    host_.advance(milliseconds(500));
    if (i == 150) agent_.evict();
  }
  EXPECT_EQ(heard, Lines(5, "tick"));
  EXPECT_EQ(planner().list_schedules().size(), 1U) << "it waits for the next minute";
}

TEST_F(ScheduleTest, CronAndIntervalsAreMadeOnceAndOthersEachTime) {
  const Schedule cron = planner().schedule(Cron("0 9 * * *"), "text", 1);
  EXPECT_FALSE(planner().schedule(Cron("0 9 * * *"), "text", 1).created);
  EXPECT_EQ(planner().schedule(Cron("0 9 * * *"), "text", 1).id, cron.id);
  EXPECT_TRUE(planner().schedule(Cron("0 9 * * *"), "text", 2).created);
  EXPECT_TRUE(planner().schedule(Cron("0 9 * * *", "Asia/Tokyo"), "text", 1).created);
  EXPECT_TRUE(planner().schedule(Cron("0 9 * * *"), "text", 1, {.idempotent = false}).created);
  EXPECT_TRUE(planner().schedule_every(seconds(9), "text").created);
  EXPECT_FALSE(planner().schedule_every(seconds(9), "text").created);
  EXPECT_TRUE(planner().schedule_every(seconds(8), "text").created);
  EXPECT_TRUE(planner().schedule(seconds(9), "text").created);
  EXPECT_TRUE(planner().schedule(seconds(9), "text").created);
  EXPECT_FALSE(planner().schedule(seconds(5), "text", nullptr, {.idempotent = true}).created);
}

TEST_F(ScheduleTest, ARunThatSchedulesItselfAnewIsNotTakenForTheNewOne) {
  planner().schedule(seconds(1), "again", 2, {.idempotent = true});
  host_.advance(seconds(3));
  EXPECT_EQ(heard, Lines({"2", "1", "0"}));
  EXPECT_EQ(agent_.schedules(), Json::array());
}

// ---- failures -----------------------------------------------------------------------------------

TEST_F(ScheduleTest, AFailedRunIsTriedAgain) {
  run_failures_left = 2;
  const Schedule schedule = planner().schedule(seconds(0), "flaky", "x");
  host_.advance(seconds(0));
  EXPECT_EQ(planner().get_schedule(schedule.id)->last_error, "not yet");
  host_.advance(seconds(3));
  EXPECT_EQ(heard, Lines({"tries x", "tries x", "tries x", "x"}));
  EXPECT_EQ(planner().get_schedule(schedule.id), std::nullopt);
}

TEST_F(ScheduleTest, AfterItsAttemptsAOneShotGoesAndAnIntervalGoesOn) {
  run_failures_left = 99;
  planner().schedule(seconds(0), "flaky", "once", {.retry = RetryOptions{.max_attempts = 1}});
  const Schedule every = planner().schedule_every(minutes(1), "flaky", "every");
  host_.advance(seconds(1));
  EXPECT_EQ(agent_.schedules().size(), 1U);
  host_.advance(minutes(3));
  EXPECT_GE(planner().get_schedule(every.id)->failures, 3U);
  EXPECT_EQ(planner().get_schedule(every.id)->last_error, "not yet");
}

TEST_F(ScheduleTest, TheClassHasDefaultsForRetriesAndTheCallAWord) {
  planner().defaults_attempts = 7;
  EXPECT_EQ(planner().schedule(seconds(1), "text").retry.max_attempts, 7);
  EXPECT_EQ(planner()
                .schedule(seconds(1), "text", nullptr,
                          {.retry = RetryOptions{.max_attempts = 2, .base_delay = milliseconds(5)}})
                .retry.max_attempts,
            2);
}

TEST_F(ScheduleTest, RetryOptionsThatMakeNoSenseAreRefusedAtTheCall) {
  const auto error = [&](const RetryOptions& retry) {
    return refusal_of(
               [&] { return planner().schedule(seconds(1), "text", nullptr, {.retry = retry}); })
        .text;
  };
  EXPECT_EQ(error({.max_attempts = 0}), "retry.maxAttempts must be >= 1");
  EXPECT_EQ(error({.base_delay = seconds(5)}), "retry.baseDelayMs must be <= retry.maxDelayMs");
  EXPECT_EQ(error({.should_retry = [](const std::exception&, int) { return true; }}),
            "retry.shouldRetry cannot be stored");
  planner().defaults_attempts = 0;
  EXPECT_THROW(planner().schedule(seconds(1), "text"), hearth::Error);
}

// It lists one callback more.
class NextPlanner : public Planner {
 public:
  static void methods(hearth::Methods<NextPlanner>& m) {
    m.callback("text", &NextPlanner::text);
    m.callback("later", &NextPlanner::nothing);
  }
};

TEST_F(ScheduleTest, ACallbackOfAnotherVersionIsWaitedFor) {
  agent_.become<NextPlanner>();
  const Schedule schedule = planner().schedule(seconds(1), "later");
  const Schedule second = planner().schedule(seconds(1), "later");
  host_.advance(seconds(0));
  agent_.become<Planner>();
  host_.advance(seconds(1));
  EXPECT_EQ(agent_.steps().back(), "schedule:missing_callback later");
  planner().cancel_schedule(second.id);
  host_.advance(hours(1));
  EXPECT_EQ(planner().get_schedule(schedule.id)->state, ScheduleState::kMissing);
  EXPECT_EQ(planner().get_schedule(schedule.id)->last_error, "Callback later does not exist");

  agent_.become<NextPlanner>();
  agent_.wake();
  host_.advance(seconds(0));
  EXPECT_EQ(heard, Lines({"nothing"}));
}

TEST_F(ScheduleTest, AMissingOneIsDueAtOnceAfterRetry) {
  agent_.become<NextPlanner>();
  const Schedule schedule = planner().schedule(seconds(1), "later");
  host_.advance(seconds(0));
  agent_.become<Planner>();
  host_.advance(seconds(10));
  EXPECT_TRUE(planner().revive_schedule(schedule.id));
  EXPECT_FALSE(planner().revive_schedule(schedule.id));
  EXPECT_EQ(planner().get_schedule(schedule.id)->state, ScheduleState::kWaiting);
  EXPECT_FALSE(planner().revive_schedule("no such id"));
}

// ---- looking and changing -----------------------------------------------------------------------

TEST_F(ScheduleTest, ListsAreInOrderAndRestrictedAsAsked) {
  const auto now = planner().now();
  const Schedule cron = planner().schedule(Cron("0 9 * * *"), "text");
  const Schedule late = planner().schedule(hours(2), "text");
  const Schedule soon = planner().schedule(hours(1), "nothing");
  const Schedule every = planner().schedule_every(hours(3), "text");
  const auto ids = [&](const ScheduleFilter& filter) {
    Lines all;
    for (const Schedule& each : planner().list_schedules(filter)) all.push_back(each.id);
    return all;
  };
  EXPECT_EQ(ids({}), Lines({soon.id, late.id, every.id, cron.id}));
  EXPECT_EQ(ids({.type = ScheduleType::kInterval}), Lines({every.id}));
  EXPECT_EQ(ids({.callback = "nothing"}), Lines({soon.id}));
  EXPECT_EQ(ids({.from = now + hours(2), .until = now + hours(3)}), Lines({late.id}));
  EXPECT_EQ(ids({.after = late.id, .limit = 1}), Lines({every.id}));
  planner().pause_schedule(late.id);
  EXPECT_EQ(ids({.state = ScheduleState::kPaused}), Lines({late.id}));
}

TEST_F(ScheduleTest, CancelledOnesDoNotRunAndUnknownIdsAreFalse) {
  const Schedule schedule = planner().schedule(seconds(1), "text", "x");
  EXPECT_TRUE(planner().cancel_schedule(schedule.id));
  EXPECT_FALSE(planner().cancel_schedule(schedule.id));
  EXPECT_FALSE(planner().pause_schedule(schedule.id));
  EXPECT_FALSE(planner().resume_schedule("no such id"));
  EXPECT_EQ(planner().get_schedule("no such id"), std::nullopt);
  host_.advance(seconds(2));
  EXPECT_TRUE(heard.empty());
}

TEST_F(ScheduleTest, ARunThatIsCancelledGoesOnToItsEnd) {
  const Schedule schedule = planner().schedule_every(seconds(1), "slow", 100);
  host_.advance(seconds(1));
  EXPECT_EQ(planner().get_schedule(schedule.id)->state, ScheduleState::kRunning);
  EXPECT_TRUE(planner().cancel_schedule(schedule.id));
  host_.advance(seconds(5));
  EXPECT_EQ(heard, Lines({"begins", "ends"}));
}

TEST_F(ScheduleTest, APausedOneRunsWhenItIsResumed) {
  const Schedule schedule = planner().schedule(seconds(1), "text", "x");
  EXPECT_TRUE(planner().pause_schedule(schedule.id));
  host_.advance(hours(1));
  EXPECT_TRUE(heard.empty());
  EXPECT_TRUE(planner().resume_schedule(schedule.id));
  host_.advance(seconds(0));
  EXPECT_EQ(heard, Lines({"x"}));
}

TEST_F(ScheduleTest, ARecordIsAsTheHeaderSaysAndAMethodMayReturnIt) {
  const Schedule schedule = planner().schedule(milliseconds(1'500), "text", "tea");
  const Json expected = {
      {"id", schedule.id},
      {"callback", "text"},
      {"payload", "tea"},
      {"type", "delay"},
      {"time", schedule.time->time_since_epoch().count()},
      {"delay_ms", 1'500},
      {"retry", {{"max_attempts", 3}, {"base_delay_ms", 100}, {"max_delay_ms", 3'000}}},
      {"state", "waiting"},
      {"created_at", schedule.created_at.time_since_epoch().count()},
      {"runs", 0},
      {"failures", 0},
      {"last_run", nullptr},
      {"last_error", nullptr}};
  EXPECT_EQ(Json(schedule), expected);
  Json stored = agent_.schedules().at(0);
  for (const char* const more : {"fixed_rate", "misfire", "misfire_limit", "overlap"})
    stored.erase(more);
  EXPECT_EQ(stored, expected);
}

// ---- the end of the instance --------------------------------------------------------------------

TEST_F(ScheduleTest, AnAgentThatLeftMemoryIsWokenInTime) {
  planner().schedule(hours(5), "text", "x");
  agent_.kill();
  host_.advance(hours(5));
  EXPECT_EQ(heard, Lines({"x"}));
  EXPECT_EQ(agent_.activations(), 2);
}

TEST_F(ScheduleTest, ARunThatAKillInterruptsIsBegunAgainAsTheSameAttempt) {
  planner().schedule(seconds(1), "with_run", "x");
  host_.advance(seconds(1));
  agent_.kill();
  host_.advance(seconds(1));
  EXPECT_EQ(heard, Lines({"x with_run 1"}));
}

TEST_F(ScheduleTest, OneWhoseRunsAreKilledAHundredTimesIsDeadUntilOneLikeItTakesItsPlace) {
  const Schedule old = planner().schedule_every(seconds(1), "slow", 60'000);
  const auto state = [&] { return planner().get_schedule(old.id)->state; };
  for (int kills = 1; kills <= 100; ++kills) {
    for (int waited = 0; waited < 400 && state() != ScheduleState::kRunning; ++waited)
      host_.advance(seconds(1));
    ASSERT_EQ(state(), ScheduleState::kRunning) << kills;
    agent_.kill();
    host_.advance(milliseconds(1));
    agent_.wake();
  }
  EXPECT_EQ(state(), ScheduleState::kDead);
  EXPECT_EQ(heard.size(), 100U);
  const Schedule fresh = planner().schedule_every(seconds(1), "slow", 60'000);
  EXPECT_TRUE(fresh.created);
  EXPECT_EQ(planner().list_schedules().size(), 1U);
  EXPECT_FALSE(planner().get_schedule(old.id));
  host_.advance(seconds(1));
  EXPECT_EQ(heard.size(), 101U);
  EXPECT_FALSE(planner().schedule_every(seconds(1), "slow", 60'000).created);
}

TEST_F(ScheduleTest, NothingIsScheduledWhileATransactionIsOpen) {
  auto transaction = planner().transaction();
  EXPECT_EQ(refusal_of([&] { return planner().schedule(seconds(1), "text", "x"); }).text,
            "not while a transaction of the agent's own is open");
  transaction.commit();
  EXPECT_TRUE(planner().schedule(seconds(1), "text", "x").created);
}

TEST(ScheduleOptionsTest, ANumberThatIsNoneOfTheOptionsIsRefused) {
  EXPECT_EQ(hearth::ScheduleOptions{.misfire_limit = 7}.misfire_limit, 7U);
  EXPECT_THROW((void)hearth::ScheduleOptions{.misfire_limit = -1}, hearth::Error);
  EXPECT_THROW((void)RetryOptions{.max_attempts = std::int64_t{5'000'000'000}}, hearth::Error);
}

}  // namespace
