// Answers that were cut, and whose next call brings one thing or another, on the mock host.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::seconds;

class CutAgainTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, CutAgainTest, each_dialect(), provider_name);

TEST_P(CutAgainTest, WhatWasSaidBeforeStaysWhateverTheNextCallBrings) {
  for (const Scripted& second : {cut(thinks()), cut(says({}))}) {
    Stage own(GetParam());
    auto agent = own.make();
    own.model.then_all({cut(says({"one ", "two "})), second, says({"three"})});
    ChatClient client = own.talk(agent, "count", seconds(100));
    EXPECT_EQ(client.shown("r1"), "one two three");
    int texts = 0;
    const Json all = transcript_of(agent)[1].at("parts");
    for (const Json& part : all)
      if (part.at("type") == "text") ++texts;
    EXPECT_EQ(texts, 1);
  }
}

// In the first step of a turn, and behind one whose tool has a result.
TEST_P(CutAgainTest, ATextThatTheHookDropsIsMadeAnew) {
  for (const bool has_tool : {false, true}) {
    SCOPED_TRACE(has_tool);
    Stage own(GetParam());
    auto agent =
        own.make({{"background", own.model.dialect() == "openai-responses"}, {"persist", false}});
    if (has_tool) own.model.then(asks("look", {{"id", "o1"}}));
    own.model.then(says({"one ", "two ", "three"}, seconds(10)));
    ChatClient client = own.talk(agent, "count", seconds(25));
    agent.kill();
    own.wait(seconds(120));
    const Json stored = transcript_of(agent)[1];
    EXPECT_EQ(text_of(stored), "one two three");
    EXPECT_EQ(agent.call("unsettled"), 0);
    EXPECT_EQ(agent.sql("SELECT json_extract(spent, '$.calls') FROM chat_turns"),
              Json::array({Json::array({has_tool ? 3 : 2})}));
    EXPECT_EQ(calls_of(stored).size(), has_tool ? 1U : 0U);
  }
}

// It was whole in the ledger, but for its last event, or the space behind its one JSON body: of
// that nothing was shown yet that the hook could drop. In the other dialects an answer is whole
// with its last event alone, in the step that settles it.
TEST(WholeAnswerTest, C38_IsUsedUnlessTheHookDropsIt) {
  const auto choice = [](const Json& rest) {
    Json one{{"index", 0}};
    one.update(rest);
    return to_text({{"choices", Json::array({one})}});
  };
  const auto events = [&](const char* text) {
    return event_stream({choice({{"delta", {{"content", text}}}}),
                         choice({{"delta", Json::object()}, {"finish_reason", "stop"}}), "[DONE]"},
                        seconds(10));
  };
  const auto one_body = [&](const char* text) {
    const std::string body = choice({{"message", {{"content", text}}}, {"finish_reason", "stop"}});
    return testing::FetchReply{.headers = {{"content-type", "application/json; charset=utf-8"}},
                               .pieces = {body.substr(0, 20), body.substr(20), " "},
                               .between = seconds(10)};
  };
  using Form = std::function<testing::FetchReply(const char*)>;
  const std::vector<std::tuple<Form, bool, bool>> rows = {{events, true, true},
                                                          {events, false, false},
                                                          {one_body, true, true},
                                                          {one_body, false, true}};
  for (const auto& [form, persist, is_used] : rows) {
    SCOPED_TRACE(persist);
    Stage own("chat-completions");
    auto agent = own.make({{"persist", persist}, {"max_steps", 1}});
    int requests = 0;
    own.host.on_fetch([&](const testing::SentRequest& /*request*/) {
      return form(++requests == 1 ? "one" : "two");
    });
    ChatClient client = own.talk(agent, "count", seconds(15));
    agent.kill();
    own.wait(seconds(120));
    EXPECT_EQ(text_of(transcript_of(agent)[1]), is_used ? "one" : "two");
    EXPECT_EQ(requests, is_used ? 1 : 2);
  }
}

TEST(DroppedCallTest, IsFoundBehindAThousandOtherOperations) {
  Stage own("chat-completions");
  auto agent = own.make({{"hook", "recovery:slow"}, {"max_steps", 9}});
  Scripted calls;
  for (int i = 0; i < 260; ++i) calls.says.push_back({.tool = "look", .input = {{"id", "o1"}}});
  for (int i = 0; i < 4; ++i) own.model.then(calls);
  Scripted slow = says({"one ", "two"});
  slow.between = seconds(10);
  own.model.then(slow);
  ChatClient client = own.talk(agent, "look at all", seconds(5));
  ASSERT_EQ(own.model.requests().size(), 5U);
  agent.kill();
  own.wait(seconds(5));
  ASSERT_EQ(agent.call("unsettled"), 1);
  std::ignore = agent.call("cancel_fibers");
  own.wait(seconds(60));
  EXPECT_EQ(agent.call("unsettled"), 0);
}

