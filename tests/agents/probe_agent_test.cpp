// The probe does what its header says; tests of the server rely on it.

#include "probe_agent.cpp"  // NOLINT(bugprone-suspicious-include)

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace {

using hearth::Json;
using hearth::testing::Host;

class ProbeAgentTest : public ::testing::Test {
 protected:
  Host host_;
  hearth::testing::AgentHandle agent_ = host_.create<ProbeAgent>("p");
};

TEST_F(ProbeAgentTest, QueriesDecideHowAConnectionGoes) {
  EXPECT_TRUE(agent_.connect("readonly=1").readonly());
  EXPECT_TRUE(agent_.connect("protocol=0").state().is_null());
  EXPECT_EQ(agent_.connect("tag=x", "me").call("tags"), Json({"me", "x"}));
  EXPECT_EQ(agent_.connect("refuse=1").close_code(), 4403U);
  EXPECT_EQ(agent_.connect("throw_connecting=1").close_code(), 1011U);
  EXPECT_EQ(agent_.connect("fail_connect=1").close_code(), 1011U);
  auto asked = agent_.connect("close=4001");
  EXPECT_EQ(asked.close_code(), 4001U);
  EXPECT_EQ(asked.close_reason(), "asked");
  EXPECT_EQ(agent_.connect("hello=1").take_received().at(0), "hello");
}

TEST_F(ProbeAgentTest, MessagesWaitForASlowConnect) {
  auto client = agent_.connect("slow_connect=100&hello=1");
  client.send("early");
  EXPECT_TRUE(client.take_received().empty());
  host_.advance(std::chrono::milliseconds(100));
  const auto frames = client.take_received();
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0], "hello");
  EXPECT_EQ(frames[1], "early");
}

TEST_F(ProbeAgentTest, AMessageThatFailsIsLoggedAndTheClientStays) {
  auto client = agent_.connect();
  client.send("throw");
  EXPECT_EQ(host_.log().back(), "error on_message failed: on_message failed as asked");
  client.send("still here");
  EXPECT_EQ(client.take_received().at(0), "still here");
}

TEST_F(ProbeAgentTest, MethodsAnswerOrFailAsTheyAreNamed) {
  EXPECT_EQ(agent_.call("add", 1, 2), 3);
  EXPECT_FALSE(agent_.start("nothing").has_value());
  EXPECT_TRUE(agent_.start("null_value").has_value());
  EXPECT_EQ(agent_.start("fail", "because").error(), "because");
  EXPECT_EQ(agent_.start("fail_oddly").error(), "Unknown error occurred");
  EXPECT_EQ(agent_.start("fail_with", HEARTH_E_NOT_FOUND, "x").status(), HEARTH_E_NOT_FOUND);
  EXPECT_EQ(agent_.call("big", 1000).get<std::string>().size(), 1000U);
  EXPECT_EQ(agent_.call("offload_add", 20, 22), 42);
  EXPECT_EQ(agent_.call("sql", "SELECT 1 AS one, x'00ff' AS two"),
            Json::array({{{"one", 1}, {"two", "AP8="}}}));
  EXPECT_FALSE(agent_.start("never").done());
}

TEST_F(ProbeAgentTest, AStreamThatFailsKeepsWhatItSent) {
  auto call = agent_.start("stream_fail", 2);
  host_.advance(std::chrono::seconds(1));
  EXPECT_EQ(call.parts(), (std::vector<Json>{1, 2}));
  EXPECT_EQ(call.error(), "stream failed as asked");
}

TEST_F(ProbeAgentTest, AnEvictionMakesANewInstance) {
  const Json before = agent_.call("instance");
  agent_.call("evict");
  EXPECT_FALSE(agent_.is_live());
  EXPECT_NE(agent_.call("instance"), before);
}

TEST_F(ProbeAgentTest, TheJournalKeepsClosesStatesAndEvictions) {
  auto client = agent_.connect({}, "c");
  client.set_state({{"x", 1}});
  client.set_state({{"forbidden", 1}});
  client.close(4005, "bye");
  agent_.evict(hearth::EvictReason::kShutdown, std::chrono::seconds(1));
  EXPECT_EQ(agent_.call("journal"),
            Json({R"(state {"x":1} by c)", "close c 4005 bye clean", "evict 4"}));
}

TEST_F(ProbeAgentTest, ABlobGoesThroughTheDatabaseToTheClient) {
  auto client = agent_.connect();
  EXPECT_EQ(client.call("blob", 300), 300);
  const auto frames = client.take_received();
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_TRUE(frames[0].binary);
  EXPECT_EQ(frames[0].payload.size(), 300U);
}

TEST_F(ProbeAgentTest, RequestsAreDescribedBack) {
  const auto answer = agent_.request("PUT", "/sub?status=201&header=h", "body", {{"x-probe", "v"}});
  EXPECT_EQ(answer.status, 201U);
  EXPECT_EQ(answer.header("X-Probe"), "h");
  EXPECT_EQ(answer.json()["path"], "/agents/agent-under-test/p/sub");
  EXPECT_EQ(answer.json()["body"], "body");
  EXPECT_EQ(answer.json()["x_probe"], "v");
  EXPECT_EQ(agent_.request("GET", "?fail=1").status, 500U);
}

TEST_F(ProbeAgentTest, DestroysItselfAndAnswers) {
  auto client = agent_.connect();
  client.call("set", 1);
  EXPECT_EQ(client.call("destroy"), "destroyed");
  EXPECT_TRUE(agent_.destroyed());
  EXPECT_EQ(client.close_code(), 4410U);
  EXPECT_EQ(agent_.request("GET", "?destroy=1&status=202").status, 202U);
  EXPECT_FALSE(agent_.is_live());
}

}  // namespace
