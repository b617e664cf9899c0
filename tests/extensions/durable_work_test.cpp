// What DurableWork returns and in which order, over a real database. Tests through the whole
// runtime: tests/runtime/live_agent_schedules_test.cpp and live_agent_work_test.cpp.
#include "extensions/durable_work.hpp"

#include "support/manual_clock.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::extensions {
namespace {

class DurableWorkTest : public ::testing::Test {
 protected:
  DurableWorkTest() { open(); }

  void open(const std::optional<durable::EndedProcess>& ended = std::nullopt,
            bool needed_person = false, bool has_code = true) {
    database_ = std::make_unique<storage::AgentDatabase>(directory_.path() / "a.db", agent_);
    work_ = std::make_unique<DurableWork>(*database_, agent_, clock_, random_, settings_, events_,
                                          stops_);
    work_->load(ended, needed_person, has_code);
  }
  // As after a crash of the process: committed data stays.
  void crash(const std::optional<durable::EndedProcess>& ended = std::nullopt) {
    database_->commit();
    work_->close();
    work_.reset();
    database_.reset();
    open(ended);
  }
  DueWork take(bool may_recover = false) {
    auto work = work_->next(may_recover);
    EXPECT_TRUE(work);
    return work ? std::move(*work) : DueWork{};
  }
  void schedule(const char* callback) {
    durable::ScheduleRequest request;
    request.type = durable::ScheduleType::kDelay;
    request.callback = callback;
    EXPECT_TRUE(work_->schedules().create(request));
  }
  void schedule_minutely() {
    durable::ScheduleRequest minutely;
    minutely.type = durable::ScheduleType::kCron;
    minutely.callback = "tick";
    minutely.cron = "* * * * *";
    minutely.time_zone = "Europe/Berlin";
    EXPECT_TRUE(work_->schedules().create(minutely));
  }
  void push(const char* callback) {
    durable::QueueRequest request;
    request.callback = callback;
    EXPECT_TRUE(work_->queue().push(request));
  }
  // A fiber whose record goes with its end.
  void begin(const std::string& id) {
    durable::FiberRequest request;
    request.name = "work";
    request.id = id;
    request.keeping = durable::FiberKeeping::kBrief;
    EXPECT_TRUE(work_->fibers().start(request));
  }
  // The first offer, after the plan, which says nothing.
  DueWork take_offer() {
    const DueWork plan = take(true);
    EXPECT_EQ(plan.kind, EventKind::kFibersRecovered);
    work_->ended(plan, std::string_view());
    return take(true);
  }
  void settle_one(const char* id) {
    durable::FiberRequest request;
    request.name = "work";
    request.id = id;
    const auto started = work_->fibers().start(request);
    ASSERT_TRUE(started);
    EXPECT_TRUE(work_->fibers().settle(started->fiber, durable::FiberStatus::kCompleted, ""));
  }

