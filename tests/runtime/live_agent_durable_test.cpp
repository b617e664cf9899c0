// Keep-alive, fibers and their recovery through the whole runtime: a restart is a new runtime on
// the same files.
#include "work_fixture.hpp"

#include <gtest/gtest.h>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LiveAgentDurableTest : public testing::WorkTest {
 protected:
  // A fiber that goes on whenever it is offered, and then does `more`.
  void start_one_that_goes_on(const std::function<void(HostCalls&)>& more = {}) {
    start_fiber("work");
    on_work = do_on(EventKind::kFiberRecovered, [more](HostCalls& host, const AgentEvent& event) {
      EXPECT_TRUE(host.start_fiber("work", id_in(event)));
      if (more) more(host);
    });
  }
};

TEST_F(LiveAgentDurableTest, AKeptAliveAgentIsNotEvictedUntilTheLastReleaseAndThenItIs) {
  visit([](HostCalls& host) {
    EXPECT_TRUE(host.acquire_keep_alive());
    EXPECT_TRUE(host.acquire_keep_alive());
    EXPECT_TRUE(host.release_keep_alive());
  });
  shard_.loop.advance(seconds(600));
  EXPECT_EQ(shard_.script.alive, 1);
  visit([](HostCalls& host) {
    EXPECT_TRUE(host.release_keep_alive());
    EXPECT_FALSE(host.release_keep_alive()) << "never below zero";
  });
  shard_.loop.advance(seconds(62));
  EXPECT_EQ(shard_.script.alive, 0);
}

TEST_F(LiveAgentDurableTest, AKeptAliveAgentIsWokenAfterARestartThoughNobodyAsks) {
  visit([](HostCalls& host) { EXPECT_TRUE(host.acquire_keep_alive()); });
  shard_.script.history.clear();
  shard_.restart_and_settle();
  EXPECT_EQ(shard_.script.history.back(), "start |");
  shard_.loop.advance(seconds(62));
  EXPECT_EQ(shard_.script.alive, 0) << "what was held is gone with the process";
  shard_.script.history.clear();
  shard_.restart_and_settle();
  EXPECT_TRUE(shard_.script.history.empty()) << "and it is not woken again";
}

TEST_F(LiveAgentDurableTest, AReleasedAgentLeavesNoWakeBehind) {
  visit([](HostCalls& host) { EXPECT_TRUE(host.acquire_keep_alive()); });
  ASSERT_TRUE(wake_of());
  visit([](HostCalls& host) { EXPECT_TRUE(host.release_keep_alive()); });
  EXPECT_FALSE(wake_of());
  shard_.restart();
  shard_.script.history.clear();
  shard_.settle();
  EXPECT_TRUE(shard_.script.history.empty());
}

