// Frames for clients, byte for byte.
#include "rows.hpp"

#include <hearth/chat/wire.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::chat {
namespace {

const std::vector<std::string> kIds{"m1", "m2"};

struct FrameRow {
  std::string frame;
  const char* text;
};

// clang-format off
const std::vector<FrameRow>& written() {
  static const std::vector<FrameRow> all{
    {response_frame({.id = "r1", .body = R"({"type":"text-delta","id":"t1","delta":"Hel"})", .seq = 3}),
     R"({"type":"cf_agent_use_chat_response","id":"r1","body":"{\"type\":\"text-delta\",\"id\":\"t1\",\"delta\":\"Hel\"}","done":false,"seq":3})"},
    {response_frame({.id = "r1", .is_done = true, .message_ids = kIds, .outcome = "completed"}),
     R"({"type":"cf_agent_use_chat_response","id":"r1","body":"","done":true,"messageIds":["m1","m2"],"outcome":"completed"})"},
    {response_frame({.id = "r1", .body = "{}", .is_continuation = true, .is_replay = true, .seq = 0}),
     R"({"type":"cf_agent_use_chat_response","id":"r1","body":"{}","done":false,"continuation":true,"replay":true,"seq":0})"},
    {response_frame({.id = "r1", .is_replay = true, .is_replay_complete = true}),
     R"({"type":"cf_agent_use_chat_response","id":"r1","body":"","done":false,"replay":true,"replayComplete":true})"},
    {response_frame({.id = "r1", .body = "The model is busy.", .is_error = true}),
     R"({"type":"cf_agent_use_chat_response","id":"r1","body":"The model is busy.","done":false,"error":true})"},
    {refusal_frame({.id = "r1", .text = "The request has no messages."}),
     R"({"type":"cf_agent_use_chat_response","id":"r1","body":"The request has no messages.","done":true,"error":true})"},
    {messages_frame(R"([{"id":"m1"}])"), R"({"type":"cf_agent_chat_messages","messages":[{"id":"m1"}]})"},
    {messages_frame("[]", true), R"({"type":"cf_agent_chat_messages","messages":[],"connect":true})"},
    {message_updated_frame(R"({"id":"m1"})"), R"({"type":"cf_agent_message_updated","message":{"id":"m1"}})"},
    {clear_frame(), R"({"type":"cf_agent_chat_clear"})"},
    {resuming_frame("r1"), R"({"type":"cf_agent_stream_resuming","id":"r1"})"},
    {resuming_frame("r1", "p1"), R"({"type":"cf_agent_stream_resuming","id":"r1","probeId":"p1"})"},
    {pending_frame("r1", "p1"), R"({"type":"cf_agent_stream_pending","id":"r1","probeId":"p1"})"},
    {pending_frame(""), R"({"type":"cf_agent_stream_pending"})"},
    {resume_none_frame(), R"({"type":"cf_agent_stream_resume_none"})"},
    {resume_none_frame("idle", "p1"), R"({"type":"cf_agent_stream_resume_none","reason":"idle","probeId":"p1"})"},
    {resume_none_frame("continuation-owned"), R"({"type":"cf_agent_stream_resume_none","reason":"continuation-owned"})"},
    {recovering_frame(true, "r1"), R"({"type":"cf_agent_chat_recovering","recovering":true,"id":"r1"})"},
    {recovering_frame(false), R"({"type":"cf_agent_chat_recovering","recovering":false})"},
  };
  return all;
}
// clang-format on

TEST(WireWriteTest, EachFrameIsWrittenAsItsRowSays) {
  for (const FrameRow& row : written()) EXPECT_EQ(row.frame, row.text);
}

TEST(WireWriteTest, NoServerFrameIsReadAsAFrameOfAClient) {
  for (const FrameRow& row : written()) {
    const std::string type = json(row.frame)["type"];
    // These two names are used in both directions.
    if (type == "cf_agent_chat_messages" || type == "cf_agent_chat_clear") continue;
    EXPECT_FALSE(read_client_frame(row.frame)) << row.text;
  }
}

TEST(WireWriteTest, IdsAndTextsAreEscaped) {
  const std::string odd = "\"\\\n\x01\xc3\xa4";
  const std::vector<std::string> ids{odd};
  const Json frame = json(response_frame(
      {.id = odd, .body = odd, .is_done = true, .message_ids = ids, .outcome = odd}));
  for (const char* const key : {"id", "body", "outcome"}) EXPECT_EQ(frame[key], odd);
  EXPECT_EQ(frame["messageIds"][0], odd);
  EXPECT_EQ(json(resume_none_frame(odd, odd))["probeId"], odd);
}

}  // namespace
}  // namespace hearth::chat
