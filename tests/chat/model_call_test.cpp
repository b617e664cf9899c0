// Calls of the model, on the mock host.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::seconds;

class ModelCallTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, ModelCallTest, ::testing::ValuesIn(ScriptedModel::kDialects),
                         provider_name);

// An error as the provider names it, with this status.
Scripted refusal(unsigned status, const char* type) {
  Scripted refused;
  refused.status = status;
  refused.error = to_text({{"error", {{"message", "bad key sk-123"}, {"type", type}}}});
  return refused;
}

TEST_P(ModelCallTest, RefusalsBeforeAnAnswerAreRetriedOrEndTheTurn) {
  struct Row {
    Scripted refused;
    seconds wait{0};  // until it is tried again; 0: the turn ends
    FailureKind kind = FailureKind::kTransient;
  };
  Scripted asks_to_wait = refusal(429, "rate_limit");
  asks_to_wait.headers = {{"retry-after", "7"}};
  Scripted unreachable;
  unreachable.is_unreachable = true;
  const std::vector<Row> rows = {
      {asks_to_wait, seconds(7)},
      {refusal(429, "rate_limit"), seconds(1)},
      {refusal(500, "server_error"), seconds(1)},
      {refusal(503, "server_error"), seconds(1)},
      {refusal(529, "overloaded_error"), seconds(1)},
      {unreachable, seconds(1)},
      {refusal(400, "invalid_request_error"), {}, FailureKind::kInvalid},
      {refusal(401, "authentication_error"), {}, FailureKind::kAuth},
      {refusal(403, "permission_error"), {}, FailureKind::kAuth},
      {refusal(404, "not_found_error"), {}, FailureKind::kInvalid},
      {refusal(429, "insufficient_quota"), {}, FailureKind::kBilling},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.refused.is_unreachable
                     ? "unreachable"
                     : row.refused.error + " " + std::to_string(row.wait.count()));
    testing::Host own;
    ScriptedModel scripted(own, GetParam());
    auto agent = own.create<Support>("a", scripted.options());
    scripted.then(row.refused);
    scripted.then({"ok"});
    ChatClient client(agent);
    client.say("r1", "hi");
    own.advance(std::max(row.wait, seconds(1)) - std::chrono::milliseconds(100));
    EXPECT_EQ(scripted.requests().size(), 1U);
    own.advance(row.wait > seconds(0) ? seconds(1) : seconds(100));
    client.read();
    const Json done = client.done("r1");
    ASSERT_TRUE(done.is_object());
    if (row.wait > seconds(0)) {
      EXPECT_EQ(scripted.requests().size(), 2U);
      EXPECT_EQ(client.shown("r1"), "ok");
      EXPECT_EQ(done.at("outcome"), "completed");
    } else {
      EXPECT_EQ(scripted.requests().size(), 1U);
      EXPECT_EQ(done.at("outcome"), "error");
      EXPECT_EQ(done.at("body"), client_text(row.kind));
    }
  }
}

TEST_P(ModelCallTest, C29_ClientsKnowOfARecoveryFromTheFirstChunkThatIsCutToTheEnd) {
  Scripted error = says({"one "});
  error.error = "Overloaded";
  Scripted unended = says({"one "});
  unended.is_unended = true;
  struct Row {
    Scripted first;
    bool is_shown;
  };
  const std::vector<Row> rows = {{refusal(429, "rate_limit"), false},
                                 {cut(says({"one "})), true},
                                 {error, true},
                                 {unended, true}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.first.status + (row.first.is_cut ? 1U : 0U) + row.first.error.size());
    testing::Host own;
    ScriptedModel scripted(own, GetParam());
    auto agent = own.create<Support>("a", scripted.options());
    scripted.then(row.first);
    scripted.then({"two"});
    ChatClient client(agent);
    client.say("r1", "count");
    own.advance(std::chrono::milliseconds(500));
    ChatClient late(agent);
    own.advance(seconds(60));
    client.read();
    late.read();
    EXPECT_EQ(client.shown("r1"), row.is_shown ? "one two" : "two");
    EXPECT_EQ(client.done("r1").at("outcome"), "completed");
    EXPECT_EQ(scripted.requests().size(), 2U);
    EXPECT_EQ(client.snapshots(), row.is_shown ? 1U : 0U);  // C2
    for (const ChatClient* const each : {&client, &late}) {
      std::vector<bool> told;
      for (const Json& frame : each->frames("cf_agent_chat_recovering"))
        told.push_back(frame.at("recovering"));
      EXPECT_EQ(told, row.is_shown ? std::vector<bool>({true, false}) : std::vector<bool>());
    }
  }
}

