// Calls of tools that a model asks for, on the mock host.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::seconds;

class ToolsTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, ToolsTest, each_dialect(), provider_name);

TEST_P(ToolsTest, AnUnsafeToolThatMayHaveRunIsNotRunAgain) {
  model.then_all({asks("send", {{"id", "o1"}}), says({"I cannot tell."})});
  ChatClient client = talk(support, "send o1", seconds(3));
  support.kill();
  wait(seconds(60));
  EXPECT_EQ(support.call("notes", "send"), Json::array({"o1"}));
  ASSERT_EQ(model.requests().size(), 2U);
  EXPECT_TRUE(model.asked_with(1, "may have been executed; verify"));
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
  ChatClient client = talk(agent, "act", seconds(15));
  ASSERT_EQ(model.requests().size(), 2U);
  agent.kill();
  wait(seconds(60));
  const Json stored = transcript_of(agent)[1];
  EXPECT_EQ(text_of(stored), "Done.");
  const std::vector<Json> calls = calls_of(stored);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_NE(calls[0].at("toolCallId"), calls[1].at("toolCallId"));
  EXPECT_EQ(calls[1].at("input"), Json({{"n", 2}}));
  EXPECT_EQ(agent.sql("SELECT count(DISTINCT text), count(*) FROM notes WHERE what = 'run'"),
            Json::array({Json::array({2, 3})}));
}

TEST_P(ToolsTest, ACallOfATurnThatIsGivenUpBeforeItHasBegunWasNotExecuted) {
  auto agent = make({{"recovery", false}});
  Scripted call = both(asks("send", {{"id", "o1"}}), says({"I send it.", "Now."}));
  call.between = seconds(5);
  model.then(call);
  ChatClient client = talk(agent, "send o1", seconds(12));
  agent.kill();
  wait(seconds(60));
  EXPECT_EQ(agent.call("notes", "send"), Json::array());
  const Json error = calls_of(transcript_of(agent)[1]).at(0).at("errorText");
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
    Stage own(GetParam());
    auto agent = own.make<Acts>(row.options);
    const std::string name = "act" + std::to_string(static_cast<int>(Effect::kUnsafe));
    own.model.then_all({asks(name, {{"n", 1}}), says({"I cannot tell."})});
    ChatClient client(agent);
    // That a client has a tool of this name, too, makes it no call of the client.
    const Json tools = row.options.contains("recovery") ? Json::array({{{"name", name}}}) : Json();
    client.ask("r1", Json::array({user_message("u-r1", "act")}), {{"clientTools", tools}});
    own.wait(seconds(3));
    agent.kill();
    ChatClient back(agent);
    own.wait(seconds(60));
    EXPECT_EQ(own.model.requests().size(), 1U);
    EXPECT_EQ(agent.call("is_stable", 0), true);
    if (row.goes_on)
      agent.call("go_on");
    else
      back.say("r2", "and now?");
    own.wait(seconds(60));
    EXPECT_EQ(agent.sql("SELECT count(*) FROM notes WHERE what = 'run'")[0][0], 1);
    ASSERT_EQ(own.model.requests().size(), 2U);
    EXPECT_TRUE(own.model.asked_with(1, "may have been executed; verify"));
  }
}

TEST_P(ToolsTest, C31_AfterAKillOnlyAnUnsafeToolDoesNotRunAgainAndAKeyedOneHasItsKeyAgain) {
  for (const Effect effect : Acts::kEffects) {
    SCOPED_TRACE(tool_kind_name(effect));
    Stage own(GetParam());
    auto agent = own.make<Acts>();
    own.model.then(asks("act" + std::to_string(static_cast<int>(effect)), Json::object()));
    own.model.then({"Done."});
    ChatClient client = own.talk(agent, "act", seconds(3));
    agent.kill();
    own.wait(seconds(60));
    const bool is_unsafe = effect == Effect::kUnsafe;
    const Json runs = agent.sql("SELECT text FROM notes WHERE what = 'run' ORDER BY rowid");
    ASSERT_EQ(runs.size(), is_unsafe ? 1U : 2U);
    if (effect == Effect::kKeyed) EXPECT_EQ(runs[0], runs[1]);
    EXPECT_NE(runs[0].at(0), "");
    EXPECT_EQ(calls_of(transcript_of(agent)[1]).at(0).at("state"),
              is_unsafe ? "output-error" : "output-available");
    ASSERT_EQ(own.model.requests().size(), 2U);
    EXPECT_TRUE(own.model.asked_with(1, is_unsafe ? "may have been executed; verify" : "acted"));
    EXPECT_EQ(text_of(transcript_of(agent)[1]), "Done.");
  }
}

TEST_P(ToolsTest, WhatTheModelMakesUpHasAResult) {
  model.then_all(
      {asks("no_such_tool", {{"a", 1}}), asks("look", {{"cents", "text"}}), says({"sorry"})});
  ChatClient client = talk(support, "hi", seconds(1));
  ASSERT_EQ(model.requests().size(), 3U);
  EXPECT_TRUE(model.asked_with(1, "There is no tool of this name."));
  EXPECT_TRUE(model.asked_with(2, "input.cents: expected integer"));
}

}  // namespace
}  // namespace hearth::chat
