// Calls of tools that a model asks for, on the mock host.
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
  static void methods(Methods<Acts>& m) {
    chat_methods(m);
    m.add("go_on", &Acts::go_on);
    m.add("is_stable", &Acts::is_stable);
  }
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

// Some servers number the calls of each answer anew.
TEST_P(ToolsTest, ACallWithAnIdOfAnEarlierStepIsACallOfItsOwn) {
  auto agent = host.create<Acts>("a", model.options());
  Scripted call = asks("act1", {{"n", 1}});
  call.says[0].id = "0";
  for (const int n : {1, 2}) {
    call.says[0].input = {{"n", n}};
    model.then(call);
  }
  model.then({"Done."});
  ChatClient client(agent);
  client.say("r1", "act");
  wait(seconds(15));
  ASSERT_EQ(model.requests().size(), 2U);
  agent.kill();
  wait(seconds(60));
  const Json stored = transcript_of(agent)[1];
  EXPECT_EQ(text_of(stored), "Done.");
  std::vector<std::pair<std::string, Json>> calls;
  for (const Json& part : stored.at("parts"))
    if (part.contains("toolCallId")) calls.emplace_back(part.at("toolCallId"), part.at("input"));
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_NE(calls[0].first, calls[1].first);
  EXPECT_EQ(calls[1].second, Json({{"n", 2}}));
  EXPECT_EQ(agent.sql("SELECT count(DISTINCT text), count(*) FROM notes WHERE what = 'run'"),
            Json::array({Json::array({2, 3})}));
}

TEST_P(ToolsTest, ACallOfATurnThatIsGivenUpBeforeItHasBegunWasNotExecuted) {
  auto agent = make({{"recovery", false}});
  Scripted call = asks("send", {{"id", "o1"}});
  call.says.push_back({.text = "I send it."});
  call.says.push_back({.text = "Now."});
  call.between = seconds(5);
  model.then(call);
  ChatClient client(agent);
  client.say("r1", "send o1");
  wait(seconds(12));
  agent.kill();
  wait(seconds(60));
  EXPECT_EQ(agent.call("notes", "send"), Json::array());
  const Json stored = transcript_of(agent)[1];
  Json error;
  for (const Json& part : stored.at("parts"))
    if (part.contains("toolCallId")) error = part.at("errorText");
  // Of Chat Completions no input is whole before the end.
  const bool is_whole = model.dialect() != "chat-completions";
  EXPECT_EQ(error, is_whole ? "The call was not executed."
                            : "The answer was cut off before the call was complete.");
}

// However a turn ends, a call that it had begun is over: nothing begins it again.
TEST_P(ToolsTest, C31_ACallOfATurnThatIsGivenUpIsNotBegunByALaterOne) {
  struct Row {
    Json options;
    bool goes_on;  // the same answer, and not with a message
  };
  for (const Row& row : {Row{{{"recovery", false}}, true}, Row{{{"recovery", false}}, false},
                         Row{{{"proceed", false}}, true}, Row{{{"proceed", false}}, false}}) {
    SCOPED_TRACE(to_text(row.options) + (row.goes_on ? " goes on" : ""));
    testing::Host own;
    ScriptedModel scripted(own, GetParam());
    Json options = scripted.options();
    options.update(row.options);
    auto agent = own.create<Acts>("a", options);
    const std::string name = "act" + std::to_string(static_cast<int>(Effect::kUnsafe));
    scripted.then(asks(name, {{"n", 1}}));
    scripted.then({"I cannot tell."});
    ChatClient client(agent);
    // That a client has a tool of this name, too, makes it no call of the client.
    const Json tools = row.options.contains("recovery") ? Json::array({{{"name", name}}}) : Json();
    client.ask("r1", Json::array({user_message("u-r1", "act")}), {{"clientTools", tools}});
    own.advance(seconds(3));
    agent.kill();
    ChatClient back(agent);
    own.advance(seconds(60));
    EXPECT_EQ(scripted.requests().size(), 1U);
    EXPECT_EQ(agent.call("is_stable", 0), true);
    if (row.goes_on)
      agent.call("go_on");
    else
      back.say("r2", "and now?");
    own.advance(seconds(60));
    EXPECT_EQ(agent.sql("SELECT count(*) FROM notes WHERE what = 'run'")[0][0], 1);
    ASSERT_EQ(scripted.requests().size(), 2U);
    EXPECT_NE(scripted.requests()[1].body.find("may have been executed; verify"),
              std::string::npos);
  }
}

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
