#include "rows.hpp"
#include "support_agent.hpp"

#include <hearth/chat/context.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

Json message(const std::string& id, const std::string& role, const std::string& text) {
  Json message = user_message(id, text);
  message["role"] = role;
  return message;
}

// Three steps, of two parts each.
Json long_answer() {
  Json parts = Json::array();
  for (const char* text : {"one", "two", "three"}) {
    parts.push_back({{"type", "step-start"}});
    parts.push_back({{"type", "text"}, {"text", text}});
  }
  return {{"id", "a2"}, {"role", "assistant"}, {"parts", std::move(parts)}};
}

const Json kHistory =
    Json::array({message("u1", "user", "first"), message("a1", "assistant", "yes"),
                 message("u2", "user", "second")});

TEST(ContextTest, TheTurnsOwnMessagesAndItsLastStepStay) {
  const auto plan = plan_compaction(kHistory, long_answer(), {"u2"}, {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->next.from, "u2");
  EXPECT_EQ(plan->next.answer, "a2");
  EXPECT_EQ(plan->next.parts, 4U);
  ASSERT_EQ(plan->messages.size(), 3U);
  EXPECT_EQ(plan->messages[2].at("parts").size(), 4U);
  // What is left is not covered twice.
  Summary next = plan->next;
  next.text = "s";
  EXPECT_FALSE(plan_compaction(Json::array({kHistory[2]}), long_answer(), {"u2"}, next));
}

TEST(ContextTest, WithoutOwnMessagesTheLastOneOfAUserStays) {
  const auto plan = plan_compaction(kHistory, Json::object(), {}, {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->next.from, "u2");
  EXPECT_EQ(plan->messages.size(), 2U);
  EXPECT_FALSE(plan_compaction(Json::array({kHistory[2]}), Json::object(), {}, {}));
}

TEST(ContextTest, WhatIsCoveredIsLeftOut) {
  std::vector<Json> messages(kHistory.begin(), kHistory.end());
  messages.push_back(long_answer());
  leave_out_covered({.from = "u2", .answer = "a2", .parts = 4, .text = "s"}, messages);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0].at("id"), "u2");
  EXPECT_EQ(messages[1].at("parts").size(), 2U);
  std::vector<Json> newer{kHistory[2]};  // those before it did not fit into the window
  Summary wider;
  wider.from = "u1";
  leave_out_covered(wider, newer);
  EXPECT_EQ(newer.size(), 1U);
}

TEST(ContextTest, TheOldestMessagesAreLeftOutOfALongText) {
  Compaction compaction;
  for (int i = 0; i < 10; ++i)
    compaction.messages.push_back(
        message("m" + std::to_string(i), "user", std::to_string(i) + std::string(99, '.')));
  compaction.earlier = "They have met.";
  compaction.max_bytes = 400;
  const Prompt prompt = summary_prompt(compaction, {.model = "m", .is_resumable = true});
  const std::string text = prompt.messages[0].at("parts")[0].at("text").get<std::string>();
  EXPECT_NE(text.find("They have met."), std::string::npos);
  EXPECT_NE(text.find("left out"), std::string::npos);
  EXPECT_NE(text.find("user: 9."), std::string::npos);
  EXPECT_EQ(text.find("user: 5."), std::string::npos);
  EXPECT_LT(text.size(), 600U);
  EXPECT_FALSE(prompt.options.is_resumable);
  EXPECT_TRUE(prompt.tools.empty());
}

