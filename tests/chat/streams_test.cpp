// Clients that come, go and come back, on the mock host.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::seconds;

class StreamsTest : public OneConversation {};

TEST_F(StreamsTest, TenReconnectsInOneStreamMissNothing) {
  auto agent = make();
  std::vector<std::string> words;
  std::string all;
  for (int i = 0; i < 30; ++i) all += words.emplace_back("w" + std::to_string(i) + " ");
  model.then(says(words, seconds(1)));
  {
    ChatClient client(agent, "tab");
    client.say("r1", "go");
    wait(seconds(2));
    client.close();
  }
  for (int i = 0; i < 10; ++i) {
    ChatClient client(agent, "tab");
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
  ChatClient client(agent, "tab");
  client.read();
  wait(seconds(60));
  client.read();
  EXPECT_EQ(client.shown("r1"), all);
  EXPECT_EQ(client.done("r1").at("outcome"), "completed");
}

TEST_F(StreamsTest, AnOfferedSocketGetsNothingBeforeItsAcknowledgement) {
  auto agent = make();
  model.then(says({"one ", "two ", "three "}, seconds(1)));
  ChatClient sender(agent);
  sender.say("r1", "go");
  wait(std::chrono::milliseconds(1'500));
  ChatClient late(agent);
  late.takes_offers = false;
  late.acknowledge("another");
  wait(seconds(1));
  late.read();
  EXPECT_TRUE(late.frames("cf_agent_use_chat_response").empty());
  for (int i = 0; i < 3; ++i) late.acknowledge("r1");
  wait(seconds(10));
  late.read();
  EXPECT_EQ(late.shown("r1"), "one two three ");
}

TEST_F(StreamsTest, ATabThatWaitsIsToldWhenTheTurnStreams) {
  auto agent = make();
  Scripted slow = says({"hello"});
  slow.between = seconds(5);
  model.then(slow);
  ChatClient sender(agent);
  sender.ask("r1", Json::array({user_message("u1", "hi")}));
  sender.say("r2", "more");  // waits behind it
  ChatClient late(agent);
  late.read();
  EXPECT_FALSE(late.frames("cf_agent_stream_pending").empty() &&
               late.frames("cf_agent_stream_resuming").empty());
  for (int i = 0; i < 60; ++i) {
    wait(seconds(1));
    late.read();
  }
  EXPECT_EQ(late.done("r2").at("outcome"), "completed");
}

TEST_F(StreamsTest, AFailureIsShownToTheNextTabAndGoneAfterTheNextMessage) {
  auto agent = make();
  Scripted cut_by_error = says({"half"});
  model.then(cut(cut_by_error));
  Scripted refused;
  refused.status = 400;
  refused.error = R"({"error":{"message":"no"}})";
  model.then(refused);
  {
    ChatClient sender(agent);
    sender.say("r1", "go");
    wait(seconds(1));
    sender.close();
  }
  wait(seconds(100));
  ChatClient late(agent);
  late.resume();
  late.read();
  wait(seconds(1));
  late.read();
  EXPECT_EQ(late.shown("r1"), "half");
  EXPECT_EQ(late.done("r1").at("error"), true);
  model.then({"fine"});
  late.say("r2", "again");
  wait(seconds(1));
  ChatClient next(agent);
  next.resume();
  wait(seconds(1));
  next.read();
  ASSERT_FALSE(next.frames("cf_agent_stream_resume_none").empty());
  EXPECT_EQ(next.frames("cf_agent_stream_resume_none").back().at("reason"), "idle");
}

TEST_F(StreamsTest, ATabThatIsBackAfterTheEndGetsTheTranscript) {
  auto agent = make();
  model.then(says({"one ", "two"}, seconds(1)));
  {
    ChatClient client(agent, "tab");
    client.say("r1", "go");
    wait(std::chrono::milliseconds(1'500));
    client.close();
  }
  wait(seconds(60));
  ChatClient back(agent, "tab");
  back.read();
  const auto frames = back.frames("cf_agent_chat_messages");
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].at("connect"), true);
  EXPECT_EQ(text_of(frames[0].at("messages").back()), "one two");
}

TEST_F(StreamsTest, AReplacedLibraryLosesNoSocket) {
  auto agent = make();
  model.then(says({"one ", "two ", "three "}, seconds(10)));
  model.then({"four"});
  ChatClient client(agent);
  client.say("r1", "go");
  wait(seconds(15));
  ChatClient offered(agent);
  offered.takes_offers = false;
  agent.evict();
  wait(seconds(60));
  client.read();
  EXPECT_EQ(client.shown("r1"), "one two four");
  EXPECT_EQ(client.done("r1").at("outcome"), "completed");
  offered.read();
  EXPECT_TRUE(offered.shown("r1").empty());
  EXPECT_EQ(offered.done("r1").at("outcome"), "completed");
}

TEST_F(StreamsTest, ATabThatDoesNotReadCostsTheOthersNothing) {
  auto agent = make();
  model.then(says({"one ", "two ", "three "}, seconds(1)));
  ChatClient client(agent);
  ChatClient slow(agent);
  slow.socket().hold(true);
  client.say("r1", "go");
  wait(seconds(10));
  client.read();
  EXPECT_EQ(client.done("r1").at("outcome"), "completed");
  slow.socket().hold(false);
  slow.read();
  EXPECT_EQ(slow.shown("r1"), "one two three ");
}

}  // namespace
}  // namespace hearth::chat
