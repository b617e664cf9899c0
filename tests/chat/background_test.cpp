// Answers that go on at the provider without a connection, and are fetched on, on the mock host.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class BackgroundTest : public Conversation {
 protected:
  BackgroundTest() : Conversation("openai-responses") {}
  testing::AgentHandle agent = make({{"background", true}});
};

TEST_F(BackgroundTest, AfterAKillTheRestIsFetchedAndNothingIsPaidTwice) {
  model.then(says({"one ", "two ", "three ", "four"}, seconds(10)));
  ChatClient client = talk(agent, "count", seconds(35));
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
  model.then(says({"one ", "two "}, seconds(10)));
  ChatClient client = talk(agent, "count", seconds(15));
  stop(client, "r1", seconds(1));
  ASSERT_EQ(model.requests().size(), 2U);
  EXPECT_EQ(model.requests()[1].method, "POST");
  EXPECT_TRUE(model.requests()[1].url.ends_with("/responses/resp_1/cancel"));
}

std::size_t cancels(const ScriptedModel& model) {
  return static_cast<std::size_t>(std::ranges::count_if(
      model.requests(), [](const auto& sent) { return sent.url.ends_with("/resp_1/cancel"); }));
}

std::ptrdiff_t paid(const ScriptedModel& model) {
  return std::ranges::count_if(model.requests(), [](const auto& sent) {
    return sent.method == "POST" && !sent.url.ends_with("/cancel");
  });
}

TEST_F(BackgroundTest, AStopThatAKillHasCutReachesTheProvider) {
  model.cancel_takes = seconds(5);
  model.then(says({"one ", "two ", "three "}, seconds(10)));
  ChatClient client = talk(agent, "count", seconds(5));
  stop(client, "r1", seconds(1));
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
  model.cancel_takes = std::chrono::hours(1);
  model.then(says({"one ", "two "}, seconds(10)));
  ChatClient client = talk(agent, "count", seconds(15));
  stop(client, "r1", seconds(11));
  EXPECT_EQ(client.outcome("r1"), "aborted");
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
  std::vector<Row> rows = {
      {{429, 503, polled("in_progress", "one two "), 500, polled("completed", "one two three")},
       "one two three",
       1,
       0},
      {{polled("in_progress", "one two "), 404}, "one two anew", 2, 0},
      {{503}, "one anew", 2, 1},
      {{"<html>", polled("completed", "one two three")}, "one two three", 1, 0},
      {{"{}", "[]", "null", R"({"error":"upstream timeout"})", R"({"status":"error"})",
        polled("completed", "one two three")},
       "one two three",
       1,
       0},
  };
  rows.push_back({{polled("in_progress", "one two "), polled("completed", "one two three")},
                  "one two three",
                  1,
                  0});
  for (Json& poll : rows.back().polls)
    poll["id"] = "of another name";  // a gateway may give one to each request
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text + std::to_string(row.cancelled));
    Stage own("openai-responses");
    auto agent = own.make({{"background", true}});
    own.model.then_all({says({"one ", "two "}, seconds(10)), says({"anew"})});
    own.model.polls = row.polls;
    ChatClient client = own.talk(agent, "count", seconds(5));
    agent.kill();
    own.wait(seconds(200));
    EXPECT_EQ(text_of(transcript_of(agent)[1]), row.text);
    EXPECT_EQ(agent.call("notes", "end"), Json::array({"completed"}));
    EXPECT_EQ(paid(own.model), row.paid);
    EXPECT_EQ(cancels(own.model), row.cancelled);
  }
}

// A gateway may end the body before the last event. What comes of it then is asked for.
TEST_F(BackgroundTest, C36_AnAnswerWhoseStreamEndsEarlyIsNotPaidTwice) {
  Scripted early = says({"one "});
  early.is_unended = true;
  model.then(early);
  model.polls = {polled("in_progress", "one two "), polled("completed", "one two three")};
  ChatClient client = talk(agent, "count", seconds(30));
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one two three");
  EXPECT_EQ(paid(model), 1);
  EXPECT_EQ(cancels(model), 0U);
}

