// Turns on the mock host: answers, tools, approvals, with each provider.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::seconds;

class TurnTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, TurnTest, ::testing::ValuesIn(ScriptedModel::kDialects),
                         provider_name);

TEST_P(TurnTest, AnAnswerStreamsToItsSenderAndToOtherTabs) {
  auto agent = make();
  model.then({"Hel", "lo"});
  ChatClient sender(agent);
  ChatClient other(agent);
  sender.say("r1", "hi");
  host.advance(seconds(1));
  sender.read();
  other.read();
  EXPECT_EQ(sender.shown("r1"), "Hello");
  EXPECT_EQ(other.shown("r1"), "Hello");
  const Json done = sender.done("r1");
  ASSERT_TRUE(done.is_object());
  EXPECT_EQ(done.at("outcome"), "completed");
  EXPECT_EQ(done.at("messageIds"), Json::array({"u-r1"}));
  EXPECT_EQ(sender.snapshots(), 0U);
  EXPECT_EQ(other.snapshots(), 2U);
  const Json stored = transcript_of(agent);
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_EQ(text_of(stored[1]), "Hello");
  const Json first =
      parse_json(sender.frames("cf_agent_use_chat_response").at(0).at("body").get<std::string>());
  EXPECT_EQ(first.at("messageId"), stored[1].at("id"));
  EXPECT_EQ(model.requests().size(), 1U);
  EXPECT_EQ(agent.call("notes", "end"), Json::array({"completed"}));
}

TEST_P(TurnTest, AToolRunsAndItsResultGoesToTheModel) {
  auto agent = make();
  Scripted call;
  call.says = {{.text = "I look. "}, {.tool = "look", .input = {{"id", "o1"}}}};
  model.then(call);
  model.then({"It costs 5."});
  ChatClient client(agent);
  client.say("r1", "what does o1 cost?");
  host.advance(seconds(1));
  client.read();
  EXPECT_EQ(client.shown("r1"), "I look. It costs 5.");
  ASSERT_EQ(model.requests().size(), 2U);
  EXPECT_NE(model.requests()[1].body.find("500"), std::string::npos);
  EXPECT_EQ(client.done("r1").at("outcome"), "completed");
}

TEST_P(TurnTest, AnApprovalSurvivesARestartAndRunsTheToolOnce) {
  auto agent = make();
  Scripted call;
  call.says = {{.tool = "refund", .input = {{"id", "o1"}, {"cents", 5}}}};
  model.then(call);
  model.then({"Refunded."});
  {
    ChatClient client(agent);
    client.say("r1", "refund o1");
    host.advance(seconds(1));
    client.read();
    EXPECT_EQ(client.done("r1").at("outcome"), "completed");
  }
  agent.kill();
  host.advance(std::chrono::hours(24));
  EXPECT_EQ(agent.call("notes", "refund"), Json::array());
  const Json asked = transcript_of(agent)[1].at("parts").back();
  EXPECT_EQ(asked.at("state"), "approval-requested");
  ChatClient client(agent, "back");
  client.approve(asked.at("toolCallId"), true);
  client.resume();
  host.advance(seconds(2));
  client.read();
  host.advance(seconds(2));
  client.read();
  EXPECT_EQ(agent.call("notes", "refund"), Json::array({"o1"}));
  const Json stored = transcript_of(agent);
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_EQ(text_of(stored[1]), "Refunded.");
  EXPECT_EQ(model.requests().size(), 2U);
}

TEST_P(TurnTest, ADeniedCallHasAResultForTheModel) {
  auto agent = make();
  Scripted call;
  call.says = {{.tool = "refund", .input = {{"id", "o1"}, {"cents", 5}}}};
  model.then(call);
  model.then({"As you like."});
  ChatClient client(agent);
  client.say("r1", "refund o1");
  host.advance(seconds(1));
  client.approve(transcript_of(agent)[1].at("parts").back().at("toolCallId"), false);
  host.advance(seconds(2));
  EXPECT_EQ(agent.call("notes", "refund"), Json::array());
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "As you like.");
}

TEST_P(TurnTest, AToolOfTheClientContinuesInTheSameMessage) {
  auto agent = make();
  Scripted calls;
  calls.says = {{.tool = "where", .input = {{"a", 1}}},
                {.tool = "where", .input = {{"a", 2}}},
                {.tool = "where", .input = {{"a", 3}}}};
  model.then(calls);
  model.then({"You are in Rome."});
  ChatClient client(agent);
  client.ask("r1", Json::array({user_message("u1", "where am I?")}),
             {{"clientTools", Json::array({{{"name", "where"}}})}});
  host.advance(seconds(1));
  client.read();
  EXPECT_EQ(client.done("r1").at("outcome"), "completed");
  const Json asked = transcript_of(agent)[1].at("parts");
  std::vector<std::string> ids;
  for (const Json& part : asked)
    if (part.contains("toolCallId")) ids.push_back(part.at("toolCallId"));
  ASSERT_EQ(ids.size(), 3U);
  for (const std::string& id : ids) {
    EXPECT_EQ(model.requests().size(), 1U);
    client.answer(id, {{"city", "Rome"}});
    client.answer(id, {{"city", "Paris"}});  // the first one stays
    host.advance(seconds(1));
  }
  client.resume();
  host.advance(seconds(1));
  EXPECT_EQ(model.requests().size(), 2U);
  EXPECT_EQ(model.requests()[1].body.find("Paris"), std::string::npos);
  const Json stored = transcript_of(agent);
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_EQ(text_of(stored[1]), "You are in Rome.");
}

// What a provider has sealed in its thoughts comes from a stream, is in the table over a kill, and
// goes into the next request: of Anthropic. OpenAI refuses what it made for another request.
TEST(SealTest, C16_SealsOfAnthropicGoBackAndThoseOfOpenAiAreNotStored) {
  for (const char* const dialect : {"anthropic", "openai-responses"}) {
    SCOPED_TRACE(dialect);
    testing::Host host;
    ScriptedModel model(host, dialect);
    auto agent = host.create<Support>("a", model.options());
    Scripted thinks;
    thinks.says = {{.reasoning = "hm", .seal = "sealed-1"}, {.seal = "sealed-2"}, {.text = "one"}};
    model.then(thinks);
    model.then({"two"});
    ChatClient client(agent);
    client.say("r1", "count");
    host.advance(seconds(1));
    client.read();
    std::string streamed;
    for (const Json& frame : client.frames("cf_agent_use_chat_response"))
      streamed += frame.value("body", "");
    agent.kill();
    ChatClient back(agent);
    back.say("r2", "go on");
    host.advance(seconds(1));
    back.read();
    EXPECT_EQ(back.shown("r2"), "two");
    const std::string stored = to_text(transcript_of(agent));
    ASSERT_EQ(model.requests().size(), 2U);
    const bool is_kept = std::string(dialect) == "anthropic";
    for (const char* const seal : {"sealed-1", "sealed-2"}) {
      EXPECT_NE(streamed.find(seal), std::string::npos) << seal;
      EXPECT_EQ(stored.find(seal) != std::string::npos, is_kept) << seal;
      EXPECT_EQ(model.requests()[1].body.find(seal) != std::string::npos, is_kept) << seal;
    }
    EXPECT_EQ(streamed.find("itemId") != std::string::npos, !is_kept);
    EXPECT_EQ(stored.find("itemId"), std::string::npos);
    EXPECT_EQ(model.requests()[1].body.find("item_"), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth::chat
