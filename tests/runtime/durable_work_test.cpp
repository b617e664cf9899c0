// Ends of durable work through the whole runtime: recoveries that go on before their hook ends, or
// are given up; agents that crash when they are told of an end; ends inside an open savepoint.
#include "json/json.hpp"
#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

using durable::FiberStatus;
using std::chrono::hours;

class DurableWorkContinuedTest : public testing::WorkTest {
 protected:
  DurableWorkContinuedTest() { limits_.max_recovering = 1; }

  // Continues what it is offered, and does not end.
  static Result<void> awaits_continuation(HostCalls& host, const AgentEvent& event) {
    if (event.kind != EventKind::kFiberRecovered) return complete(host, event);
    EXPECT_TRUE(host.resume_managed(id_in(event)));
    return {};
  }
  void expect_that_hooks_wait_for_no_other() {
    shard_.restart_and_settle(limits_);
    EXPECT_EQ(recovered().size(), 3U) << "the only permit goes round at once";
    EXPECT_EQ(shard_.logger.count("fiber:recovery:handled"), 3U);
    shard_.loop.advance(hours(1));
    EXPECT_EQ(recovered().size(), 3U);
    EXPECT_EQ(shard_.logger.count("fiber:recovery:handled"), 3U);
    EXPECT_EQ(shard_.logger.count("fiber:recovery:failed"), 0U);
    EXPECT_EQ(shard_.logger.count("agent.event_timed_out"), 0U);
  }

  RuntimeLimits limits_;
};

TEST_F(DurableWorkContinuedTest, AHookThatAwaitsItsContinuationHoldsUpNobodyAndHasNoDeadline) {
  for (const char* name : {"a", "b", "c"}) start_fiber("work", name);
  on_work = awaits_continuation;
  expect_that_hooks_wait_for_no_other();
}

TEST_F(DurableWorkContinuedTest, AContinuationThatIsBegunInALaterTurnGivesThePermitBackAsWell) {
  for (const char* name : {"a", "b"}) start_fiber("work", name);
  std::string id;
  on_work = on(EventKind::kFiberRecovered, [&](HostCalls&, const AgentEvent& event) {
    id = id_in(event);
    return Result<void>();
  });
  shard_.restart_and_settle(limits_);
  ASSERT_EQ(recovered().size(), 1U);
  act([first = id](HostCalls& host) { EXPECT_TRUE(host.start_fiber("work", first)); });
  EXPECT_EQ(recovered().size(), 2U);
  shard_.loop.advance(std::chrono::seconds(61));
  EXPECT_EQ(shard_.logger.count("agent.event_timed_out"), 1U)
      << "of the other, which went on with nothing";
}

TEST_F(DurableWorkContinuedTest, HowAHookEndsDecidesNothingOnceItHasContinued) {
  start_fiber("work");
  CallId hook = 0;
  on_work = [&](HostCalls& host, const AgentEvent& event) {
    if (event.kind == EventKind::kFiberRecovered) hook = event.call;
    return awaits_continuation(host, event);
  };
  shard_.restart_and_settle(limits_);
  act([&](HostCalls& host) { EXPECT_TRUE(host.complete(hook, Error{Errc::kPlugin, "late"})); });
  shard_.loop.advance(hours(1));
  EXPECT_EQ(recovered().size(), 1U) << "the continuation runs";
  EXPECT_EQ(shard_.logger.count("fiber:recovery:failed"), 0U);
  on_work = nullptr;
  shard_.restart_and_settle(limits_);
  EXPECT_EQ(recovered().size(), 2U) << "its row was there all the time";
}

class DurableWorkDeadTest : public testing::WorkTest {
 protected:
  std::string start_one() {
    std::string id;
    visit([&](HostCalls& host) { id = host.start_fiber("work").value().id; });
    return id;
  }

  ClassSettings settings_;
};

