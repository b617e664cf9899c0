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
INSTANTIATE_TEST_SUITE_P(Providers, ModelCallTest, each_dialect(), provider_name);

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
  const std::vector<Row> rows = {
      {asks_to_wait, seconds(7)},
      {refusal(429, "rate_limit"), seconds(1)},
      {refusal(500, "server_error"), seconds(1)},
      {refusal(503, "server_error"), seconds(1)},
      {refusal(529, "overloaded_error"), seconds(1)},
      {{.is_unreachable = true}, seconds(1)},
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
    Stage own(GetParam());
    auto agent = own.make();
    own.model.then_all({row.refused, says({"ok"})});
    ChatClient client(agent);
    own.say(client, "r1", "hi", std::max(row.wait, seconds(1)) - std::chrono::milliseconds(100));
    EXPECT_EQ(own.model.requests().size(), 1U);
    own.wait(row.wait > seconds(0) ? seconds(1) : seconds(100), client);
    if (row.wait > seconds(0)) {
      EXPECT_EQ(own.model.requests().size(), 2U);
      EXPECT_EQ(client.shown("r1"), "ok");
      EXPECT_EQ(client.outcome("r1"), "completed");
    } else {
      EXPECT_EQ(own.model.requests().size(), 1U);
      EXPECT_EQ(client.outcome("r1"), "error: " + std::string(client_text(row.kind)));
    }
  }
}

// What the client was told of recoveries.
std::vector<bool> recovering(const ChatClient& client) {
  std::vector<bool> told;
  for (const Json& frame : client.frames("cf_agent_chat_recovering"))
    told.push_back(frame.at("recovering"));
  return told;
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
    Stage own(GetParam());
    auto agent = own.make();
    own.model.then_all({row.first, says({"two"})});
    ChatClient client = own.talk(agent, "count", std::chrono::milliseconds(500));
    ChatClient late(agent);
    own.wait(seconds(60), client, late);
    EXPECT_EQ(client.shown("r1"), row.is_shown ? "one two" : "two");
    EXPECT_EQ(client.outcome("r1"), "completed");
    EXPECT_EQ(own.model.requests().size(), 2U);
    EXPECT_EQ(client.snapshots(), row.is_shown ? 1U : 0U);  // C2
    for (const ChatClient* const each : {&client, &late}) {
      EXPECT_EQ(recovering(*each),
                row.is_shown ? std::vector<bool>({true, false}) : std::vector<bool>());
    }
  }
}