TEST_F(LiveAgentDurableTest, AnInterruptedFiberIsOfferedAfterARestartWithItsCheckpoint) {
  visit([](HostCalls& host) {
    const auto fiber = host.start_fiber("research");
    ASSERT_TRUE(fiber);
    EXPECT_TRUE(host.stash(fiber->handle, R"({"step":2})"));
    EXPECT_FALSE(host.stash(fiber->handle, "{oops"));
  });
  shard_.loop.advance(seconds(600));
  EXPECT_EQ(shard_.script.alive, 1) << "a fiber keeps its agent alive";
  shard_.restart_and_settle();
  ASSERT_EQ(recovered().size(), 1U);
  EXPECT_TRUE(recovered()[0].starts_with(R"(research {"id":")"));
  EXPECT_NE(recovered()[0].find(R"("snapshot":{"step":2})"), std::string::npos);
  EXPECT_NE(recovered()[0].find(R"("attempt":1)"), std::string::npos);
  shard_.restart_and_settle();
  EXPECT_EQ(recovered().size(), 1U) << "the hook ended well: the row is gone";
}

TEST_F(LiveAgentDurableTest, FinishedWorkIsNeverOffered) {
  visit([](HostCalls& host) { EXPECT_TRUE(host.finish_fiber(host.start_fiber("short")->handle)); });
  shard_.restart_and_settle();
  EXPECT_TRUE(recovered().empty());
}

TEST_F(LiveAgentDurableTest, AnEvictionInterruptsAFiberAndTheAgentComesBackByItselfToRecoverIt) {
  visit([](HostCalls& host) {
    EXPECT_TRUE(host.start_fiber("research"));
    EXPECT_TRUE(host.evict());
  });
  ASSERT_EQ(recovered().size(), 1U);
  EXPECT_EQ(shard_.script.alive, 1);
}

TEST_F(LiveAgentDurableTest, AnEvictedAgentThatOnlyHeldAReferenceIsLookedAtOnceAndThenRests) {
  visit([](HostCalls& host) {
    EXPECT_TRUE(host.acquire_keep_alive());
    EXPECT_TRUE(host.evict());
  });
  EXPECT_EQ(shard_.script.alive, 1) << "woken again: its work was interrupted";
  shard_.loop.advance(seconds(62));
  EXPECT_EQ(shard_.script.alive, 0);
  shard_.script.history.clear();
  shard_.restart_and_settle();
  EXPECT_TRUE(shard_.script.history.empty()) << "the wake index has forgotten it";
}

TEST_F(LiveAgentDurableTest, AFiberThatGoesOnIsOfferedAgainAfterTheNextRestart) {
  visit(
      [](HostCalls& host) { EXPECT_TRUE(host.stash(host.start_fiber("research")->handle, "1")); });
  on_work = do_on(EventKind::kFiberRecovered, [](HostCalls& host, const AgentEvent& event) {
    EXPECT_TRUE(host.start_fiber("research", id_in(event)));
  });
  for (int round = 1; round <= 3; ++round) {
    shard_.restart_and_advance(seconds(30));
    EXPECT_EQ(recovered().size(), static_cast<std::size_t>(round)) << "one row, one offer";
  }
}

TEST_F(LiveAgentDurableTest, AHookThatThrowsIsCalledAgainAfterGrowingWaits) {
  start_fiber("poison");
  on_work = on(EventKind::kFiberRecovered, fail_with(Errc::kPlugin, "no"));
  shard_.restart_and_settle();
  EXPECT_EQ(recovered().size(), 1U);
  shard_.loop.advance(milliseconds(990));
  EXPECT_EQ(recovered().size(), 1U);
  shard_.loop.advance(milliseconds(300));
  EXPECT_EQ(recovered().size(), 2U);
  // The first wait was at least 1 s and this wait is at least 2 s, whatever the random part is.
  shard_.loop.advance(milliseconds(1700));
  EXPECT_EQ(recovered().size(), 2U);
  shard_.loop.advance(seconds(3600));
  EXPECT_EQ(recovered().size(), 10U) << "then it is dead";
  EXPECT_EQ(shard_.script.alive, 0) << "and lets its agent rest";
  visit([&](HostCalls& host) { EXPECT_TRUE(host.retry_fiber(id_in(recovered()[0]))); });
  shard_.loop.advance(seconds(5));
  EXPECT_GE(recovered().size(), 11U);
}

TEST_F(LiveAgentDurableTest, AFiberThatEveryFaultInterruptsWithoutProgressDiesAndTheLogSaysSo) {
  start_one_that_goes_on([](HostCalls& host) { host.storage_failed("as a test says"); });
  shard_.restart();
  constexpr auto kMost = static_cast<std::size_t>(durable::kMostInterruptions);
  for (int minute = 0; minute < 300 && recovered().size() < kMost; ++minute)
    shard_.loop.advance(seconds(60));
  EXPECT_EQ(recovered().size(), kMost);
  EXPECT_FALSE(shard_.logger.contains("fiber:recovery:dead"));
  shard_.loop.advance(seconds(3600));
  EXPECT_EQ(recovered().size(), kMost);
  EXPECT_EQ(shard_.logger.count("warn fiber:recovery:dead"), 1U);
  EXPECT_EQ(shard_.script.alive, 0) << "and lets its agent rest";
}

TEST_F(LiveAgentDurableTest, RestartsOnPurposeDoNotWearOutAFiberThatMakesNoCheckpoints) {
  start_one_that_goes_on();
  for (std::size_t restart = 1; restart <= 15; ++restart) {
    shard_.restart_and_settle();
    ASSERT_EQ(recovered().size(), restart);
  }
}

TEST_F(LiveAgentDurableTest, AnOperatorsEvictionsDoNotWearOutAFiberThatMakesNoCheckpoints) {
  start_one_that_goes_on();
  for (std::size_t eviction = 1; eviction <= 15; ++eviction) {
    ASSERT_EQ(shard_.admin().evict(testing::kUsualAgent), AgentState::kLive);
    shard_.loop.advance(seconds(10));
    ASSERT_EQ(recovered().size(), eviction);
  }
  EXPECT_EQ(shard_.logger.count("warn fiber:recovery:dead"), 0U);
}

TEST_F(LiveAgentDurableTest, WorkThatEvictsItsOwnAgentAgainAndAgainIsGivenUp) {
  start_one_that_goes_on([](HostCalls& host) { EXPECT_TRUE(host.evict()); });
  shard_.restart_and_settle();
  EXPECT_EQ(recovered().size(), 1U) << "no hot loop";
  shard_.loop.advance(seconds(10 * 3600));
  EXPECT_EQ(recovered().size(), static_cast<std::size_t>(durable::kMostInterruptions));
  EXPECT_EQ(shard_.logger.count("warn fiber:recovery:dead"), 1U);
}

TEST_F(LiveAgentDurableTest, AnAgentWhoseStorageFailsIsTriedAgainAfterAWaitAndNotInALoop) {
  start_fiber("work");
  int starts = 0;
  shard_.script.on_create = [&](HostCalls& host) -> Result<void> {
    if (++starts <= 3) host.storage_failed("disk full");
    return {};
  };
  shard_.restart_and_settle();
  EXPECT_EQ(starts, 1);
  shard_.loop.advance(seconds(3));
  EXPECT_EQ(starts, 1);
  shard_.loop.advance(seconds(60));
  EXPECT_EQ(recovered().size(), 1U) << "and it is not forgotten";
}

TEST_F(LiveAgentDurableTest, AFiberWhoseEndWasNotCommittedIsOfferedThoughNobodyAsks) {
  HostCalls::Fiber fiber;
  visit([&](HostCalls& host) { fiber = host.start_fiber("work").value(); });
  visit([&](HostCalls& host) {
    EXPECT_TRUE(host.finish_fiber(fiber.handle));
    host.storage_failed("the commit of this turn");
  });
  EXPECT_TRUE(recovered().empty());
  shard_.loop.advance(seconds(10));
  EXPECT_EQ(recovered().size(), 1U);
}

TEST_F(LiveAgentDurableTest, InATransactionOfTheAgentsOwnFibersAreLeftAlone) {
  visit([](HostCalls& host) {
    const auto fiber = host.start_fiber("work");
    const auto savepoint = host.sql().begin_savepoint();
    ASSERT_TRUE(savepoint);
    EXPECT_EQ(host.stash(fiber->handle, "1").error().code, Errc::kInvalidArgument);
    EXPECT_EQ(host.start_fiber("other").error().code, Errc::kInvalidArgument);
    EXPECT_EQ(host.finish_fiber(fiber->handle).error().code, Errc::kInvalidArgument);
    EXPECT_TRUE(host.sql().release(savepoint.value()));
    EXPECT_TRUE(host.stash(fiber->handle, "1"));
  });
}

TEST_F(LiveAgentDurableTest, NothingIsPromisedByAnAgentWhoseStorageHasFailed) {
  visit([](HostCalls& host) {
    const auto fiber = host.start_fiber("work");
    host.storage_failed("as a test says");
    EXPECT_THROW((void)host.stash(fiber->handle, "1"), StorageError);
    EXPECT_THROW((void)host.start_fiber("other"), StorageError);
  });
}

TEST_F(LiveAgentDurableTest, AHookThatFailsAsUnsupportedHasFailedAndTheWorkStays) {
  start_fiber("work");
  on_work =
      on(EventKind::kFiberRecovered, [](HostCalls& host, const AgentEvent& event) -> Result<void> {
        return host.complete(event.call, Error{Errc::kUnsupported, "not this model"});
      });
  shard_.restart_and_settle();
  EXPECT_EQ(recovered().size(), 1U);
  shard_.loop.advance(seconds(5));
  EXPECT_GE(recovered().size(), 2U);
}

TEST_F(LiveAgentDurableTest, LookingAtAnAgentTooEarlyDoesNotForgetWhenItIsDue) {
  ClassSettings settings;
  settings.fibers.retry_base = seconds(30);
  start_fiber("work");
  on_work = on(EventKind::kFiberRecovered, fail_with(Errc::kPlugin, "not yet"));
  shard_.restart_and_settle({.max_live_agents = 1}, settings);
  ASSERT_EQ(recovered().size(), 1U);  // due again in 30 to 38 s

  // Another agent takes the only place. So a client's wake is delayed, to a time before the fiber
  // is due.
  visit([](HostCalls& host) { EXPECT_TRUE(host.acquire_keep_alive()); }, "busy");
  const auto refused = shard_.ask("GET");
  ASSERT_EQ(refused->end, "error unavailable: too many agents are busy; try again later");
  visit([](HostCalls& host) { EXPECT_TRUE(host.release_keep_alive()); }, "busy");
  shard_.loop.advance(seconds(5));
  EXPECT_EQ(recovered().size(), 1U);
  shard_.loop.advance(seconds(35));
  EXPECT_EQ(recovered().size(), 2U);
}

TEST_F(LiveAgentDurableTest, AHookThatHangsIsGivenUpAfterItsLimitAndOthersAreServedMeanwhile) {
  start_fiber("slow");
  on_work = on(EventKind::kFiberRecovered, hang);
  shard_.restart_and_settle();
  ASSERT_EQ(recovered().size(), 1U);
  EXPECT_EQ(shard_.ask("GET")->end, "ok ") << "recovery is outside the start gate";
  shard_.loop.advance(seconds(59));
  EXPECT_EQ(recovered().size(), 1U);
  shard_.loop.advance(seconds(5));
  EXPECT_EQ(recovered().size(), 2U);
}

TEST_F(LiveAgentDurableTest, AClassWithoutRecoveryIsAskedByEachInstance) {
  start_fiber("unwanted");
  on_work = on(EventKind::kFiberRecovered, fail_with(Errc::kUnsupported, ""));
  shard_.restart_and_advance(seconds(600));
  EXPECT_EQ(recovered().size(), 1U);
  shard_.restart();
  visit([](HostCalls&) {});
  shard_.loop.advance(seconds(600));
  EXPECT_EQ(recovered().size(), 2U) << "the fiber waits for code that recovers it";
}

TEST_F(LiveAgentDurableTest, AllFibersOfAnAgentAreOfferedAndOnlyThoseThatDoNotRunHere) {
  visit([](HostCalls& host) {
    for (const char* name : {"one", "two", "three"}) EXPECT_TRUE(host.start_fiber(name));
  });
  shard_.restart();
  start_fiber("running");
  shard_.loop.advance(seconds(30));
  EXPECT_EQ(recovered().size(), 3U);
}

TEST_F(LiveAgentDurableTest, AtMostMaxRecoveringAgentsRecoverAtOnceAndAllDo) {
  constexpr int kAgents = 40;
  for (int i = 0; i < kAgents; ++i) start_fiber("work", "agent" + std::to_string(i));
  std::vector<std::pair<HostCalls*, CallId>> open;
  on_work =
      on(EventKind::kFiberRecovered, [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
        open.emplace_back(&host, event.call);
        return {};
      });
  shard_.restart_and_settle({.max_recovering = 8});
  EXPECT_EQ(open.size(), 8U);
  answer_each(open);
  EXPECT_EQ(recovered().size(), static_cast<std::size_t>(kAgents));
}

TEST_F(LiveAgentDurableTest, AnAgentWhoseStartFailsIsTriedAgainLater) {
  start_fiber("work");
  bool broken = true;
  shard_.script.on_create = [&](HostCalls&) -> Result<void> {
    if (broken) return Error{Errc::kPlugin, "not yet"};
    return {};
  };
  shard_.restart_and_settle();
  EXPECT_TRUE(recovered().empty());
  broken = false;
  shard_.loop.advance(seconds(6));
  EXPECT_EQ(recovered().size(), 1U);
}

}  // namespace
}  // namespace hearth::runtime