TEST(ContextTest, ResultsOfToolsAreToldAndCut) {
  Json answer = message("a", "assistant", "Let me look.");
  answer["parts"].push_back({{"type", "tool-look"},
                             {"toolCallId", "c"},
                             {"state", "output-available"},
                             {"input", {{"id", "o1"}}},
                             {"output", std::string(100'000, 'x')}});
  Compaction compaction;
  compaction.messages.push_back(answer);
  compaction.max_bytes = 1'000'000;
  const Prompt prompt = summary_prompt(compaction, {});
  const std::string text = prompt.messages[0].at("parts")[0].at("text").get<std::string>();
  EXPECT_NE(text.find(R"((called look with {"id":"o1"}: xxx)"), std::string::npos);
  EXPECT_LT(text.size(), 5'000U);
}

struct DueRow {
  const char* name;
  CallPlan plan;
  ContextOverflow overflow;
  std::int64_t compact_after;
  std::int64_t history_tokens;
  std::string_view reason;
};

CallPlan used(std::int64_t tokens, int compactions = 0) {
  CallPlan plan;
  plan.whole_calls = 1;
  plan.usage.input_tokens = tokens;
  plan.compactions = compactions;
  return plan;
}

ContextOverflow window_of_1000() {
  ContextOverflow overflow;
  overflow.proactive = ProactiveCompaction{.max_input_tokens = 1'000};
  return overflow;
}

class DueTest : public ::testing::TestWithParam<DueRow> {};

TEST_P(DueTest, SaysWhenAndWhy) {
  const DueRow& row = GetParam();
  EXPECT_EQ(compaction_due(row.plan, row.overflow, row.compact_after, row.history_tokens),
            row.reason);
}

CallPlan only_total(std::int64_t tokens) {
  CallPlan plan = used(0);
  plan.usage.input_tokens.reset();
  plan.usage.total_tokens = tokens;
  return plan;
}

INSTANTIATE_TEST_SUITE_P(
    Rows, DueTest,
    ::testing::Values(DueRow{"Off", used(5'000), {}, 0, 9'000, ""},
                      DueRow{"BelowTheHeadroom", used(899), window_of_1000(), 0, 0, ""},
                      DueRow{"AtTheHeadroom", used(900), window_of_1000(), 0, 0, "proactive"},
                      DueRow{"AllTokensWhereThoseOfTheInputAreMissing", only_total(950),
                             window_of_1000(), 0, 0, "proactive"},
                      DueRow{"OnceATurn", used(950, 1), window_of_1000(), 0, 0, ""},
                      DueRow{"ALongHistory", {}, {}, 500, 500, "compact_after"},
                      DueRow{"AShortHistory", {}, {}, 500, 499, ""},
                      DueRow{"NotWithinATurn", used(10), {}, 500, 500, ""}),
    [](const auto& info) { return std::string(info.param.name); });

// ---- turns --------------------------------------------------------------------------------------

using std::chrono::seconds;

class CompactionTest : public Conversation {
 protected:
  // A conversation with a long first message, whose answer was "Noted.".
  testing::AgentHandle talked(const Json& options) {
    auto agent = make(options);
    model.then({"Noted."});
    ChatClient client(agent);
    say(client, "r0", "my dog is " + std::string(3'000, 'x'), seconds(1));
    return agent;
  }
  ChatClient ask_for_name(testing::AgentHandle& agent) {
    return talk(agent, "what is its name?", seconds(5));
  }
};
INSTANTIATE_TEST_SUITE_P(Providers, CompactionTest, each_dialect(), provider_name);

const Json kReactive{{"context_overflow", {{"reactive", true}}}};

Scripted too_long() {
  return refuses(400, "prompt is too long: 210000 tokens > 200000 maximum");
}

TEST_P(CompactionTest, C47_APromptThatIsTooLongIsSentOnceMoreWithASummary) {
  auto agent = talked(kReactive);
  model.then_all({too_long(), says({"They have ", "a dog."}), says({"Rex."})});
  ChatClient client = ask_for_name(agent);
  EXPECT_EQ(client.shown("r1"), "Rex.");
  EXPECT_EQ(client.outcome("r1"), "completed");
  ASSERT_EQ(model.requests().size(), 4U);
  EXPECT_TRUE(model.asked_with(2, "xxx"));  // the summary is made of it
  EXPECT_TRUE(model.asked_with(3, "They have a dog."));
  EXPECT_TRUE(model.asked_with(3, "what is its name?"));
  EXPECT_FALSE(model.asked_with(3, "xxx"));
  EXPECT_EQ(transcript_of(agent).size(), 4U);  // clients see all
  EXPECT_EQ(logged("chat:context:compacted turn=r1 reason=reactive"), 1U);
  // The next turn goes on from the summary.
  model.then({"Yes."});
  say(client, "r2", "sure?", seconds(1));
  EXPECT_TRUE(model.asked_with(4, "They have a dog."));
  EXPECT_TRUE(model.asked_with(4, "Rex."));
  EXPECT_FALSE(model.asked_with(4, "xxx"));
}

TEST_P(CompactionTest, AnEditedMessageBehindTheSummaryIsAsked) {
  auto agent = talked(kReactive);
  model.then_all({too_long(), says({"They have ", "a dog."}), says({"Rex."})});
  ChatClient client = ask_for_name(agent);
  ASSERT_EQ(model.requests().size(), 4U);
  model.then({"Meow."});
  client.ask("r2", Json::array({user_message("u-r0", "my cat is small")}));
  wait(seconds(1));
  ASSERT_EQ(model.requests().size(), 5U);
  EXPECT_TRUE(model.asked_with(4, "my cat is small"));
}

// A client sends its whole list, which has no answer yet: that one fills the window.
TEST_P(CompactionTest, AnAnswerBehindARepeatedMessageIsCompacted) {
  auto agent = make(kReactive);
  Scripted answer = says({std::string(3'000, 'x')});
  answer.after = seconds(10);
  model.then_all({answer, too_long(), says({"They have ", "a dog."}), says({"Rex."})});
  ChatClient client(agent);
  client.say("r0", "tell me all");
  client.ask("r1", Json::array({user_message("u-r0", "tell me all"),
                                user_message("u-r1", "what is its name?")}));
  wait(seconds(60), client);
  EXPECT_EQ(client.outcome("r1"), "completed");
  ASSERT_EQ(model.requests().size(), 4U);
  EXPECT_TRUE(model.asked_with(2, "xxx"));
  EXPECT_TRUE(model.asked_with(3, "what is its name?"));
  EXPECT_FALSE(model.asked_with(3, "xxx"));
}

TEST_P(CompactionTest, C47_AnOverflowInMidStreamDropsItsPartialInAllTabs) {
  auto agent = talked(kReactive);
  Scripted overflows = says({"I ", "think "}, seconds(1));
  overflows.error = "prompt is too long: 210000 tokens > 200000 maximum";
  model.then_all(
      {overflows, says({"They have ", "a dog."}, seconds(10)), says({"Re", "x."}, seconds(10))});
  ChatClient sender(agent);
  ChatClient other(agent);
  sender.say("r1", "what is its name?");
  wait(seconds(1), other);
  EXPECT_EQ(other.shown("r1"), "I think ");
  wait(seconds(5));
  ChatClient late(agent);
  late.read();
  wait(seconds(25));
  const auto without_partial = [](const ChatClient& client) {
    const std::vector<Json> updates = client.frames("cf_agent_message_updated");
    return !updates.empty() && text_of(updates.back().at("message")).empty();
  };
  for (ChatClient* const client : {&sender, &other, &late}) {
    client->read();
    EXPECT_EQ(client->shown("r1"), "Re");
    EXPECT_TRUE(without_partial(*client)) << "for those that do not know reset-step";
  }
  wait(seconds(60));
  for (ChatClient* const client : {&sender, &other, &late}) {
    client->read();
    EXPECT_EQ(client->shown("r1"), "Rex.");
    EXPECT_EQ(client->done("r1").at("outcome"), "completed");
    const std::vector<Json> snapshots = client->frames("cf_agent_chat_messages");
    ASSERT_FALSE(snapshots.empty());
    EXPECT_EQ(text_of(snapshots.back().at("messages").back()), "Rex.");
  }
  EXPECT_EQ(text_of(transcript_of(agent)[3]), "Rex.");
  EXPECT_EQ(model.requests().size(), 4U);
  EXPECT_FALSE(model.asked_with(3, "I think"));
}

TEST_P(CompactionTest, C47_NeverMoreThanMaxRetriesAndThenOneError) {
  auto agent = talked(kReactive);
  model.then_all({too_long(), says({"They have a dog."}), too_long()});
  ChatClient client = ask_for_name(agent);
  EXPECT_EQ(client.done("r1").at("error"), true);
  EXPECT_EQ(client.done("r1").at("body"), client_text(FailureKind::kContextOverflow));
  EXPECT_EQ(model.requests().size(), 4U);
  EXPECT_EQ(agent.call("notes", "error"), Json::array({"context_overflow"}));
}

TEST_P(CompactionTest, C47_WhatCannotBeShortenedEndsTheTurn) {
  auto agent = make(kReactive);
  model.then(too_long());
  ChatClient client = talk(agent, "only this", seconds(5));
  EXPECT_EQ(client.done("r1").at("error"), true);
  EXPECT_EQ(model.requests().size(), 1U);
  EXPECT_EQ(agent.call("notes", "error"), Json::array({"context_overflow"}));
}

TEST_P(CompactionTest, WithoutTheOptionAPromptThatIsTooLongEndsTheTurn) {
  auto agent = talked(Json::object());
  model.then(too_long());
  ChatClient client = ask_for_name(agent);
  EXPECT_EQ(client.done("r1").at("error"), true);
  EXPECT_EQ(model.requests().size(), 2U);
}

TEST_P(CompactionTest, C48_ACallThatNearlyFillsTheWindowIsFollowedByACompaction) {
  auto agent = talked({{"context_overflow", {{"proactive", {{"max_input_tokens", 1'000}}}}}});
  Scripted first = asks("look", {{"id", "o1"}});
  first.input_tokens = 900;
  model.then_all({first, says({"They have a dog."})});
  Scripted second = asks("look", {{"id", "o2"}});
  second.input_tokens = 950;  // max_compactions is 1
  model.then_all({second, says({"5."})});
  ChatClient client = talk(agent, "what do o1 and o2 cost?", seconds(5));
  EXPECT_EQ(client.shown("r1"), "5.");
  ASSERT_EQ(model.requests().size(), 5U);
  EXPECT_TRUE(model.asked_with(2, "You shorten a conversation"));
  EXPECT_FALSE(model.asked_with(3, "xxx"));
  EXPECT_TRUE(model.asked_with(3, "They have a dog."));
  EXPECT_TRUE(model.asked_with(3, "500"));  // the result that the model waits for
  EXPECT_FALSE(model.asked_with(4, "You shorten"));
}

TEST_P(CompactionTest, ALongHistoryIsCompactedBeforeATurn) {
  auto agent = talked({{"compact_after", 500}});
  model.then_all({says({"They have a dog."}), says({"Rex."})});
  ChatClient client = ask_for_name(agent);
  EXPECT_EQ(client.shown("r1"), "Rex.");
  ASSERT_EQ(model.requests().size(), 3U);
  EXPECT_TRUE(model.asked_with(1, "You shorten"));
  EXPECT_FALSE(model.asked_with(2, "xxx"));
}

// Of a prompt that was refused as too long, before the answer or in its middle; and of a history
// that is long, with two kills.
TEST_P(CompactionTest, AKillWithinTheSummaryLosesNothing) {
  for (int moment = 0; moment < 24; ++moment) {
    const bool is_mid_stream = moment / 8 == 1;
    const bool is_before = moment / 8 == 2;
    SCOPED_TRACE(moment);
    Stage own(GetParam());
    auto agent = own.make(is_before ? Json{{"compact_after", 500}} : kReactive);
    int summaries = 0;
    own.model.by_request([&](std::string_view body) {
      if (has(body, "You shorten")) {
        ++summaries;
        return says({"They ", "have ", "a ", "dog."}, seconds(1));
      }
      if (has(body, "They have a dog.")) return says({"Rex."});
      if (!has(body, "its name?")) return says({"Noted."});
      if (!is_mid_stream) return too_long();
      Scripted overflows = says({"I ", "think "});
      overflows.error = "prompt is too long: 210000 tokens > 200000 maximum";
      return overflows;
    });
    ChatClient client(agent, "tab");
    own.say(client, "r0", std::string(3'000, 'x'), seconds(1));
    own.say(client, "r1", "its name?", std::chrono::milliseconds(500 + moment % 8 * 1'000));
    agent.kill();
    ChatClient back(agent, "tab");
    if (is_before) {
      own.wait(std::chrono::milliseconds(2'500));
      agent.kill();
    }
    own.wait(seconds(120));
    EXPECT_EQ(agent.call("notes", "end"), Json::array({"completed", "completed"}));
    EXPECT_EQ(text_of(transcript_of(agent)[3]), "Rex.");
    EXPECT_LE(summaries, is_before ? 3 : 2);
    if (is_mid_stream)
      EXPECT_LE(own.model.requests().size(), 3U + static_cast<std::size_t>(summaries));
    EXPECT_EQ(agent.call("unsettled"), 0);
  }
}

// Nothing of one call is taken as the other: an answer while a compaction is due or the author asks
// for a summary, and a summary that is not wanted any more.
TEST_P(CompactionTest, AKillKeepsAnswerAndSummaryApart) {
  const Json fills{
      {"context_overflow", {{"proactive", {{"max_input_tokens", 1'000}, {"max_compactions", 2}}}}}};
  for (const Json& options :
       {fills, Json{{"hook", "summarise:later"}}, Json{{"hook", "summarise:first"}}}) {
    SCOPED_TRACE(options.dump());
    Stage own(GetParam());
    Json all = own.model.options();
    all.update(options);
    auto agent = own.host.create<Support>("a", all);
    int calls = options == fills ? 0 : 1;
    own.model.by_request([&](std::string_view body) {
      if (has(body, "You shorten"))
        return options == fills ? says({}) : says({"They ", "count", "."}, seconds(10));
      Scripted looks = asks("look", {{"id", "o1"}});
      looks.input_tokens = 900;
      if (++calls == 1) return looks;
      return calls == 2 ? says({"one ", "two ", "three"}, seconds(10)) : says({"three"});
    });
    ChatClient client = own.talk(agent, "count", seconds(15));
    agent.kill();
    own.wait(seconds(120));
    EXPECT_EQ(text_of(transcript_of(agent)[1]), "one two three");
    if (options.value("hook", "") == "summarise:later")
      EXPECT_EQ(agent.call("notes", "summary"), Json::array({"They count."}));
    EXPECT_EQ(agent.call("unsettled"), 0);
  }
}

TEST_P(CompactionTest, AClearForgetsTheSummary) {
  auto agent = talked(kReactive);
  model.then_all({too_long(), says({"They have a dog."}), says({"Rex."})});
  ChatClient client = talk(agent, "what is its name?", seconds(2));
  client.clear();
  model.then({"Hello."});
  say(client, "r2", "hi", seconds(2));
  EXPECT_FALSE(model.asked_with(4, "They have a dog."));
}

}  // namespace
}  // namespace hearth::chat
