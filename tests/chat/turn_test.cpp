// Turns on the mock host: answers, tools, approvals, with each provider.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::seconds;

class TurnTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, TurnTest, each_dialect(), provider_name);

TEST_P(TurnTest, AnAnswerStreamsToItsSenderAndToOtherTabs) {
  model.then({"Hel", "lo"});
  ChatClient sender(support);
  ChatClient other(support);
  sender.say("r1", "hi");
  wait(seconds(1), sender, other);
  EXPECT_EQ(sender.shown("r1"), "Hello");
  EXPECT_EQ(other.shown("r1"), "Hello");
  EXPECT_EQ(sender.outcome("r1"), "completed");
  EXPECT_EQ(sender.done("r1").at("messageIds"), Json::array({"u-r1"}));
  EXPECT_EQ(sender.snapshots(), 0U);
  EXPECT_EQ(other.snapshots(), 2U);
  EXPECT_EQ(texts_of(support), (std::vector<std::string>{"hi", "Hello"}));
  const Json first =
      parse_json(sender.frames("cf_agent_use_chat_response").at(0).at("body").get<std::string>());
  EXPECT_EQ(first.at("messageId"), transcript_of(support)[1].at("id"));
  EXPECT_EQ(model.requests().size(), 1U);
  EXPECT_EQ(support.call("notes", "end"), Json::array({"completed"}));
}

TEST_P(TurnTest, AToolRunsAndItsResultGoesToTheModel) {
  model.then_all({both(says({"I look. "}), asks("look", {{"id", "o1"}})), says({"It costs 5."})});
  ChatClient client = talk(support, "what does o1 cost?", seconds(1));
  EXPECT_EQ(client.shown("r1"), "I look. It costs 5.");
  ASSERT_EQ(model.requests().size(), 2U);
  EXPECT_TRUE(model.asked_with(1, "500"));
  EXPECT_EQ(client.outcome("r1"), "completed");
}

TEST_P(TurnTest, AnApprovalSurvivesARestartAndRunsTheToolOnce) {
  model.then_all({asks("refund", {{"id", "o1"}, {"cents", 5}}), says({"Refunded."})});
  {
    ChatClient client = talk(support, "refund o1", seconds(1));
    EXPECT_EQ(client.outcome("r1"), "completed");
  }
  support.kill();
  host.advance(std::chrono::hours(24));
  EXPECT_EQ(support.call("notes", "refund"), Json::array());
  const Json asked = transcript_of(support)[1].at("parts").back();
  EXPECT_EQ(asked.at("state"), "approval-requested");
  ChatClient client(support, "back");
  client.approve(asked.at("toolCallId"), true);
  client.resume();
  wait(seconds(2), client);
  wait(seconds(2), client);
  EXPECT_EQ(support.call("notes", "refund"), Json::array({"o1"}));
  EXPECT_EQ(texts_of(support), (std::vector<std::string>{"refund o1", "Refunded."}));
  EXPECT_EQ(model.requests().size(), 2U);
}

TEST_P(TurnTest, ADeniedCallHasAResultForTheModel) {
  model.then_all({asks("refund", {{"id", "o1"}, {"cents", 5}}), says({"As you like."})});
  ChatClient client = talk(support, "refund o1", seconds(1));
  client.approve(transcript_of(support)[1].at("parts").back().at("toolCallId"), false);
  host.advance(seconds(2));
  EXPECT_EQ(support.call("notes", "refund"), Json::array());
  EXPECT_EQ(text_of(transcript_of(support)[1]), "As you like.");
}

TEST_P(TurnTest, AToolOfTheClientContinuesInTheSameMessage) {
  const Scripted calls =
      both(both(asks("where", {{"a", 1}}), asks("where", {{"a", 2}})), asks("where", {{"a", 3}}));
  model.then_all({calls, says({"You are in Rome."})});
  ChatClient client(support);
  client.ask_where("r1", "where am I?");
  wait(seconds(1), client);
  EXPECT_EQ(client.outcome("r1"), "completed");
  const std::vector<Json> asked = calls_of(transcript_of(support)[1]);
  ASSERT_EQ(asked.size(), 3U);
  for (const Json& call : asked) {
    const std::string id = call.at("toolCallId");
    EXPECT_EQ(model.requests().size(), 1U);
    client.answer(id, {{"city", "Rome"}});
    client.answer(id, {{"city", "Paris"}});  // the first one stays
    host.advance(seconds(1));
  }
  client.resume();
  host.advance(seconds(1));
  EXPECT_EQ(model.requests().size(), 2U);
  EXPECT_FALSE(model.asked_with(1, "Paris"));
  EXPECT_EQ(texts_of(support), (std::vector<std::string>{"where am I?", "You are in Rome."}));
}

// What a provider has sealed in its thoughts comes from a stream, is in the table over a kill, and
// goes into the next request: of Anthropic. OpenAI refuses what it made for another request.
TEST(SealTest, C16_SealsOfAnthropicGoBackAndThoseOfOpenAiAreNotStored) {
  for (const char* const dialect : {"anthropic", "openai-responses"}) {
    SCOPED_TRACE(dialect);
    Stage own(dialect);
    auto agent = own.make();
    Scripted thinks;
    thinks.says = {{.reasoning = "hm", .seal = "sealed-1"}, {.seal = "sealed-2"}, {.text = "one"}};
    own.model.then_all({thinks, says({"two"})});
    ChatClient client = own.talk(agent, "count", seconds(1));
    std::string streamed;
    for (const Json& frame : client.frames("cf_agent_use_chat_response"))
      streamed += frame.value("body", "");
    agent.kill();
    ChatClient back(agent);
    own.say(back, "r2", "go on", seconds(1));
    EXPECT_EQ(back.shown("r2"), "two");
    const std::string stored = to_text(transcript_of(agent));
    ASSERT_EQ(own.model.requests().size(), 2U);
    const bool is_kept = std::string(dialect) == "anthropic";
    for (const char* const seal : {"sealed-1", "sealed-2"}) {
      EXPECT_NE(streamed.find(seal), std::string::npos) << seal;
      EXPECT_EQ(stored.find(seal) != std::string::npos, is_kept) << seal;
      EXPECT_EQ(own.model.asked_with(1, seal), is_kept) << seal;
    }
    EXPECT_EQ(streamed.find("itemId") != std::string::npos, !is_kept);
    EXPECT_EQ(stored.find("itemId"), std::string::npos);
    EXPECT_FALSE(own.model.asked_with(1, "item_"));
  }
}

}  // namespace
}  // namespace hearth::chat