// The id is replaced. An event that is too long to be read at all would come again: it ends the
// turn.
TEST_P(ModelCallTest, ACallWithALongIdIsMadeOnce) {
  for (const std::size_t size : {kMaxIdBytes, kMaxIdBytes + 1, std::size_t{1'000'000}}) {
    SCOPED_TRACE(size);
    Stage own(GetParam());
    auto agent = own.make();
    Scripted call = asks("look", {{"id", "o1"}});
    call.says[0].id = std::string(size, 'i');
    own.model.then_all({call, says({"It costs 5."})});
    ChatClient client = own.talk(agent, "what does o1 cost?", seconds(1));
    EXPECT_EQ(client.shown("r1"), "It costs 5.");
    ASSERT_EQ(own.model.requests().size(), 2U);
    EXPECT_LT(own.model.requests()[1].body.size(), 10'000U);
    EXPECT_TRUE(own.model.asked_with(1, "500"));
  }
}

TEST_P(ModelCallTest, AnEventThatIsTooLongEndsTheTurn) {
  Scripted call = asks("look", {{"id", "o1"}});
  call.says[0].id = std::string(std::size_t{1} << 20, 'i');
  model.then(call);
  ChatClient client = talk(support, "what does o1 cost?", std::chrono::hours(1));
  EXPECT_EQ(model.requests().size(), 1U);
  EXPECT_EQ(client.outcome("r1"), "error: " + std::string(client_text(FailureKind::kInvalid)));
  EXPECT_EQ(support.call("notes", "error"), Json::array({"invalid"}));
}

TEST_P(ModelCallTest, ACutAnswerGoesOnInTheSameTextAndCountsAsTwoCalls) {
  model.then_all({cut(says({"one ", "two "})), says({"three"})});
  ChatClient client = talk(support, "count", seconds(60));
  EXPECT_EQ(client.shown("r1"), "one two three");
  EXPECT_EQ(model.requests().size(), 2U);
  EXPECT_EQ(texts_of(support), (std::vector<std::string>{"count", "one two three"}));
  EXPECT_EQ(client.outcome("r1"), "completed");
  EXPECT_EQ(recovering(client), std::vector<bool>({true, false}));
  EXPECT_EQ(support.call("costs").size(), 2U);
  EXPECT_EQ(support.sql("SELECT json_extract(spent, '$.calls') FROM chat_turns"),
            Json::array({Json::array({2})}));
  EXPECT_EQ(logged("chat:request:failed turn=r1 kind=cut"), 1U);
  EXPECT_EQ(logged("chat:recovery:attempt turn=r1"), 1U);
}

TEST_P(ModelCallTest, TheLedgerHasTheTokensThatAreUsed) {
  model.then({"ok"});
  ChatClient client = talk(support, "hi", seconds(1));
  EXPECT_EQ(support.call("costs"), Json::array({15}));
}

TEST_P(ModelCallTest, AnAnswerWithoutChunksIsTakenAsCut) {
  auto agent = make({{"stall_timeout_ms", 20'000}});
  model.then_all({says({"one ", "two ", "three"}, seconds(60)), says({"and the rest"})});
  ChatClient client = talk(agent, "count", seconds(120));
  EXPECT_EQ(client.shown("r1"), "one and the rest");
  EXPECT_EQ(model.requests().size(), 2U);
  EXPECT_EQ(agent.call("notes", "recovery"), Json::array({"continue 1 one "}));
}

// Comments, or the events that Anthropic has for this.
TEST_P(ModelCallTest, C49_PingsAreNoChunksAndAProviderThatOnlyPingsIsGivenUp) {
  auto agent = make({{"stall_timeout_ms", 20'000}});
  Scripted pings = says({"one "}, seconds(5));
  pings.pings = 1'000;
  model.then(pings);
  pings.says.clear();
  model.then(pings);  // again and again
  ChatClient client = talk(agent, "count", seconds(60));
  EXPECT_EQ(agent.call("notes", "recovery").at(0), "continue 1 one ");
  ASSERT_GE(model.requests().size(), 2U);
  EXPECT_TRUE(model.asked_with(1, "one "));
  wait(seconds(600), client);
  EXPECT_EQ(agent.call("notes", "exhausted"), Json::array({"no_progress_timeout"}));
  EXPECT_EQ(client.done("r1").at("body"), RecoveryConfig().terminal_message);
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one ");
  EXPECT_LE(model.requests().size(), 13U);
}

// As of a base_url with http for https, or of a page to log in.
TEST(RedirectionTest, ARedirectionEndsTheTurnAndCostsNothing) {
  for (const unsigned status : {301U, 302U, 304U}) {
    SCOPED_TRACE(status);
    testing::Host host;
    int requests = 0;
    host.on_fetch([&](const testing::SentRequest& /*request*/) {
      ++requests;
      testing::FetchReply reply;
      reply.status = status;
      reply.headers = {{"Location", "https://127.0.0.1:1/v1"}, {"Content-Type", "text/html"}};
      reply.body = "<html>moved</html>";
      return reply;
    });
    auto agent = host.create<Support>("a", {{"base_url", "http://127.0.0.1:1/v1"}, {"model", "m"}});
    ChatClient client(agent);
    client.say("r1", "hi");
    host.advance(seconds(600));
    client.read();
    EXPECT_EQ(requests, 1);
    EXPECT_EQ(client.done("r1").at("body"), client_text(FailureKind::kInvalid));
    EXPECT_EQ(agent.sql("SELECT json_extract(spent, '$.calls') FROM chat_turns"),
              Json::array({Json::array({0})}));
    EXPECT_TRUE(std::ranges::any_of(host.log(), [&](const std::string& line) {
      return line.find("kind=invalid: HTTP " + std::to_string(status)) != std::string::npos;
    }));
  }
}

// The next call would have all of it in its prompt, and be paid for nothing.
TEST_P(ModelCallTest, AnAnswerWithoutAnEndEndsItsTurnAndIsNotAskedToGoOn) {
  for (const bool is_limited : {false, true}) {  // by the fetch, or by what a message can hold
    SCOPED_TRACE(is_limited);
    testing::Host own;
    ScriptedModel scripted(own, GetParam());
    own.on_fetch([&](const testing::SentRequest& request) {
      testing::FetchReply reply = scripted.reply(request);
      if (!is_limited) return reply;
      reply.failure = {.code = HEARTH_E_LIMIT, .phase = HEARTH_FETCH_PHASE_BODY, .sent = true};
      return reply;
    });
    auto agent = own.create<Support>("a", scripted.options());
    const std::size_t bytes = is_limited ? 10 : 900'000;
    scripted.then(cut(says(std::vector<std::string>(20, std::string(bytes, 'x')))));
    ChatClient client(agent);
    client.say("r1", "talk");
    own.advance(seconds(600));
    client.read();
    EXPECT_EQ(scripted.requests().size(), 1U);
    EXPECT_EQ(client.done("r1").at("outcome"), "error");
    EXPECT_EQ(client.done("r1").at("body"), is_limited ? client_text(FailureKind::kInvalid)
                                                       : "The answer is too large to be stored.");
    const Json stored = transcript_of(agent);
    ASSERT_EQ(stored.size(), 2U);
    EXPECT_EQ(text_of(stored[1]), client.shown("r1"));
    EXPECT_EQ(text_of(stored[1]).size(), is_limited ? 20 * bytes : 18 * bytes);
  }
}

}  // namespace
}  // namespace hearth::chat