TEST_F(DurableWorkDeadTest, WhatStashesAnotherTimeAndBreaksItsAgentIsGivenUpAndTheLogSaysWhy) {
  settings_.fibers.max_recoveries = 15;
  int stashed = 0;
  on_work = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kFiberRecovered) return complete(host, event);
    const auto next = host.start_fiber("work", id_in(event));
    EXPECT_TRUE(next);
    EXPECT_TRUE(host.stash(next->handle, std::to_string(++stashed)));
    host.storage_failed("as a crash would");
    return {};
  };
  start_one();
  shard_.restart_and_advance(hours(24), {}, settings_);
  EXPECT_EQ(recovered().size(), 15U);
  EXPECT_EQ(shard_.logger.count("fiber:recovery:dead"), 1U);
  EXPECT_EQ(shard_.logger.count("fibers.max_recoveries"), 1U);
  shard_.loop.advance(hours(24));
  EXPECT_EQ(recovered().size(), 15U);
}

TEST_F(DurableWorkDeadTest, AnAgentThatHasNothingButADeadFiberRemovesItInTimeAndSaysSo) {
  settings_.fibers.max_attempts = 1;
  on_work = on(EventKind::kFiberRecovered, fail_with(Errc::kPlugin, "no"));
  const std::string id = start_one();
  shard_.restart_and_settle({}, settings_);
  ASSERT_EQ(shard_.logger.count("fiber:recovery:dead"), 1U);
  shard_.loop.advance(hours(24 * 7 - 1));
  visit([](HostCalls&) {});
  shard_.settle();
  EXPECT_EQ(shard_.logger.count("fiber:expired"), 0U);
  shard_.restart_and_advance(hours(1), {}, settings_);
  ASSERT_TRUE(wake_of() && wake_of()->needs_person) << "administrators find it";
  EXPECT_FALSE(wake_of()->at_ms || wake_of()->working) << "for this alone it is not woken";
  visit([](HostCalls&) {});
  shard_.settle();
  EXPECT_EQ(shard_.logger.count("fiber:expired"), 1U);
  EXPECT_EQ(shard_.logger.count("fiber=" + id + " detail=\"dead for as long as"), 1U);
  shard_.restart({}, settings_);
  visit([&](HostCalls& host) { EXPECT_EQ(host.retry_fiber(id).error().code, Errc::kNotFound); });
  shard_.settle();
  EXPECT_EQ(shard_.logger.count("fiber:expired"), 1U);
}

class DurableWorkTellingTest : public testing::WorkTest {
 protected:
  void settle_one() {
    visit([](HostCalls& host) {
      const auto started = host.start_managed(managed("work", "i"));
      EXPECT_TRUE(host.settle_managed(started->fiber, FiberStatus::kCompleted, "1"));
    });
  }
};

TEST_F(DurableWorkTellingTest, WhatBreaksItsAgentIsToldAfterGrowingWaitsAndGivenUp) {
  on_work = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kFiberSettled) return complete(host, event);
    host.storage_failed("as a crash would");
    return {};
  };
  settle_one();
  for (int i = 0; i < 20; ++i) {
    shard_.restart_and_settle();
  }
  EXPECT_LE(told().size(), 3U) << "without any time passing";
  shard_.loop.advance(hours(24));
  EXPECT_EQ(told().size(), static_cast<std::size_t>(durable::kMostInterruptions));
  EXPECT_EQ(shard_.logger.count("fiber:never_told"), 1U);
  shard_.restart_and_advance(hours(24 * 30));
  EXPECT_EQ(told().size(), static_cast<std::size_t>(durable::kMostInterruptions));
  std::string record;
  visit([&](HostCalls& host) { record = host.inspect_managed("i", "").value(); });
  EXPECT_EQ(member(record, "status"), "\"completed\"") << "kept, until somebody removes it";
}

