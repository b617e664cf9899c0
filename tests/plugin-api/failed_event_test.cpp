// What a handler throws is a failure of that handler, whatever code it names: for hosts some codes
// say more of an event.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using hearth::FiberContext;
using hearth::Json;
using hearth::Task;
using hearth::testing::AgentHandle;
using hearth::testing::Host;

using Lines = std::vector<std::string>;

Lines attempted;                              // NOLINT: outlives the instances
int handler_failures_left = 0;                // NOLINT
hearth_status thrown_code = HEARTH_E_PLUGIN;  // NOLINT: of what is thrown

// Each handler fails with `thrown_code` as often as `handler_failures_left` says.
class Failing : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Failing>& m) {
    m.callback("now", &Failing::now_or_never);
    m.callback("later", &Failing::later);
  }
  void now_or_never() { attempt("now"); }
  Task<void> later() {
    co_await sleep(milliseconds(1));
    attempt("later");
  }
  Task<void> on_fiber_recovered(const hearth::RecoveredFiber& /*fiber*/) override {
    attempt("recovered");
    return {};
  }
  Task<void> on_fiber_complete(const hearth::FiberRecord& /*fiber*/) override {
    attempt("complete");
    return {};
  }
  void on_connecting(hearth::Connecting& /*client*/) override { attempt("connecting"); }
  void validate_state(const Json& /*next*/, std::optional<hearth::Connection> /*source*/) override {
    attempt("state");
  }

  void begin() {
    auto work = [this](FiberContext&) -> Task<void> { co_await sleep(std::chrono::hours(1)); };
    spawn_fiber("work", std::move(work));
  }

 private:
  static void attempt(const std::string& what) {
    attempted.push_back(what);
    if (handler_failures_left > 0) {
      --handler_failures_left;
      throw hearth::Error(thrown_code, "no such thing");
    }
  }
};

class FailedEventTest : public ::testing::TestWithParam<hearth_status> {
 protected:
  FailedEventTest() {
    attempted.clear();
    handler_failures_left = 0;
    thrown_code = GetParam();
  }
  Failing& agent() { return agent_.as<Failing>(); }

  Host host_;
  AgentHandle agent_ = host_.create<Failing>("a");
};

INSTANTIATE_TEST_SUITE_P(Codes, FailedEventTest,
                         ::testing::Values(HEARTH_E_NOT_FOUND, HEARTH_E_UNSUPPORTED,
                                           HEARTH_E_PLUGIN));

TEST_P(FailedEventTest, AScheduledCallbackIsTriedAgain) {
  handler_failures_left = 2;
  const hearth::Schedule schedule = agent().schedule(seconds(0), "now");
  host_.advance(milliseconds(0));
  EXPECT_EQ(agent().get_schedule(schedule.id)->last_error, "no such thing");
  EXPECT_EQ(agent().get_schedule(schedule.id)->state, hearth::ScheduleState::kWaiting);
  host_.advance(seconds(10));
  EXPECT_EQ(attempted, Lines({"now", "now", "now"}));
  EXPECT_EQ(agent_.schedules(), Json::array());
}

TEST_P(FailedEventTest, AQueuedCallbackIsTriedAgainAlsoAfterAWait) {
  handler_failures_left = 2;
  agent().queue("later");
  host_.advance(seconds(10));
  EXPECT_EQ(attempted, Lines({"later", "later", "later"}));
  EXPECT_EQ(agent_.queue(), Json::array());
}

TEST_P(FailedEventTest, AnInterruptedFiberIsOfferedAgain) {
  handler_failures_left = 1;
  agent().begin();
  agent_.evict();
  agent_.wake();
  ASSERT_EQ(agent_.fibers().size(), 1U);
  EXPECT_EQ(agent_.fibers()[0].last_error, "no such thing");
  host_.advance(seconds(10));
  EXPECT_EQ(attempted, Lines({"recovered", "recovered"}));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_P(FailedEventTest, AnEndIsToldAgain) {
  handler_failures_left = 1;
  agent().start_fiber("work", [](FiberContext&) { return 1; });
  host_.advance(seconds(10));
  EXPECT_EQ(attempted, Lines({"complete", "complete"}));
}

TEST_P(FailedEventTest, AClientIsRefused) {
  handler_failures_left = 1;
  EXPECT_EQ(agent_.connect().close_code(), 1011U);
  EXPECT_FALSE(agent_.connect().closed());
}

TEST_P(FailedEventTest, AStateIsRejected) {
  auto client = agent_.connect();
  handler_failures_left = 1;
  client.set_state(5);
  EXPECT_EQ(client.errors(), Lines({"State update rejected"}));
  EXPECT_EQ(agent_.state(), Json());
}

}  // namespace
