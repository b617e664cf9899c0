// Clients that come, go and come back, on the mock host.
#include "support_agent.hpp"

#include <hearth/chat/streams.hpp>
#include <hearth/chat/wire.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class StreamsTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, StreamsTest, each_dialect(), provider_name);

TEST_P(StreamsTest, TenReconnectsInOneStreamMissNothing) {
  std::vector<std::string> words;
  std::string all;
  for (int i = 0; i < 30; ++i) all += words.emplace_back("w" + std::to_string(i) + " ");
  model.then(says(words, seconds(1)));
  {
    ChatClient client(support, "tab");
    say(client, "r1", "go", seconds(2));
    client.close();
  }
  for (int i = 0; i < 10; ++i) {
    ChatClient client(support, "tab");
    client.resume();
    for (int k = 0; k < 4; ++k) {
      client.read();
      wait(std::chrono::milliseconds(500));
    }
    client.read();
    EXPECT_TRUE(all.starts_with(client.shown("r1")));
    EXPECT_FALSE(client.shown("r1").empty());
    client.close();
  }
  ChatClient client(support, "tab");
  client.read();
  wait(seconds(60), client);
  EXPECT_EQ(client.shown("r1"), all);
  EXPECT_EQ(client.outcome("r1"), "completed");
}

TEST_P(StreamsTest, AnOfferedSocketGetsNothingBeforeItsAcknowledgement) {
  model.then(says({"one ", "two ", "three "}, seconds(1)));
  ChatClient sender = talk(support, "go", std::chrono::milliseconds(1'500));
  ChatClient late(support);
  late.takes_offers = false;
  late.acknowledge("another");
  wait(seconds(1), late);
  EXPECT_TRUE(late.frames("cf_agent_use_chat_response").empty());
  for (int i = 0; i < 3; ++i) late.acknowledge("r1");
  wait(seconds(10), late);
  EXPECT_EQ(late.shown("r1"), "one two three ");
}

TEST_P(StreamsTest, ATabThatWaitsIsToldWhenTheTurnStreams) {
  model.then(says({"hello"}, seconds(5)));
  ChatClient sender(support);
  sender.ask("r1", Json::array({user_message("u1", "hi")}));
  sender.say("r2", "more");  // waits behind it
  ChatClient late(support);
  late.read();
  EXPECT_FALSE(late.frames("cf_agent_stream_pending").empty() &&
               late.frames("cf_agent_stream_resuming").empty());
  for (int i = 0; i < 60; ++i) {
    wait(seconds(1), late);
  }
  EXPECT_EQ(late.outcome("r2"), "completed");
}

TEST_P(StreamsTest, C20_ATabThatWaitsForATurnThatNeverStreamsIsFreed) {
  class Plain : public ChatAgent {  // writes nothing of its own
   public:
    static void methods(Methods<Plain>& m) { chat_methods(m); }
  };
  auto agent = host.create<Plain>("a", model.options());
  model.then({.says = {{.text = "never"}}, .after = std::chrono::hours(1)});
  ChatClient sender(agent);
  ChatClient late(agent);
  for (const bool has_queued : {false, true}) {
    const std::string id = has_queued ? "r2" : "r1";
    sender.say(id, "hi");
    if (has_queued) sender.say("r3", "and");
    wait(seconds(1));
    ChatClient fresh(agent);
    fresh.read();
    EXPECT_EQ(fresh.frames("cf_agent_stream_pending").size(), 1U);
    late.resume();
    late.read();
    EXPECT_EQ(late.frames("cf_agent_stream_pending").size(), has_queued ? 2U : 1U);
    for (const char* const turn : {"r3", id.c_str()}) sender.stop(turn);
    wait(seconds(1), late, fresh);
    EXPECT_EQ(fresh.frames("cf_agent_stream_resume_none").size(), 1U);
    EXPECT_EQ(late.frames("cf_agent_stream_resume_none").size(), has_queued ? 2U : 1U);
  }
  EXPECT_TRUE(late.frames("cf_agent_stream_resuming").empty());
}

TEST_P(StreamsTest, C21_AFailureIsShownToTheNextTabUntilTheNextMessageOrAClear) {
  const auto expect_idle = [&] {
    ChatClient fresh(support);
    fresh.resume();
    wait(seconds(1), fresh);
    const std::vector<Json> told = fresh.frames("cf_agent_stream_resume_none");
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back().at("reason"), "idle");
  };
  model.then_all({cut(says({"half"})), refuses(400, "no")});
  {
    ChatClient sender = talk(support, "go", seconds(1));
    sender.close();
  }
  wait(seconds(100));
  ChatClient late(support);
  late.resume();
  late.read();
  wait(seconds(1), late);
  EXPECT_EQ(late.shown("r1"), "half");
  EXPECT_EQ(late.done("r1").at("error"), true);
  model.then({"fine"});
  say(late, "r2", "again", seconds(1));
  expect_idle();
  model.then(refuses(400, "no"));
  say(late, "r3", "once more", seconds(100));
  EXPECT_EQ(late.done("r3").at("error"), true);
  late.clear();
  wait(seconds(1));
  expect_idle();
}

TEST_P(StreamsTest, ATabThatIsBackAfterTheEndGetsTheTranscript) {
  model.then(says({"one ", "two"}, seconds(1)));
  {
    ChatClient client(support, "tab");
    say(client, "r1", "go", std::chrono::milliseconds(1'500));
    client.close();
  }
  wait(seconds(60));
  ChatClient back(support, "tab");
  back.read();
  const auto frames = back.frames("cf_agent_chat_messages");
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].at("connect"), true);
  EXPECT_EQ(text_of(frames[0].at("messages").back()), "one two");
}

TEST_P(StreamsTest, AReplacedLibraryLosesNoSocket) {
  model.then_all({says({"one ", "two ", "three "}, seconds(10)), says({"four"})});
  ChatClient client = talk(support, "go", seconds(15));
  ChatClient offered(support);
  offered.takes_offers = false;
  support.evict();
  wait(seconds(60), client);
  EXPECT_EQ(client.shown("r1"), "one two four");
  EXPECT_EQ(client.outcome("r1"), "completed");
  offered.read();
  EXPECT_TRUE(offered.shown("r1").empty());
  EXPECT_EQ(offered.outcome("r1"), "completed");
}

// Where a probe is answered, nothing else is sent before it, and no time passes: `probe` gives all
// frames of the step in which it comes. Writes nothing of its own.
class Quiet : public ChatAgent {
 public:
  static void methods(Methods<Quiet>& m) {
    chat_methods(m);
    m.add("open", &Quiet::open);
  }
  // The turn that has not ended.
  std::string open() {
    return sql("SELECT id FROM chat_turns WHERE ended IS NULL").value<std::string>();
  }
  Task<void> on_turn(Turn& turn) override {
    turn.tool("find", "Finds a parcel.", Effect::kRead, &Quiet::find);
    auto generating = turn.generate();
    co_await std::move(generating);
  }
  Task<Json> find(Json /*input*/) {
    co_await sleep(seconds(10));
    co_return Json{{"found", true}};
  }
};

class ProbeTest : public Conversation {
 protected:
  using Frames = std::vector<std::string>;

  static Frames probe(ChatClient& client) {
    std::ignore = client.socket().take_received();
    client.send({{"type", "cf_agent_stream_resume_request"}, {"probeId", "p"}});
    Frames frames;
    for (const auto& received : client.socket().take_received()) frames.push_back(received.payload);
    return frames;
  }
  static Frames none(const char* reason = "idle") { return {resume_none_frame(reason, "p")}; }
  static Frames pending(const std::string& id) { return {pending_frame(id, "p")}; }
  static Frames resuming(const std::string& id) { return {resuming_frame(id, "p")}; }
  // What the model says `after` so long.
  static Scripted late(Scripted answer) {
    answer.after = seconds(10);
    answer.between = seconds(10);
    return answer;
  }
};
INSTANTIATE_TEST_SUITE_P(Providers, ProbeTest, each_dialect(), provider_name);

TEST_P(ProbeTest, C19_IsAnsweredAloneAndInTheSameStepWhateverTheChatDoes) {
  auto agent = host.create<Quiet>("a", model.options());
  ChatClient sender(agent, "sender");
  ChatClient tab(agent, "tab");
  EXPECT_EQ(probe(tab), none());

  model.then(late(both(says({"one "}), asks("find", {{"id", "o1"}}))));
  sender.say("r1", "find");
  EXPECT_EQ(probe(tab), pending("r1"));
  wait(seconds(5));
  EXPECT_EQ(probe(tab), pending("r1")) << "the model is silent";
  sender.say("r2", "and");
  EXPECT_EQ(probe(tab), pending("r2")) << "the latest that waits";
  wait(seconds(10));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(probe(tab), resuming("r1")) << "it streams";
  tab.say("r3", std::string(std::size_t{1} << 20, 'x'));
  EXPECT_EQ(probe(tab), resuming("r1")) << "a long frame of its own is being read";
  EXPECT_EQ(probe(sender), resuming("r1"));
  for (const char* const id : {"r2", "r3"}) sender.stop(id);
  wait(seconds(20));
  EXPECT_EQ(probe(tab), resuming("r1")) << "a tool runs";
  model.then(late(says({"two"})));
  agent.kill();
  ChatClient back(agent, "tab");
  EXPECT_EQ(probe(back), resuming("r1")) << "after a kill";
  wait(seconds(100));
  EXPECT_EQ(probe(back), none());
}

TEST_P(ProbeTest, C19_IsAnsweredSoOfRecoveriesFailuresAndContinuations) {
  auto agent = host.create<Quiet>("a", model.options());
  ChatClient sender(agent, "sender");
  ChatClient tab(agent, "tab");
  model.then_all({refuses(500, "no"), refuses(400, "no")});
  say(sender, "r1", "hi", milliseconds(500));
  EXPECT_EQ(probe(tab), pending("r1")) << "it waits to try again";
  wait(seconds(60));
  EXPECT_EQ(probe(tab), resuming("r1")) << "it has failed";
  sender.clear();
  EXPECT_EQ(probe(tab), none());

  model.then_all({asks("where", {{"a", 1}}), late(says({"one ", "two"}))});
  sender.ask_where("r2", "where am I?");
  wait(seconds(1));
  for (const Json& call : calls_of(transcript_of(agent).back()))
    sender.answer(call.at("toolCallId"), "Rome");
  const std::string id = agent.call("open");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(probe(sender), pending(id));
    EXPECT_EQ(probe(tab), none()) << "it is for another one";
    wait(seconds(5));
  }
  wait(seconds(15));
  EXPECT_EQ(probe(sender), resuming(id));
  EXPECT_EQ(probe(tab), none("continuation-owned"));
  sender.close();
  EXPECT_EQ(probe(tab), resuming(id)) << "its owner has left";
}