// Its last event is missing, but what it has used is known.
TEST(WholeAnswerTest, C45_OfOneThatIsDroppedOnlyWhatItUsedCounts) {
  Stage own("chat-completions");
  auto agent = own.make({{"hook", "recovery:slow"}});
  own.host.on_fetch([&](const testing::SentRequest& /*request*/) {
    return event_stream(
        {R"({"choices":[{"index":0,"delta":{"content":"one"}}]})",
         R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})",
         R"({"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}})", "[DONE]"},
        seconds(10));
  });
  ChatClient client = own.talk(agent, "count", seconds(25));
  agent.kill();
  own.wait(seconds(5));
  std::ignore = agent.call("cancel_fibers");
  own.wait(seconds(60));
  EXPECT_EQ(agent.call("unsettled"), 0);
  EXPECT_EQ(agent.sql("SELECT state, json_extract(spent, '$.calls'), "
                      "json_extract(spent, '$.tokens') FROM chat_turns"),
            Json::array({Json::array({"aborted", 1, 15})}));
  EXPECT_EQ(agent.sql("SELECT json_extract(value, '$.spent.calls'), "
                      "json_extract(value, '$.spent.tokens') FROM cf_agents_kv "
                      "WHERE key = 'hearth.chat.day'"),
            Json::array({Json::array({1, 15})}));
}

// What waits behind generate().
class Waits : public Support {
 public:
  static void methods(Methods<Waits>& m) { chat_methods(m); }
  Task<void> on_turn(Turn& turn) override {
    auto generating = turn.generate();
    co_await std::move(generating);
    co_await sleep(seconds(60));
  }
};

TEST_P(CutAgainTest, ATextThatIsWholeIsNotDropped) {
  for (const bool was_cut : {false, true}) {
    SCOPED_TRACE(was_cut);
    Stage own(GetParam());
    auto agent = own.make<Waits>({{"persist", false}});
    if (was_cut) own.model.then(cut(says({"no"})));
    own.model.then({"one"});
    ChatClient client = own.talk(agent, "count", seconds(15));
    agent.kill();
    own.wait(seconds(200));
    EXPECT_EQ(text_of(transcript_of(agent)[1]), "one");
    EXPECT_EQ(own.model.requests().size(), was_cut ? 2U : 1U);
  }
}

TEST_P(CutAgainTest, ARefusalOfWhichOnlyAPartCameIsAskedForAnew) {
  auto agent = make({{"background", model.dialect() == "openai-responses"}});
  int requests = 0;
  host.on_fetch([&](const testing::SentRequest& /*request*/) {
    return testing::FetchReply{
        .status = ++requests == 1 ? 429U : 400U,
        .headers = {{"Content-Type", "application/json"}},
        .pieces = {R"({"error": {"message": )", R"("slow down", "type": )", R"("x"}})"},
        .between = seconds(10)};
  });
  ChatClient client = talk(agent, "count", seconds(15));
  agent.kill();
  ChatClient back(agent);
  wait(seconds(60), back);
  EXPECT_EQ(requests, 2);
  EXPECT_EQ(back.done("r1").at("body"), client_text(FailureKind::kInvalid));
}

// Whatever cuts the call behind a result: the turn is not over.
TEST_P(CutAgainTest, TheCallBehindAToolIsMadeAgainOrGoesOn) {
  const std::vector<Scripted> rows = {cut(says({})), cut(thinks()), cut(says({"one "})),
                                      says({"one ", "two ", "2 ", "1 "}, seconds(10))};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(i);
    Stage own(GetParam());
    auto agent = own.make();
    own.model.then_all({asks("look", {{"id", "o1"}}), rows[i], says({"three"})});
    ChatClient client = own.talk(agent, "count", seconds(25));
    if (!rows[i].is_cut) agent.kill();  // in the middle
    own.wait(seconds(120));
    EXPECT_TRUE(text_of(transcript_of(agent)[1]).ends_with("three"))
        << to_text(transcript_of(agent)[1]);
    EXPECT_EQ(own.model.requests().size(), 3U);
  }
}

TEST_P(CutAgainTest, ALargeInputOfAToolIsNoError) {
  model.then_all({asks("look", {{"id", std::string(70'000, 'x')}}), says({"ok"})});
  ChatClient client = talk(support, "hi", seconds(1));
  ASSERT_EQ(model.requests().size(), 2U);
  EXPECT_TRUE(model.asked_with(1, "500"));
}

// The result of the tool is in the prompt, so the model answers it: in a step of its own, once.
TEST_P(CutAgainTest, TextBehindACallOfAToolIsNotGoneOnWith) {
  const Scripted asking =
      both(both(says({"I look. "}, seconds(10)), asks("look", {{"id", "o1"}})), says({"x ", "y "}));
  for (const bool is_killed : {false, true}) {
    SCOPED_TRACE(is_killed);
    Stage own(GetParam());
    auto agent = own.make();
    own.model.then_all({is_killed ? asking : cut(asking), says({"It costs 5."})});
    ChatClient client = own.talk(agent, "what does o1 cost?", seconds(35));
    if (is_killed) agent.kill();
    own.wait(seconds(120));
    std::string shape;
    const Json all = transcript_of(agent)[1].at("parts");
    for (const Json& part : all) shape += part.at("type").get<std::string>() + " ";
    EXPECT_TRUE(shape.ends_with("step-start text tool-look text step-start text ")) << shape;
    EXPECT_EQ(all.back().at("text"), "It costs 5.");
    EXPECT_EQ(own.model.requests().size(), 2U);
  }
}

}  // namespace
}  // namespace hearth::chat
