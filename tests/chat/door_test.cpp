// A turn over HTTP, on the mock host.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::seconds;

constexpr const char* kPath = "/agents/support/a/chat";

// The texts of the events, and the data of the last one.
std::string events_text(const std::string& body, Json* done = nullptr) {
  std::string text;
  for (const ServerSentEvent& event : read_events(body)) {
    const Json data = parse_json(event.data);
    if (event.event == "done" && done != nullptr) *done = data;
    if (data.value("type", "") == "text-delta") text += data.at("delta").get<std::string>();
  }
  return text;
}

class DoorTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, DoorTest, each_dialect(), provider_name);

TEST_P(DoorTest, ATurnStreamsAndTheSameKeyGivesTheRestAfterACrash) {
  model.then_all({says({"one ", "two ", "three "}, seconds(10)), says({"four"})});
  const auto first =
      support.start_request("POST", kPath, R"({"text":"count"})", {{"Idempotency-Key", "k1"}});
  wait(seconds(15));
  EXPECT_EQ(events_text(first.answer().body), "one two ");
  const auto seen = read_events(first.answer().body);
  support.kill();
  const auto again =
      support.start_request("POST", kPath, R"({"text":"count"})",
                            {{"Idempotency-Key", "k1"}, {"Last-Event-ID", seen.back().id}});
  wait(seconds(60));
  Json done;
  ASSERT_TRUE(again.done());
  EXPECT_EQ(events_text(again.answer().body, &done), "four");
  EXPECT_EQ(done.at("outcome"), "completed");
  EXPECT_EQ(transcript_of(support).size(), 2U);
  const auto late =
      support.start_request("POST", kPath, R"({"text":"count"})", {{"Idempotency-Key", "k1"}});
  EXPECT_EQ(events_text(late.answer().body), "one two four");
}

// Reads five parts in a second.
class Slow : public Agent {
 public:
  static void methods(Methods<Slow>& m) { m.add("read", &Slow::read); }
  Task<std::string> read(std::string turn) {
    CallStream stream = agent("Support", "support", {.timeout = std::chrono::hours(10)})
                            .stream("chat.follow", turn, 0);
    std::string text;
    std::uint64_t seq = 0;
    for (;;) {
      auto next = stream.next<Json>();
      const std::optional<Json> part = co_await next;
      if (!part) break;
      EXPECT_EQ(part->at("seq"), seq++);
      if (part->at("chunk").at("type") == "text-delta")
        text += part->at("chunk").at("delta").get<std::string>();
      co_await sleep(std::chrono::milliseconds(200));
    }
    co_return text;
  }
};