// The id is replaced. An event that is too long to be read at all would come again: it ends the
// turn.
TEST_P(ModelCallTest, ACallWithALongIdIsMadeOnce) {
  for (const std::size_t size : {kMaxIdBytes, kMaxIdBytes + 1, std::size_t{1'000'000}}) {
    SCOPED_TRACE(size);
    testing::Host own;
    ScriptedModel scripted(own, GetParam());
    auto agent = own.create<Support>("a", scripted.options());
    Scripted call = asks("look", {{"id", "o1"}});
    call.says[0].id = std::string(size, 'i');
    scripted.then(call);
    scripted.then({"It costs 5."});
    ChatClient client(agent);
    client.say("r1", "what does o1 cost?");
    own.advance(seconds(1));
    client.read();
    EXPECT_EQ(client.shown("r1"), "It costs 5.");
    ASSERT_EQ(scripted.requests().size(), 2U);
    EXPECT_LT(scripted.requests()[1].body.size(), 10'000U);
    EXPECT_NE(scripted.requests()[1].body.find("500"), std::string::npos);
  }
}

TEST_P(ModelCallTest, AnEventThatIsTooLongEndsTheTurn) {
  auto agent = make();
  Scripted call = asks("look", {{"id", "o1"}});
  call.says[0].id = std::string(std::size_t{1} << 20, 'i');
  model.then(call);
  ChatClient client(agent);
  client.say("r1", "what does o1 cost?");
  host.advance(std::chrono::hours(1));
  client.read();
  EXPECT_EQ(model.requests().size(), 1U);
  EXPECT_EQ(client.done("r1").at("outcome"), "error");
  EXPECT_EQ(client.done("r1").at("body"), client_text(FailureKind::kInvalid));
  EXPECT_EQ(agent.call("notes", "error"), Json::array({"invalid"}));
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
  EXPECT_EQ(agent.call("costs").size(), 2U);
  EXPECT_EQ(agent.sql("SELECT json_extract(spent, '$.calls') FROM chat_turns"),
            Json::array({Json::array({2})}));
  const auto lines = [this](const std::string& begin) {
    return std::ranges::count_if(
        host.log(), [&](const std::string& line) { return line.find(begin) != std::string::npos; });
  };
  EXPECT_EQ(lines("chat:request:failed turn=r1 kind=cut"), 1);
  EXPECT_EQ(lines("chat:recovery:attempt turn=r1"), 1);
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
  wait(seconds(15));
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
  wait(seconds(5));
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

TEST_F(BackgroundTest, AProviderThatDoesNotAnswerTheStopHoldsNoTurn) {
  auto agent = make({{"background", true}});
  model.cancel_takes = std::chrono::hours(1);
  model.then(says({"one ", "two "}, seconds(10)));
  ChatClient client(agent);
  client.say("r1", "count");
  wait(seconds(15));
  client.send({{"type", "cf_agent_chat_request_cancel"}, {"id", "r1"}});
  wait(seconds(11));
  client.read();
  EXPECT_EQ(client.done("r1").at("outcome"), "aborted");
  EXPECT_EQ(cancels(model), 1U);
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

// Only an answer that is gone is paid for once more.
TEST_F(BackgroundTest, C36_APollThatFailsForAMomentIsAskedAgain) {
  struct Row {
    std::vector<Json> polls;
    std::string text;
    std::ptrdiff_t paid;
    std::size_t cancelled;
  };
  const std::vector<Row> rows = {
      {{429, 503, polled("in_progress", "one two "), 500, polled("completed", "one two three")},
       "one two three",
       1,
       0},
      {{polled("in_progress", "one two "), 404}, "one two anew", 2, 0},
      {{503}, "one anew", 2, 1},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text + std::to_string(row.cancelled));
    testing::Host own;
    ScriptedModel scripted(own, "openai-responses");
    Json options = scripted.options();
    options["background"] = true;
    auto agent = own.create<Support>("a", options);
    scripted.then(says({"one ", "two "}, seconds(10)));
    scripted.then({"anew"});
    scripted.polls = row.polls;
    ChatClient client(agent);
    client.say("r1", "count");
    own.advance(seconds(5));
    agent.kill();
    own.advance(seconds(200));
    EXPECT_EQ(text_of(transcript_of(agent)[1]), row.text);
    EXPECT_EQ(agent.call("notes", "end"), Json::array({"completed"}));
    EXPECT_EQ(std::ranges::count_if(scripted.requests(),
                                    [](const auto& sent) {
                                      return sent.method == "POST" &&
                                             !sent.url.ends_with("/cancel");
                                    }),
              row.paid);
    EXPECT_EQ(cancels(scripted), row.cancelled);
  }
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

// A provider of an author's, whose cut answers can be fetched on.
class Numbers : public Provider {
 public:
  [[nodiscard]] HttpCall request(const Prompt& /*prompt*/) const override {
    return {.path = "/say"};
  }
  void read(const ServerSentEvent& event, ModelAnswer& answer) const override {
    Json& count = answer.notes()["count"];
    count = count.is_null() ? 1 : count.get<int>() + 1;
    if (event.data == "end") return answer.complete();
    answer.text("0", event.data);
  }
  [[nodiscard]] std::optional<HttpCall> follow_up(FollowUp what,
                                                  const ModelAnswer& answer) const override {
    if (what != FollowUp::kResume) return std::nullopt;
    return HttpCall{.method = "PUT",
                    .path = "/rest?from=" + to_text(answer.notes().at("count")),
                    .headers = {{"X-Own", "1"}},
                    .body = {{"go", "on"}}};
  }
};
class Counter : public Support {
 public:
  static void methods(Methods<Counter>& m) {
    chat_methods(m);
    m.add("notes", &Counter::notes);
  }
  std::unique_ptr<const Provider> make_provider(const ChatOptions& /*options*/) override {
    return std::make_unique<Numbers>();
  }
};

TEST(OwnProviderTest, C36_AnAnswerThatAKillHasCutIsFetchedOnAsTheProviderSays) {
  testing::Host host;
  std::vector<testing::SentRequest> sent;
  host.on_fetch([&](const testing::SentRequest& request) {
    sent.push_back(request);
    testing::FetchReply reply;
    reply.headers = {{"Content-Type", "text/event-stream"}};
    const std::size_t at = request.url.find("?from=");
    const int from = at == std::string::npos ? 0 : std::stoi(request.url.substr(at + 6));
    const std::vector<std::string> events = {"one ", "two ", "three ", "four", "end"};
    for (std::size_t i = static_cast<std::size_t>(from); i < events.size(); ++i)
      reply.pieces.push_back("data: " + events[i] + "\n\n");
    reply.between = seconds(10);
    return reply;
  });
  auto agent = host.create<Counter>(
      "a", {{"base_url", "http://127.0.0.1:1/v1"}, {"model", "m"}, {"background", true}});
  ChatClient client(agent);
  client.say("r1", "count");
  host.advance(seconds(15));
  agent.kill();
  host.advance(seconds(120));
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one two three four");
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[1].method, "PUT");
  EXPECT_EQ(sent[1].url, "http://127.0.0.1:1/v1/rest?from=2");
  EXPECT_EQ(sent[1].body, R"({"go":"on"})");
  EXPECT_TRUE(
      std::ranges::any_of(sent[1].headers, [](const auto& each) { return each.first == "X-Own"; }));
  EXPECT_EQ(agent.call("notes", "end"), Json::array({"completed"}));
}

class CostTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, CostTest, ::testing::ValuesIn(ScriptedModel::kDialects),
                         provider_name);

TEST_P(CostTest, TheLedgerHasTheTokensThatAreUsed) {
  auto agent = make();
  model.then({"ok"});
  ChatClient client(agent);
  client.say("r1", "hi");
  wait(seconds(1));
  EXPECT_EQ(agent.call("costs"), Json::array({15}));
}

class StallTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, StallTest, ::testing::ValuesIn(ScriptedModel::kDialects),
                         provider_name);

