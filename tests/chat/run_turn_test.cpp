// Interrupted turns, on the mock host.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RecoveryOfTurnsTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, RecoveryOfTurnsTest, each_dialect(), provider_name);

// A kill at each moment of a turn with two calls of the model and a tool: nothing that a client saw
// is lost or comes twice, and each call beyond the two is because one was cut.
TEST_P(RecoveryOfTurnsTest, AKillAtAnyMomentLosesNothing) {
  for (int moment = 0; moment < 16; ++moment) {
    SCOPED_TRACE(moment);
    Stage own(GetParam());
    auto agent = own.make();
    own.model.then(both(says({"I ", "look. "}, seconds(1)), asks("look", {{"id", "o1"}})));
    // Any number of answers may be needed: what is asked again is what it says again.
    own.model.then(says({"It ", "costs ", "5."}, seconds(1)));
    ChatClient client(agent, "tab");
    own.say(client, "r1", "what does o1 cost?", std::chrono::milliseconds(500 + moment * 1'000));
    const std::string before = client.shown("r1");
    agent.kill();
    ChatClient back(agent, "tab");
    own.wait(seconds(120), back);
    own.wait(seconds(1), back);
    const Json stored = transcript_of(agent);
    ASSERT_EQ(stored.size(), 2U);
    const std::string text = text_of(stored[1]);
    EXPECT_TRUE(text.starts_with(before)) << before << " / " << text;
    EXPECT_TRUE(text.ends_with("It costs 5.")) << text;
    EXPECT_LE(own.model.requests().size(), 3U);
    if (back.done("r1").is_object() && back.done("r1").value("outcome", "") == "completed" &&
        !back.shown("r1").empty())
      EXPECT_EQ(back.shown("r1"), text);
    EXPECT_EQ(agent.call("notes", "end"), Json::array({"completed"}));
  }
}

TEST_P(RecoveryOfTurnsTest, WithoutRecoveryACutOrAFailedCallEndsTheTurn) {
  auto agent = make({{"recovery", false}});
  ChatClient client(agent);
  model.then_all({cut(says({"one "})), {.status = 503}});
  say(client, "r1", "count", seconds(60));
  say(client, "r2", "count", seconds(60));
  for (const char* const turn : {"r1", "r2"}) EXPECT_EQ(client.done(turn).at("error"), true);
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one ");
  EXPECT_EQ(model.requests().size(), 2U);
}

TEST_P(RecoveryOfTurnsTest, TenRestartsWithoutProgressEndTheTurn) {
  auto agent = make({{"recovery", {{"no_progress_timeout_ms", 10'000'000}}}});
  model.then(thinks(std::chrono::hours(1'000)));  // lost with the call, which is no progress
  ChatClient first(agent);
  first.say("r1", "hi");
  for (int i = 0; i < 12; ++i) {
    wait(seconds(40));
    agent.kill();
  }
  ChatClient client(agent);
  client.resume();
  wait(seconds(40), client);
  wait(seconds(1), client);
  EXPECT_EQ(agent.call("notes", "exhausted"), Json::array({"max_attempts_exceeded"}));
  EXPECT_EQ(client.done("r1").at("error"), true);
  EXPECT_EQ(client.done("r1").at("body"), RecoveryConfig().terminal_message);
  EXPECT_LE(model.requests().size(), 13U);
  ChatClient later(agent);  // C41
  later.resume();
  for (int i = 0; i < 2; ++i) wait(seconds(1), later);  // it is offered the answer, and gets it
  EXPECT_EQ(later.done("r1").at("body"), RecoveryConfig().terminal_message);
}

// A frame is as large as to be parsed elsewhere, and is parsed late; it came before the attempt.
class StableTest : public Conversation {
 protected:
  testing::AgentHandle interrupted() {
    auto agent = make(
        {{"slow_start", true}, {"recovery", {{"max_attempts", 3}, {"stable_timeout_ms", 20'000}}}});
    model.then_all({says({"one ", "two "}, seconds(10)), says({"three"}), says({"four"})});
    client.emplace(agent);
    wait(seconds(2));
    client->say("r1", "count");
    wait(seconds(15));
    agent.evict();
    wait(std::chrono::milliseconds(100));
    host.hold_offload(true);
    client->say("r2", std::string(300'000, 'x'));
    return agent;
  }
  std::optional<ChatClient> client;
};
INSTANTIATE_TEST_SUITE_P(Providers, StableTest, each_dialect(), provider_name);

TEST_P(StableTest, C41_AnAttemptThatWaitsTooLongForFramesIsMadeAgainAndThenGivenUp) {
  auto agent = interrupted();
  wait(seconds(60));
  EXPECT_EQ(agent.call("notes", "exhausted"), Json::array());
  EXPECT_EQ(model.requests().size(), 1U);
  wait(seconds(10));
  EXPECT_EQ(agent.call("notes", "exhausted"), Json::array({"stable_timeout"}));
  client->read();
  EXPECT_EQ(client->done("r1").at("body"), RecoveryConfig().terminal_message);
  host.hold_offload(false);
  wait(seconds(5), *client);
  EXPECT_EQ(client->shown("r2"), "three");
}

TEST_P(StableTest, AnAttemptBeginsOnceTheFramesBeforeItAreHandled) {
  auto agent = interrupted();
  wait(seconds(30));
  EXPECT_EQ(model.requests().size(), 1U);
  host.hold_offload(false);
  wait(seconds(30), *client);
  EXPECT_EQ(client->shown("r1"), "one two three");
  EXPECT_EQ(client->shown("r2"), "four");
  EXPECT_EQ(agent.call("notes", "exhausted"), Json::array());
}

TEST_P(StableTest, C50_StableIsWhenNoTurnRunsOrWaitsAndNoToolAwaitsAnAnswer) {
  EXPECT_EQ(support.call("is_stable", 0), true);
  model.then_all(
      {says({"one ", "two "}, seconds(10)), asks("refund", {{"id", "o1"}}), says({"done"})});
  ChatClient asking(support);
  asking.say("r1", "count");
  asking.say("r2", "refund");
  auto early = support.start("is_stable", 5'000);
  auto late = support.start("is_stable", 3'600'000);
  wait(seconds(6));
  EXPECT_EQ(early.value(), false);
  wait(seconds(100));
  EXPECT_FALSE(late.done());
  EXPECT_EQ(model.requests().size(), 2U);
  asking.approve(transcript_of(support)[3].at("parts").back().at("toolCallId"), true);
  wait(seconds(10));
  EXPECT_EQ(late.value(), true);
  EXPECT_EQ(text_of(transcript_of(support)[3]), "done");
}

TEST_P(StableTest, C50_AnAnswerAfterWhichNothingGoesOnIsNoticedAtOnce) {
  model.then(asks("refund", {{"id", "o1"}}));
  ChatClient client = talk(support, "refund", seconds(1));
  auto waiting = support.start("is_stable", 3'600'000);
  wait(seconds(1));
  EXPECT_FALSE(waiting.done());
  client.send({{"type", "cf_agent_tool_approval"},
               {"toolCallId", transcript_of(support)[1].at("parts").back().at("toolCallId")},
               {"approved", false},
               {"autoContinue", false}});
  wait(seconds(1));
  ASSERT_TRUE(waiting.done());
  EXPECT_EQ(waiting.value(), true);
}

TEST_P(StableTest, C50_AnApprovalBehindWhichTheTalkWentOnIsAwaited) {
  model.then_all({asks("refund", {{"id", "o1"}}), says({"done"})});
  ChatClient client = talk(support, "refund", seconds(1));
  say(client, "r2", "and now?", seconds(1));
  EXPECT_EQ(text_of(transcript_of(support)[3]), "done");
  EXPECT_EQ(support.call("is_stable", 0), false);
  client.approve(transcript_of(support)[1].at("parts").back().at("toolCallId"), false);
  wait(seconds(10));
  EXPECT_EQ(support.call("is_stable", 0), true);
}

TEST_P(RecoveryOfTurnsTest, TheLogNamesEachStepOfARecovery) {
  model.then_all({says({"one ", "two "}, seconds(10)), says({"three"})});
  ChatClient client = talk(support, "count", seconds(15));
  support.kill();
  wait(seconds(30));
  std::vector<std::string> steps;
  for (const std::string& line : host.log())
    if (line.find(" chat:") != std::string::npos) steps.push_back(line);
  const std::string cut =
      "warn chat:request:failed turn=r1 kind=cut: the server stopped in the middle of the answer";
  EXPECT_EQ(steps, (std::vector<std::string>{"info chat:recovery:detected turn=r1 attempt=1",
                                             "info chat:recovery:attempt turn=r1 attempt=1", cut,
                                             "info chat:recovery:detected turn=r1 attempt=1",
                                             "info chat:recovery:attempt turn=r1 attempt=1",
                                             "info chat:recovery:completed turn=r1"}));
}

TEST_P(RecoveryOfTurnsTest, AProviderThatDiesAfterEachEmptyStartIsGivenUp) {
  model.then(cut(thinks()));
  ChatClient client = talk(support, "hi", std::chrono::hours(1));
  EXPECT_EQ(client.done("r1").at("error"), true);
  EXPECT_LE(model.requests().size(), 40U);
  EXPECT_EQ(support.call("notes", "exhausted"), Json::array({"max_attempts_exceeded"}));
}

TEST_P(RecoveryOfTurnsTest, ATurnOfSixHoursThatProgressesIsNotEnded) {
  std::vector<std::string> words;
  for (int i = 0; i < 30; ++i) words.push_back("w" + std::to_string(i) + " ");
  model.then(says(words, std::chrono::minutes(1)));
  ChatClient client(support);
  client.say("r1", "tell me all");
  for (int i = 0; i < 18; ++i) {
    wait(std::chrono::minutes(20));
    support.kill();
  }
  wait(std::chrono::minutes(40));
  EXPECT_EQ(support.call("notes", "end"), Json::array({"completed"}));
  EXPECT_EQ(support.call("notes", "exhausted"), Json::array());
  EXPECT_EQ(model.requests().size(), 19U);
}

// Also while another tool still runs.
TEST_P(RecoveryOfTurnsTest, C43_WhatWaitsForAClientCostsNothingOverTwentyRestarts) {
  const Scripted approval = asks("refund", {{"id", "o1"}});
  const Scripted beside = both(approval, asks("find", {{"id", "o2"}}));
  for (const Scripted& calls : {approval, asks("where", {{"a", 1}}), beside}) {
    const bool is_client_tool = calls.says[0].tool == "where";
    SCOPED_TRACE(calls.says.back().tool);
    Stage own(GetParam());
    auto agent = own.make();
    own.model.then_all({calls, says({"done"})});
    {
      ChatClient client(agent);
      client.ask_where("r1", "refund");
      own.wait(seconds(1));
    }
    for (int i = 0; i < 20; ++i) {
      agent.kill();
      own.wait(calls.says.size() > 1 ? seconds(1) : seconds(600));
      agent.wake();
    }
    own.wait(seconds(10));
    EXPECT_EQ(agent.call("is_stable", 0), false);
    ChatClient client(agent);
    for (const Json& call : calls_of(transcript_of(agent)[1])) {
      if (call.contains("output")) continue;
      if (is_client_tool)
        client.answer(call.at("toolCallId"), "here");
      else
        client.approve(call.at("toolCallId"), true);
    }
    own.wait(seconds(2));
    EXPECT_EQ(text_of(transcript_of(agent)[1]), "done");
    EXPECT_EQ(agent.call("notes", "recovery"), Json::array());
    EXPECT_EQ(agent.call("is_stable", 0), true);
    EXPECT_EQ(own.model.requests().size(), 2U);
  }
}

TEST_P(RecoveryOfTurnsTest, C27_WhatTheHookDropsIsTextAndNoResultOfATool) {
  struct Row {
    bool persist;
    bool has_tool;
    const char* text;
  };
  const std::vector<Row> rows = {{true, false, "one two "},
                                 {false, false, ""},
                                 {true, true, "I look. one two "},
                                 {false, true, "I look. "}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    Stage own(GetParam());
    auto agent = own.make({{"persist", row.persist}, {"proceed", false}});
    if (row.has_tool) own.model.then(both(says({"I look. "}), asks("look", {{"id", "o1"}})));
    own.model.then(says({"one ", "two ", "three "}, seconds(10)));
    ChatClient client = own.talk(agent, "count", seconds(15));
    agent.kill();
    ChatClient back(agent);
    own.wait(seconds(60), back);
    EXPECT_EQ(own.model.requests().size(), row.has_tool ? 2U : 1U);
    EXPECT_EQ(back.outcome("r1"), "aborted");
    const Json stored = transcript_of(agent)[1];
    EXPECT_EQ(text_of(stored), row.text);
    const std::vector<Json> calls = calls_of(stored);
    ASSERT_EQ(calls.size(), row.has_tool ? 1U : 0U);
    if (row.has_tool) EXPECT_EQ(calls[0].at("output"), Json({{"cents", 500}, {"order", "o1"}}));
  }
}

// Notes what its hook gets.
class Watched : public Support {
 public:
  static void methods(Methods<Watched>& m) { chat_methods(m); }
  Task<void> on_turn(Turn& turn) override {
    turn.stash({{"page", 7}});
    auto generating = turn.generate();
    co_await std::move(generating);
  }
  Task<RecoveryChoice> on_chat_recovery(RecoveryContext context) override {
    for (Json& part : context.partial_parts) part = part.at("type");
    for (Json& message : context.messages) message = message.at("id");
    const auto age = std::chrono::duration_cast<seconds>(now() - context.created_at);
    note("context", to_text({{"incident", context.incident_id},
                             {"attempt", context.attempt},
                             {"of", context.max_attempts},
                             {"kind", context.recovery_kind},
                             {"root", context.recovery_root_request_id},
                             {"request", context.request_id},
                             {"stream", context.stream_id},
                             {"text", context.partial_text},
                             {"parts", context.partial_parts},
                             {"data", context.recovery_data},
                             {"messages", context.messages},
                             {"body", context.last_body},
                             {"tools", context.last_client_tools},
                             {"age", age.count()},
                             {"reason", context.reason}}));
    co_return RecoveryChoice();
  }
};

TEST_P(RecoveryOfTurnsTest, C27_TheHookGetsAllThatIsKnownOfTheTurn) {
  auto agent = host.create<Watched>("a", model.options());
  Scripted slow = says({"one ", "two ", "three "}, seconds(10));
  slow.after = seconds(20);
  model.then(slow);
  ChatClient client(agent);
  const Json tools = Json::array({{{"name", "where"}}});
  client.ask("r1", Json::array({user_message("u0", "hi"), user_message("u1", "count")}),
             {{"clientTools", tools}, {"tone", "kind"}});
  const auto first = [&agent](const std::string& kind) {
    const Json rows = agent.sql(
        "SELECT text FROM notes WHERE what = 'context' AND json_extract(text, '$.kind') = '" +
        kind + "' ORDER BY rowid");
    return rows.empty() ? Json() : parse_json(rows[0].at(0).get<std::string>());
  };
  wait(seconds(5));  // nothing has come
  agent.kill();
  wait(seconds(35));  // of the second call two words
  agent.kill();
  wait(seconds(5));
  Json expected{{"incident", "r1:u1"},
                {"attempt", 1},
                {"of", 10},
                {"kind", "retry"},
                {"root", "r1"},
                {"request", "r1"},
                {"stream", ""},
                {"text", ""},
                {"parts", Json::array()},
                {"data", {{"page", 7}}},
                {"messages", {"u0", "u1"}},
                {"body", {{"tone", "kind"}}},
                {"tools", tools},
                {"age", 5},
                {"reason", ""}};
  EXPECT_EQ(first("retry"), expected);
  expected.update({{"kind", "continue"},
                   {"stream", "r1"},
                   {"text", "one two "},
                   {"parts", {"step-start", "text"}},
                   {"age", 40}});
  EXPECT_EQ(first("continue"), expected);
}

TEST_P(RecoveryOfTurnsTest, StopDuringTheWaitOfARecoveryEndsTheTurn) {
  model.then({.status = 429, .headers = {{"retry-after", "50"}}});
  ChatClient client = talk(support, "hi", seconds(5));
  stop(client, "r1", seconds(1));
  EXPECT_EQ(client.outcome("r1"), "aborted");
  support.kill();
  wait(seconds(100));
  EXPECT_EQ(model.requests().size(), 1U);
}

// Whether the fiber waits for a hook, or has not begun again.
TEST_P(RecoveryOfTurnsTest, BehindAClearNoClientIsToldOfARecovery) {
  for (const bool is_killed : {false, true}) {
    SCOPED_TRACE(is_killed);
    Stage own(GetParam());
    auto agent = own.make({{"hook", "keep:slow"}, {"slow_start", true}});
    own.model.then(cut(thinks()));
    ChatClient client = own.talk(agent, "hi", seconds(2));
    for (int i = 0; i < 100 && agent.call("notes", "keep").empty(); ++i) own.wait(seconds(1));
    ASSERT_EQ(agent.call("notes", "keep").size(), 1U);
    if (is_killed) agent.kill();
    ChatClient back(agent);
    back.clear();
    own.wait(seconds(60), back);
    const std::vector<Json> told = back.frames("cf_agent_chat_recovering");
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back().at("recovering"), false);
    EXPECT_EQ(agent.call("unsettled"), 0);
  }
}

TEST_P(RecoveryOfTurnsTest, AnEvictionBetweenTwoCallsIsNoInterruption) {
  Scripted call = asks("look", {{"id", "o1"}});
  call.between = seconds(5);
  model.then_all({call, says({"It costs 5."})});
  ChatClient client(support, "tab");
  say(client, "r1", "what does it cost?", seconds(1));
  support.evict(EvictReason::kCodeUpdate, seconds(60));
  wait(seconds(60), client);
  EXPECT_EQ(client.shown("r1"), "It costs 5.");
  EXPECT_EQ(support.activations(), 2);
  EXPECT_EQ(support.call("notes", "recovery"), Json::array());
}

TEST_P(RecoveryOfTurnsTest, ATurnOfTheAgentsCodeHasAKeyAndCanBeWaitedFor) {
  model.then(says({"one ", "two"}, seconds(5)));
  const std::string id = support.call("start", "count", "k1");
  EXPECT_EQ(support.call("start", "count", "k1"), id);
  wait(seconds(3));
  support.kill();
  auto waiting = support.start("wait", id);
  wait(seconds(60));
  EXPECT_EQ(waiting.value(), "completed one one two");
  EXPECT_FALSE(support.call("go_on").get<std::string>().empty());
  wait(seconds(60));
  EXPECT_EQ(transcript_of(support).size(), 2U);
}

TEST_P(RecoveryOfTurnsTest, AClockThatGoesBackHoldsUpNoMessage) {
  for (const char* const line : {"queue", "debounce"}) {
    SCOPED_TRACE(line);
    Stage own(GetParam());
    auto agent = own.make({{"concurrency", line}});
    own.model.then_all({says({"one"}, seconds(5)), says({"two"}), says({"three"})});
    ChatClient client = own.talk(agent, "first", seconds(1));
    own.say(client, "r2", "second", milliseconds(100));
    own.host.set_wall(agent.as<Support>().now() - std::chrono::hours(1));
    own.wait(seconds(10), client);
    EXPECT_EQ(client.shown("r2"), "two");
    own.say(client, "r3", "third", seconds(1));
    EXPECT_EQ(client.shown("r3"), "three");
  }
}

}  // namespace
}  // namespace hearth::chat