TEST_F(BackgroundTest, C36_OneThatBeginsAsAJsonBodyIsPolled) {
  model.polls = {polled("completed", "one")};
  host.on_fetch([&](const testing::SentRequest& request) {
    testing::FetchReply reply = model.reply(request);
    if (request.method == "GET") return reply;
    return testing::FetchReply{.headers = {{"Content-Type", "application/json"}},
                               .body = R"({"id":"resp_1","status":"queued"})"};
  });
  model.then({"never"});
  ChatClient client = talk(agent, "count", seconds(30));
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one");
  EXPECT_EQ(paid(model), 1);
}

TEST_F(BackgroundTest, WhatIsPolledAfterACrashInAnEndIsNotLost) {
  model.cancel_takes = seconds(5);
  model.then(cut(says({"one "})));
  model.polls = {polled("in_progress", "one two "), 503};
  ChatClient client(agent);
  client.say("r1", "count");
  for (int i = 0; i < 1'000 && cancels(model) == 0; ++i) wait(milliseconds(100));
  ASSERT_EQ(cancels(model), 1U);
  model.polls = {polled("completed", "one two three")};
  agent.kill();
  wait(seconds(60));
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one two three");
  EXPECT_EQ(paid(model), 1);
}

TEST_F(BackgroundTest, AStopBetweenTwoPollsReachesTheProvider) {
  model.then(cut(says({"one "}, seconds(1))));
  model.polls = {polled("in_progress", "one two ")};
  ChatClient client = talk(agent, "count", seconds(30));
  stop(client, "r1", std::chrono::milliseconds(100));
  EXPECT_EQ(cancels(model), 1U);
  wait(seconds(5), client);
  EXPECT_EQ(client.outcome("r1"), "aborted");
}

TEST_F(BackgroundTest, APollThatHangsIsAskedAgain) {
  model.then(cut(says({"one "}, seconds(1))));
  model.polls = {polled("in_progress", "one two "), polled("completed", "one two three")};
  model.first_poll_takes = std::chrono::hours(1);
  ChatClient client = talk(agent, "count", seconds(60));
  EXPECT_EQ(client.outcome("r1"), "completed");
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one two three");
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

// One with a fault: it throws.
class Throws : public Numbers {
 public:
  void read(const ServerSentEvent& event, ModelAnswer& answer) const override {
    if (event.data == "odd") throw std::runtime_error("no luck");
    Numbers::read(event, answer);
  }
};
class Unlucky : public Support {
 public:
  static void methods(Methods<Unlucky>& m) { chat_methods(m); }
  std::unique_ptr<const Provider> make_provider(const ChatOptions& /*options*/) override {
    return std::make_unique<Throws>();
  }
};

TEST(OwnProviderTest, OneThatThrowsEndsTheTurnAndTheNextOneBegins) {
  testing::Host host;
  int requests = 0;
  host.on_fetch([&](const testing::SentRequest& request) {
    EXPECT_EQ(request.header("Accept"), "text/event-stream, application/json");
    return event_stream({"one", ++requests == 1 ? "odd" : "two", "end"}, milliseconds(10));
  });
  auto agent = host.create<Unlucky>("a", {{"base_url", "http://127.0.0.1:1/v1"}, {"model", "m"}});
  ChatClient client(agent);
  for (const char* id : {"r1", "r2"}) {
    client.say(id, "count");
    host.advance(seconds(300));
  }
  client.read();
  EXPECT_EQ(client.done("r1").value("error", false), true);
  EXPECT_EQ(client.done("r2").value("outcome", ""), "completed");
  EXPECT_EQ(requests, 2);
}

TEST(OwnProviderTest, C36_AnAnswerThatAKillHasCutIsFetchedOnAsTheProviderSays) {
  Stage own("chat-completions");
  std::vector<testing::SentRequest> sent;
  own.host.on_fetch([&](const testing::SentRequest& request) {
    sent.push_back(request);
    const std::size_t at = request.url.find("?from=");
    const int from = at == std::string::npos ? 0 : std::stoi(request.url.substr(at + 6));
    std::vector<std::string> events = {"one ", "two ", "three ", "four", "end"};
    events.erase(events.begin(), events.begin() + from);
    return event_stream(events, seconds(10));
  });
  auto agent = own.make<Counter>({{"background", true}});
  ChatClient client = own.talk(agent, "count", seconds(15));
  agent.kill();
  own.wait(seconds(120));
  EXPECT_EQ(text_of(transcript_of(agent)[1]), "one two three four");
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[1].method, "PUT");
  EXPECT_EQ(sent[1].url, "http://127.0.0.1:1/v1/rest?from=2");
  EXPECT_EQ(sent[1].body, R"({"go":"on"})");
  EXPECT_TRUE(
      std::ranges::any_of(sent[1].headers, [](const auto& each) { return each.first == "X-Own"; }));
  EXPECT_EQ(agent.call("notes", "end"), Json::array({"completed"}));
}

// Not even its head comes.
TEST_F(BackgroundTest, C36_WhatIsShownStaysWhenTheRequestForTheRestGetsNoAnswer) {
  struct Row {
    std::string name;
    bool is_killed;
    bool is_stopped;  // else it stalls
    testing::FetchReply rest;
    std::string text;
  };
  testing::FetchReply hangs;
  hangs.after = std::chrono::hours(1);
  testing::FetchReply refuses;
  refuses.status = 0;
  refuses.failure = testing::FetchReply::Failure();
  const std::vector<Row> rows = {{"cut, stop", false, true, hangs, "one two "},
                                 {"kill, stop", true, true, hangs, "one two "},
                                 {"cut, stall", false, false, hangs, "one two anew"},
                                 {"kill, stall", true, false, hangs, "one two anew"},
                                 {"cut, unreachable", false, false, refuses, "one two three"},
                                 {"kill, unreachable", true, false, refuses, "one two three"}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    testing::Host own;
    ScriptedModel scripted(own, "openai-responses");
    bool has_asked = false;
    own.on_fetch([&](const testing::SentRequest& request) {
      testing::FetchReply reply = scripted.reply(request);
      if (request.method == "GET" && !std::exchange(has_asked, true)) return row.rest;
      if (row.is_killed || scripted.requests().size() > 1) return reply;
      reply.pieces.resize(2);
      reply.failure = {.phase = HEARTH_FETCH_PHASE_BODY, .sent = true};
      return reply;
    });
    Json options = scripted.options();
    options["background"] = true;
    options["stall_timeout_ms"] = 60'000;
    auto agent = own.create<Support>("a", options);
    scripted.then(says({"one ", "two ", "three"}, seconds(10)));
    scripted.then({"anew"});
    ChatClient sender(agent);
    sender.say("r1", "count");
    own.advance(seconds(15));
    if (row.is_killed) agent.kill();
    ChatClient client(agent);
    client.read();
    own.advance(seconds(15));
    if (row.is_stopped) client.send({{"type", "cf_agent_chat_request_cancel"}, {"id", "r1"}});
    own.advance(seconds(200));
    client.read();
    const Json done = client.done("r1");
    ASSERT_TRUE(done.is_object());
    EXPECT_EQ(client.shown("r1"), row.text);
    EXPECT_EQ(text_of(transcript_of(agent)[1]), row.text);
    EXPECT_EQ(done.at("outcome"), row.is_stopped ? "aborted" : "completed");
    const bool is_fetched = row.text == "one two three";
    EXPECT_EQ(paid(scripted), row.is_stopped || is_fetched ? 1 : 2);
    EXPECT_EQ(cancels(scripted), is_fetched ? 0U : 1U);
    EXPECT_EQ(agent.call("unsettled"), 0);
  }
}

}  // namespace
}  // namespace hearth::chat