// The parts that send, with limits that a test reaches easily.
class Room : public Agent {
 public:
  static void methods(Methods<Room>& m) {
    m.add("put", &Room::put);
    m.add("update", &Room::update);
    m.add("show", &Room::show);
    m.add("raw", &Room::raw);
    m.add("say", &Room::say);
    m.add("end", &Room::end);
    m.add("drop", &Room::drop);
  }
  Task<void> on_start() override {
    streams_.start();
    return {};
  }
  Task<void> on_connect(Connection client) override {
    streams_.connect(client);
    return {};
  }
  void put(std::size_t bytes) { transcript_.put(user_message("u1", std::string(bytes, 'x'))); }
  void show() {
    streams_.show_messages();
    streams_.show_messages_to(connections().at(0));
    streams_.show_update(*transcript_.last());
    streams_.end({.id = "r1", .outcome = "completed", .message_ids = {}}, std::nullopt);
  }
  void update() { streams_.show_update(*transcript_.last()); }
  void raw(std::size_t bytes) { broadcast(std::string(bytes, 'x')); }
  void say(std::string text) {
    std::vector<std::string> chunks;
    if (turns_.line().empty()) {
      turns_.accept({.id = "r1"}, {}, now());
      turns_.begin("r1", now());
      chunks = {R"({"type":"start","messageId":"m1"})", R"({"type":"text-start","id":"t"})"};
    }
    chunks.push_back(to_text({{"type", "text-delta"}, {"id", "t"}, {"delta", text}}));
    streams_.write(*turns_.find("r1"), chunks, std::nullopt);
  }
  void end() {
    turns_.end("r1", TurnState::kCompleted, "", now());
    streams_.end(ended_turn(*turns_.find("r1")), std::nullopt);
  }
  void drop() { log_.drop("r1"); }

