// A class that is a ChatAgent.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <tuple>

namespace hearth::chat {
namespace {

class Forgetful : public ChatAgent {
 public:
  static void methods(Methods<Forgetful>& /*m*/) {}
};

TEST(ChatAgentTest, AClassWithoutChatMethodsDoesNotStart) {
  testing::Host host;
  try {
    host.create<Forgetful>("a");
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("call chat_methods(m)"), std::string::npos);
  }
}

class Plain : public ChatAgent {
 public:
  static void methods(Methods<Plain>& m) { chat_methods(m); }
  Task<Response> on_other_request(const Request& request) override {
    co_return Response::text(request.method());
  }
  Task<void> on_other_message(Connection client, Message message) override {
    client.send("you said " + message.text());
    return {};
  }
};

TEST(ChatAgentTest, WhatIsNotOfTheChatGoesToTheAuthor) {
  testing::Host host;
  auto agent = host.create<Plain>("a");
  EXPECT_EQ(agent.request("POST", "/agents/plain/a/other").body, "POST");
  EXPECT_EQ(agent.request("GET", "/agents/plain/a/get-messages?token=x").body, "[]");
  auto client = agent.connect();
  std::ignore = client.take_received();  // the transcript
  client.send("hello");
  client.send(R"({"type":"mine"})");
  ASSERT_EQ(client.received().size(), 2U);
  EXPECT_EQ(client.received()[0], "you said hello");
  EXPECT_EQ(client.received()[1], R"(you said {"type":"mine"})");
}

class AgentBelowTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, AgentBelowTest, each_dialect(), provider_name);

TEST_P(AgentBelowTest, C4_ItHasATranscriptOfItsOwnAndOtherPathsAreNone) {
  auto above = host.create<Support>("a", model.options());
  auto below = above.create_below<Support>("b", model.options());
  model.then({"hello"});
  ChatClient client(below);
  const std::string path = "/agents/support/a/sub/support/b/";
  EXPECT_EQ(below.request("GET", path + "get-messages").body, "[]");
  client.say("r1", "hi");
  host.advance(std::chrono::seconds(1));
  const Json stored = below.request("GET", path + "get-messages?token=x").json();
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_EQ(text_of(stored[0]), "hi");
  EXPECT_EQ(text_of(stored[1]), "hello");
  EXPECT_EQ(transcript_of(above), Json::array());
  for (const char* const other : {"", "get-message", "get-messages/1", "messages"}) {
    EXPECT_EQ(below.request("GET", path + other).status, 404U) << other;
    EXPECT_EQ(above.request("GET", std::string("/agents/support/a/") + other).status, 404U)
        << other;
  }
  EXPECT_EQ(below.request("POST", path + "get-messages").status, 404U);
}

}  // namespace
}  // namespace hearth::chat
