// Calls of the model, on the mock host.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::seconds;

class ModelCallTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, ModelCallTest, ::testing::ValuesIn(ScriptedModel::kDialects),
                         provider_name);

TEST_P(ModelCallTest, RefusalsBeforeAnAnswerAreRetriedOrEndTheTurn) {
  auto agent = make();
  Scripted busy;
  busy.status = 429;
  busy.error = R"({"error":{"message":"slow down","type":"rate_limit"}})";
  busy.headers = {{"retry-after", "7"}};
  model.then(busy);
  model.then({"ok"});
  Scripted refused;
  refused.status = 401;
  refused.error = R"({"error":{"message":"bad key sk-123"}})";
  model.then(refused);
  ChatClient client(agent);
  client.say("r1", "hi");
  host.advance(seconds(6));
  EXPECT_EQ(model.requests().size(), 1U);
  host.advance(seconds(3));
  client.read();
  EXPECT_EQ(client.shown("r1"), "ok");
  client.say("r2", "again");
  host.advance(seconds(100));
  client.read();
  EXPECT_EQ(model.requests().size(), 3U);
  const Json done = client.done("r2");
  EXPECT_EQ(done.at("outcome"), "error");
  EXPECT_EQ(done.at("body"), client_text(FailureKind::kAuth));
}

TEST_P(ModelCallTest, ACutAnswerGoesOnInTheSameTextAndCountsAsTwoCalls) {
  auto agent = make();
  Scripted cut;
  cut.says = {{.text = "one "}, {.text = "two "}};
  cut.is_cut = true;
  model.then(cut);
  model.then({"three"});
  ChatClient client(agent);
  client.say("r1", "count");
  host.advance(seconds(60));
  client.read();
  EXPECT_EQ(client.shown("r1"), "one two three");
  EXPECT_EQ(model.requests().size(), 2U);
  const Json stored = transcript_of(agent);
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_EQ(text_of(stored[1]), "one two three");
  EXPECT_EQ(client.done("r1").at("outcome"), "completed");
  const auto recovering = client.frames("cf_agent_chat_recovering");
  ASSERT_EQ(recovering.size(), 2U);
  EXPECT_EQ(recovering[0].at("recovering"), true);
  EXPECT_EQ(recovering[1].at("recovering"), false);
}

class BackgroundTest : public Conversation {
 protected:
  BackgroundTest() : Conversation("openai-responses") {}
};

TEST_F(BackgroundTest, AfterAKillTheRestIsFetchedAndNothingIsPaidTwice) {
  auto agent = make({{"background", true}});
  model.then(says({"one ", "two ", "three ", "four"}, seconds(10)));
  ChatClient client(agent);
  client.say("r1", "count");
  wait(seconds(35));
  agent.kill();
  wait(seconds(120));
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one two three four");
  ASSERT_EQ(model.requests().size(), 2U);
  EXPECT_EQ(model.requests()[1].method, "GET");
  EXPECT_NE(model.requests()[1].url.find("/responses/resp_1?stream=true&starting_after="),
            std::string::npos);
  EXPECT_EQ(agent.call("notes", "recovery").size(), 1U);
}

TEST_F(BackgroundTest, StopEndsTheAnswerAtTheProvider) {
  auto agent = make({{"background", true}});
  model.then(says({"one ", "two "}, seconds(10)));
  ChatClient client(agent);
  client.say("r1", "count");
  wait(seconds(25));
  client.send({{"type", "cf_agent_chat_request_cancel"}, {"id", "r1"}});
  wait(seconds(1));
  ASSERT_EQ(model.requests().size(), 2U);
  EXPECT_EQ(model.requests()[1].method, "POST");
  EXPECT_TRUE(model.requests()[1].url.ends_with("/responses/resp_1/cancel"));
}

std::size_t cancels(const ScriptedModel& model) {
  return static_cast<std::size_t>(std::ranges::count_if(
      model.requests(), [](const auto& sent) { return sent.url.ends_with("/resp_1/cancel"); }));
}

TEST_F(BackgroundTest, AStopThatAKillHasCutReachesTheProvider) {
  auto agent = make({{"background", true}});
  model.cancel_takes = seconds(5);
  model.then(says({"one ", "two ", "three "}, seconds(10)));
  ChatClient client(agent);
  client.say("r1", "count");
  wait(seconds(25));
  client.send({{"type", "cf_agent_chat_request_cancel"}, {"id", "r1"}});
  wait(seconds(1));
  EXPECT_EQ(cancels(model), 1U);
  agent.kill();
  wait(seconds(60));
  EXPECT_EQ(cancels(model), 2U);
  EXPECT_EQ(model.requests().size(), 3U);
  EXPECT_EQ(agent.call("notes", "end"), Json::array({"aborted"}));
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one ");
  EXPECT_EQ(agent.call("unsettled"), 0);
}

