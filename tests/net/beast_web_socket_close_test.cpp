// How a WebSocket closes, from either end.
#include "net/beast_web_socket.hpp"
#include "net/raw_client.hpp"
#include "net/server_fixture.hpp"

#include <atomic>
#include <chrono>
#include <string>

namespace hearth::net {
namespace {

using hearth::testing::Frame;
using hearth::testing::RawClient;
using hearth::testing::SocketClient;
using namespace std::chrono_literals;

class WebSocketCloseTest : public ServerFixture {};

TEST_F(WebSocketCloseTest, ReciprocatesThePeersClose) {
  SocketClient client(port());
  client.send(RawClient::close_frame(4001, "enough"));
  EXPECT_EQ(client.read_frame().close_code(), 4001);
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(closed_.wait(), (Closed{4001, "enough", true}));
}

TEST_F(WebSocketCloseTest, ReportsACloseWithoutACodeAs1005) {
  SocketClient client(port());
  client.send(RawClient::frame(8, ""));
  EXPECT_EQ(client.read_frame().opcode, 8);
  EXPECT_EQ(closed_.wait(), (Closed{kCloseNoCode, "", true}));
}

TEST_F(WebSocketCloseTest, ReportsALostConnectionAs1006) {
  SocketClient client(port());
  client.close();
  EXPECT_EQ(closed_.wait(), (Closed{kCloseAbnormal, "connection lost", false}));

  SocketClient rude(port());
  rude.reset_on_close();
  rude.close();
  EXPECT_EQ(closed_.wait().code, kCloseAbnormal);
}

TEST_F(WebSocketCloseTest, CloseSendsWhatWasSentBeforeAndWaitsForTheAnswer) {
  on_message_ = [](WebSocket& socket, std::string_view, bool) {
    socket.send("last words", true);
    socket.close(4002, "done here");
    socket.send("too late", true);
    socket.close(4003, "only the first call counts");
  };
  SocketClient client(port());
  client.send(RawClient::text_frame("go") + RawClient::text_frame("not delivered any more"));
  EXPECT_EQ(client.read_text(), "last words");
  const Frame close = client.read_frame();
  EXPECT_EQ(close.close_code(), 4002);
  EXPECT_EQ(close.close_reason(), "done here");
  EXPECT_EQ(closed_.count(), 0U) << "the peer has not answered yet";
  client.send(RawClient::close_frame(4002, "fine"));
  EXPECT_EQ(closed_.wait(), (Closed{4002, "fine", true}));
  EXPECT_TRUE(client.at_end());
}

TEST_F(WebSocketCloseTest, APeerThatDoesNotAnswerACloseIsCut) {
  options_.close_timeout = 40ms;
  SocketClient client(port());
  const auto socket = opened_.wait();
  loops_->run_on(0, [&] { socket->close(1000, ""); });
  EXPECT_EQ(closed_.wait(), (Closed{kCloseAbnormal, "connection cut", false}));
  EXPECT_EQ(client.read_frame().close_code(), 1000);
  EXPECT_TRUE(client.at_end());
}

TEST_F(WebSocketCloseTest, CodesThatMustNotBeSentBecome1011AndLongReasonsAreCut) {
  for (const int code : {0, 999, 1004, 1005, 1006, 1015, 2999, 5000}) {
    SocketClient client(port());
    const auto socket = opened_.wait();
    loops_->run_on(0, [&] { socket->close(static_cast<std::uint16_t>(code), ""); });
    EXPECT_EQ(client.read_frame().close_code(), 1011) << code;
  }
  SocketClient client(port());
  const auto socket = opened_.wait();
  loops_->run_on(0, [&] { socket->close(1000, std::string(122, 'a') + "\xC3\xA9" + "tail"); });
  EXPECT_EQ(client.read_frame().close_reason(), std::string(122, 'a'));
}

TEST_F(WebSocketCloseTest, AbortCutsAndReportsFromOutsideTheCall) {
  std::atomic<bool> inside = false;
  std::atomic<bool> reported_inside = false;
  SocketClient client(port());
  const auto socket = opened_.wait();
  loops_->run_on(0, [&] {
    inside = true;
    socket->abort();
    socket->abort();
    reported_inside = closed_.count() != 0;
    inside = false;
  });
  EXPECT_FALSE(reported_inside);
  EXPECT_EQ(closed_.wait().code, kCloseAbnormal);
  EXPECT_TRUE(client.at_end());
  loops_->run_on(0, [&] { EXPECT_EQ(closed_.count(), 1U); });
}

TEST_F(WebSocketCloseTest, AfterTheEndEveryMemberDoesNothing) {
  SocketClient client(port());
  const auto socket = opened_.wait();
  client.close();
  closed_.wait();
  stop();
  loops_->run_on(0, [&] {
    socket->send("anyone?", true);
    socket->close(1000, "");
    socket->abort();
    socket->pause_reading();
    socket->resume_reading();
    EXPECT_EQ(socket->buffered(), 0U);
    EXPECT_FALSE(socket->is_open());
  });
  EXPECT_EQ(closed_.count(), 1U);
}

}  // namespace
}  // namespace hearth::net
