// The handshake, messages both ways, and refusals. Closing: beast_web_socket_close_test.cpp; slow
// and silent peers: beast_web_socket_patience_test.cpp.
#include "net/beast_web_socket.hpp"

#include "net/raw_client.hpp"
#include "net/server_fixture.hpp"
#include "net/tcp_stream.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace hearth::net {
namespace {

using hearth::testing::Frame;
using hearth::testing::RawClient;
using hearth::testing::SocketClient;
using namespace std::chrono_literals;

class WebSocketTest : public ServerFixture {};

TEST_F(WebSocketTest, AnswersTheHandshakeAsTheRfcsExampleSays) {
  RawClient client(port());
  const auto reply = client.upgrade();
  EXPECT_EQ(reply.status, 101);
  EXPECT_NE(reply.head.find("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), std::string::npos) << reply.head;
  EXPECT_EQ(reply.head.find("Sec-WebSocket-Extensions"), std::string::npos);
}

TEST_F(WebSocketTest, DeclinesCompressionUnlessItIsSwitchedOn) {
  RawClient client(port());
  const auto reply = client.upgrade("/", "Sec-WebSocket-Extensions: permessage-deflate\r\n");
  EXPECT_EQ(reply.status, 101);
  EXPECT_EQ(reply.head.find("permessage-deflate"), std::string::npos);
}

TEST_F(WebSocketTest, ChoosesNoSubprotocolByItself) {
  RawClient client(port());
  EXPECT_EQ(
      client.upgrade("/", "Sec-WebSocket-Protocol: chat\r\n").head.find("Sec-WebSocket-Protocol"),
      std::string::npos);
}

TEST_F(WebSocketTest, ChoosesThePlansSubprotocolIfTheClientOffersIt) {
  on_upgrade_ = [](const HttpRequest&) {
    UpgradePlan plan;
    plan.subprotocol = "chat";
    return plan;
  };
  RawClient offering(port());
  EXPECT_NE(offering.upgrade("/", "Sec-WebSocket-Protocol: other, chat\r\n")
                .head.find("Sec-WebSocket-Protocol: chat\r\n"),
            std::string::npos);
  RawClient silent(port());
  EXPECT_EQ(silent.upgrade().head.find("Sec-WebSocket-Protocol"), std::string::npos);
}

TEST_F(WebSocketTest, EchoesTextAndBinaryInOrder) {
  SocketClient client(port());
  std::string frames;
  for (int i = 0; i < 500; ++i) {
    frames += RawClient::frame(i % 2 == 0 ? 1 : 2, "message " + std::to_string(i));
  }
  client.send(frames);
  for (int i = 0; i < 500; ++i) {
    const Frame frame = client.read_frame();
    EXPECT_EQ(frame.opcode, i % 2 == 0 ? 1 : 2);
    EXPECT_EQ(frame.payload, "message " + std::to_string(i));
  }
}

TEST_F(WebSocketTest, EchoesEveryLengthEncodingUnfragmented) {
  SocketClient client(port());
  for (const std::size_t size :
       {0UL, 1UL, 125UL, 126UL, 511UL, 512UL, 513UL, 1536UL, 65535UL, 65536UL, 300'000UL}) {
    const std::string payload(size, 'x');
    client.send(RawClient::text_frame(payload));
    const Frame frame = client.read_frame();
    EXPECT_TRUE(frame.is_final);
    EXPECT_EQ(frame.payload.size(), size);
    EXPECT_EQ(frame.payload, payload);
  }
}

TEST_F(WebSocketTest, JoinsFragmentsWithControlFramesBetween) {
  SocketClient client(port());
  client.send(RawClient::frame(1, "one ", false) + RawClient::frame(9, "are you there") +
              RawClient::frame(0, "two ", false) + RawClient::frame(0, "three"));
  const Frame pong = client.read_frame();
  EXPECT_EQ(pong.opcode, 10);
  EXPECT_EQ(pong.payload, "are you there");
  EXPECT_EQ(client.read_text(), "one two three");
}

TEST_F(WebSocketTest, AnswersABurstWithFewSends) {
  SocketClient client(port());
  const auto socket = opened_.wait();
  std::uint64_t before = 0;
  loops_->run_on(0, [&] { before = socket->sends(); });
  std::string burst;
  for (int i = 0; i < 64; ++i) burst += RawClient::text_frame("0123456789");
  client.send(burst);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(client.read_text(), "0123456789");
  std::uint64_t after = 0;
  loops_->run_on(0, [&] { after = socket->sends(); });
  EXPECT_LE(after - before, 8U);  // one for each read from the socket, of which Beast makes a few
}

TEST_F(WebSocketTest, FramesOfOneTurnLeaveInOneSend) {
  SocketClient client(port());
  const auto socket = opened_.wait();
  std::uint64_t before = 0;
  loops_->run_on(0, [&] {
    before = socket->sends();
    for (int i = 0; i < 100; ++i) socket->send("frame", true);
  });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client.read_text(), "frame");
  loops_->run_on(0, [&] { EXPECT_EQ(socket->sends() - before, 1U); });
}

TEST_F(WebSocketTest, BytesSentWithTheHandshakeAreTheFirstFrames) {
  start(2);
  for (std::size_t loop = 0; loop < 2; ++loop) {  // once without and once with a move, at least
    on_upgrade_ = on_loop(loop);
    RawClient client(port());
    client.send(RawClient::upgrade_text("/") + RawClient::text_frame("early") +
                RawClient::text_frame("bird"));
    EXPECT_EQ(client.read_reply(false).status, 101);
    EXPECT_EQ(client.read_text(), "early");
    EXPECT_EQ(client.read_text(), "bird");
  }
}

TEST_F(WebSocketTest, OpensOnTheLoopThatThePlanNames) {
  Events<std::size_t> where;
  on_open_ = [&](WebSocket&) { where.add(loops_->current().value_or(99)); };
  on_message_ = [&](WebSocket& socket, std::string_view payload, bool is_text) {
    where.add(loops_->current().value_or(99));
    socket.send(payload, is_text);
  };
  on_upgrade_ = [](const HttpRequest& request) {
    UpgradePlan plan;
    plan.loop = static_cast<std::size_t>(request.target[1] - '0');
    return plan;
  };
  start(3);
  for (std::size_t i = 0; i < 9; ++i) {  // every loop accepts for every other one
    RawClient client(port());
    client.upgrade("/" + std::to_string(i / 3));
    client.send(RawClient::text_frame("hello"));
    EXPECT_EQ(client.read_text(), "hello");
    EXPECT_EQ(where.wait(), i / 3);
    EXPECT_EQ(where.wait(), i / 3);
  }
}

TEST_F(WebSocketTest, AnAnswerStillUnsentMovesAlong) {
  on_upgrade_ = on_loop(1);
  start(2);
  RawClient client(port());
  client.send("GET /first HTTP/1.1\r\nHost: test\r\n\r\n" + RawClient::upgrade_text("/"));
  EXPECT_EQ(client.read_reply().body, "GET /first ");
  EXPECT_EQ(client.read_reply(false).status, 101);
  client.send(RawClient::text_frame("x"));
  EXPECT_EQ(client.read_text(), "x");
}

TEST_F(WebSocketTest, AnAnswerThatTheClientHasNotReadMovesAlong) {
  const std::string body(std::size_t{16} << 20, 'x');  // more than the system holds
  options_.send_queue = 4 * body.size();               // the next request need not wait for it
  on_request_ = [&body](const std::shared_ptr<HttpExchange>& exchange) {
    HttpResponse response;
    response.body = body;
    exchange->respond(std::move(response));
  };
  on_upgrade_ = on_loop(1);
  start(2);
  for (int connection = 0; connection < 2; ++connection) {  // dealt to both loops: one moves
    RawClient client(port(), 4096);
    client.send("GET /first HTTP/1.1\r\nHost: test\r\n\r\n" + RawClient::upgrade_text("/"));
    opened_.wait();  // with most of the answer still to go
    EXPECT_EQ(client.read_reply().body, body);
    EXPECT_EQ(client.read_reply(false).status, 101);
    client.send(RawClient::text_frame("x"));
    EXPECT_EQ(client.read_text(), "x");
  }
}

TEST_F(WebSocketTest, APlanCanRefuseWithAResponse) {
  on_upgrade_ = [](const HttpRequest&) {
    UpgradePlan plan;
    plan.refusal = error_response(404, "not_found", "no such thing");
    return plan;
  };
  RawClient client(port());
  client.send(RawClient::upgrade_text("/"));
  const auto reply = client.read_reply();
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.body, R"({"error":{"code":"not_found","message":"no such thing"}})");
}

TEST_F(WebSocketTest, APlanWithoutAListenerIsClosedWithInternalError) {
  on_upgrade_ = [](const HttpRequest&) {
    UpgradePlan plan;
    plan.opened = [](const std::shared_ptr<WebSocket>&) { return nullptr; };
    return plan;
  };
  SocketClient client(port());
  EXPECT_EQ(client.read_frame().close_code(), 1011);
}

// The session has checked the handshake before. If the two checks disagree, the peer's connection
// ends.
TEST_F(WebSocketTest, AHandshakeThatIsNotRightAfterAllIsAnswered400AndEnds) {
  Loops loops(1);
  asio::io_context& loop = loops.all()[0].context;
  asio::ip::tcp::acceptor acceptor(loop, {asio::ip::make_address("127.0.0.1"), 0});
  RawClient client(acceptor.local_endpoint().port());
  Events<int> ended;
  std::optional<LoopShare> share;
  loops.run_on(0, [&] {
    share.emplace(loops.all()[0], options_, 5ms, supplies(), [&ended] { ended.add(1); });
    TcpSocket socket(loop.get_executor());
    acceptor.accept(socket);
    HttpRequest request;
    request.method = "GET";
    request.target = "/";
    request.headers = {{"Sec-WebSocket-Key", std::string(200, 'k')}};  // more than Beast takes
    open_web_socket(*share, make_tcp_stream(std::move(socket), share->buffers, share->turn_end),
                    request, on_upgrade(request));
  });
  EXPECT_EQ(client.read_reply(false).status, 400);
  client.end_sending();
  ended.wait();
  EXPECT_EQ(opened_.count(), 0U);
  // Without sessions its timer is not armed again. Posted work is gone after a turn.
  Events<int> quiet;
  loops.run_on(0, [&] { share->table.when_quiet([&quiet] { quiet.add(1); }); });
  quiet.wait();
  loops.run_on(0, [&] { share.reset(); });
}

// ---- bad peers ----------------------------------------------------------------------------------

TEST_F(WebSocketTest, ATooLongMessageIs1009WhetherWholeOrInFragments) {
  options_.max_frame = 1000;
  SocketClient whole(port());
  whole.send(RawClient::text_frame(std::string(1000, 'x')));
  EXPECT_EQ(whole.read_text().size(), 1000U);
  whole.send(RawClient::text_frame(std::string(1001, 'x')));
  const Frame frame = whole.read_frame();
  EXPECT_EQ(frame.close_code(), 1009);
  EXPECT_EQ(frame.close_reason(), "message too big");
  EXPECT_TRUE(whole.at_end());
  EXPECT_EQ(closed_.wait(), (Closed{1009, "message too big", false}));

  SocketClient pieces(port());
  pieces.send(RawClient::frame(1, std::string(600, 'x'), false) +
              RawClient::frame(0, std::string(600, 'x'), true));
  EXPECT_EQ(pieces.read_frame().close_code(), 1009);
  EXPECT_EQ(closed_.wait().code, 1009);
}

TEST_F(WebSocketTest, AHugeMessageIsRefusedByItsHeaderAndItsSenderStillReadsWhy) {
  SocketClient client(port());
  // 100 MB announced, and a good part of it sent before the answer is read.
  client.send(std::string("\x81\xFF\x00\x00\x00\x00\x05\xF5\xE1\x00mask", 14));
  client.send(std::string(8'000'000, 'x'));
  EXPECT_EQ(client.read_frame().close_code(), 1009);
}

TEST_F(WebSocketTest, InvalidUtf8Is1007) {
  for (const std::string_view text : {"\xFF", "ab\xC3", "\xED\xA0\x80", "\xC0\x80"}) {
    SocketClient client(port());
    client.send(RawClient::text_frame(text));
    EXPECT_EQ(client.read_frame().close_code(), 1007);
    EXPECT_EQ(closed_.wait().code, 1007);
  }
  SocketClient binary(port());
  binary.send(RawClient::frame(2, "\xFF"));
  EXPECT_EQ(binary.read_text(), "\xFF");
}

TEST_F(WebSocketTest, ATextMayNotStopInsideACharacterHoweverItIsCut) {
  const std::string_view whole[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "x\xF0\x9F\x8C\xB1"};
  for (const std::string_view text : whole) {
    for (std::size_t size = 0; size <= text.size(); ++size) {
      const std::string begin(text.substr(0, size));
      SocketClient client(port());
      client.send(RawClient::frame(1, begin, false) + RawClient::frame(0, ""));
      const auto reply = client.read_frame();
      const bool is_right = size <= 1 ? (begin.empty() || begin[0] > 0) : size == text.size();
      EXPECT_EQ(reply.close_code(), is_right ? 0 : 1007) << text << ' ' << size;
      if (is_right) EXPECT_EQ(reply.payload, begin);
    }
  }
}

TEST_F(WebSocketTest, BrokenFramesAre1002) {
  const std::string broken[] = {
      RawClient::frame(1, "not masked", true, false),
      RawClient::frame(3, "reserved opcode"),
      RawClient::frame(0, "continues nothing"),
      RawClient::frame(9, "fragmented ping", false),
      RawClient::frame(9, std::string(126, 'x')),
      std::string("\xC1\x80mask", 6),  // reserved bit without an extension
      RawClient::frame(1, "a", false) + RawClient::frame(1, "b"),
  };
  for (const std::string& bytes : broken) {
    SocketClient client(port());
    client.send(bytes);
    EXPECT_EQ(client.read_frame().close_code(), 1002) << ::testing::PrintToString(bytes);
    EXPECT_EQ(closed_.wait().code, 1002);
  }
}

}  // namespace
}  // namespace hearth::net
