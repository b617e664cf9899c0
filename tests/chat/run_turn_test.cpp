// Interrupted turns, on the mock host.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::seconds;

class RunTurnTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, RunTurnTest, ::testing::ValuesIn(ScriptedModel::kDialects),
                         provider_name);

// A kill at each moment of a turn with two calls of the model and a tool: nothing that a client saw
// is lost or comes twice, and each call beyond the two is because one was cut.
TEST_P(RunTurnTest, AKillAtAnyMomentLosesNothing) {
  for (int moment = 0; moment < 16; ++moment) {
    SCOPED_TRACE(moment);
    testing::Host own;
    ScriptedModel scripted(own, GetParam());
    auto agent = own.create<Support>("a", scripted.options());
    Scripted call;
    call.says = {{.text = "I "}, {.text = "look. "}, {.tool = "look", .input = {{"id", "o1"}}}};
    call.between = seconds(1);
    scripted.then(call);
    Scripted last;
    last.says = {{.text = "It "}, {.text = "costs "}, {.text = "5."}};
    last.between = seconds(1);
    // Any number of answers may be needed: what is asked again is what it says again.
    ChatClient client(agent, "tab");
    for (int i = 0; i < 3; ++i) scripted.then(last);
    client.say("r1", "what does o1 cost?");
    own.advance(std::chrono::milliseconds(500 + moment * 1'000));
    client.read();
    const std::string before = client.shown("r1");
    agent.kill();
    ChatClient back(agent, "tab");
    own.advance(seconds(120));
    back.read();
    own.advance(seconds(1));
    back.read();
    const Json stored = transcript_of(agent);
    ASSERT_EQ(stored.size(), 2U);
    const std::string text = text_of(stored[1]);
    EXPECT_TRUE(text.starts_with(before)) << before << " / " << text;
    EXPECT_TRUE(text.ends_with("It costs 5.")) << text;
    EXPECT_LE(scripted.requests().size(), 3U);
    if (back.done("r1").is_object() && back.done("r1").value("outcome", "") == "completed" &&
        !back.shown("r1").empty())
      EXPECT_EQ(back.shown("r1"), text);
    EXPECT_EQ(agent.call("notes", "end"), Json::array({"completed"}));
  }
}

class RecoveryOfTurnsTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, RecoveryOfTurnsTest,
                         ::testing::ValuesIn(ScriptedModel::kDialects), provider_name);

TEST_P(RecoveryOfTurnsTest, WithoutRecoveryACutOrAFailedCallEndsTheTurn) {
  auto agent = make({{"recovery", false}});
  ChatClient client(agent);
  Scripted cut = says({"one "});
  cut.is_cut = true;
  model.then(cut);
  client.say("r1", "count");
  wait(seconds(60));
  Scripted busy;
  busy.status = 503;
  model.then(busy);
  client.say("r2", "count");
  wait(seconds(60));
  client.read();
  for (const char* const turn : {"r1", "r2"}) EXPECT_EQ(client.done(turn).at("error"), true);
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one ");
  EXPECT_EQ(model.requests().size(), 2U);
}

TEST_P(RecoveryOfTurnsTest, TenRestartsWithoutProgressEndTheTurn) {
  auto agent = make({{"recovery", {{"no_progress_timeout_ms", 10'000'000}}}});
  Scripted hangs;  // thoughts that are lost with the call are no progress
  hangs.says.push_back({.reasoning = "hm"});
  hangs.between = std::chrono::hours(1'000);
  model.then(hangs);
  ChatClient first(agent);
  first.say("r1", "hi");
  for (int i = 0; i < 12; ++i) {
    wait(seconds(40));
    agent.kill();
  }
  ChatClient client(agent);
  client.resume();
  wait(seconds(40));
  client.read();
  wait(seconds(1));
  client.read();
  EXPECT_EQ(agent.call("notes", "exhausted"), Json::array({"max_attempts_exceeded"}));
  EXPECT_EQ(client.done("r1").at("error"), true);
  EXPECT_EQ(client.done("r1").at("body"), RecoveryConfig().terminal_message);
  EXPECT_LE(model.requests().size(), 13U);
  ChatClient later(agent);  // C41
  later.resume();
  for (int i = 0; i < 2; ++i) {  // it is offered the answer, and gets it
    wait(seconds(1));
    later.read();
  }
  EXPECT_EQ(later.done("r1").at("body"), RecoveryConfig().terminal_message);
}

// A frame is as large as to be parsed elsewhere, and is parsed late; it came before the attempt.
class StableTest : public Conversation {
 protected:
  testing::AgentHandle interrupted() {
    auto agent = make(
        {{"slow_start", true}, {"recovery", {{"max_attempts", 3}, {"stable_timeout_ms", 20'000}}}});
    model.then(says({"one ", "two "}, seconds(10)));
    model.then({"three"});
    model.then({"four"});
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
INSTANTIATE_TEST_SUITE_P(Providers, StableTest, ::testing::ValuesIn(ScriptedModel::kDialects),
                         provider_name);

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
  wait(seconds(5));
  client->read();
  EXPECT_EQ(client->shown("r2"), "three");
}

TEST_P(StableTest, AnAttemptBeginsOnceTheFramesBeforeItAreHandled) {
  auto agent = interrupted();
  wait(seconds(30));
  EXPECT_EQ(model.requests().size(), 1U);
  host.hold_offload(false);
  wait(seconds(30));
  client->read();
  EXPECT_EQ(client->shown("r1"), "one two three");
  EXPECT_EQ(client->shown("r2"), "four");
  EXPECT_EQ(agent.call("notes", "exhausted"), Json::array());
}

TEST_P(StableTest, C50_StableIsWhenNoTurnRunsOrWaitsAndNoToolAwaitsAnAnswer) {
  auto agent = make();
  EXPECT_EQ(agent.call("is_stable", 0), true);
  model.then(says({"one ", "two "}, seconds(10)));
  model.then(asks("refund", {{"id", "o1"}}));
  model.then({"done"});
  ChatClient asking(agent);
  asking.say("r1", "count");
  asking.say("r2", "refund");
  auto early = agent.start("is_stable", 5'000);
  auto late = agent.start("is_stable", 3'600'000);
  wait(seconds(6));
  EXPECT_EQ(early.value(), false);
  wait(seconds(100));
  EXPECT_FALSE(late.done());
  EXPECT_EQ(model.requests().size(), 2U);
  asking.approve(transcript_of(agent)[3].at("parts").back().at("toolCallId"), true);
  wait(seconds(10));
  EXPECT_EQ(late.value(), true);
  EXPECT_EQ(text_of(transcript_of(agent)[3]), "done");
}

TEST_P(StableTest, C50_AnAnswerAfterWhichNothingGoesOnIsNoticedAtOnce) {
  auto agent = make();
  model.then(asks("refund", {{"id", "o1"}}));
  ChatClient client(agent);
  client.say("r1", "refund");
  wait(seconds(1));
  auto waiting = agent.start("is_stable", 3'600'000);
  wait(seconds(1));
  EXPECT_FALSE(waiting.done());
  client.send({{"type", "cf_agent_tool_approval"},
               {"toolCallId", transcript_of(agent)[1].at("parts").back().at("toolCallId")},
               {"approved", false},
               {"autoContinue", false}});
  wait(seconds(1));
  ASSERT_TRUE(waiting.done());
  EXPECT_EQ(waiting.value(), true);
}

TEST_P(StableTest, C50_AnApprovalBehindWhichTheTalkWentOnIsAwaited) {
  auto agent = make();
  model.then(asks("refund", {{"id", "o1"}}));
  model.then({"done"});
  ChatClient client(agent);
  client.say("r1", "refund");
  wait(seconds(1));
  client.say("r2", "and now?");
  wait(seconds(1));
  EXPECT_EQ(text_of(transcript_of(agent)[3]), "done");
  EXPECT_EQ(agent.call("is_stable", 0), false);
  client.approve(transcript_of(agent)[1].at("parts").back().at("toolCallId"), false);
  wait(seconds(10));
  EXPECT_EQ(agent.call("is_stable", 0), true);
}

TEST_P(RecoveryOfTurnsTest, TheLogNamesEachStepOfARecovery) {
  auto agent = make();
  model.then(says({"one ", "two "}, seconds(10)));
  model.then({"three"});
  ChatClient client(agent);
  client.say("r1", "count");
  wait(seconds(15));
  agent.kill();
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
  auto agent = make();
  Scripted dies = cut(says({}));
  dies.says.push_back({.reasoning = "hm"});
  model.then(dies);
  ChatClient client(agent);
  client.say("r1", "hi");
  wait(std::chrono::hours(1));
  client.read();
  EXPECT_EQ(client.done("r1").at("error"), true);
  EXPECT_LE(model.requests().size(), 40U);
  EXPECT_EQ(agent.call("notes", "exhausted"), Json::array({"max_attempts_exceeded"}));
}

TEST_P(RecoveryOfTurnsTest, ATurnOfSixHoursThatProgressesIsNotEnded) {
  auto agent = make();
  std::vector<std::string> words;
  for (int i = 0; i < 30; ++i) words.push_back("w" + std::to_string(i) + " ");
  model.then(says(words, std::chrono::minutes(1)));
  ChatClient client(agent);
  client.say("r1", "tell me all");
  for (int i = 0; i < 18; ++i) {
    wait(std::chrono::minutes(20));
    agent.kill();
  }
  wait(std::chrono::minutes(40));
  EXPECT_EQ(agent.call("notes", "end"), Json::array({"completed"}));
  EXPECT_EQ(agent.call("notes", "exhausted"), Json::array());
  EXPECT_EQ(model.requests().size(), 19U);
}

// Also while another tool still runs.
TEST_P(RecoveryOfTurnsTest, C43_WhatWaitsForAClientCostsNothingOverTwentyRestarts) {
  const Scripted approval = asks("refund", {{"id", "o1"}});
  Scripted beside = approval;
  beside.says.push_back({.tool = "find", .input = {{"id", "o2"}}});
  for (const Scripted& calls : {approval, asks("where", {{"a", 1}}), beside}) {
    const bool is_client_tool = calls.says[0].tool == "where";
    SCOPED_TRACE(calls.says.back().tool);
    testing::Host own;
    ScriptedModel scripted(own, GetParam());
    auto agent = own.create<Support>("a", scripted.options());
    scripted.then(calls);
    scripted.then({"done"});
    {
      ChatClient client(agent);
      client.ask("r1", Json::array({user_message("u1", "refund")}),
                 {{"clientTools", Json::array({{{"name", "where"}}})}});
      own.advance(seconds(1));
    }
    for (int i = 0; i < 20; ++i) {
      agent.kill();
      own.advance(calls.says.size() > 1 ? seconds(1) : seconds(600));
      agent.wake();
    }
    own.advance(seconds(10));
    EXPECT_EQ(agent.call("is_stable", 0), false);
    ChatClient client(agent);
    const Json asked = transcript_of(agent)[1].at("parts");
    for (const Json& part : asked) {
      if (!part.contains("toolCallId") || part.contains("output")) continue;
      if (is_client_tool)
        client.answer(part.at("toolCallId"), "here");
      else
        client.approve(part.at("toolCallId"), true);
    }
    own.advance(seconds(2));
    EXPECT_EQ(text_of(transcript_of(agent)[1]), "done");
    EXPECT_EQ(agent.call("notes", "recovery"), Json::array());
    EXPECT_EQ(agent.call("is_stable", 0), true);
    EXPECT_EQ(scripted.requests().size(), 2U);
  }
}

TEST_P(RecoveryOfTurnsTest, TheHookMayKeepThePartialAndCallNoModel) {
  auto agent = make({{"proceed", false}});
  model.then(says({"one ", "two ", "three "}, seconds(10)));
  ChatClient client(agent);
  client.say("r1", "count");
  wait(seconds(15));
  agent.kill();
  ChatClient back(agent);
  wait(seconds(60));
  back.read();
  EXPECT_EQ(model.requests().size(), 1U);
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one two ");
  EXPECT_EQ(back.done("r1").at("outcome"), "aborted");
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
    testing::Host own;
    ScriptedModel scripted(own, GetParam());
    Json options = scripted.options();
    options.update({{"persist", row.persist}, {"proceed", false}});
    auto agent = own.create<Support>("a", options);
    Scripted call = asks("look", {{"id", "o1"}});
    call.says.insert(call.says.begin(), {.text = "I look. "});
    if (row.has_tool) scripted.then(call);
    scripted.then(says({"one ", "two ", "three "}, seconds(10)));
    ChatClient client(agent);
    client.say("r1", "count");
    own.advance(seconds(15));
    agent.kill();
    ChatClient back(agent);
    own.advance(seconds(60));
    back.read();
    EXPECT_EQ(scripted.requests().size(), row.has_tool ? 2U : 1U);
    EXPECT_EQ(back.done("r1").at("outcome"), "aborted");
    const Json stored = transcript_of(agent)[1];
    EXPECT_EQ(text_of(stored), row.text);
    std::vector<std::string> results;
    for (const Json& part : stored.at("parts"))
      if (part.contains("toolCallId")) results.push_back(to_text(part.value("output", Json())));
    EXPECT_EQ(results.size(), row.has_tool ? 1U : 0U);
    if (row.has_tool) EXPECT_EQ(results.at(0), R"({"cents":500,"order":"o1"})");
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
  auto agent = make();
  Scripted busy;
  busy.status = 429;
  busy.headers = {{"retry-after", "50"}};
  model.then(busy);
  ChatClient client(agent);
  client.say("r1", "hi");
  wait(seconds(5));
  client.send({{"type", "cf_agent_chat_request_cancel"}, {"id", "r1"}});
  wait(seconds(1));
  client.read();
  EXPECT_EQ(client.done("r1").at("outcome"), "aborted");
  agent.kill();
  wait(seconds(100));
  EXPECT_EQ(model.requests().size(), 1U);
}

// Whether the fiber waits for a hook, or has not begun again.
TEST_P(RecoveryOfTurnsTest, BehindAClearNoClientIsToldOfARecovery) {
  for (const bool is_killed : {false, true}) {
    SCOPED_TRACE(is_killed);
    testing::Host own;
    ScriptedModel scripted(own, GetParam());
    Json options = scripted.options();
    options.update({{"hook", "keep:slow"}, {"slow_start", true}});
    auto agent = own.create<Support>("a", options);
    Scripted dies = cut(says({}));
    dies.says.push_back({.reasoning = "hm"});
    scripted.then(dies);
    ChatClient client(agent);
    client.say("r1", "hi");
    own.advance(seconds(2));
    for (int i = 0; i < 100 && agent.call("notes", "keep").empty(); ++i) own.advance(seconds(1));
    ASSERT_EQ(agent.call("notes", "keep").size(), 1U);
    if (is_killed) agent.kill();
    ChatClient back(agent);
    back.send({{"type", "cf_agent_chat_clear"}});
    own.advance(seconds(60));
    back.read();
    const std::vector<Json> told = back.frames("cf_agent_chat_recovering");
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back().at("recovering"), false);
    EXPECT_EQ(agent.call("unsettled"), 0);
  }
}

TEST_P(RecoveryOfTurnsTest, AnEvictionBetweenTwoCallsIsNoInterruption) {
  auto agent = make();
  Scripted call = asks("look", {{"id", "o1"}});
  call.between = seconds(5);
  model.then(call);
  model.then({"It costs 5."});
  ChatClient client(agent, "tab");
  client.say("r1", "what does it cost?");
  wait(seconds(1));
  agent.evict(EvictReason::kCodeUpdate, seconds(60));
  wait(seconds(60));
  client.read();
  EXPECT_EQ(client.shown("r1"), "It costs 5.");
  EXPECT_EQ(agent.activations(), 2);
  EXPECT_EQ(agent.call("notes", "recovery"), Json::array());
}

TEST_P(RecoveryOfTurnsTest, ATurnOfTheAgentsCodeHasAKeyAndCanBeWaitedFor) {
  auto agent = make();
  model.then(says({"one ", "two"}, seconds(5)));
  const std::string id = agent.call("start", "count", "k1");
  EXPECT_EQ(agent.call("start", "count", "k1"), id);
  wait(seconds(3));
  agent.kill();
  auto waiting = agent.start("wait", id);
  wait(seconds(60));
  EXPECT_EQ(waiting.value(), "completed one one two");
  EXPECT_FALSE(agent.call("go_on").get<std::string>().empty());
  wait(seconds(60));
  EXPECT_EQ(transcript_of(agent).size(), 2U);
}

}  // namespace
}  // namespace hearth::chat
