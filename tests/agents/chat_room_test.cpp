// The chat room on the mock host.

#include "chat-room/chat_room.cpp"  // NOLINT(bugprone-suspicious-include): an agent class needs no header

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using hearth::Json;
using hearth::testing::Client;
using hearth::testing::Host;

class ChatRoomTest : public ::testing::Test {
 protected:
  static std::vector<Json> frames(Client& client) {
    std::vector<Json> all;
    for (const auto& frame : client.take_received()) all.push_back(Json::parse(frame.payload));
    return all;
  }
  static void say(Client& client, const std::string& text) {
    client.send(hearth::to_text({{"type", "say"}, {"text", text}}));
  }

  Host host_;
  hearth::testing::AgentHandle room_ = host_.create<ChatRoom>("lobby");
};

TEST_F(ChatRoomTest, WhatOneSaysEverybodyGetsWithNickIdAndTime) {
  auto ann = room_.connect("nick=ann");
  auto bob = room_.connect("nick=bob");
  static_cast<void>(ann.take_received());
  say(ann, "hi");
  const Json message = {
      {"type", "message"}, {"id", 1}, {"nick", "ann"}, {"text", "hi"}, {"at", 1767312000000}};
  EXPECT_EQ(frames(ann), std::vector<Json>{message});
  EXPECT_EQ(frames(bob), std::vector<Json>{message});
}

TEST_F(ChatRoomTest, ComingAndGoingIsToldToTheOthersAndShownInTheState) {
  auto ann = room_.connect("nick=ann");
  auto bob = room_.connect("nick=bob");
  EXPECT_EQ(frames(ann), (std::vector<Json>{{{"type", "joined"}, {"nick", "bob"}}}));
  EXPECT_TRUE(frames(bob).empty());
  EXPECT_EQ(ann.state(), Json({{"people", {"ann", "bob"}}}));
  bob.close();
  EXPECT_EQ(frames(ann), (std::vector<Json>{{{"type", "left"}, {"nick", "bob"}}}));
  EXPECT_EQ(ann.state(), Json({{"people", {"ann"}}}));
}

TEST_F(ChatRoomTest, ANickIsTakenOnceAndWellFormed) {
  auto ann = room_.connect("nick=ann");
  auto second = room_.connect("nick=ann");
  EXPECT_TRUE(second.closed());
  EXPECT_EQ(second.close_code(), 4409U);
  EXPECT_EQ(room_.connect("nick=").close_code(), 4400U);
  EXPECT_EQ(room_.connect("nick=" + std::string(33, 'a')).close_code(), 4400U);
  EXPECT_FALSE(room_.connect().closed());
  EXPECT_FALSE(ann.closed());
}

TEST_F(ChatRoomTest, AWhisperReachesOneAndIsNotKept) {
  auto ann = room_.connect("nick=ann");
  auto bob = room_.connect("nick=bob");
  auto eve = room_.connect("nick=eve");
  static_cast<void>(ann.take_received());
  static_cast<void>(bob.take_received());
  ann.send(R"({"type":"whisper","to":"bob","text":"psst"})");
  EXPECT_EQ(frames(bob),
            (std::vector<Json>{{{"type", "whisper"}, {"nick", "ann"}, {"text", "psst"}}}));
  EXPECT_TRUE(frames(ann).empty());
  EXPECT_TRUE(frames(eve).empty());
  EXPECT_TRUE(room_.call("history").empty());
  ann.send(R"({"type":"whisper","to":"zoe","text":"psst"})");
  EXPECT_EQ(frames(ann)[0]["message"], "no such type, or no client here has that nick");
}

TEST_F(ChatRoomTest, BadFramesCostTheirSenderAnErrorAndNobodyElseAnything) {
  room_ = host_.create<ChatRoom>("hall", {{"max_message_length", 5}});
  auto ann = room_.connect("nick=ann");
  auto bob = room_.connect("nick=bob");
  static_cast<void>(ann.take_received());
  for (const char* const bad :
       {"not json", "[]", R"({"type":"shout","text":"hi"})", R"({"type":"say"})",
        R"({"type":"say","text":"toolong"})", R"({"type":"say","text":5})"}) {
    ann.send(bad);
    const auto answer = frames(ann);
    ASSERT_EQ(answer.size(), 1U) << bad;
    EXPECT_EQ(answer[0]["type"], "error") << bad;
  }
  EXPECT_TRUE(frames(bob).empty());
}

TEST_F(ChatRoomTest, HistoryIsPagedBackwardsAndSurvivesAnEviction) {
  auto ann = room_.connect("nick=ann");
  for (int i = 1; i <= 5; ++i) say(ann, std::to_string(i));
  room_.evict();
  const Json last = room_.call("history", nullptr, 2);
  ASSERT_EQ(last.size(), 2U);
  EXPECT_EQ(last[0]["text"], "4");
  EXPECT_EQ(last[1], Json({{"id", 5}, {"nick", "ann"}, {"text", "5"}, {"at", 1767312000000}}));
  const Json before = room_.call("history", last[0]["id"], 3);
  ASSERT_EQ(before.size(), 3U);
  EXPECT_EQ(before[0]["text"], "1");
  EXPECT_TRUE(room_.call("history", 1).empty());
  EXPECT_EQ(room_.call("history", nullptr, -1).size(), 1U);
}

TEST_F(ChatRoomTest, OnlyTheNewestMessagesAreKept) {
  room_ = host_.create<ChatRoom>("hall", {{"history_limit", 2}});
  auto ann = room_.connect("nick=ann");
  for (int i = 1; i <= 5; ++i) say(ann, std::to_string(i));
  EXPECT_EQ(room_.sql("SELECT text FROM messages ORDER BY id"), Json({{"4"}, {"5"}}));
}

TEST_F(ChatRoomTest, NicksAndTheirOwnersSurviveAnEviction) {
  auto ann = room_.connect("nick=ann");
  room_.evict();
  say(ann, "still me");
  EXPECT_EQ(frames(ann)[0]["nick"], "ann");
  EXPECT_EQ(room_.connect("nick=ann").close_code(), 4409U);
}

TEST_F(ChatRoomTest, ClientsCannotChangeTheState) {
  auto ann = room_.connect("nick=ann");
  ann.set_state({{"people", {"everybody"}}});
  EXPECT_EQ(ann.errors(), std::vector<std::string>{"State update rejected"});
  EXPECT_EQ(room_.state(), Json({{"people", {"ann"}}}));
}

}  // namespace