 private:
  Transcript transcript_{*this};
  Turns turns_{*this};
  ChunkLog log_{*this};
  Streams streams_{*this, transcript_, turns_, log_, {.frame_bytes = 1'000, .unread_bytes = 1'000}};
};

class RoomTest : public ::testing::Test {
 protected:
  testing::Host host;
  testing::AgentHandle agent = host.create<Room>("a");
};

TEST_F(RoomTest, WhatIsTooLargeForAFrameIsNotSentAndStopsNothing) {
  for (const auto& [bytes, is_sent] : {std::pair(100, true), {1'000, false}}) {
    agent.call("put", bytes);
    ChatClient client(agent);
    agent.call("show");
    client.read();
    EXPECT_EQ(client.frames("cf_agent_chat_messages").size(), is_sent ? 4U : 0U);
    EXPECT_EQ(client.frames("cf_agent_message_updated").size(), is_sent ? 1U : 0U);
    EXPECT_EQ(client.outcome("r1"), "completed");
  }
}

TEST_F(RoomTest, TheLimitOfFramesIsTheHosts) {
  testing::Client client = agent.connect();
  const std::size_t limit = Streams::Limits().frame_bytes;
  EXPECT_NO_THROW(agent.call("raw", limit));
  EXPECT_ANY_THROW(agent.call("raw", limit + 1));
}

// A client that reads, and one that does not.
class SlowClientTest : public RoomTest {
 protected:
  SlowClientTest() { slow.socket().hold(true); }
  void say(int words) {
    for (int i = 0; i < words; ++i)
      agent.call("say", all.emplace_back("word" + std::to_string(all.size()) + " "));
  }
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const std::string& word : all) text += word;
    return text;
  }
  std::size_t unread() {
    std::size_t bytes = 0;
    for (const auto& frame : slow.socket().unread()) bytes += frame.payload.size();
    return bytes;
  }
  void expect_end() {
    EXPECT_EQ(text_of(slow.frames("cf_agent_chat_messages").back().at("messages").at(0)).size(),
              500U);
    EXPECT_EQ(slow.outcome("r1"), "completed");
    EXPECT_FALSE(slow.done("r1").contains("replay"));
  }
  std::vector<std::string> all;
  ChatClient fast{agent};
  ChatClient slow{agent};
};