TEST_P(StallTest, AnAnswerWithoutChunksIsTakenAsCut) {
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

class PingTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, PingTest, ::testing::ValuesIn(ScriptedModel::kDialects),
                         provider_name);

// Comments, or the events that Anthropic has for this.
TEST_P(PingTest, C49_PingsAreNoChunksAndAProviderThatOnlyPingsIsGivenUp) {
  auto agent = make({{"stall_timeout_ms", 20'000}});
  Scripted pings = says({"one "}, seconds(5));
  pings.pings = 1'000;
  model.then(pings);
  pings.says.clear();
  model.then(pings);  // again and again
  ChatClient client(agent);
  client.say("r1", "count");
  host.advance(seconds(60));
  EXPECT_EQ(agent.call("notes", "recovery").at(0), "continue 1 one ");
  ASSERT_GE(model.requests().size(), 2U);
  EXPECT_NE(model.requests()[1].body.find("one "), std::string::npos);
  host.advance(seconds(600));
  client.read();
  EXPECT_EQ(agent.call("notes", "exhausted"), Json::array({"no_progress_timeout"}));
  EXPECT_EQ(client.done("r1").at("body"), RecoveryConfig().terminal_message);
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one ");
  EXPECT_LE(model.requests().size(), 13U);
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

// In the first step of a turn, and behind one whose tool has a result.
TEST_F(CutAgainTest, ATextThatTheHookDropsIsMadeAnew) {
  for (const bool has_tool : {false, true}) {
    for (const char* const dialect : ScriptedModel::kDialects) {
      SCOPED_TRACE(dialect + std::string(has_tool ? " with a tool" : ""));
      testing::Host own;
      ScriptedModel scripted(own, dialect);
      Json options = scripted.options();
      options.update(
          {{"background", dialect == std::string("openai-responses")}, {"persist", false}});
      auto agent = own.create<Support>("a", options);
      if (has_tool) scripted.then(asks("look", {{"id", "o1"}}));
      scripted.then(says({"one ", "two ", "three"}, seconds(10)));
      ChatClient client(agent);
      client.say("r1", "count");
      own.advance(seconds(25));
      agent.kill();
      own.advance(seconds(120));
      const Json stored = transcript_of(agent)[1];
      EXPECT_EQ(text_of(stored), "one two three");
      EXPECT_EQ(agent.call("unsettled"), 0);
      EXPECT_EQ(agent.sql("SELECT json_extract(spent, '$.calls') FROM chat_turns"),
                Json::array({Json::array({has_tool ? 3 : 2})}));
      const auto calls = std::ranges::count_if(
          stored.at("parts"), [](const Json& part) { return part.contains("toolCallId"); });
      EXPECT_EQ(calls, has_tool ? 1 : 0);
    }
  }
}

// It was whole in the ledger, but for its last event.
TEST_F(CutAgainTest, C38_AWholeAnswerIsUsedUnlessTheHookDropsIt) {
  for (const bool persist : {true, false}) {
    testing::Host own;
    ScriptedModel scripted(own, "chat-completions");
    Json options = scripted.options();
    options.update({{"persist", persist}, {"max_steps", 1}});
    auto agent = own.create<Support>("a", options);
    int requests = 0;
    own.on_fetch([&](const testing::SentRequest& /*request*/) {
      const Json text{{"delta", {{"content", ++requests == 1 ? "one" : "two"}}}, {"index", 0}};
      const Json end{{"delta", Json::object()}, {"index", 0}, {"finish_reason", "stop"}};
      testing::FetchReply reply;
      reply.headers = {{"Content-Type", "text/event-stream"}};
      for (const Json& choice : {text, end})
        reply.pieces.push_back("data: " + to_text({{"choices", Json::array({choice})}}) + "\n\n");
      reply.pieces.emplace_back("data: [DONE]\n\n");
      reply.between = seconds(10);
      return reply;
    });
    ChatClient client(agent);
    client.say("r1", "count");
    own.advance(seconds(15));
    agent.kill();
    own.advance(seconds(120));
    EXPECT_EQ(text_of(transcript_of(agent)[1]), persist ? "one" : "two");
    EXPECT_EQ(requests, persist ? 1 : 2);
  }
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

TEST_F(CutAgainTest, ATextThatIsWholeIsNotDropped) {
  Json options = model.options();
  options["persist"] = false;
  auto agent = host.create<Waits>("a", options);
  model.then({"one"});
  ChatClient client(agent);
  client.say("r1", "count");
  wait(seconds(15));
  agent.kill();
  wait(seconds(200));
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one");
  EXPECT_EQ(model.requests().size(), 1U);
}

TEST_F(CutAgainTest, ARefusalOfWhichOnlyAPartCameIsAskedForAnew) {
  for (const char* const dialect : ScriptedModel::kDialects) {
    SCOPED_TRACE(dialect);
    testing::Host own;
    ScriptedModel scripted(own, dialect);
    Json options = scripted.options();
    options["background"] = dialect == std::string("openai-responses");
    auto agent = own.create<Support>("a", options);
    int requests = 0;
    own.on_fetch([&](const testing::SentRequest& /*request*/) {
      ++requests;
      testing::FetchReply reply;
      reply.status = requests == 1 ? 429 : 400;
      reply.headers = {{"Content-Type", "application/json"}};
      reply.pieces = {R"({"error": {"message": )", R"("slow down", "type": )", R"("x"}})"};
      reply.between = seconds(10);
      return reply;
    });
    ChatClient client(agent);
    client.say("r1", "count");
    own.advance(seconds(15));
    agent.kill();
    ChatClient back(agent);
    own.advance(seconds(60));
    back.read();
    EXPECT_EQ(requests, 2);
    EXPECT_EQ(back.done("r1").at("body"), client_text(FailureKind::kInvalid));
  }
}

// Whatever cuts the call behind a result: the turn is not over.
TEST_F(CutAgainTest, TheCallBehindAToolIsMadeAgainOrGoesOn) {
  Scripted thinks;
  thinks.says.push_back({.reasoning = "hm"});
  const std::vector<Scripted> rows = {cut(says({})), cut(thinks), cut(says({"one "})),
                                      says({"one ", "two ", "2 ", "1 "}, seconds(10))};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const char* const dialect : ScriptedModel::kDialects) {
      SCOPED_TRACE(dialect + std::string(" ") + std::to_string(i));
      testing::Host own;
      ScriptedModel scripted(own, dialect);
      auto agent = own.create<Support>("a", scripted.options());
      scripted.then(asks("look", {{"id", "o1"}}));
      scripted.then(rows[i]);
      scripted.then({"three"});
      ChatClient client(agent);
      client.say("r1", "count");
      own.advance(seconds(25));
      if (!rows[i].is_cut) agent.kill();  // in the middle
      own.advance(seconds(120));
      EXPECT_TRUE(text_of(transcript_of(agent)[1]).ends_with("three"))
          << to_text(transcript_of(agent)[1]);
      EXPECT_EQ(scripted.requests().size(), 3U);
    }
  }
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
