// Peers that read slowly or not at all, peers that the server does not read, and silent peers.
#include "net/beast_web_socket.hpp"
#include "net/raw_client.hpp"
#include "net/server_fixture.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace hearth::net {
namespace {

using hearth::testing::Frame;
using hearth::testing::RawClient;
using hearth::testing::SocketClient;
using namespace std::chrono_literals;

class WebSocketPatienceTest : public ServerFixture {
 protected:
  static constexpr std::size_t kPayload = 64 * 1024;

  void start_with_a_short_queue() {
    options_.send_queue = 4 * kPayload;
    start();
  }
  struct Flood {
    std::size_t accepted = 0;  // messages
    std::size_t most = 0;      // bytes that waited
  };
  // Messages to the client that has connected last, until the server gives it up. The system's own
  // buffers are megabytes and differ by machine.
  Flood flood_until_closed() {
    const auto socket = opened_.wait();
    const std::string payload(kPayload, 'x');
    Flood flood;
    for (int i = 0; i < 2000 && closed_.count() == 0; ++i) {
      loops_->run_on(0, [&] {
        if (socket->is_open()) ++flood.accepted;
        socket->send(payload, true);
        flood.most = std::max(flood.most, socket->buffered());
      });
    }
    return flood;
  }
};

// ---- slow peers ---------------------------------------------------------------------------------

TEST_F(WebSocketPatienceTest, AClientThatDoesNotReadIsEndedWith1013) {
  options_.close_timeout = 200ms;
  start_with_a_short_queue();
  SocketClient client(port(), 4096);
  const Flood flood = flood_until_closed();
  EXPECT_EQ(closed_.wait(), (Closed{1013, "client reads too slowly", false}));
  EXPECT_LE(flood.most, options_.send_queue + kPayload + 200);
  EXPECT_GT(flood.accepted, 4U);
}

TEST_F(WebSocketPatienceTest, ASlowClientThatReadsAfterAllGetsEverythingAndThe1013) {
  start_with_a_short_queue();
  SocketClient client(port(), 4096);
  const Flood flood = flood_until_closed();
  EXPECT_EQ(closed_.wait().code, 1013);
  Frame frame;
  std::size_t received = 0;
  while ((frame = client.read_frame()).opcode == 1) ++received;
  EXPECT_EQ(received, flood.accepted);
  EXPECT_EQ(frame.close_code(), 1013);
}

TEST_F(WebSocketPatienceTest, OneMessageMayBeLargerThanTheQueue) {
  options_.send_queue = 1000;
  SocketClient client(port(), 4096);
  const auto socket = opened_.wait();
  loops_->run_on(0, [&] {
    socket->send("a greeting", true);  // still waits then
    socket->send(std::string(8'000'000, 'x'), true);
    socket->send("behind it", true);
  });
  EXPECT_EQ(client.read_frame().payload, "a greeting");
  EXPECT_EQ(client.read_frame().payload.size(), 8'000'000U);
  EXPECT_EQ(client.read_frame().payload, "behind it");
  loops_->run_on(0, [&] { EXPECT_EQ(socket->buffered(), 0U); });
  EXPECT_EQ(closed_.count(), 0U);
}

TEST_F(WebSocketPatienceTest, AWaitForAPeerThatDoesNotReadEndsWhenEitherSideCloses) {
  options_.send_queue = 64 * 1024;
  options_.close_timeout = 60s;
  for (const bool by_peer : {false, true}) {
    SocketClient client(port(), 4096);
    const auto socket = opened_.wait();
    Events<bool> drained;
    loops_->run_on(0, [&] {
      socket->send(std::string(16'000'000, 'x'), true);
      socket->when_drained([&drained, socket] { drained.add(socket->is_open()); });
    });
    loops_->run_on(0, [&] { EXPECT_GT(socket->buffered(), options_.send_queue / 4); });
    EXPECT_EQ(drained.count(), 0U);
    if (by_peer) {
      client.reset_on_close();
      client.close();
    } else {
      loops_->run_on(0, [&] { socket->close(1000, "enough"); });
    }
    EXPECT_FALSE(drained.wait());
    loops_->run_on(0, [&] {
      socket->when_drained([&drained, socket] { drained.add(socket->is_open()); });
      EXPECT_EQ(drained.count(), 2U) << "it is known already";
      socket->abort();
    });
    closed_.wait();
  }
}

// Each ping is answered; a peer that takes no answers must not be read from.
TEST_F(WebSocketPatienceTest, PingsWhoseAnswersAreNotReadAreNotReadEither) {
  options_.send_queue = 256 * 1024;
  options_.rate_window = 300ms;
  SocketClient client(port(), 4096);
  const auto socket = opened_.wait();
  std::string pings;
  for (int i = 0; i < 500; ++i) pings += RawClient::frame(9, std::string(125, 'p'));
  std::size_t most = 0;
  std::size_t place = 0;
  for (ssize_t sent = 0; sent >= 0;) {
    place = (place + static_cast<std::size_t>(sent)) % pings.size();
    loops_->run_on(0, [&] { most = std::max(most, socket->buffered()); });
    sent = client.send_some(std::string_view(pings).substr(place));
  }
  EXPECT_EQ(closed_.wait(), (Closed{1013, "client reads too slowly", false}));
  EXPECT_GT(most, 0U);
  EXPECT_LT(most, options_.send_queue);
  EXPECT_EQ(dropped("reads_slowly"), 1);
}

TEST_F(WebSocketPatienceTest, AMessageThatTricklesEndsWith1013) {
  options_.rate_window = 100ms;
  options_.min_rate = std::size_t{100} << 20;
  for (const bool in_fragments : {false, true}) {
    SocketClient client(port());
    const std::string whole = RawClient::text_frame(std::string(400'000, 'x'));
    client.send(in_fragments ? RawClient::frame(1, "x", false) : whole.substr(0, 100));
    for (std::size_t at = 100; !client.has_unread(); ++at) {
      const bool open = in_fragments ? client.send(RawClient::frame(0, "x", false))
                                     : client.send(whole.substr(at, 1));
      if (!open) break;
    }
    EXPECT_EQ(client.read_frame().close_reason(), "client sends too slowly");
    EXPECT_EQ(closed_.wait().code, 1013);
  }
  EXPECT_EQ(dropped("sends_slowly"), 2);
}

// Beast tells of neither before it is whole.
TEST_F(WebSocketPatienceTest, AFrameHeadOrAPingThatTricklesEndsWith1013) {
  options_.rate_window = 100ms;
  options_.min_rate = std::size_t{100} << 20;
  const std::string head = RawClient::frame(2, std::string(100'000, 'x')).substr(0, 13);
  const std::string ping = RawClient::frame(9, std::string(125, 'p')).substr(0, 130);
  for (const std::string& part : {head, ping, head.substr(0, 1), ping.substr(0, 7)}) {
    SocketClient client(port());
    client.send(RawClient::frame(9, ""));  // an earlier whole frame does not help
    EXPECT_EQ(client.read_frame().opcode, 10);
    for (std::size_t at = 0; at < part.size() && client.send(part.substr(at, 1)); ++at) {
    }
    EXPECT_EQ(client.read_frame().close_reason(), "client sends too slowly") << part.size();
    EXPECT_EQ(closed_.wait().code, 1013);
  }
  EXPECT_EQ(dropped("sends_slowly"), 4);
}

TEST_F(WebSocketPatienceTest, WhileMemoryIsOverdrawnLargeMessagesEndWith1013AndSmallOnesAreServed) {
  memory_limit_ = 100'000;
  SocketClient first(port());
  const std::string large = RawClient::text_frame(std::string(200'000, 'x'));
  first.send(std::string_view(large).substr(0, 99'000));
  while (memory_->used() < 90'000) std::this_thread::yield();
  SocketClient second(port());
  second.send(std::string_view(large).substr(0, 50'000));
  EXPECT_EQ(second.read_frame().close_code(), 1013);
  EXPECT_EQ(closed_.wait().reason, "the server is short of memory: try again later");
  EXPECT_EQ(dropped("memory"), 1);
  SocketClient small(port());
  small.send(RawClient::text_frame("hello"));
  EXPECT_EQ(small.read_text(), "hello");
}

TEST_F(WebSocketPatienceTest, AMessageToManyIsHeldOnce) {
  constexpr std::size_t kLength = 6'000'000;  // more than the system takes of it for one
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<std::shared_ptr<WebSocket>> sockets;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<RawClient>(port(), 4096));
    clients.back()->upgrade();
    sockets.push_back(opened_.wait());
  }
  loops_->run_on(0, [&] {
    const SharedBytes payload(*memory_, std::string(kLength, 'x'));
    for (const auto& socket : sockets) socket->send(payload, true);
  });
  std::size_t buffered = 0;
  loops_->run_on(0, [&] {
    for (const auto& socket : sockets) buffered += socket->buffered();
  });
  EXPECT_GT(buffered, 2 * kLength);
  EXPECT_LT(memory_->used(), kLength + kLength / 10);
  for (const auto& client : clients) {
    const Frame frame = client->read_frame();
    EXPECT_EQ(frame.opcode, 1);
    EXPECT_EQ(frame.payload, std::string(kLength, 'x'));
  }
  loops_->run_on(0, [&] { EXPECT_EQ(memory_->used(), 0U); });
}

TEST_F(WebSocketPatienceTest, PausedReadingDeliversNothingUntilResumedAndLosesNothing) {
  Events<std::string> heard;
  on_message_ = [&](WebSocket& socket, std::string_view payload, bool) {
    heard.add(std::string(payload));
    if (payload == "pause") socket.pause_reading();
  };
  SocketClient client(port());
  const auto socket = opened_.wait();
  client.send(RawClient::text_frame("pause") + RawClient::text_frame("1") +
              RawClient::text_frame("2"));
  EXPECT_EQ(heard.wait(), "pause");
  for (int i = 0; i < 10; ++i) loops_->run_on(0, [] {});
  EXPECT_EQ(heard.count(), 1U);
  loops_->run_on(0, [&] { socket->resume_reading(); });
  EXPECT_EQ(heard.wait(), "1");
  EXPECT_EQ(heard.wait(), "2");

  // Paused from outside: the message that is already being read waits in the socket.
  loops_->run_on(0, [&] { socket->pause_reading(); });
  client.send(RawClient::text_frame("3") + RawClient::text_frame("4"));
  for (int i = 0; i < 10; ++i) loops_->run_on(0, [] {});
  EXPECT_EQ(heard.count(), 3U);
  loops_->run_on(0, [&] {
    socket->resume_reading();
    EXPECT_EQ(heard.count(), 3U) << "delivered from inside resume_reading()";
    socket->pause_reading();
    socket->resume_reading();
  });
  EXPECT_EQ(heard.wait(), "3");
  EXPECT_EQ(heard.wait(), "4");
}

TEST_F(WebSocketPatienceTest, AClosingSocketThatWasPausedStillFinishesItsHandshake) {
  on_open_ = [](WebSocket& socket) { socket.pause_reading(); };
  SocketClient client(port());
  client.send(RawClient::text_frame("never read"));
  const auto socket = opened_.wait();
  loops_->run_on(0, [&] { socket->close(4005, ""); });
  EXPECT_EQ(client.read_frame().close_code(), 4005);
  client.send(RawClient::close_frame(4005));
  EXPECT_TRUE(closed_.wait().was_clean);
}

// ---- silence ------------------------------------------------------------------------------------

TEST_F(WebSocketPatienceTest, ASilentPeerIsPingedAndThenDropped) {
  options_.ping_interval = 40ms;
  options_.ping_timeout = 40ms;
  SocketClient client(port());
  EXPECT_EQ(client.read_frame().opcode, 9);
  EXPECT_EQ(closed_.wait(), (Closed{kCloseAbnormal, "no answer to a ping", false}));
  EXPECT_TRUE(client.at_end());
}

TEST_F(WebSocketPatienceTest, APeerThatAnswersPingsStays) {
  options_.ping_interval = 20ms;
  options_.ping_timeout = 200ms;
  SocketClient client(port());
  for (int i = 0; i < 5; ++i) {
    const Frame ping = client.read_frame();
    ASSERT_EQ(ping.opcode, 9);
    client.send(RawClient::frame(10, ping.payload));
  }
  client.send(RawClient::text_frame("still here"));
  Frame frame = client.read_frame();
  while (frame.opcode == 9) frame = client.read_frame();
  EXPECT_EQ(frame.payload, "still here");
  EXPECT_EQ(closed_.count(), 0U);
}

TEST_F(WebSocketPatienceTest, WithoutPingsASilentPeerStays) {
  options_.ping_interval = 0ms;
  options_.ping_timeout = 10ms;
  options_.http_idle_timeout = 20ms;
  SocketClient silent(port());
  opened_.wait();

  // Clients that are dropped for idling show that several sweeps have passed.
  for (int i = 0; i < 3; ++i) {
    RawClient idle(port());
    EXPECT_EQ(idle.request("GET / HTTP/1.1\r\nHost: t\r\n\r\n").status, 200);
    EXPECT_TRUE(idle.at_end());
  }
  silent.send(RawClient::text_frame("still here"));
  EXPECT_EQ(silent.read_frame().payload, "still here") << "and no ping came before it";
  EXPECT_EQ(closed_.count(), 0U);
}

TEST_F(WebSocketPatienceTest, APeerThatEndsWhileReadingIsPausedIsNoticed) {
  options_.close_timeout = 20ms;  // so that the sweep is quick
  on_open_ = [](WebSocket& socket) { socket.pause_reading(); };
  SocketClient leaving(port());
  opened_.wait();
  leaving.close();
  EXPECT_EQ(closed_.wait(), (Closed{kCloseAbnormal, "connection lost", false}));

  SocketClient rude(port());
  opened_.wait();
  rude.reset_on_close();
  rude.close();
  EXPECT_EQ(closed_.wait().code, kCloseAbnormal);
  while (server_->connections() != 0) std::this_thread::yield();
}

TEST_F(WebSocketPatienceTest, APeerThatEndsWhileReadingIsPausedIsStillHeardIfReadingIsResumed) {
  options_.close_timeout = 20ms;
  Events<std::string> heard;
  on_message_ = [&](WebSocket&, std::string_view payload, bool) {
    heard.add(std::string(payload));
  };
  on_open_ = [](WebSocket& socket) { socket.pause_reading(); };
  SocketClient client(port());
  const auto socket = opened_.wait();
  client.send(RawClient::text_frame("one") + RawClient::text_frame("two"));
  client.close();

  // Another client that leaves without a close frame shows that several sweeps have passed.
  for (int i = 0; i < 3; ++i) {
    SocketClient silent(port());
    opened_.wait();
    silent.close();
    closed_.wait();
  }
  EXPECT_EQ(heard.count(), 0U);
  loops_->run_on(0, [&] { socket->resume_reading(); });
  EXPECT_EQ(heard.wait(), "one");
  EXPECT_EQ(heard.wait(), "two");
  EXPECT_EQ(closed_.wait().code, kCloseAbnormal);
}

TEST_F(WebSocketPatienceTest, APeerThatHasEndedIsNotHeldForItsMessagesForEver) {
  options_.ping_interval = 20ms;
  options_.ping_timeout = 20ms;
  on_message_ = [](WebSocket&, std::string_view, bool) { ADD_FAILURE() << "delivered in a pause"; };
  on_open_ = [](WebSocket& socket) { socket.pause_reading(); };
  SocketClient client(port());
  client.send(RawClient::text_frame("one") + RawClient::text_frame("two"));
  client.close();
  EXPECT_EQ(closed_.wait().code, kCloseAbnormal);
}

TEST_F(WebSocketPatienceTest, APausedSocketIsNotDroppedForSilence) {
  options_.ping_interval = 10ms;
  options_.ping_timeout = 10ms;
  on_open_ = [](WebSocket& socket) { socket.pause_reading(); };
  SocketClient paused(port());
  const auto socket = opened_.wait();

  // A second client that is dropped shows that the time-outs have passed, several times over.
  on_open_ = nullptr;
  for (int i = 0; i < 3; ++i) {
    SocketClient silent(port());
    EXPECT_EQ(closed_.wait().code, kCloseAbnormal);
  }
  EXPECT_EQ(closed_.count(), 3U);
  paused.send(RawClient::text_frame("hello"));
  loops_->run_on(0, [&] { socket->resume_reading(); });
  Frame frame = paused.read_frame();
  while (frame.opcode == 9) frame = paused.read_frame();
  EXPECT_EQ(frame.payload, "hello");
}

}  // namespace
}  // namespace hearth::net