  hearth::testing::TempDirectory directory_;
  hearth::testing::ManualClock clock_;
  hearth::testing::SeededRandom random_{7};
  hearth::testing::RecordingLogger logger_;
  DurableLog events_{logger_};
  StopPointsAtCommit stops_;
  ClassSettings settings_;
  const storage::AgentKey agent_{"Counter", "a"};
  std::unique_ptr<storage::AgentDatabase> database_;
  std::unique_ptr<DurableWork> work_;
};

TEST_F(DurableWorkTest, P5_AnAgentWithoutAnyHasNothingAndLeavesNothing) {
  EXPECT_TRUE(work_->empty());
  EXPECT_FALSE(work_->due());
  EXPECT_FALSE(work_->recovery_due());
  EXPECT_FALSE(work_->next(true));
  EXPECT_TRUE(work_->wake().none());
  EXPECT_FALSE(work_->next_look_ms());
  EXPECT_FALSE(database_->exists());
  database_->store_state("1");
  crash();
  EXPECT_TRUE(work_->empty());
}

TEST_F(DurableWorkTest, EachPartIsFoundAgain) {
  schedule("tick");
  push("item");
  settle_one("i");
  begin("fiber");
  crash();
  EXPECT_FALSE(work_->empty());
  EXPECT_TRUE(work_->due());
  EXPECT_TRUE(work_->recovery_due());
  EXPECT_TRUE(work_->idle()) << "nothing runs in this instance";
}

TEST_F(DurableWorkTest, WorkIsUnderTheTraceUnderWhichItWasBegun) {
  using durable::JobKind;
  schedule("tick");
  push("item");
  settle_one("told");
  begin("fiber");
  const std::string tick = work_->schedules().list({}).substr(8, 36);  // [{"id":"...
  const std::string item = work_->queue().list({})->substr(8, 36);
  work_->keep_trace(JobKind::kSchedule, tick, "trace of the schedule");
  work_->keep_trace(JobKind::kSchedule, tick, "and not of what finds it again");
  work_->keep_trace(JobKind::kItem, item, "trace of the item");
  work_->keep_trace(JobKind::kFiber, "told", "trace of the record");
  work_->keep_trace(JobKind::kFiber, "fiber", "trace of the fiber");
  push("untraced");
  crash();
  std::map<EventKind, std::string> traces;
  while (const auto work = work_->next(true)) {
    if (work->kind == EventKind::kFibersRecovered) work_->ended(*work, std::string_view());
    traces[work->kind] = work->trace;
  }
  EXPECT_EQ(traces,
            (std::map<EventKind, std::string>{{EventKind::kFibersRecovered, ""},
                                              {EventKind::kSchedule, "trace of the schedule"},
                                              {EventKind::kQueueItem, "trace of the item"},
                                              {EventKind::kFiberSettled, "trace of the record"},
                                              {EventKind::kFiberRecovered, "trace of the fiber"}}));
}

TEST_F(DurableWorkTest, P1_TheKindsTakeTurns) {
  for (int i = 0; i < 3; ++i) {
    schedule("tick");
    push("item");
    settle_one(i == 0 ? "i" : i == 1 ? "j" : "k");
  }
  std::map<EventKind, int> kinds;
  for (int i = 0; i < 3; ++i) ++kinds[take().kind];
  EXPECT_EQ(kinds.size(), 3U) << "three pieces, three kinds";
}

TEST_F(DurableWorkTest, RecoveryBeginsOnlyIfItMay) {
  begin("fiber");
  crash();
  EXPECT_FALSE(work_->next(false));
  EXPECT_FALSE(work_->recovering());
  const DueWork hook = take_offer();
  EXPECT_EQ(hook.kind, EventKind::kFiberRecovered);
  EXPECT_EQ(hook.name, "work");
  EXPECT_TRUE(work_->recovering());
  EXPECT_FALSE(work_->recovery_due()) << "one at a time";
  work_->ended(hook, std::string_view());
  EXPECT_FALSE(work_->recovering());
}

TEST_F(DurableWorkTest, P2_WhatWasClaimedAndNotEndedComesAgainAndCounts) {
  push("item");
  EXPECT_EQ(take().kind, EventKind::kQueueItem);
  EXPECT_FALSE(work_->next(false)) << "one item at a time";
  for (int crashes = 1; crashes < durable::kMostCrashes; ++crashes) {
    crash(durable::EndedProcess{});
    clock_.advance(std::chrono::hours(1));  // however long it waits after a crash
    EXPECT_EQ(take().name, "item");
  }
  crash(durable::EndedProcess{});
  clock_.advance(std::chrono::hours(1));
  EXPECT_FALSE(work_->next(false));
  EXPECT_EQ(logger_.count("warn queue:dead"), 1U);
}

Result<durable::TimeZone> no_zones(std::string_view) {
  return Error{Errc::kUnavailable, "zones cannot be read"};
}
Result<durable::TimeZone> no_such_zone(std::string_view) {
  return Error{Errc::kInvalidArgument, "there is no such zone"};
}

bool zones_are_there = true;  // NOLINT: a plain function looks at it
Result<durable::TimeZone> zones_that_go(std::string_view name) {
  return zones_are_there ? durable::TimeZone::find(name) : no_zones(name);
}

TEST_F(DurableWorkTest, ARunWhoseNextTimeCannotBeFoundIsToldAsItEnds) {
  zones_are_there = true;
  settings_.schedules.find_zone = &zones_that_go;
  schedule_minutely();
  clock_.advance(std::chrono::minutes(1));
  const DueWork run = take();
  zones_are_there = false;
  work_->ended(run, std::string_view());
  EXPECT_EQ(logger_.count("zones cannot be read: it is kept and looked at again"), 1U);
}

TEST_F(DurableWorkTest, TheLogSaysWhyAScheduleIsDeadOrPutOff) {
  schedule_minutely();
  settings_.schedules.find_zone = &no_zones;
  crash();
  clock_.advance(std::chrono::minutes(1));
  EXPECT_FALSE(work_->next(false));
  EXPECT_FALSE(work_->next(false));
  EXPECT_EQ(logger_.count("zones cannot be read: it is kept and looked at again"), 1U);
  EXPECT_EQ(logger_.count("warn schedule:dead"), 0U);
  settings_.schedules.find_zone = &no_such_zone;
  crash();
  EXPECT_FALSE(work_->next(false));
  EXPECT_EQ(logger_.count("there is no such zone"), 1U);
  EXPECT_EQ(logger_.count("warn schedule:dead"), 1U);
  EXPECT_EQ(logger_.count("warn schedule:error"), 1U);
  settings_.schedules.find_zone = &durable::TimeZone::find;
  crash();
  schedule_minutely();
  clock_.advance(std::chrono::minutes(1));
  const DueWork run = take();
  EXPECT_EQ(run.name, "tick");
  work_->ended(run, std::string_view());
  EXPECT_EQ(logger_.count("warn schedule:error"), 1U);
  EXPECT_EQ(logger_.count("interrupted"), 0U);
}

TEST_F(DurableWorkTest, P4_ThePlanIsAskedForOnceAndItsFirstAttemptIsOnDiskBefore) {
  begin("one");
  begin("two");
  crash();
  const DueWork plan = take(true);
  ASSERT_EQ(plan.kind, EventKind::kFibersRecovered);
  EXPECT_TRUE(work_->recovering());
  EXPECT_FALSE(work_->next(true)) << "nothing is offered before the plan";
  crash();  // the plan killed the process
  const DueWork alone = take(true);
  ASSERT_EQ(alone.kind, EventKind::kFibersRecovered);
  EXPECT_EQ(alone.id, "two") << "the other one waits";
  work_->ended(alone, std::string_view());
  work_->ended(take(true), Error{Errc::kPlugin, "no"});
  clock_.advance(std::chrono::minutes(10));
  EXPECT_EQ(take(true).kind, EventKind::kFiberRecovered) << "once in each instance";
}

// Those of these fibers that the plan asks about.
std::vector<std::string> asked_for(const DueWork& plan, const std::vector<std::string>& ids) {
  std::vector<std::string> named;
  for (const std::string& id : ids) {
    if (plan.body.find("\"" + id + "\"") != std::string::npos) named.push_back(id);
  }
  return named;
}

class PlannedWorkTest : public DurableWorkTest {
 protected:
  using Asked = std::vector<std::string>;

