// Answers in parts for clients that read slowly, and for those that leave.
#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <cstddef>
#include <string>

namespace hearth::testing {
namespace {

// 8 MiB; a server may keep 64 KiB for a client.
constexpr std::size_t kPieces = 512;
constexpr std::size_t kBytes = 16 * 1024;
constexpr int kSmallBuffer = 32 * 1024;

class StreamedAnswerTest : public ProcessTest {
 protected:
  StreamedAnswerTest() {
    install(built::agent("streams"), "streams.so");
    put("hearth.yaml", "limits:\n  send_queue: 64KiB\n  max_frame: 32KiB\n");
    server_ = serve_ready({"--config", "hearth.yaml"});
  }
  ~StreamedAnswerTest() override { server_->stop(); }

  static std::string pour(const std::string& path) {
    return "GET /agents/streams/a" + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }
  // It asks for frames to itself, which are no answer.
  static void flood(RawClient& client) {
    ASSERT_EQ(client.upgrade("/agents/streams/a?_pk=reader").status, 101);
    client.send(
        RawClient::text_frame(R"({"type":"rpc","id":"1","method":"flood","args":["reader",)" +
                              std::to_string(kPieces) + "," + std::to_string(kBytes) + "]}"));
  }
  Json ended() { return AgentClient(*server_, "/agents/streams/a").call("ended"); }
  // Until a stream has ended, and how.
  Json wait_for_end() {
    AgentClient client(*server_, "/agents/streams/a");
    for (;;) {
      Json now = client.call("ended");
      if (!now.empty()) return now;
    }
  }

  std::unique_ptr<ServerProcess> server_;
};

const std::string kPour =
    "/pour?pieces=" + std::to_string(kPieces) + "&bytes=" + std::to_string(kBytes);

TEST_F(StreamedAnswerTest, ABodyWaitsForAClientThatReadsSlowly) {
  RawClient client(server_->port(), kSmallBuffer);
  const Reply reply = client.request(pour(kPour));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body.size(), kPieces * kBytes);
  EXPECT_EQ(ended(), Json({"body whole"}));
}

TEST_F(StreamedAnswerTest, AStreamOfACallWaitsForAClientThatReadsSlowly) {
  AgentClient client(server_->port(), "/agents/streams/a", kSmallBuffer);
  client.send(RawClient::text_frame(R"({"type":"rpc","id":"1","method":"pour","args":[)" +
                                    std::to_string(kPieces) + "," + std::to_string(kBytes) + "]}"));
  std::size_t pieces = 0;
  for (bool done = false; !done;) {
    const Json frame = parse_json(client.read_text()).value();
    if (frame.at("type") != "rpc") continue;
    done = frame.at("done") == true;
    if (!done) ++pieces;
  }
  EXPECT_EQ(pieces, kPieces);
  EXPECT_EQ(ended(), Json({"pour whole"}));
}

TEST_F(StreamedAnswerTest, FramesWaitForAClientThatReadsSlowly) {
  RawClient client(server_->port(), kSmallBuffer);
  flood(client);
  for (std::size_t pieces = 0; pieces < kPieces;) {
    if (client.read_text().size() == kBytes) ++pieces;
  }
  EXPECT_EQ(wait_for_end(), Json({"flood whole"}));
}

TEST_F(StreamedAnswerTest, FramesStopWhenTheirClientLeaves) {
  {
    RawClient client(server_->port(), kSmallBuffer);
    flood(client);
    while (client.read_text().size() != kBytes) continue;
    client.reset_on_close();
  }
  EXPECT_EQ(wait_for_end(), Json({"flood cut"}));
}

TEST_F(StreamedAnswerTest, StopsWhenItsClientLeaves) {
  {
    RawClient client(server_->port(), kSmallBuffer);
    client.send(pour(kPour));
    client.read_exactly(kBytes);
    client.reset_on_close();
  }
  EXPECT_EQ(wait_for_end(), Json({"body cut"}));
}

TEST_F(StreamedAnswerTest, EventsComeOneByOneUntilTheirReaderLeaves) {
  AgentClient agent(*server_, "/agents/streams/a");
  {
    RawClient reader(server_->port());
    reader.send(pour("/events"));
    EXPECT_TRUE(contains(reader.read_until("\r\n\r\n"), "Content-Type: text/event-stream"));
    reader.read_until("data: 1\n\n");
    agent.call("go");
    reader.read_until("data: 2\n\n");
  }
  EXPECT_EQ(wait_for_end(), Json({"events"}));
}

// The work after the turn blocks the loop until the client has read the answer.
TEST_F(StreamedAnswerTest, WorkAfterATurnComesBehindTheAnswer) {
  AgentClient agent(*server_, "/agents/streams/a");
  const std::string call_file = (root_ / "call-answered").string();
  agent.call("tidy", Json::array({call_file}).dump());
  put("call-answered", "");
  EXPECT_EQ(wait_for_end(), Json({"tidied"}));

  const std::string request_file = (root_ / "request-answered").string();
  RawClient client(server_->port());
  EXPECT_EQ(client.request(pour("/tidy?file=" + request_file)).body, "answered");
  put("request-answered", "");
  EXPECT_EQ(ended(), Json({"tidied", "tidied"}));
}

}  // namespace
}  // namespace hearth::testing
