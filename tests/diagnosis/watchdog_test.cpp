#include "diagnosis/watchdog.hpp"

#include "support/recording_logger.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

namespace hearth::diagnosis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SlowCallsTest : public ::testing::Test {
 protected:
  void look_after(milliseconds time) { calls_.look(now_ += time); }
  [[nodiscard]] std::string counted() const {
    const std::string text = metrics_.text();
    const std::size_t at = text.find("hearth_slow_calls_total{");
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  }

  const CallOwner owner_{"/plugins/a.so", "0123", 7, "Room"};
  testing::RecordingLogger logger_;
  Metrics metrics_;
  int given_up_ = 0;
  SlowCalls calls_{HangLimits{.soft = seconds(1), .hard = seconds(5)}, logger_, metrics_,
                   [this](const RunningCall& call, const std::string& /*stack*/) {
                     EXPECT_EQ(call.owner, &owner_);
                     ++given_up_;
                   }};
  std::chrono::nanoseconds now_{seconds(100)};
};

TEST_F(SlowCallsTest, OneThatTakesLongIsLoggedAndCountedOnce) {
  const CallScope scope(owner_, "message", AgentLabel("lobby"));
  look_after(milliseconds(100));
  look_after(milliseconds(900));
  EXPECT_EQ(logger_.count("agent.call_slow"), 0U) << "it was there for 900 ms only";
  look_after(milliseconds(100));
  look_after(milliseconds(100));
  ASSERT_EQ(logger_.count("agent.call_slow"), 1U);
  EXPECT_EQ(counted(), R"(hearth_slow_calls_total{class="Room"} 1)");
  EXPECT_EQ(given_up_, 0);
}

TEST_F(SlowCallsTest, ItIsToldWhichEventItIsAndOfWhichTrace) {
  const CallEvent event{.number = 9,
                        .trace = {0x0af7651916cd43dd, 0x8448eb211c80319c},
                        .span = 0xb7ad6b7169203331,
                        .flags = 1};
  const CallScope scope(owner_, "call", AgentLabel("lobby"), AgentLabel("add"), {}, event);
  for (int i = 0; i < 3; ++i) look_after(seconds(1));
  ASSERT_EQ(logger_.count("agent.call_slow"), 1U);
  EXPECT_TRUE(logger_.contains("agent=lobby event_kind=call method=add "));
  EXPECT_TRUE(
      logger_.contains(" call=9 trace=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
}

TEST_F(SlowCallsTest, OneThatDoesNotReturnIsGivenUp) {
  const CallScope scope(owner_, "message", AgentLabel("lobby"));
  look_after(seconds(1));
  for (int i = 0; i < 4; ++i) look_after(seconds(1));
  EXPECT_EQ(given_up_, 0);
  look_after(seconds(1));
  EXPECT_EQ(given_up_, 1);
}

TEST_F(SlowCallsTest, ManyShortCallsAreNotOneLongOne) {
  for (int i = 0; i < 20; ++i) {
    const CallScope scope(owner_, "message", AgentLabel("lobby"));
    look_after(milliseconds(900));
  }
  EXPECT_EQ(logger_.count("agent.call_slow"), 0U);
}

TEST_F(SlowCallsTest, AProcessThatWasStoppedWasNotSlow) {
  const CallScope scope(owner_, "message", AgentLabel("lobby"));
  look_after(milliseconds(100));
  look_after(std::chrono::hours(5));
  EXPECT_EQ(given_up_, 0);
}

TEST_F(SlowCallsTest, JobsMayTakeAsLongAsTheyLike) {
  const CallScope scope(owner_, "offload", AgentLabel());
  for (int i = 0; i < 20; ++i) look_after(seconds(1));
  EXPECT_EQ(logger_.count("agent.call_slow"), 0U);
  EXPECT_EQ(given_up_, 0);
}

TEST_F(SlowCallsTest, ItsStackIsTold) {
  SlowCalls calls(
      HangLimits{.soft = seconds(1), .hard = {}}, logger_, metrics_,
      [](const RunningCall&, const std::string&) {},
      [](const RunningCall& call) { return "stack of " + std::string(call.agent()); });
  const CallScope scope(owner_, "message", AgentLabel("lobby"));
  calls.look(seconds(1));
  for (int i = 2; i < 5; ++i) calls.look(seconds(i));
  EXPECT_EQ(logger_.count("stack of lobby"), 1U);
}

TEST(StackTextTest, IsOneLineFromTheInside) {
  EXPECT_EQ(stack_text({}), "");
  EXPECT_EQ(stack_text({1, 0x2f}), "0x1 < 0x2f");
}

TEST(WatchdogTest, LooksByItself) {
  const CallOwner owner("/plugins/a.so", "0123", 7, "Room");
  testing::RecordingLogger logger;
  Metrics metrics;
  std::mutex mutex;
  std::condition_variable came;
  bool given_up = false;
  const CallScope scope(owner, "message", AgentLabel("lobby"));
  const Watchdog watchdog(HangLimits{.soft = milliseconds(0), .hard = milliseconds(1)}, logger,
                          metrics, [&](const RunningCall&, const std::string&) {
                            const std::scoped_lock lock(mutex);
                            given_up = true;
                            came.notify_one();
                          });
  std::unique_lock lock(mutex);
  EXPECT_TRUE(came.wait_for(lock, seconds(30), [&] { return given_up; }));
}

}  // namespace
}  // namespace hearth::diagnosis
