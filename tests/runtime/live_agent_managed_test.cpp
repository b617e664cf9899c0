// Managed fibers, the plan of a recovery and what settled fibers are told, through the whole
// runtime.
#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

namespace hearth::runtime {
namespace {

using durable::FiberStatus;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Strings = std::vector<std::string>;

class LiveAgentManagedTest : public testing::WorkTest {
 protected:
  // Completes hooks with this outcome, and everything else with nothing.
  static EventHandler hook_says(std::string outcome) {
    return on(EventKind::kFiberRecovered,
              [outcome = std::move(outcome)](HostCalls& host, const AgentEvent& event) {
                return host.complete(event.call, std::string_view(outcome));
              });
  }
  std::string status(const std::string& id) {
    std::string record;
    visit([&](HostCalls& host) {
      const auto found = host.inspect_managed(id, "");
      record = found ? *found : "none";
    });
    return member(record, "status");
  }
  void begin(const char* id) {
    visit([=](HostCalls& host) {
      const auto started = host.start_managed(managed("work", id));
      ASSERT_TRUE(started);
      EXPECT_NE(started->fiber, 0U);
      EXPECT_TRUE(host.stash(started->fiber, R"({"step":2})"));
    });
  }
  void begin_after_each_other(std::initializer_list<const char*> ids) {
    for (const char* id : ids) {
      begin(id);
      shard_.loop.let_pass(milliseconds(10));
    }
  }
  // A fiber that ends in the turn in which it begins.
  void begin_and_settle(FiberStatus status, const char* text) {
    visit([=](HostCalls& host) {
      const auto started = host.start_managed(managed("work", "i"));
      EXPECT_TRUE(host.settle_managed(started->fiber, status, text));
    });
  }
  void expect_oldest_first(EventHandler on_plan) {
    begin_after_each_other({"b", "a", "c"});
    std::vector<CallId> open;
    on_work = [&open, on_plan = std::move(on_plan)](HostCalls& host,
                                                    const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kFibersRecovered) return on_plan(host, event);
      open.push_back(event.call);
      return {};
    };
    shard_.restart_and_settle();
    EXPECT_EQ(plans().size(), 1U);
    EXPECT_EQ(ids_of(recovered()), (Strings{"\"b\""}));
    act([&](HostCalls& host) { EXPECT_TRUE(host.complete(open[0], Error{Errc::kPlugin, "no"})); });
    EXPECT_EQ(ids_of(recovered()), (Strings{"\"b\"", "\"a\""}));
    on_work = nullptr;
  }
  std::vector<std::string> ids_of(const Strings& events) const {
    Strings ids;
    for (const std::string& event : events) ids.push_back(member(event, "id"));
    return ids;
  }
};

// ---- the end of the work ----

TEST_F(LiveAgentManagedTest, WhatIsSettledIsToldAfterItIsOnDisk) {
  visit([](HostCalls& host) {
    const auto started = host.start_managed(managed("work", "i"));
    ASSERT_TRUE(started);
    EXPECT_EQ(member(started->record, "status"), "\"pending\"");
    const auto record = host.settle_managed(started->fiber, FiberStatus::kCompleted, "[7]");
    ASSERT_TRUE(record);
    EXPECT_EQ(member(*record, "status"), "\"completed\"");
    EXPECT_EQ(host.settle_managed(started->fiber, FiberStatus::kCompleted, "[8]").error().code,
              Errc::kNotFound);
  });
  ASSERT_EQ(told().size(), 1U);
  EXPECT_TRUE(told()[0].starts_with("work {"));
  EXPECT_NE(told()[0].find(R"("result":[7])"), std::string::npos);
  shard_.restart_and_advance(hours(1));
  EXPECT_EQ(told().size(), 1U) << "once is enough when it was heard";
}

TEST_F(LiveAgentManagedTest, AClassThatDoesNotListenCountsAsTold) {
  on_work = fail_with(Errc::kUnsupported, "");
  begin_and_settle(FiberStatus::kCompleted, "");
  ASSERT_EQ(told().size(), 1U);
  shard_.restart_and_advance(hours(1));
  EXPECT_EQ(told().size(), 1U);
}

TEST_F(LiveAgentManagedTest, WhatWasNotHeardIsToldAgainAlsoAfterARestart) {
  on_work = fail_with(Errc::kPlugin, "not now");
  begin_and_settle(FiberStatus::kError, "why");
  shard_.loop.advance(minutes(10));
  EXPECT_GE(told().size(), 3U);
  EXPECT_LE(told().size(), 20U) << "after growing waits";
  on_work = nullptr;
  const std::size_t before = told().size();
  shard_.restart_and_advance(minutes(10));
  EXPECT_EQ(told().size(), before + 1);
  EXPECT_FALSE(wake_of());
}

TEST_F(LiveAgentManagedTest, ACancelIsToldAtOnceAndALateEndChangesNothing) {
  durable::FiberHandle fiber = 0;
  visit([&](HostCalls& host) { fiber = host.start_managed(managed("work", "i"))->fiber; });
  visit([](HostCalls& host) { EXPECT_TRUE(host.cancel_managed("i", "", "enough")); });
  ASSERT_EQ(told().size(), 1U);
  EXPECT_EQ(member(told()[0], "status"), "\"aborted\"");
  visit([&](HostCalls& host) {
    EXPECT_EQ(host.settle_managed(fiber, FiberStatus::kCompleted, "").error().code,
              Errc::kNotFound);
    EXPECT_FALSE(host.cancel_managed("i", "", "again"));
  });
  EXPECT_EQ(status("i"), "\"aborted\"");
  EXPECT_EQ(shard_.logger.count("fiber:cancelled"), 1U);
}

TEST_F(LiveAgentManagedTest, WorkThatFailsWithRetriesLeftIsOfferedAgainInTheSameInstance) {
  durable::FiberHandle fiber = 0;
  on_work = do_on(EventKind::kFiberRecovered, [&](HostCalls& host, const AgentEvent&) {
    const auto resumed = host.resume_managed("i");
    EXPECT_TRUE(resumed);
    fiber = *resumed;
  });
  visit([&](HostCalls& host) {
    durable::FiberRequest request = managed("work", "i");
    request.max_retries = 1;
    fiber = host.start_managed(request)->fiber;
  });
  visit([&](HostCalls& host) {
    const auto record = host.settle_managed(fiber, FiberStatus::kError, "first");
    ASSERT_TRUE(record);
    EXPECT_EQ(member(*record, "status"), "\"pending\"");
  });
  EXPECT_TRUE(recovered().empty());
  shard_.loop.advance(seconds(3));
  ASSERT_EQ(recovered().size(), 1U);
  EXPECT_EQ(member(recovered()[0], "reason"), "\"retry\"");
  EXPECT_EQ(status("i"), "\"running\"");
  visit([&](HostCalls& host) {
    EXPECT_TRUE(host.settle_managed(fiber, FiberStatus::kError, "second"));
  });
  EXPECT_EQ(told().size(), 1U);
  EXPECT_EQ(status("i"), "\"error\"");
}

// ---- recovery ----

TEST_F(LiveAgentManagedTest, AnInterruptedFiberIsOfferedWithItsRecordAndGoesOnUnderItsId) {
  begin("i");
  on_work = on(EventKind::kFiberRecovered, [](HostCalls& host, const AgentEvent& event) {
    const auto fiber = host.resume_managed("i");
    EXPECT_TRUE(fiber);
    EXPECT_FALSE(host.resume_managed("i"));
    EXPECT_TRUE(host.complete(event.call, std::string_view()));
    EXPECT_TRUE(host.settle_managed(*fiber, FiberStatus::kCompleted, "1"));
    return Result<void>();
  });
  shard_.restart_and_settle();
  EXPECT_EQ(plans().size(), 1U) << "one fiber is planned too";
  ASSERT_EQ(recovered().size(), 1U);
  EXPECT_TRUE(recovered()[0].starts_with("work {"));
  EXPECT_NE(recovered()[0].find(R"("snapshot":{"step":2})"), std::string::npos);
  EXPECT_NE(recovered()[0].find(R"("record":{"id":"i")"), std::string::npos);
  EXPECT_EQ(member(recovered()[0], "reason"), "\"interrupted\"");
  EXPECT_EQ(status("i"), "\"completed\"");
  EXPECT_EQ(told().size(), 1U);
}

TEST_F(LiveAgentManagedTest, TheEndOfAHookThatResumedDecidesNothing) {
  begin("i");
  on_work = on(EventKind::kFiberRecovered, [](HostCalls& host, const AgentEvent&) -> Result<void> {
    EXPECT_TRUE(host.resume_managed("i"));
    return Error{Errc::kPlugin, "after it had resumed"};
  });
  shard_.restart_and_settle();
  EXPECT_EQ(status("i"), "\"running\"");
  shard_.loop.advance(minutes(1));
  EXPECT_EQ(recovered().size(), 1U);
}

TEST_F(LiveAgentManagedTest, AHooksOutcomeBecomesTheRecords) {
  begin("i");
  on_work = hook_says(R"({"status":"completed","result":[1],"snapshot":{"step":9}})");
  shard_.restart_and_settle();
  EXPECT_EQ(status("i"), "\"completed\"");
  ASSERT_EQ(told().size(), 1U);
  EXPECT_NE(told()[0].find(R"("result":[1])"), std::string::npos);
  EXPECT_NE(told()[0].find(R"("snapshot":{"step":9})"), std::string::npos);
}

TEST_F(LiveAgentManagedTest, WithoutAnOutcomeItIsInterruptedAndCanBeOfferedAgainOrResolved) {
  begin("i");
  shard_.restart_and_settle();
  EXPECT_EQ(status("i"), "\"interrupted\"");
  EXPECT_EQ(recovered().size(), 1U);
  visit([](HostCalls& host) { EXPECT_TRUE(host.retry_managed("i")); });
  shard_.loop.advance(seconds(1));
  EXPECT_EQ(recovered().size(), 2U);
  visit(
      [](HostCalls& host) { EXPECT_TRUE(host.resolve_managed("i", R"({"status":"completed"})")); });
  EXPECT_EQ(status("i"), "\"completed\"");
}

TEST_F(LiveAgentManagedTest, AnOutcomeThatIsNoneCountsAsAFailedHook) {
  begin("i");
  on_work = hook_says(R"({"status":"well"})");
  shard_.restart_and_settle();
  EXPECT_EQ(recovered().size(), 1U);
  EXPECT_EQ(shard_.logger.count("warn fiber:recovery:failed"), 1U);
  shard_.loop.advance(seconds(3));
  EXPECT_GE(recovered().size(), 2U);
}

TEST_F(LiveAgentManagedTest, AHookThatFailsTooOftenLeavesADeadRecordWhichIsTold) {
  begin("i");
  on_work = on(EventKind::kFiberRecovered, fail_with(Errc::kPlugin, "no"));
  shard_.restart_and_advance(hours(1));
  EXPECT_EQ(recovered().size(), 10U);
  ASSERT_EQ(told().size(), 1U);
  EXPECT_EQ(member(told()[0], "status"), "\"error\"");
  EXPECT_EQ(member(told()[0], "dead"), "true");
  EXPECT_EQ(shard_.logger.count("warn fiber:recovery:dead"), 1U);
  EXPECT_EQ(shard_.script.alive, 0);
  ASSERT_TRUE(wake_of() && wake_of()->needs_person) << "administrators find it";
  EXPECT_FALSE(wake_of()->at_ms || wake_of()->working) << "nothing wakes it";
}

TEST_F(LiveAgentManagedTest, AHookThatTakesItsAgentWithItCountsAsWell) {
  begin("i");
  on_work = do_on(EventKind::kFiberRecovered, [](HostCalls& host, const AgentEvent&) {
    host.storage_failed("as a test says");
  });
  shard_.restart_and_advance(hours(10));
  EXPECT_EQ(recovered().size(), static_cast<std::size_t>(durable::kMostInterruptions));
  EXPECT_EQ(status("i"), "\"error\"");
}

TEST_F(LiveAgentManagedTest, ADuplicateAfterARestartJoinsTheWorkThatIsRecovered) {
  begin("i");
  on_work = [](HostCalls&, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kFiberRecovered) return {};  // takes its time
    return Error{Errc::kUnsupported, ""};
  };
  shard_.restart();
  visit([](HostCalls& host) {
    const auto again = host.start_managed(managed("work", "i"));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->fiber, 0U) << "its own body never runs";
    EXPECT_EQ(member(again->record, "status"), "\"recovering\"");
  });
  EXPECT_EQ(recovered().size(), 1U);
}

