// What the socket of a client gets of the turns that stream.
#include "rows.hpp"

#include <hearth/chat/sockets.hpp>
#include <hearth/chat/wire.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

using Frames = std::vector<std::string>;

const Socket kLiveSocket;
const Socket kParkedSocket{SocketState::kParked, {}, 0, 0};

Socket offered_socket(std::string_view turn) {
  return {SocketState::kOffered, std::string(turn), 0, 0};
}
Socket behind_socket(std::string_view turn, std::uint64_t cursor, std::uint64_t replay_until) {
  return {SocketState::kBehind, std::string(turn), cursor, replay_until};
}

std::string show(const Socket& socket) {
  return to_text(write_socket(socket));
}

ChatView streams(std::string_view id) {
  ChatView view;
  view.streaming = OpenTurn{std::string(id)};
  return view;
}
ChatView continues(std::string_view owner, bool is_streaming) {
  ChatView view;
  (is_streaming ? view.streaming : view.continuation) = OpenTurn{"c1", true, std::string(owner)};
  return view;
}
ChatView waits(std::string_view id) {
  ChatView view;
  view.waiting = id;
  return view;
}
const EndedTurn kFailedTurn{"f1", false, "error", "The model is busy.", {"u1"}};
ChatView failed() {
  ChatView view;
  view.failed = kFailedTurn;
  return view;
}
template <class... Views>
ChatView both(ChatView view, const Views&... others) {
  const auto add = [&](const ChatView& other) {
    if (other.streaming) view.streaming = other.streaming;
    if (other.continuation) view.continuation = other.continuation;
    if (!other.waiting.empty()) view.waiting = other.waiting;
    if (other.failed) view.failed = other.failed;
  };
  (add(others), ...);
  return view;
}

struct SocketRow {
  const char* name;
  ChatView view;
  Frames frames;
  Socket after;
};

TEST(SocketsTest, AClientThatConnectsIsOfferedWhatStreams) {
  ChatView recovering = streams("t1");
  recovering.recovering = "t1";
  ChatView without_rows = waits("t1");
  without_rows.recovering = "t1";
  const std::vector<SocketRow> rows = {
      {"idle", {}, {}, kLiveSocket},
      {"a turn streams",
       both(streams("t1"), waits("t2")),
       {resuming_frame("t1")},
       offered_socket("t1")},
      {"a turn waits", waits("t1"), {pending_frame("t1")}, kParkedSocket},
      {"a continuation waits", continues("me", false), {}, kLiveSocket},
      {"a failure is told on request", failed(), {}, kLiveSocket},
      {"a turn recovers",
       recovering,
       {resuming_frame("t1"), recovering_frame(true, "t1")},
       offered_socket("t1")},
      {"and has not streamed",
       without_rows,
       {pending_frame("t1"), recovering_frame(true, "t1")},
       kParkedSocket},
  };
  for (const SocketRow& row : rows) {
    const SocketStep step = connect_socket(row.view);
    EXPECT_EQ(step.frames, row.frames) << row.name;
    EXPECT_EQ(step.needs_messages, !row.view.streaming && row.view.waiting.empty()) << row.name;
    EXPECT_EQ(show(step.socket), show(row.after)) << row.name;
  }
}

TEST(SocketsTest, AResumeRequestIsAnsweredByTheFirstRowThatHolds) {
  const auto none = [](std::string_view reason) { return resume_none_frame(reason, "p"); };
  const Socket before = offered_socket("t0");
  const std::vector<SocketRow> rows = {
      {"idle", {}, {none("idle")}, kLiveSocket},
      {"a turn streams",
       both(streams("t1"), continues("me", false), failed(), waits("t2")),
       {resuming_frame("t1", "p")},
       offered_socket("t1")},
      {"a continuation for it",
       continues("me", true),
       {resuming_frame("c1", "p")},
       offered_socket("c1")},
      {"a continuation whose owner has left",
       continues("", true),
       {resuming_frame("c1", "p")},
       offered_socket("c1")},
      {"a continuation for another",
       both(continues("other", true), waits("t2")),
       {none("continuation-owned")},
       before},
      {"its continuation waits",
       both(continues("me", false), failed(), waits("t2")),
       {pending_frame("c1", "p")},
       kParkedSocket},
      {"one without an owner waits",
       continues("", false),
       {pending_frame("c1", "p")},
       kParkedSocket},
      {"one for another waits",
       both(continues("other", false), waits("t2")),
       {pending_frame("t2", "p")},
       kParkedSocket},
      {"only that", continues("other", false), {none("idle")}, kLiveSocket},
      {"a failure", both(failed(), waits("t2")), {resuming_frame("f1", "p")}, kLiveSocket},
      {"a turn waits", waits("t1"), {pending_frame("t1", "p")}, kParkedSocket},
  };
  for (const SocketRow& row : rows) {
    const SocketStep step = resume_socket(before, row.view, "me", "p");
    EXPECT_EQ(step.frames, row.frames) << row.name;
    EXPECT_EQ(show(step.socket), show(row.after)) << row.name;
    EXPECT_FALSE(step.needs_messages) << row.name;
  }
}

