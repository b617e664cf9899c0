// The counter on the mock host.

#include "counter/counter.cpp"  // NOLINT(bugprone-suspicious-include): an agent class needs no header

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>
#include <vector>

namespace {

using hearth::Json;
using hearth::testing::CallError;
using hearth::testing::Host;

class CounterTest : public ::testing::Test {
 protected:
  Host host_;
  hearth::testing::AgentHandle agent_ = host_.create<Counter>("a");
};

TEST_F(CounterTest, ANewCounterShowsItsStartAndStoresNothing) {
  agent_ = host_.create<Counter>("b", {{"start", 5}});
  auto client = agent_.connect();
  EXPECT_EQ(client.state(), Json({{"count", 5}}));
  EXPECT_EQ(agent_.call("get"), 5);
}

TEST_F(CounterTest, IncrementAddsOneOrWhatItIsGiven) {
  EXPECT_EQ(agent_.call("increment"), 1);
  EXPECT_EQ(agent_.call("increment", 41), 42);
  EXPECT_EQ(agent_.call("increment", -2), 40);
  EXPECT_EQ(agent_.state(), Json({{"count", 40}}));
}

TEST_F(CounterTest, EveryClientSeesTheNewCount) {
  auto one = agent_.connect();
  auto two = agent_.connect();
  EXPECT_EQ(one.call("increment", 3), 3);
  EXPECT_EQ(one.state(), Json({{"count", 3}}));
  EXPECT_EQ(two.state(), Json({{"count", 3}}));
}

TEST_F(CounterTest, ResetGoesBackToTheStartAndAnswersNothing) {
  agent_ = host_.create<Counter>("b", {{"start", 7}});
  agent_.call("increment");
  const auto reset = agent_.start("reset");
  EXPECT_TRUE(reset.done());
  EXPECT_FALSE(reset.has_value());
  EXPECT_EQ(agent_.call("get"), 7);
}

TEST_F(CounterTest, TheCountSurvivesAnEviction) {
  agent_.call("increment", 9);
  agent_.evict();
  EXPECT_FALSE(agent_.is_live());
  EXPECT_EQ(agent_.call("get"), 9);
}

TEST_F(CounterTest, EchoGivesAnyValueBack) {
  const Json value = {{"list", {1, 2.5, "three", nullptr, true}}, {"text", "a\"\\\n\u00e9"}};
  EXPECT_EQ(agent_.call("echo", value), value);
  EXPECT_EQ(agent_.call("echo"), nullptr);
}

TEST_F(CounterTest, CountToStreamsAtItsPaceAndReturnsTheLast) {
  auto call = agent_.start("count_to", 3, 100);
  EXPECT_EQ(call.parts(), (std::vector<Json>{1}));
  host_.advance(std::chrono::milliseconds(100));
  EXPECT_EQ(call.parts(), (std::vector<Json>{1, 2}));
  EXPECT_FALSE(call.done());
  host_.advance(std::chrono::milliseconds(100));
  EXPECT_EQ(call.parts(), (std::vector<Json>{1, 2, 3}));
  EXPECT_EQ(call.value(), 3);
}

TEST_F(CounterTest, CountToStopsWhenItsClientLeaves) {
  auto client = agent_.connect();
  auto call = client.start("count_to", 1000, 1);
  client.close();
  host_.advance(std::chrono::milliseconds(10));
  EXPECT_EQ(agent_.unfinished(), 0U);
  EXPECT_LT(call.parts().size(), 3U);
}

TEST_F(CounterTest, OtherFramesComeBackUnchanged) {
  auto client = agent_.connect();
  client.send("hello");
  client.send_binary(std::string("\0\xff\x01", 3));
  client.send("");
  const auto frames = client.take_received();
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0], "hello");
  EXPECT_TRUE(frames[1].binary);
  EXPECT_EQ(frames[1].payload, std::string("\0\xff\x01", 3));
  EXPECT_EQ(frames[2], "");
}

TEST_F(CounterTest, HttpReadsAndIncrements) {
  agent_ = host_.create<Counter>("b", {{"start", 2}});
  const auto got = agent_.request("GET");
  EXPECT_EQ(got.status, 200U);
  EXPECT_EQ(got.header("content-type"), "application/json");
  EXPECT_EQ(got.body, R"({"count":2})");
  EXPECT_EQ(agent_.request("POST").body, R"({"count":3})");
  EXPECT_EQ(agent_.call("get"), 3);
  const auto other = agent_.request("DELETE");
  EXPECT_EQ(other.status, 405U);
  EXPECT_EQ(other.header("Allow"), "GET, POST");
  EXPECT_EQ(agent_.call("get"), 3);
}

TEST_F(CounterTest, AnArgumentOfTheWrongTypeIsNamed) {
  const auto call = agent_.start("increment", "two");
  EXPECT_EQ(call.error(), "argument 1: expected integer");
  EXPECT_EQ(call.status(), HEARTH_E_INVALID);
}

TEST_F(CounterTest, ACountThatWouldOverflowIsRefusedAndKept) {
  agent_ = host_.create<Counter>("b", {{"start", std::numeric_limits<std::int64_t>::max()}});
  EXPECT_THROW(agent_.call("increment"), CallError);
  EXPECT_EQ(agent_.call("get"), std::numeric_limits<std::int64_t>::max());
}

TEST_F(CounterTest, AClientCannotSpoilTheState) {
  auto client = agent_.connect();
  client.set_state({{"count", "many"}});
  EXPECT_EQ(client.errors(), std::vector<std::string>{"State update rejected"});
  EXPECT_EQ(agent_.call("increment"), 1);
}

TEST_F(CounterTest, WrongOptionsNameTheirKey) {
  const auto reason = [&](const Json& options) {
    try {
      host_.create<Counter>("b", options);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string("made");
  };
  EXPECT_NE(reason({{"start", "x"}}).find("option start: expected integer"), std::string::npos);
  EXPECT_NE(reason({{"strat", 1}}).find("option strat: unknown; known are start"),
            std::string::npos);
}

}  // namespace