// ---- the plan ----

TEST_F(LiveAgentManagedTest, SeveralInterruptedFibersAreAnnouncedBeforeTheFirstIsOffered) {
  begin_after_each_other({"one", "two"});
  visit([](HostCalls& host) { EXPECT_TRUE(host.start_fiber("plain")); });
  order.clear();
  shard_.restart_and_settle();
  ASSERT_EQ(plans().size(), 1U);
  EXPECT_TRUE(plans()[0].starts_with(R"( [{"id":"one","name":"work","created_at":)"));
  EXPECT_NE(plans()[0].find(R"("name":"plain")"), std::string::npos);
  EXPECT_EQ(order[0], "") << "the plan comes first";
  EXPECT_EQ(recovered().size(), 3U);
}

TEST_F(LiveAgentManagedTest, ThePlanSaysInWhichOrderAndHowManyAtOnce) {
  begin_after_each_other({"one", "two", "three", "four", "five"});
  std::vector<CallId> open;
  on_work = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kFibersRecovered)
      return complete(host, event, R"({"order":["four","nobody","two",7],"parallel":2})");
    if (event.kind != EventKind::kFiberRecovered) return complete(host, event);
    open.push_back(event.call);
    return {};
  };
  shard_.restart_and_settle();
  EXPECT_EQ(ids_of(recovered()), (Strings{"\"four\"", "\"two\""})) << "two at once";
  for (std::size_t n = 0; n < 5; ++n) {
    ASSERT_GT(open.size(), n);
    act([&](HostCalls& host) { EXPECT_TRUE(host.complete(open[n], std::string_view())); });
  }
  EXPECT_EQ(ids_of(recovered()),
            (Strings{"\"four\"", "\"two\"", "\"one\"", "\"three\"", "\"five\""}))
      << "those that it does not name come after them, oldest first";
}

