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

class BudgetTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, BudgetTest, ::testing::ValuesIn(ScriptedModel::kDialects),
                         provider_name);

TEST_P(BudgetTest, ALimitOfTokensEndsTheTurnBeforeTheCall) {
  auto agent = make({{"budget", {{"day", {{"tokens", 2'300}}}}}, {"max_output_tokens", 500}});
  Scripted answer = says({"ok"});
  answer.input_tokens = 900;
  answer.output_tokens = 300;
  model.then(answer);
  ChatClient client(agent);
  client.say("r1", "hi");
  wait(seconds(1));
  agent.kill();  // what is spent is kept
  ChatClient back(agent);
  back.say("r2", "hi");
  wait(seconds(1));
  back.read();
  EXPECT_EQ(back.done("r2").at("outcome"), "completed");
  back.say("r3", "hi");
  wait(seconds(1));
  back.read();
  EXPECT_EQ(back.done("r3").at("outcome"), "error");
  EXPECT_EQ(back.done("r3").at("body"), "This chat has reached its daily limit of tokens (2300).");
  EXPECT_EQ(model.requests().size(), 2U);
  wait(std::chrono::hours(25));
  back.say("r4", "hi");
  wait(seconds(1));
  back.read();
  EXPECT_EQ(back.done("r4").at("outcome"), "completed");
}

TEST_P(BudgetTest, C45_EachLimitEndsTheTurnBeforeItsSecondCall) {
  const Json price{{"input", 1000}, {"output", 2000}};
  const std::vector<std::pair<Json, std::string>> rows = {
      {{{"turn", {{"calls", 1}}}}, "This answer has reached its limit of calls to the model (1)."},
      {{{"turn", {{"tokens", 1'300}}}}, "This answer has reached its limit of tokens (1300)."},
      {{{"turn", {{"cost", 1.9}}}, {"price", price}},
       "This answer has reached its limit of cost (1.9)."},
      {{{"day", {{"calls", 1}}}},
       "This chat has reached its daily limit of calls to the model (1)."},
      {{{"day", {{"cost", 1.9}}}, {"price", price}},
       "This chat has reached its daily limit of cost (1.9)."},
  };
  for (const auto& [budget, refusal] : rows) {
    SCOPED_TRACE(refusal);
    testing::Host own;
    ScriptedModel scripted(own, GetParam());
    Json options = scripted.options();
    options.update({{"budget", budget}, {"max_output_tokens", 500}});
    auto agent = own.create<Support>("a", options);
    Scripted call = asks("look", {{"id", "o1"}});
    call.input_tokens = 900;
    call.output_tokens = 300;
    scripted.then(call);
    ChatClient client(agent);
    client.say("r1", "hi");
    own.advance(seconds(1));
    client.read();
    EXPECT_EQ(client.done("r1").at("outcome"), "error");
    EXPECT_EQ(client.done("r1").at("body"), refusal);
    EXPECT_EQ(scripted.requests().size(), 1U);
    EXPECT_EQ(agent.call("notes", "error"), Json::array({"budget"}));
  }
}

// Without a usage a call counts as it was reserved.
TEST_P(BudgetTest, C45_TheOutputOfACallWithoutABoundIsReservedToo) {
  auto agent = make({{"budget", {{"turn", {{"tokens", 10'000}}}}}});
  for (int i = 0; i < 5; ++i) model.then(cut(says({"one "})));
  ChatClient client(agent);
  client.say("r1", "hi");
  wait(std::chrono::hours(1));
  client.read();
  EXPECT_EQ(client.done("r1").at("body"), "This answer has reached its limit of tokens (10000).");
  EXPECT_EQ(model.requests().size(), 2U);
}

TEST_P(BudgetTest, C45_TheNextMessageOfADayThatIsUsedUpIsRefusedUntilTomorrow) {
  auto agent = make({{"budget", {{"day", {{"calls", 1}}}}}});
  model.then({"A cat."});
  ChatClient client(agent);
  client.say("r1", "What is it?");
  wait(seconds(1));
  client.say("r2", "Are you sure?");
  wait(seconds(1));
  client.read();
  EXPECT_EQ(client.done("r2").at("body"),
            "This chat has reached its daily limit of calls to the model (1).");
  wait(std::chrono::hours(24));
  model.then({"Yes."});
  client.say("r3", "And now?");
  wait(seconds(1));
  client.read();
  EXPECT_EQ(client.shown("r3"), "Yes.");
}

TEST_P(BudgetTest, APictureIsNoMegabyteOfText) {
  auto agent = make({{"context_tokens", 32'768}, {"budget", {{"day", {{"tokens", 50'000}}}}}});
  model.then({"A cat."});
  ChatClient client(agent);
  client.say("r1", "Look at this.");
  wait(seconds(1));
  Json picture = user_message("u-2", "What is it?");
  picture["parts"].push_back({{"type", "file"},
                              {"mediaType", "image/png"},
                              {"url", "data:image/png;base64," + std::string(400'000, 'A')}});
  client.ask("r2", Json::array({picture}));
  wait(seconds(1));
  client.say("r3", "Are you sure?");
  wait(seconds(1));
  client.read();
  EXPECT_EQ(client.done("r3").at("outcome"), "completed");
  ASSERT_EQ(model.requests().size(), 3U);
  for (const char* const said : {"Look at this.", "What is it?", "AAAA", "Are you sure?"})
    EXPECT_NE(model.requests()[2].body.find(said), std::string::npos) << said;
}

TEST_P(BudgetTest, ATurnHasAtMostSoManySteps) {
  auto agent = make({{"max_steps", 3}});
  model.then(asks("look", {{"id", "o1"}}));  // again and again
  ChatClient client(agent);
  client.say("r1", "hi");
  wait(seconds(1));
  client.read();
  EXPECT_EQ(model.requests().size(), 3U);
  EXPECT_EQ(client.done("r1").at("outcome"), "completed");
}

class ToolsTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, ToolsTest, ::testing::ValuesIn(ScriptedModel::kDialects),
                         provider_name);

TEST_P(ToolsTest, AnUnsafeToolThatMayHaveRunIsNotRunAgain) {
  auto agent = make();
  model.then(asks("send", {{"id", "o1"}}));
  model.then({"I cannot tell."});
  ChatClient client(agent);
  client.say("r1", "send o1");
  wait(seconds(3));
  agent.kill();
  wait(seconds(60));
  EXPECT_EQ(agent.call("notes", "send"), Json::array({"o1"}));
  ASSERT_EQ(model.requests().size(), 2U);
  EXPECT_NE(model.requests()[1].body.find("may have been executed; verify"), std::string::npos);
}

// A tool of each effect, whose runs are noted with their keys.
class Acts : public Support {
 public:
  static constexpr Effect kEffects[] = {Effect::kRead, Effect::kIdempotent, Effect::kKeyed,
                                        Effect::kUnsafe};
  static void methods(Methods<Acts>& m) { chat_methods(m); }
  Task<void> on_turn(Turn& turn) override {
    for (const Effect effect : kEffects)
      turn.tool("act" + std::to_string(static_cast<int>(effect)), "Acts.", effect, &Acts::act);
    auto generating = turn.generate();
    co_await std::move(generating);
  }
  Task<Json> act(Json /*input*/, ToolCall call) {
    note("run", call.op);
    co_await sleep(std::chrono::seconds(10));
    co_return Json{{"acted", true}};
  }
};

TEST_P(ToolsTest, C31_AfterAKillOnlyAnUnsafeToolDoesNotRunAgainAndAKeyedOneHasItsKeyAgain) {
  for (const Effect effect : Acts::kEffects) {
    SCOPED_TRACE(tool_kind_name(effect));
    testing::Host own;
    ScriptedModel scripted(own, GetParam());
    auto agent = own.create<Acts>("a", scripted.options());
    scripted.then(asks("act" + std::to_string(static_cast<int>(effect)), Json::object()));
    scripted.then({"Done."});
    ChatClient client(agent);
    client.say("r1", "act");
    own.advance(seconds(3));
    agent.kill();
    own.advance(seconds(60));
    const bool is_unsafe = effect == Effect::kUnsafe;
    const Json runs = agent.sql("SELECT text FROM notes WHERE what = 'run' ORDER BY rowid");
    ASSERT_EQ(runs.size(), is_unsafe ? 1U : 2U);
    if (effect == Effect::kKeyed) EXPECT_EQ(runs[0], runs[1]);
    EXPECT_NE(runs[0].at(0), "");
    const Json parts = transcript_of(agent)[1].at("parts");
    const auto call =
        std::ranges::find_if(parts, [](const Json& part) { return part.contains("toolCallId"); });
    ASSERT_NE(call, parts.end());
    EXPECT_EQ(call->at("state"), is_unsafe ? "output-error" : "output-available");
    ASSERT_EQ(scripted.requests().size(), 2U);
    EXPECT_NE(
        scripted.requests()[1].body.find(is_unsafe ? "may have been executed; verify" : "acted"),
        std::string::npos);
    EXPECT_EQ(text_of(transcript_of(agent)[1]), "Done.");
  }
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

TEST_P(ToolsTest, WhatTheModelMakesUpHasAResult) {
  auto agent = make();
  model.then(asks("no_such_tool", {{"a", 1}}));
  model.then(asks("look", {{"cents", "text"}}));
  model.then({"sorry"});
  ChatClient client(agent);
  client.say("r1", "hi");
  wait(seconds(1));
  ASSERT_EQ(model.requests().size(), 3U);
  EXPECT_NE(model.requests()[1].body.find("There is no tool of this name."), std::string::npos);
  EXPECT_NE(model.requests()[2].body.find("input.cents: expected integer"), std::string::npos);
}

}  // namespace
}  // namespace hearth::chat