  // Fibers that are interrupted by a kill and then planned, the oldest first.
  PlannedWorkTest() {
    for (const std::string& id : ids_) {
      durable::FiberRequest request;
      request.name = "work";
      request.id = id;
      request.keeping = durable::FiberKeeping::kKept;
      EXPECT_TRUE(work_->fibers().start(request));
      clock_.advance(std::chrono::seconds(1));
    }
    crash();
  }

  // The process has ended in this plan, as the record of the crash says it.
  void crash_in(const DueWork& plan) {
    crash(durable::EndedProcess{plan.row});
    clock_.advance(std::chrono::minutes(10));
  }
  void ask_for_all() {
    const DueWork plan = take(true);
    ASSERT_EQ(plan.kind, EventKind::kFibersRecovered);
    ASSERT_EQ(asked_for(plan, ids_), ids_);
    EXPECT_EQ(plan.id, "") << "which of them a crash is about is not known";
    crash_in(plan);
  }
  // Each fiber is planned alone, and goes on, until the plan for `poison` comes, which is returned.
  // `went_on` gets the others.
  std::optional<DueWork> ask_for_each_until(std::string_view poison, Asked& went_on) {
    while (std::optional<DueWork> plan = work_->next(true)) {
      if (plan->kind != EventKind::kFibersRecovered) {  // the telling of the dead fiber "poison"
        work_->ended(*plan, std::string_view());
        continue;
      }
      EXPECT_EQ(asked_for(*plan, ids_), Asked({plan->id}));
      if (plan->id == poison) return plan;
      work_->ended(*plan, R"({"order":["c","a"]})");
      const DueWork hook = take(true);
      EXPECT_EQ(hook.kind, EventKind::kFiberRecovered) << "each plan is followed by its fiber";
      EXPECT_EQ(hook.id, plan->id);
      EXPECT_TRUE(work_->fibers().resume(hook.id));
      work_->continued(hook.id);
      went_on.push_back(hook.id);
    }
    std::ranges::sort(went_on);
    return std::nullopt;
  }