TEST_F(DurableWorkTellingTest, TheNameIsFoundHoweverDeepTheRecordIs) {
  const std::string deepest = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  visit([&](HostCalls& host) {
    durable::FiberRequest request = managed("work", "i");
    request.input = deepest;
    const auto started = host.start_managed(request);
    EXPECT_TRUE(host.settle_managed(started->fiber, FiberStatus::kCompleted, deepest));
  });
  ASSERT_EQ(told().size(), 1U);
  EXPECT_TRUE(told().front().starts_with("work ")) << told().front().substr(0, 20);
}

TEST_F(DurableWorkTellingTest, AnEvictionOnPurposeCountsForNothing) {
  on_work = hang;
  settle_one();
  for (int i = 0; i < 20; ++i) {
    shard_.restart_and_settle();
  }
  EXPECT_EQ(told().size(), 21U) << "each time at once";
  EXPECT_EQ(shard_.logger.count("fiber:never_told"), 0U);
}

class LiveHostCallsTransactionTest : public testing::WorkTest {
 protected:
  // Tries to end each piece of work inside a savepoint that is then undone, and ends it after that.
  LiveHostCallsTransactionTest() {
    on_work = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      const auto savepoint = host.sql().begin_savepoint();
      refusals_.push_back(host.complete(event.call, std::string_view()).error().code);
      refusals_.push_back(host.complete(event.call, Error{Errc::kPlugin, "no"}).error().code);
      EXPECT_TRUE(host.sql().rollback_to(savepoint.value()));
      EXPECT_TRUE(host.complete(event.call, std::string_view())) << "afterwards it is free";
      return {};
    };
  }
  // Inside the savepoint all was refused. Outside it counted once, and the work does not come
  // again.
  void expect_done_once(EventKind kind) {
    EXPECT_EQ(refusals_, (std::vector{Errc::kInvalidArgument, Errc::kInvalidArgument}));
    EXPECT_EQ(seen[kind].size(), 1U);
    on_work = nullptr;
    shard_.restart_and_settle();
    shard_.loop.advance(hours(1));
    EXPECT_EQ(seen[kind].size(), 1U) << "nothing of it is left";
    EXPECT_FALSE(wake_of());
  }

  std::vector<Errc> refusals_;
};

TEST_F(LiveHostCallsTransactionTest, AQueueItemDoesNotEndInIt) {
  push({"one"});
  expect_done_once(EventKind::kQueueItem);
}

TEST_F(LiveHostCallsTransactionTest, ARunOfAScheduleDoesNotEndInIt) {
  schedule({after(0, "tick")});
  shard_.loop.advance(std::chrono::seconds(1));
  expect_done_once(EventKind::kSchedule);
}

TEST_F(LiveHostCallsTransactionTest, ASettledFiberIsNotToldInIt) {
  visit([](HostCalls& host) {
    const auto started = host.start_managed(managed("work", "i"));
    EXPECT_TRUE(host.settle_managed(started->fiber, FiberStatus::kCompleted, "1"));
  });
  expect_done_once(EventKind::kFiberSettled);
}

TEST_F(LiveHostCallsTransactionTest, TheHookOfAManagedFiberDoesNotEndInIt) {
  visit([](HostCalls& host) { EXPECT_TRUE(host.start_managed(managed("work", "i"))); });
  on_work = on(EventKind::kFiberRecovered, on_work);
  shard_.restart_and_settle();
  expect_done_once(EventKind::kFiberRecovered);
  EXPECT_EQ(told().size(), 1U);
}

TEST_F(LiveHostCallsTransactionTest, AClientsCallEndsInIt) {
  bool completed = false;
  shard_.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kRequest) return complete(host, event);
    EXPECT_TRUE(host.sql().begin_savepoint());
    completed = host.complete(event.call, "done").has_value();
    return {};
  };
  const auto answer = shard_.ask("POST", "", "a");
  EXPECT_TRUE(completed);
}

}  // namespace
}  // namespace hearth::runtime