TEST(SocketsTest, AnAckBeginsAReplayOrEndsTheWait) {
  struct Row {
    const char* name;
    ChatView view;
    const char* id;
    std::optional<EndedTurn> ended;
    Frames frames;
    Socket after;
  };
  const Socket before = offered_socket("t1");
  const auto done = [](const char* id, std::string_view outcome, std::vector<std::string> ids) {
    return response_frame(
        {.id = id, .is_done = true, .is_replay = true, .message_ids = ids, .outcome = outcome});
  };
  const std::vector<Row> rows = {
      {"what streams", both(streams("t1"), failed()), "t1", {}, {}, behind_socket("t1", 0, 7)},
      {"another id does nothing", both(streams("t1"), failed()), "f1", kFailedTurn, {}, before},
      {"what has failed",
       failed(),
       "f1",
       kFailedTurn,
       {},
       behind_socket("f1", 0, std::numeric_limits<std::int64_t>::max())},
      {"what has ended",
       {},
       "t0",
       EndedTurn{"t0", false, "completed", {}, {"u1", "u2"}},
       {done("t0", "completed", {"u1", "u2"})},
       before},
      {"what failed before other turns",
       waits("t1"),
       "f1",
       kFailedTurn,
       {done("f1", "error", {"u1"})},
       before},
      {"an unknown one", failed(), "t9", {}, {done("t9", "", {})}, before},
  };
  for (const Row& row : rows) {
    const SocketStep step = acknowledge_stream(before, row.view, row.id, 7, row.ended);
    EXPECT_EQ(step.frames, row.frames) << row.name;
    EXPECT_EQ(show(step.socket), show(row.after)) << row.name;
  }
}

TEST(SocketsTest, AParkedSocketIsOfferedTheStreamThatBegins) {
  const SocketStep step = begin_stream(kParkedSocket, "t1");
  EXPECT_EQ(step.frames, Frames{resuming_frame("t1")});
  EXPECT_EQ(show(step.socket), show(offered_socket("t1")));
  for (const Socket& other : {kLiveSocket, offered_socket("t0"), behind_socket("t0", 4, 9)}) {
    EXPECT_TRUE(begin_stream(other, "t1").frames.empty());
    EXPECT_EQ(show(begin_stream(other, "t1").socket), show(other));
  }
}

std::string chunk_frame(std::uint64_t seq, bool is_replay, bool is_continuation = false) {
  return response_frame({.id = "t1",
                         .body = std::to_string(seq),
                         .is_continuation = is_continuation,
                         .is_replay = is_replay,
                         .seq = seq});
}
std::string complete_frame(bool is_continuation = false) {
  return response_frame({.id = "t1",
                         .is_continuation = is_continuation,
                         .is_replay = true,
                         .is_replay_complete = true});
}
LogPage page_of(std::uint64_t first, std::uint64_t end, std::uint64_t cursor) {
  LogPage page{.chunks = {}, .cursor = cursor};
  for (; first < end; ++first) page.chunks.push_back({first, std::to_string(first)});
  return page;
}

TEST(SocketsTest, AReplayIsCompleteWhereTheAckFoundTheEndOfTheLog) {
  const ChatView view = streams("t1");
  // The ACK found three chunks; two came while the client read.
  SocketStep step = read_stream(behind_socket("t1", 0, 3), view, page_of(0, 2, 1), true, {});
  EXPECT_EQ(step.frames, (Frames{chunk_frame(0, true, true), chunk_frame(1, true, true)}));
  EXPECT_EQ(show(step.socket), show(behind_socket("t1", 1, 3)));
  step = read_stream(step.socket, view, page_of(2, 5, 3), true, {});
  EXPECT_EQ(step.frames, (Frames{chunk_frame(2, true, true), complete_frame(true),
                                 chunk_frame(3, false, true), chunk_frame(4, false, true)}));
  EXPECT_EQ(show(step.socket), show(behind_socket("t1", 3, 0)));
  step = read_stream(step.socket, view, page_of(0, 0, 3), true, {});
  EXPECT_TRUE(step.frames.empty()) << "it is complete already";
  EXPECT_EQ(show(step.socket), show(kLiveSocket));

  step = read_stream(behind_socket("t1", 1, 3), view, page_of(0, 0, 1), false, {});
  EXPECT_EQ(step.frames, Frames{complete_frame()});
  EXPECT_EQ(show(step.socket), show(kLiveSocket));
}

TEST(SocketsTest, ASlowClientReadsOnWithoutReplays) {
  const SocketStep step =
      read_stream(behind_socket("t1", 5, 0), streams("t1"), page_of(7, 8, 6), false, {});
  EXPECT_EQ(step.frames, Frames{chunk_frame(7, false)});
  EXPECT_EQ(show(step.socket), show(behind_socket("t1", 6, 0)));
}