  const Asked ids_ = {"a", "b", "c"};
};

TEST_F(PlannedWorkTest, P6_AfterACrashEachIsAskedForAloneUntilThePoisonIsDead) {
  ask_for_all();
  Asked went_on;
  for (int crashes = 0; crashes < settings_.fibers.max_crashes; ++crashes) {
    const auto plan = ask_for_each_until("b", went_on);
    ASSERT_TRUE(plan);
    crash_in(*plan);
  }
  went_on.clear();
  EXPECT_FALSE(ask_for_each_until("b", went_on));
  EXPECT_EQ(went_on, Asked({"a", "c"})) << "the others live";
  EXPECT_EQ(logger_.count("fiber:recovery:dead"), 1U);
}

TEST_F(PlannedWorkTest, P6_APlanOfSeveralThatCrashesCountsForNone) {
  for (int round = 0; round < 3; ++round) {
    ask_for_all();
    Asked went_on;
    EXPECT_FALSE(ask_for_each_until("nobody", went_on));
    EXPECT_EQ(went_on, ids_);
    crash();
    clock_.advance(std::chrono::minutes(10));
  }
  EXPECT_EQ(logger_.count("fiber:recovery:dead"), 0U);
}

TEST_F(DurableWorkTest, APlanIsBoundedInHowManyItLetsInAtOnce) {
  for (int i = 0; i < 120; ++i) begin(std::to_string(i));
  crash();
  const DueWork plan = take(true);
  work_->ended(plan, R"({"parallel":1000000})");
  int offers = 0;
  while (work_->next(true)) ++offers;
  EXPECT_EQ(offers, 100);
}

TEST_F(DurableWorkTest, PlansThatAreNoneChangeNothing) {
  for (const std::string_view answer :
       {"", "null", "[1]", "{", R"({"order":7,"parallel":"x"})", R"({"parallel":0})",
        R"({"parallel":-5,"order":[1,null,"nobody"]})"}) {
    begin("one");
    begin("two");
    crash();
    DueWork plan = take(true);
    ASSERT_EQ(plan.kind, EventKind::kFibersRecovered) << answer;
    work_->ended(plan, answer);
    for (int i = 0; i < 2; ++i) {
      const DueWork hook = take(true);
      EXPECT_FALSE(work_->next(true)) << "one at a time after " << answer;
      work_->ended(hook, std::string_view());
    }
    EXPECT_FALSE(work_->next(true));
  }
}

TEST_F(DurableWorkTest, WorkThatCannotBeginIsLookedAtNowAndThen) {
  push("one");
  push("two");
  const DueWork one = take();
  const std::int64_t now = unix_millis(clock_.wall_now());
  if (const auto look = work_->next_look_ms()) EXPECT_GE(*look, now + 1'000) << "no hot loop";
  work_->ended(one, std::string_view());
  EXPECT_TRUE(work_->due());
}

TEST_F(DurableWorkTest, WhatIsDueLaterIsLookedAtThen) {
  durable::ScheduleRequest request;
  request.type = durable::ScheduleType::kDelay;
  request.callback = "tick";
  request.when_ms = 100;
  ASSERT_TRUE(work_->schedules().create(request));
  EXPECT_FALSE(work_->next(true));
  EXPECT_EQ(work_->next_look_ms(), unix_millis(clock_.wall_now()) + 100);
}

TEST_F(DurableWorkTest, WhatAFiberThatIsOverHadBegunIsUnknownAndTold) {
  durable::FiberRequest fiber;
  fiber.name = "work";
  const auto started = work_->fibers().start(fiber);
  ASSERT_TRUE(started);
  durable::OperationRequest wanted;
  wanted.kind = "charge";
  wanted.fiber = started->fiber;
  wanted.can_resume = true;
  const auto begun = work_->operations().begin(wanted);
  ASSERT_TRUE(begun);
  const durable::OperationSending sending{.id = begun->id, .fingerprint = "f"};
  ASSERT_TRUE(work_->operations().may_send(sending));
  EXPECT_TRUE(work_->operations().dispatched(sending));
  work_->operations().answered(begun->id, 200, std::nullopt, R"({"status":200})");
  EXPECT_EQ(*work_->operations().settle(begun->operation, durable::OperationOutcome::kCutOff, ""),
            durable::OperationState::kInterrupted);
  EXPECT_FALSE(work_->due());
  EXPECT_FALSE(work_->next(true));
  ASSERT_TRUE(work_->fibers().settle(started->fiber, durable::FiberStatus::kError, "no"));
  EXPECT_TRUE(work_->due());
  std::vector<EventKind> told;
  while (const auto work = work_->next(true)) told.push_back(work->kind);
  EXPECT_NE(std::ranges::find(told, EventKind::kOperationUnknown), told.end());
  EXPECT_TRUE(logger_.contains("operation " + begun->id + " may have executed"));
  EXPECT_FALSE(work_->due());
}

TEST_F(DurableWorkTest, AtMostEightSettledFibersAreToldAtOnce) {
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) settle_one(id);
  std::vector<DueWork> telling;
  while (auto work = work_->next(false)) telling.push_back(std::move(*work));
  EXPECT_EQ(telling.size(), 8U);
  EXPECT_FALSE(work_->due());
  work_->ended(telling[0], std::string_view());
  EXPECT_TRUE(work_->due());
}

TEST_F(DurableWorkTest, AWarningOfDuplicatesComesOnceACallback) {
  for (int i = 0; i < 3; ++i) {
    work_->warn_of_duplicates("tick");
    work_->warn_of_duplicates("tock");
  }
  EXPECT_EQ(logger_.count("warn schedule:duplicate_warning"), 2U);
}

TEST_F(DurableWorkTest, P1_AlarmsAndNotificationsTakeTurns) {
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(work_->alarms().set({name, "[]", 1}));
    ASSERT_TRUE(work_->notices().push({"Room", name, "note", "[]", ""}));
  }
  std::vector<bool> were_alarms;
  while (const auto next = work_->next_notice()) were_alarms.push_back(next->is_alarm);
  ASSERT_EQ(were_alarms.size(), 4U);
  for (std::size_t i = 1; i < were_alarms.size(); ++i)
    EXPECT_NE(were_alarms[i], were_alarms[i - 1]) << i;
}