TEST_P(DoorTest, AReaderThatIsSlowGetsTheRestAlthoughTheNextTurnHasBegun) {
  std::vector<std::string> words;
  std::string all;
  for (int i = 0; i < 30; ++i) all += words.emplace_back(60'000, static_cast<char>('a' + i % 26));
  model.then_all({says(words, std::chrono::milliseconds(100)), says({"next"})});
  const std::string id = support.call("start", "count", "k1");
  auto slow = host.create<Slow>("s");
  auto reading = slow.start("read", id);
  wait(seconds(4));
  support.call("start", "and", "k2");
  wait(seconds(60));
  EXPECT_EQ(support.call("notes", "end"), Json::array({"completed", "completed"}));
  ASSERT_TRUE(reading.done());
  EXPECT_TRUE(reading.value() == all);
}

TEST_P(DoorTest, AReaderThatComesAfterTheNextTurnHasBegunIsToldThatTheRestIsGone) {
  model.then_all({says({"one"}), says({"two"})});
  for (const bool is_gone : {false, true}) {
    if (is_gone) support.call("start", "and", "k2");
    const auto answer =
        support.start_request("POST", kPath, R"({"text":"count"})", {{"Idempotency-Key", "k1"}});
    wait(seconds(60));
    Json done;
    EXPECT_EQ(events_text(answer.answer().body, &done), is_gone ? "" : "one");
    EXPECT_EQ(done.value("is_cut", false), is_gone);
    EXPECT_EQ(done.at("outcome"), "completed");
  }
}

TEST_P(DoorTest, ARestIsGoneAlthoughItsMessageWasRemovedToo) {
  auto agent = make({{"max_persisted_messages", 1}});
  model.then_all({says({"one"}), says({"two"})});
  for (const char* const key : {"k1", "k2"}) {
    agent.call("start", "count", key);
    wait(seconds(5));
  }
  EXPECT_EQ(transcript_of(agent).size(), 1U);
  const auto answer =
      agent.start_request("POST", kPath, R"({"text":"count"})", {{"Idempotency-Key", "k1"}});
  wait(seconds(5));
  Json done;
  EXPECT_EQ(events_text(answer.answer().body, &done), "");
  EXPECT_EQ(done.value("is_cut", false), true);
}

TEST_P(DoorTest, AWrongBodyIsRefusedWithASentence) {
  for (const char* const body :
       {"", "no JSON", "{}", R"({"messages":[]})", R"({"messages":[{"role":"system"}]})",
        R"({"messages":[{"role":"user"}]})"}) {
    const auto answer = support.request("POST", kPath, body);
    EXPECT_EQ(answer.status, 400U) << body;
    EXPECT_FALSE(answer.json().at("error").at("message").get<std::string>().empty());
  }
  EXPECT_TRUE(model.requests().empty());
}

Json asking_with(const std::vector<Json>& messages) {
  return {{"messages", messages}};
}

TEST_P(DoorTest, C53_NoMessageIsChangedAndARefusalLeavesNothing) {
  model.then({"hello"});
  const std::string first = to_text(asking_with({user_message("u1", "hi")}));
  const auto begun = support.start_request("POST", kPath, first, {{"Idempotency-Key", "k1"}});
  wait(seconds(1));
  const Json stored = transcript_of(support);
  ASSERT_EQ(stored.size(), 2U);
  const std::string answer_id = stored[1].at("id");
  const std::vector<Json> many(101, Json{{"role", "user"}, {"parts", Json::array()}});
  for (const Json& body :
       {asking_with({user_message(answer_id, "forged")}),
        asking_with({user_message("u1", "other")}),
        asking_with({user_message("u2", "new"), user_message("u1", "other")}), asking_with(many)})
    EXPECT_EQ(support.request("POST", kPath, to_text(body)).status, 400U) << to_text(body);
  EXPECT_EQ(transcript_of(support), stored);
  EXPECT_EQ(support.sql("SELECT count(*) FROM chat_turns"), Json::array({Json::array({1})}));
  const auto again = support.start_request("POST", kPath, first, {{"Idempotency-Key", "k1"}});
  EXPECT_EQ(events_text(again.answer().body), "hello");
}

// It is stored when its turn ends.
TEST_P(DoorTest, C53_TheAnswerThatIsMadeIsNoMessageOfAUser) {
  auto agent = make({{"client_history", "append"}});
  model.then_all({says({"one ", "two "}, seconds(10)), says({"three"})});
  ChatClient client = talk(agent, "count", seconds(5));
  const std::string id =
      agent.sql("SELECT message_id FROM chat_turns WHERE state = 'running'")[0][0];
  const std::string posted = to_text(asking_with({user_message(id, "forged")}));
  const auto refused = agent.request("POST", kPath, posted);
  EXPECT_EQ(refused.status, 400U) << refused.body;
  client.ask("r2", Json::array({user_message(id, "forged")}));
  client.send({{"type", "cf_agent_chat_messages"},
               {"messages", Json::array({user_message(id, "forged")})}});
  wait(seconds(60));
  EXPECT_EQ(text_of(transcript_of(agent)[1]).substr(0, 4), "one ");
  for (const Json& message : transcript_of(agent)) EXPECT_NE(text_of(message), "forged");
}

TEST_P(DoorTest, ALongBodyIsReadAsAShortOne) {
  model.then({"hello"});
  const std::string text(300'000, 'a');
  const auto answer = support.start_request("POST", kPath, to_text({{"text", text}}));
  wait(seconds(1));
  EXPECT_EQ(events_text(answer.answer().body), "hello");
  EXPECT_EQ(text_of(transcript_of(support)[0]), text);
}

TEST_P(DoorTest, C52_AClassThatDecidesAtTheConnectionTakesNoTurnHere) {
  auto agent = make<Shut>();
  for (const char* const path : {kPath, "/agents/support/a/chat?guest=1"}) {
    const auto answer = agent.request("POST", path, R"({"text":"hi"})");
    EXPECT_EQ(answer.status, 403U) << path;
    EXPECT_TRUE(has(answer.body, "over a WebSocket only.")) << answer.body;
  }
  wait(seconds(60));
  EXPECT_TRUE(model.requests().empty());
  EXPECT_EQ(transcript_of(agent), Json::array()) << "which may be read";
}

TEST_P(DoorTest, C52_TheClassDecidesWhoMaySend) {
  class Judging : public Shut {
   public:
    static void methods(Methods<Judging>& m) { chat_methods(m); }
    void on_posting(const Request& request) override {
      if (request.query("guest")) throw Error(HEARTH_E_FORBIDDEN, "Guests only read.");
    }
  };
  auto agent = make<Judging>();
  model.then({"hello"});
  const auto refused = agent.request("POST", "/agents/support/a/chat?guest=1", R"({"text":"hi"})");
  EXPECT_EQ(refused.status, 403U);
  EXPECT_TRUE(has(refused.body, "Guests only read.")) << refused.body;
  EXPECT_EQ(transcript_of(agent), Json::array());
  const auto answer = agent.start_request("POST", kPath, R"({"text":"hi"})");
  wait(seconds(60));
  EXPECT_EQ(events_text(answer.answer().body), "hello");
}

}  // namespace
}  // namespace hearth::chat