Json polled(const std::string& status, const std::string& text) {
  return {{"id", "resp_1"},
          {"status", status},
          {"output",
           Json::array({{{"type", "message"},
                         {"status", status},
                         {"content", Json::array({{{"type", "output_text"}, {"text", text}}})}}})}};
}

TEST_F(BackgroundTest, APollThatIsNotOverIsAskedAgainAfterAKill) {
  auto agent = make({{"background", true}});
  model.then(cut(says({"one "}, seconds(1))));
  model.polls = {polled("in_progress", "one two "), polled("completed", "one two three")};
  ChatClient client(agent);
  client.say("r1", "count");
  const auto polls = [&] {
    return std::ranges::count_if(model.requests(), [](const auto& sent) {
      return sent.method == "GET" && sent.url.ends_with("/resp_1");
    });
  };
  for (int i = 0; i < 600 && polls() == 0; ++i) wait(std::chrono::milliseconds(100));
  ASSERT_EQ(polls(), 1);
  agent.kill();
  wait(seconds(60));
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one two three");
  EXPECT_EQ(agent.call("notes", "end"), Json::array({"completed"}));
}

TEST_F(BackgroundTest, AStopBetweenTwoPollsReachesTheProvider) {
  auto agent = make({{"background", true}});
  model.then(cut(says({"one "}, seconds(1))));
  model.polls = {polled("in_progress", "one two ")};
  ChatClient client(agent);
  client.say("r1", "count");
  wait(seconds(30));
  client.send({{"type", "cf_agent_chat_request_cancel"}, {"id", "r1"}});
  wait(seconds(5));
  EXPECT_EQ(cancels(model), 1U);
  client.read();
  EXPECT_EQ(client.done("r1").at("outcome"), "aborted");
}

class CostTest : public OneConversation {};

TEST_F(CostTest, TheLedgerHasTheTokensThatAreUsed) {
  auto agent = make();
  model.then({"ok"});
  ChatClient client(agent);
  client.say("r1", "hi");
  wait(seconds(1));
  EXPECT_EQ(agent.call("costs"), Json::array({15}));
}

class StallTest : public OneConversation {};

TEST_F(StallTest, AnAnswerWithoutChunksIsTakenAsCut) {
  auto agent = make({{"stall_timeout_ms", 20'000}});
  model.then(says({"one ", "two ", "three"}, seconds(60)));
  model.then({"and the rest"});
  ChatClient client(agent);
  client.say("r1", "count");
  wait(seconds(120));
  client.read();
  EXPECT_EQ(client.shown("r1"), "one and the rest");
  EXPECT_EQ(model.requests().size(), 2U);
  EXPECT_EQ(agent.call("notes", "recovery"), Json::array({"continue 1 one "}));
}

TEST_F(StallTest, AnAnswerThatHadArrivedIsUsed) {
  auto agent = make();
  model.then({"whole"});
  ChatClient client(agent);
  client.say("r1", "hi");
  agent.kill();  // before time has passed
  wait(seconds(60));
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "whole");
  EXPECT_EQ(model.requests().size(), 1U);
}

class CutAgainTest : public OneConversation {};

TEST_F(CutAgainTest, WhatWasSaidBeforeStaysWhateverTheNextCallBrings) {
  Scripted thinks;
  thinks.says.push_back({.reasoning = "hm"});
  for (const Scripted& second : {cut(thinks), cut(says({}))}) {
    testing::Host own;
    ScriptedModel scripted(own, "chat-completions");
    auto agent = own.create<Support>("a", scripted.options());
    scripted.then(cut(says({"one ", "two "})));
    scripted.then(second);
    scripted.then({"three"});
    ChatClient client(agent);
    client.say("r1", "count");
    own.advance(seconds(100));
    client.read();
    EXPECT_EQ(client.shown("r1"), "one two three");
    int texts = 0;
    const Json all = transcript_of(agent)[1].at("parts");
    for (const Json& part : all)
      if (part.at("type") == "text") ++texts;
    EXPECT_EQ(texts, 1);
  }
}

TEST_F(CutAgainTest, ATextThatTheHookDropsIsMadeAnew) {
  testing::Host own;
  ScriptedModel scripted(own, "openai-responses");
  Json options = scripted.options();
  options.update({{"background", true}, {"persist", false}});
  auto agent = own.create<Support>("a", options);
  scripted.then(says({"one ", "two ", "three"}, seconds(10)));
  ChatClient client(agent);
  client.say("r1", "count");
  own.advance(seconds(35));
  agent.kill();
  own.advance(seconds(120));
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one two three");
}

TEST_F(CutAgainTest, ALargeInputOfAToolIsNoError) {
  auto agent = make();
  model.then(asks("look", {{"id", std::string(70'000, 'x')}}));
  model.then({"ok"});
  ChatClient client(agent);
  client.say("r1", "hi");
  wait(seconds(1));
  ASSERT_EQ(model.requests().size(), 2U);
  EXPECT_NE(model.requests()[1].body.find("500"), std::string::npos);
}

}  // namespace
}  // namespace hearth::chat