TEST_F(DurableWorkTest, DeadWorkIsInTheWakeUntilItIsGoneAndTheAgentLeaves) {
  push("hopeless");
  EXPECT_FALSE(work_->wake().needs_person);
  const DueWork item = take();
  work_->ended(item, Error{Errc::kFinal, "hopeless"});
  EXPECT_TRUE(work_->wake().needs_person);
  database_->commit();
  work_->close();
  EXPECT_TRUE(work_->wake().needs_person);

  work_.reset();
  database_.reset();
  open(std::nullopt, true);
  EXPECT_TRUE(work_->wake().needs_person) << "the index said so";
  ASSERT_TRUE(work_->queue().remove(item.id));
  EXPECT_TRUE(work_->wake().needs_person) << "no look at the rows until the end";
  database_->commit();
  work_->close();
  EXPECT_FALSE(work_->wake().needs_person);
}

TEST_F(DurableWorkTest, WhatWaitsForCodeIsInTheWakeAndOnlyAnInstanceTriesItAgain) {
  durable::FiberRequest request;
  request.name = "later";
  request.keeping = durable::FiberKeeping::kKept;
  const auto started = work_->fibers().start(request);
  ASSERT_TRUE(started);
  ASSERT_TRUE(work_->wait_for_code(started->fiber, "it is not known"));
  EXPECT_TRUE(work_->wake().needs_person);
  const auto reopen = [this](bool has_code) {
    database_->commit();
    work_->close();
    EXPECT_TRUE(work_->wake().needs_person);
    work_.reset();
    database_.reset();
    open(std::nullopt, true, has_code);
  };
  reopen(false);
  EXPECT_FALSE(database_->dirty());
  EXPECT_EQ(work_->wake().at_ms, durable::kNextVersion) << "an administrator looks";
  reopen(true);
  EXPECT_EQ(work_->wake().at_ms, unix_millis(clock_.wall_now()));
}