TEST(SocketsTest, AFailedTurnIsReplayedAndThenAnError) {
  const SocketStep ack = acknowledge_stream(kLiveSocket, failed(), "f1", 0, kFailedTurn);
  Socket socket = ack.socket;
  socket.turn = "t1";  // whose frames chunk_frame() writes
  SocketStep step = read_stream(socket, failed(), page_of(0, 2, 2), false, kFailedTurn);
  EXPECT_EQ(step.frames, (Frames{chunk_frame(0, true), chunk_frame(1, true)}));
  step = read_stream(step.socket, failed(), page_of(0, 0, 2), false, kFailedTurn);
  const std::vector<std::string> ids = {"u1"};
  EXPECT_EQ(step.frames, Frames{response_frame({.id = "f1",
                                                .body = "The model is busy.",
                                                .is_done = true,
                                                .is_error = true,
                                                .message_ids = ids,
                                                .outcome = "error"})});
  EXPECT_EQ(show(step.socket), show(kLiveSocket));
}

// What has been replayed is live since the ACK, and so is the end.
TEST(SocketsTest, ATurnThatEndsWhileASocketIsBehindEndsThereAfterItsChunks) {
  Socket socket = behind_socket("t1", 1, 3);
  socket.has_missed = true;
  const EndedTurn ended{.id = "t1", .outcome = "completed", .message_ids = {}};
  SocketStep step = read_stream(socket, {}, page_of(2, 4, 3), false, ended);
  EXPECT_EQ(step.frames, (Frames{chunk_frame(2, true), complete_frame(), chunk_frame(3, false)}));
  EXPECT_FALSE(step.needs_messages);
  step = read_stream(step.socket, {}, page_of(0, 0, 3), false, ended);
  EXPECT_EQ(step.frames,
            Frames{response_frame({.id = "t1", .is_done = true, .outcome = "completed"})});
  EXPECT_TRUE(step.needs_messages);
  EXPECT_EQ(show(step.socket), show(kLiveSocket));
}

TEST(SocketsTest, ATurnThatStreamsMeanwhileIsOfferedAfterTheReplay) {
  const SocketStep step =
      read_stream(behind_socket("f1", 2, 9), streams("t2"), page_of(0, 0, 2), false, kFailedTurn);
  ASSERT_EQ(step.frames.size(), 2U);
  EXPECT_EQ(step.frames[1], resuming_frame("t2"));
  EXPECT_EQ(show(step.socket), show(offered_socket("t2")));
}

TEST(SocketsTest, TheEndOfATurnFreesThoseThatItConcerns) {
  struct Row {
    const char* name;
    Socket before;
    ChatView view;
    Frames frames;
    Socket after;
    bool needs_messages;
    bool has_more = false;
  };
  const auto reads_on = [](const char* turn) {
    Socket socket = behind_socket(turn, 2, 9);
    socket.has_missed = true;
    return socket;
  };
  const std::vector<Row> rows = {
      {"live", kLiveSocket, {}, {}, kLiveSocket, false},
      {"offered, without an ACK", offered_socket("t1"), waits("t2"), {}, kLiveSocket, true},
      {"behind, at the end of the log", behind_socket("t1", 2, 9), {}, {}, kLiveSocket, true},
      {"behind", behind_socket("t1", 2, 9), {}, {}, reads_on("t1"), false, true},
      {"offered another", offered_socket("t0"), {}, {}, offered_socket("t0"), false},
      {"behind in another", behind_socket("t0", 2, 9), {}, {}, reads_on("t0"), false},
      {"parked, and another waits", kParkedSocket, waits("t2"), {}, kParkedSocket, false},
      {"parked, and a continuation waits",
       kParkedSocket,
       continues("", false),
       {},
       kParkedSocket,
       false},
      {"parked, and nothing is left",
       kParkedSocket,
       failed(),
       {resume_none_frame()},
       kLiveSocket,
       false},
  };
  for (const Row& row : rows) {
    const SocketStep step = end_stream(row.before, row.view, "t1", row.has_more);
    EXPECT_EQ(step.frames, row.frames) << row.name;
    EXPECT_EQ(show(step.socket), show(row.after)) << row.name;
    EXPECT_EQ(step.needs_messages, row.needs_messages) << row.name;
  }
}

TEST(SocketsTest, ASocketIsReadFromItsAttachmentAsItWasWritten) {
  EXPECT_EQ(write_socket(kLiveSocket), nullptr);
  for (const Socket& socket :
       {kLiveSocket, kParkedSocket, offered_socket("t1"), behind_socket("t1", 3, 9),
        acknowledge_stream(kLiveSocket, failed(), "f1", 0, kFailedTurn).socket})
    EXPECT_EQ(read_socket(parse_json(to_text(write_socket(socket)))), socket) << show(socket);
  for (const char* other : {"null", "1", "[]", "{}", R"({"state":"sleeping","turn":"t1"})"})
    EXPECT_EQ(read_socket(json(other)), kLiveSocket) << other;
  EXPECT_EQ(read_socket(json(R"({"state":"behind","turn":7,"cursor":"x","replay_until":-1})")),
            behind_socket("", 0, 0));
}

}  // namespace
}  // namespace hearth::chat
