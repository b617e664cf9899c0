// What DurableWork returns and in which order, over a real database. Tests through the whole
// runtime: tests/runtime/live_agent_schedules_test.cpp and live_agent_work_test.cpp.
#include "extensions/durable_work_fixture.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace hearth::extensions {
namespace {

class DurableWorkTest : public DurableWorkFixture {};

TEST_F(DurableWorkTest, P5_AnAgentWithoutAnyHasNothingAndLeavesNothing) {
  EXPECT_TRUE(work_->empty());
  EXPECT_FALSE(work_->due());
  EXPECT_FALSE(work_->recovery().due());
  EXPECT_FALSE(work_->dispatch().next(true));
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
  EXPECT_TRUE(work_->recovery().due());
  EXPECT_EQ(work_->fibers().runs().size(), 0U) << "nothing runs in this instance";
}

TEST_F(DurableWorkTest, WorkIsUnderTheTraceUnderWhichItWasBegun) {
  using durable::JobKind;
  schedule("tick");
  push("item");
  settle_one("told");
  begin("fiber");
  const std::string tick = work_->schedules().list({}).substr(8, 36);  // [{"id":"...
  const std::string item = work_->queue().list({})->substr(8, 36);
  work_->reports().keep_trace(JobKind::kSchedule, tick, "trace of the schedule");
  work_->reports().keep_trace(JobKind::kSchedule, tick, "and not of what finds it again");
  work_->reports().keep_trace(JobKind::kItem, item, "trace of the item");
  work_->reports().keep_trace(JobKind::kFiber, "told", "trace of the record");
  work_->reports().keep_trace(JobKind::kFiber, "fiber", "trace of the fiber");
  push("untraced");
  crash();
  std::map<EventKind, std::string> traces;
  while (const auto work = work_->dispatch().next(true)) {
    if (work->kind == EventKind::kFibersRecovered)
      work_->dispatch().ended(*work, std::string_view());
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
  EXPECT_FALSE(work_->dispatch().next(false));
  EXPECT_FALSE(work_->recovery().in_progress());
  const DueWork hook = take_offer();
  EXPECT_EQ(hook.kind, EventKind::kFiberRecovered);
  EXPECT_EQ(hook.name, "work");
  EXPECT_TRUE(work_->recovery().in_progress());
  EXPECT_FALSE(work_->recovery().due()) << "one at a time";
  work_->dispatch().ended(hook, std::string_view());
  EXPECT_FALSE(work_->recovery().in_progress());
}

TEST_F(DurableWorkTest, P2_WhatWasClaimedAndNotEndedComesAgainAndCounts) {
  push("item");
  EXPECT_EQ(take().kind, EventKind::kQueueItem);
  EXPECT_FALSE(work_->dispatch().next(false)) << "one item at a time";
  for (int crashes = 1; crashes < durable::kMostCrashes; ++crashes) {
    crash(durable::EndedProcess{});
    clock_.advance(std::chrono::hours(1));  // however long it waits after a crash
    EXPECT_EQ(take().name, "item");
  }
  crash(durable::EndedProcess{});
  clock_.advance(std::chrono::hours(1));
  EXPECT_FALSE(work_->dispatch().next(false));
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
  work_->dispatch().ended(run, std::string_view());
  EXPECT_EQ(logger_.count("zones cannot be read: it is kept and looked at again"), 1U);
}

TEST_F(DurableWorkTest, TheLogSaysWhyAScheduleIsDeadOrPutOff) {
  schedule_minutely();
  settings_.schedules.find_zone = &no_zones;
  crash();
  clock_.advance(std::chrono::minutes(1));
  EXPECT_FALSE(work_->dispatch().next(false));
  EXPECT_FALSE(work_->dispatch().next(false));
  EXPECT_EQ(logger_.count("zones cannot be read: it is kept and looked at again"), 1U);
  EXPECT_EQ(logger_.count("warn schedule:dead"), 0U);
  settings_.schedules.find_zone = &no_such_zone;
  crash();
  EXPECT_FALSE(work_->dispatch().next(false));
  EXPECT_EQ(logger_.count("there is no such zone"), 1U);
  EXPECT_EQ(logger_.count("warn schedule:dead"), 1U);
  EXPECT_EQ(logger_.count("warn schedule:error"), 1U);
  settings_.schedules.find_zone = &durable::TimeZone::find;
  crash();
  schedule_minutely();
  clock_.advance(std::chrono::minutes(1));
  const DueWork run = take();
  EXPECT_EQ(run.name, "tick");
  work_->dispatch().ended(run, std::string_view());
  EXPECT_EQ(logger_.count("warn schedule:error"), 1U);
  EXPECT_EQ(logger_.count("interrupted"), 0U);
}

TEST_F(DurableWorkTest, WorkThatCannotBeginIsLookedAtNowAndThen) {
  push("one");
  push("two");
  const DueWork one = take();
  const std::int64_t now = unix_millis(clock_.wall_now());
  if (const auto look = work_->next_look_ms()) EXPECT_GE(*look, now + 1'000) << "no hot loop";
  work_->dispatch().ended(one, std::string_view());
  EXPECT_TRUE(work_->due());
}

TEST_F(DurableWorkTest, WhatIsDueLaterIsLookedAtThen) {
  durable::ScheduleRequest request;
  request.type = durable::ScheduleType::kDelay;
  request.callback = "tick";
  request.when_ms = 100;
  ASSERT_TRUE(work_->schedules().create(request));
  EXPECT_FALSE(work_->dispatch().next(true));
  EXPECT_EQ(work_->next_look_ms(), unix_millis(clock_.wall_now()) + 100);
}

TEST_F(DurableWorkTest, WhatAFiberThatIsOverHadBegunIsUnknownAndTold) {
  durable::FiberRequest fiber{.name = "work"};
  const auto started = work_->fibers().start(fiber).value();
  const durable::OperationRequest wanted{
      .fiber = started.fiber, .can_resume = true, .kind = "charge"};
  const auto begun = work_->operations().begin(wanted).value();
  const durable::OperationSending sending{.id = begun.id, .fingerprint = "f"};
  ASSERT_TRUE(work_->operations().requests().may_send(sending));
  EXPECT_TRUE(work_->operations().requests().dispatched(sending));
  work_->operations().requests().answered(begun.id, 200, std::nullopt, R"({"status":200})");
  EXPECT_EQ(*work_->operations().settle(begun.operation, durable::OperationOutcome::kCutOff, ""),
            durable::OperationState::kInterrupted);
  EXPECT_FALSE(work_->due());
  EXPECT_FALSE(work_->dispatch().next(true));
  ASSERT_TRUE(work_->fibers().settle(started.fiber, durable::FiberStatus::kError, "no"));
  EXPECT_TRUE(work_->due());
  std::vector<EventKind> told;
  while (const auto work = work_->dispatch().next(true)) told.push_back(work->kind);
  EXPECT_NE(std::ranges::find(told, EventKind::kOperationUnknown), told.end());
  EXPECT_TRUE(logger_.contains("operation " + begun.id + " may have executed"));
  EXPECT_FALSE(work_->due());
}

TEST_F(DurableWorkTest, AtMostEightSettledFibersAreToldAtOnce) {
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) settle_one(id);
  std::vector<DueWork> telling;
  while (auto work = work_->dispatch().next(false)) telling.push_back(std::move(*work));
  EXPECT_EQ(telling.size(), 8U);
  EXPECT_FALSE(work_->due());
  work_->dispatch().ended(telling[0], std::string_view());
  EXPECT_TRUE(work_->due());
}

TEST_F(DurableWorkTest, P1_AlarmsAndNotificationsTakeTurns) {
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(work_->alarms().set({name, "[]", 1}));
    ASSERT_TRUE(work_->notices().push({"Room", name, "note", "[]", ""}));
  }
  std::vector<bool> were_alarms;
  while (const auto next = work_->dispatch().next_notice()) were_alarms.push_back(next->is_alarm);
  ASSERT_EQ(were_alarms.size(), 4U);
  for (std::size_t i = 1; i < were_alarms.size(); ++i)
    EXPECT_NE(were_alarms[i], were_alarms[i - 1]) << i;
}

TEST_F(DurableWorkTest, DeadWorkIsInTheWakeUntilItIsGoneAndTheAgentLeaves) {
  push("hopeless");
  EXPECT_FALSE(work_->wake().needs_person);
  const DueWork item = take();
  work_->dispatch().ended(item, Error{Errc::kFinal, "hopeless"});
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
  const durable::FiberRequest request{.name = "later", .keeping = durable::FiberKeeping::kKept};
  const auto started = work_->fibers().start(request).value();
  ASSERT_TRUE(work_->recovery().wait_for_code(started.fiber, "it is not known"));
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
