// A recovery that is over before its hook: the fiber goes on, and the hook waits for it.
#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

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
    std::string id = member(std::string(event.body), "id");
    id = id.substr(1, id.size() - 2);
    EXPECT_TRUE(host.resume_managed(id));
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
  for (const char* name : {"a", "b", "c"})
    visit([](HostCalls& host) { EXPECT_TRUE(host.start_fiber("work")); }, name);
  on_work = awaits_continuation;
  expect_that_hooks_wait_for_no_other();
}

TEST_F(DurableWorkContinuedTest, AContinuationThatIsBegunInALaterTurnGivesThePermitBackAsWell) {
  for (const char* name : {"a", "b"})
    visit([](HostCalls& host) { EXPECT_TRUE(host.start_fiber("work")); }, name);
  std::string id;
  on_work = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kFiberRecovered) return complete(host, event);
    id = member(std::string(event.body), "id");
    return {};
  };
  shard_.restart_and_settle(limits_);
  ASSERT_EQ(recovered().size(), 1U);
  const std::string first = id.substr(1, id.size() - 2);
  act([&](HostCalls& host) { EXPECT_TRUE(host.start_fiber("work", first)); });
  EXPECT_EQ(recovered().size(), 2U);
  shard_.loop.advance(std::chrono::seconds(61));
  EXPECT_EQ(shard_.logger.count("agent.event_timed_out"), 1U)
      << "of the other, which went on with nothing";
}

TEST_F(DurableWorkContinuedTest, HowAHookEndsDecidesNothingOnceItHasContinued) {
  visit([](HostCalls& host) { EXPECT_TRUE(host.start_fiber("work")); });
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

}  // namespace
}  // namespace hearth::runtime