TEST_F(SlowClientTest, ItIsSentSomeOfTheChunksAndReadsTheRestFromTheLog) {
  say(50);
  EXPECT_GT(unread(), 1'000U);
  EXPECT_LT(unread(), 3'000U);
  slow.socket().hold(false);
  slow.read();
  EXPECT_EQ(slow.shown("r1"), text());
  say(50);
  slow.socket().hold(true);
  say(50);
  EXPECT_LT(unread(), 3'000U);
  slow.socket().hold(false);
  agent.call("end");
  for (ChatClient* const client : {&slow, &fast}) {
    client->read();
    EXPECT_EQ(client->shown("r1"), text());
    EXPECT_EQ(client->done("r1").at("outcome"), "completed");
  }
}

// A message that changes meanwhile would be overwritten by the chunks before the change.
TEST_F(SlowClientTest, ItIsShownAChangeOnceItHasReadTheChunksBefore) {
  agent.call("put", 500);
  say(50);
  const std::size_t before = unread();
  for (int i = 0; i < 10; ++i) agent.call("update");
  EXPECT_EQ(unread(), before);
  for (ChatClient* const client : {&fast, &slow}) {
    client->socket().hold(false);
    client->read();
    EXPECT_EQ(client->shown("r1"), text());
    EXPECT_EQ(client->frames("cf_agent_message_updated").size(), client == &fast ? 10U : 0U);
  }
  EXPECT_EQ(text_of(slow.frames("cf_agent_chat_messages").back().at("messages").at(0)).size(),
            500U);
  EXPECT_EQ(slow.snapshots(), 1U);
}

TEST_F(SlowClientTest, AReplacedLibraryDoesNotSendItMore) {
  say(50);
  const std::size_t before = unread();
  agent.evict();
  say(50);
  EXPECT_EQ(unread(), before);
  slow.socket().hold(false);
  slow.read();
  EXPECT_EQ(slow.shown("r1"), text());
}

// A client that rebuilds an answer takes no transcript in its place: it needs all chunks.
TEST_F(SlowClientTest, AfterTheEndItReadsTheRestFromTheLogAndThenTheTranscript) {
  say(50);
  agent.call("put", 500);
  const std::size_t before = unread();
  agent.call("end");
  EXPECT_EQ(unread(), before);
  slow.socket().hold(false);
  slow.read();
  EXPECT_EQ(slow.shown("r1"), text());
  expect_end();
}

TEST_F(SlowClientTest, OnceTheNextTurnHasDroppedTheLogItReadsTheTranscript) {
  say(50);
  agent.call("put", 500);
  agent.call("end");
  agent.call("drop");
  slow.socket().hold(false);
  slow.read();
  EXPECT_LT(slow.shown("r1").size(), text().size());
  expect_end();
}

TEST_P(StreamsTest, ATurnThatEndsDuringAReplayLosesNoChunk) {
  model.then(says({"one ", "two ", "three "}, seconds(1)));
  ChatClient sender = talk(support, "go", std::chrono::milliseconds(1'500));
  ChatClient late(support);
  late.socket().hold(true);
  late.acknowledge("r1");
  wait(seconds(10));
  late.socket().hold(false);
  late.read();
  EXPECT_EQ(late.shown("r1"), "one two three ");
  EXPECT_EQ(late.outcome("r1"), "completed");
  EXPECT_EQ(late.snapshots(), 1U);
}

TEST_P(StreamsTest, ATabThatDoesNotReadCostsTheOthersNothing) {
  model.then(says({"one ", "two ", "three "}, seconds(1)));
  ChatClient client(support);
  ChatClient slow(support);
  slow.socket().hold(true);
  say(client, "r1", "go", seconds(10));
  EXPECT_EQ(client.outcome("r1"), "completed");
  slow.socket().hold(false);
  slow.read();
  EXPECT_EQ(slow.shown("r1"), "one two three ");
}

}  // namespace
}  // namespace hearth::chat