TEST_F(DurableWorkTest, AQuestionForAPersonIsStoredUntilItIsTakenBack) {
  EXPECT_TRUE(work_->waits_for_person(""));
  EXPECT_FALSE(database_->dirty());
  EXPECT_TRUE(work_->waits_for_person("the contract is signed"));
  EXPECT_TRUE(work_->waits_for_person("the bill is paid"));
  EXPECT_TRUE(work_->wake().needs_person);
  EXPECT_TRUE(work_->wake().none()) << "nothing wakes the agent for it";
  database_->commit();
  EXPECT_TRUE(work_->waits_for_person("the bill is paid"));
  EXPECT_FALSE(database_->dirty()) << "it says so already";
  work_->close();
  EXPECT_TRUE(work_->wake().needs_person);
  work_.reset();
  database_.reset();
  open(std::nullopt, true);
  for (std::size_t i = 1; i < DurableWork::kMostQuestions; ++i)
    EXPECT_TRUE(work_->waits_for_person("another", std::to_string(i)));
  EXPECT_EQ(work_->waits_for_person("one more", "more").error().code, Errc::kLimitExceeded);
  for (std::size_t i = 1; i < DurableWork::kMostQuestions; ++i)
    EXPECT_TRUE(work_->waits_for_person("", std::to_string(i)));
  EXPECT_TRUE(work_->wake().needs_person) << "of another key";
  EXPECT_TRUE(work_->waits_for_person(""));
  EXPECT_FALSE(work_->wake().needs_person) << "at once";
  database_->commit();
  work_->close();
  EXPECT_FALSE(work_->wake().needs_person);
}

}  // namespace
}  // namespace hearth::extensions
