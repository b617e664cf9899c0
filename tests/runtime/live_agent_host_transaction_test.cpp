// The end of durable work while the agent has a savepoint open: work that is rolled back must not
// count as done.
#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hearth::runtime {
namespace {

using durable::FiberStatus;
using std::chrono::hours;

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
  visit([](HostCalls& host) { EXPECT_TRUE(host.push_item(item("one"))); });
  expect_done_once(EventKind::kQueueItem);
}

TEST_F(LiveHostCallsTransactionTest, ARunOfAScheduleDoesNotEndInIt) {
  visit([](HostCalls& host) { EXPECT_TRUE(host.create_schedule(after(0, "tick"))); });
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
  on_work = [tries = on_work](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kFiberRecovered) return tries(host, event);
    return complete(host, event);
  };
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