TEST_F(LiveAgentManagedTest, WithoutAPlanTheyAreOfferedOldestFirstOneAtATime) {
  expect_oldest_first(fail_with(Errc::kUnsupported, ""));
}

TEST_F(LiveAgentManagedTest, AnAnswerThatIsNoPlanIsNone) {
  expect_oldest_first([](HostCalls& host, const AgentEvent& event) {
    return complete(host, event, R"(["not a plan"])");
  });
}

TEST_F(LiveAgentManagedTest, WhatIsCancelledWhileThePlanIsMadeIsNotOffered) {
  begin_after_each_other({"one", "two", "three"});
  on_work = do_on(EventKind::kFibersRecovered, [](HostCalls& host, const AgentEvent&) {
    EXPECT_TRUE(host.cancel_managed("one", "", "no need"));
    EXPECT_TRUE(host.cancel_managed("three", "", "no need"));
  });
  shard_.restart_and_settle();
  EXPECT_EQ(ids_of(recovered()), (Strings{"\"two\""}));
  EXPECT_EQ(told().size(), 3U);
}

TEST_F(LiveAgentManagedTest, APlanThatTakesItsAgentWithItIsFollowedByWaits) {
  begin_after_each_other({"one", "two"});
  on_work = do_on(EventKind::kFibersRecovered, [](HostCalls& host, const AgentEvent&) {
    host.storage_failed("as a test says");
  });
  shard_.restart_and_advance(seconds(60));
  EXPECT_LE(plans().size(), 61U) << "no loop";
  EXPECT_GE(plans().size(), 1U);
}

TEST_F(LiveAgentManagedTest, APlanThatIsNotAnsweredIsGivenUpAndRecoveryGoesOn) {
  begin_after_each_other({"one", "two"});
  on_work = on(EventKind::kFibersRecovered, hang);
  shard_.restart_and_advance(seconds(59));
  EXPECT_TRUE(recovered().empty());
  shard_.loop.advance(seconds(2));
  EXPECT_EQ(recovered().size(), 2U);
}

// ---- retention ----

TEST_F(LiveAgentManagedTest, RecordsGoWhenTheirTimeIsOverOnceTheAgentIsAwake) {
  ClassSettings settings;
  settings.fibers.keep_completed = minutes(1);
  shard_.restart({}, settings);
  begin_and_settle(FiberStatus::kCompleted, "");
  EXPECT_EQ(status("i"), "\"completed\"");
  shard_.loop.advance(minutes(3));
  ASSERT_EQ(shard_.script.alive, 0) << "a record alone keeps nobody awake";
  visit([](HostCalls&) {});
  EXPECT_EQ(status("i"), "none");
}

}  // namespace
}  // namespace hearth::runtime
