// An exception out of a handler is a failure of that handler, whatever code it has: to a host some
// codes mean more.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
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
  Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {
    attempt("recovered");
    settle_fiber(fiber, hearth::FiberOutcome::interrupted());
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
    start_fiber("work", std::move(work));
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
                         ::testing::Values(HEARTH_E_NOT_FOUND, HEARTH_E_GONE, HEARTH_E_UNSUPPORTED,
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
  agent().start_fiber("work", [](FiberContext&) { return 1; }, {.keep_record = true});
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

// ---- on_error -----------------------------------------------------------------------------------

// Everything fails, and callers get the errors.
class Broken : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Broken>& m) {
    m.add("now", &Broken::now_failing);
    m.add("later", &Broken::later);
    m.add("no", &Broken::no);
    m.add("begin", &Broken::begin);
    m.callback("tick", &Broken::now_failing);
    m.callback("no", &Broken::no);
    m.fiber("work", &Broken::work);
  }
  void now_failing() { throw std::runtime_error("broken"); }
  Task<void> later() {
    co_await sleep(milliseconds(1));
    now_failing();
  }
  void no() { throw hearth::Error(HEARTH_E_FORBIDDEN, "not you"); }
  void begin(std::string what) {
    if (what == "fiber") start_fiber("work");
    if (what == "schedule")
      schedule(seconds(0), "tick", {}, {.retry = hearth::RetryOptions{.max_attempts = 1}});
    if (what == "refused schedule")
      schedule(seconds(0), "no", {}, {.retry = hearth::RetryOptions{.max_attempts = 1}});
    if (what == "after") after_turn([this] { now_failing(); });
  }
  Task<void> work(FiberContext& /*fiber*/) {
    now_failing();
    return {};
  }
  Task<void> on_message(hearth::Connection /*client*/, hearth::Message /*message*/) override {
    no();
    return {};
  }
  Task<hearth::Response> on_request(const hearth::Request& /*request*/) override {
    now_failing();
    return hearth::Response();
  }
  void on_error(std::string_view where, const std::exception_ptr& error) override {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& known) {
      told.push_back(std::string(where) + ": " + known.what());
    }
    if (told.size() > 9) throw std::runtime_error("enough");
  }
  void on_connecting(hearth::Connecting& /*client*/) override {
    if (refuses) no();
    if (breaks) now_failing();
  }
  void validate_state(const Json& /*next*/, std::optional<hearth::Connection> source) override {
    if (source) now_failing();
  }
  Lines told;
  bool refuses = false;
  bool breaks = false;
};

TEST(OnErrorTest, HearsOfWhatIsNoAnswerAndChangesNothing) {
  Host host;
  auto agent = host.create<Broken>("a");
  auto client = agent.connect();
  const auto& told = agent.as<Broken>().told;
  const auto fails = [&](const char* method) {
    const auto call = client.start(method);
    host.advance(milliseconds(1));
    return call.error();
  };
  EXPECT_EQ(fails("now"), "broken");
  EXPECT_EQ(fails("later"), "broken");
  EXPECT_EQ(fails("no"), "not you");
  client.send("hello");
  EXPECT_EQ(agent.request("GET").status, 500U);
  client.call("begin", "fiber");
  client.call("begin", "schedule");
  host.advance(seconds(1));
  client.call("begin", "after");
  host.advance(milliseconds(0));
  client.call("begin", "refused schedule");
  host.advance(seconds(1));
  client.set_state(5);
  agent.as<Broken>().refuses = true;
  EXPECT_EQ(agent.connect().close_code(), 4403U);
  agent.as<Broken>().refuses = false;
  agent.as<Broken>().breaks = true;
  EXPECT_EQ(agent.connect().close_code(), 1011U);
  EXPECT_EQ(told, Lines({"now: broken", "later: broken", "on_message: not you",
                         "on_request: broken", "work: broken", "tick: broken",
                         "after_turn(): broken", "no: not you", "on_connecting: broken"}));
  EXPECT_EQ(fails("now"), "broken") << "though on_error throws";
  const auto said = std::ranges::find_if(host.log(), [](const std::string& line) {
    return line.find("on_error failed: enough") != std::string::npos;
  });
  EXPECT_NE(said, host.log().end());
}

}  // namespace
