#include "net/http_server.hpp"

#include "base/logger.hpp"
#include "net/http_session_fixture.hpp"
#include "net/raw_client.hpp"
#include "support/few_descriptors.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::net {
namespace {

using hearth::testing::RawClient;
using hearth::testing::Reply;
using hearth::testing::SocketClient;
using namespace std::chrono_literals;

class HttpServerTest : public HttpSessionFixture {};

TEST_F(HttpServerTest, PortZeroReportsTheRealPort) {
  EXPECT_NE(port(), 0);
  EXPECT_EQ(server_->address(), "127.0.0.1:" + std::to_string(port()));
  EXPECT_EQ(RawClient(port()).request(get("/")).status, 200);
}

TEST_F(HttpServerTest, APortInUseIsAClearError) {
  NetOptions same;
  same.port = port();
  const auto second = HttpServer::listen(same, loops_->all(), *this, supplies());
  EXPECT_EQ(second.error().code, Errc::kUnavailable);
  EXPECT_EQ(second.error().message,
            "cannot listen on 127.0.0.1:" + std::to_string(port()) + ": Address already in use");
}

TEST_F(HttpServerTest, AHostThatIsNotThisMachineIsAClearError) {
  start();
  NetOptions elsewhere;
  elsewhere.host = "192.0.2.1";
  EXPECT_NE(HttpServer::listen(elsewhere, loops_->all(), *this, supplies())
                .error()
                .message.find("192.0.2.1:0"),
            std::string::npos);
}

TEST_F(HttpServerTest, StartsAndStopsAHundredTimes) {
  Loops loops(2);
  for (int round = 0; round < 100; ++round) {
    auto server = HttpServer::listen(options_, loops.all(), *this, supplies());
    ASSERT_TRUE(server);
    server.value()->start();
    std::optional<RawClient> socket;
    if (round % 2 == 0) {
      socket.emplace(server.value()->port());
      socket->upgrade();
    }
    std::promise<void> stopped;
    server.value()->stop(5s, [&stopped] { stopped.set_value(); });
    if (socket) {
      EXPECT_EQ(socket->read_frame().close_code(), 1001);
      socket->send(RawClient::close_frame(1001));
    }
    stopped.get_future().get();
    EXPECT_EQ(server.value()->connections(), 0U);
  }
}

TEST_F(HttpServerTest, StopClosesWebSocketsWith1001AndIdleConnectionsAtOnce) {
  start(2);
  SocketClient socket(port());
  RawClient idle(port());
  idle.request(get("/"));
  std::promise<void> stopped;
  server_->stop(5s, [&stopped] { stopped.set_value(); });
  EXPECT_EQ(socket.read_frame().close_code(), 1001);
  EXPECT_TRUE(idle.at_end());
  idle.close();
  socket.send(RawClient::close_frame(1001));
  EXPECT_TRUE(closed_.wait().was_clean);
  stopped.get_future().get();
  server_.reset();
}

TEST_F(HttpServerTest, StopLetsARunningExchangeFinish) {
  hold_requests();
  RawClient client(port());
  const auto exchange = ask(client, get("/slow"));
  std::promise<void> stopped;
  server_->stop(5s, [&stopped] { stopped.set_value(); });
  loops_->run_on(0, [] {});
  exchange->respond(with_body("just in time"));
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.body, "just in time");
  EXPECT_NE(reply.head.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(client.at_end());
  client.close();
  stopped.get_future().get();
  server_.reset();
}

TEST_F(HttpServerTest, StopCutsWhatIsLeftAtTheDeadline) {
  options_.close_timeout = 20ms;  // so that the sweep is quick
  hold_requests();
  RawClient never_answered(port());
  const auto exchange = ask(never_answered);
  SocketClient silent_socket(port());
  stop(50ms);
  EXPECT_TRUE(never_answered.at_end());
  EXPECT_EQ(closed_.wait().code, kCloseAbnormal);
  exchange->respond({});  // too late: nothing happens
}

// Sockets that say goodbye when they are told to. Opened and closed on one thread.
class PoliteSockets {
 public:
  PoliteSockets(std::uint16_t port, int count) {
    for (int i = 0; i < count; ++i) {
      clients_.push_back(std::make_unique<RawClient>(port));
      clients_.back()->upgrade();
    }
  }
  // How many were closed with 1001. `each` is called after each close frame.
  int say_goodbye(const std::function<void()>& each) {
    int going_away = 0;
    for (const auto& client : clients_) {
      if (client->read_frame().close_code() == 1001) ++going_away;
      each();
    }
    for (const auto& client : clients_) {
      client->send(RawClient::close_frame(1001));
      client->close();
    }
    return going_away;
  }

 private:
  std::vector<std::unique_ptr<RawClient>> clients_;
};

TEST_F(HttpServerTest, StopClosesManyWebSocketsBitByBitAndAllWithinTheGrace) {
  constexpr int kCount = 300;
  start(2);
  PoliteSockets sockets(port(), kCount);
  using Clock = std::chrono::steady_clock;
  std::promise<void> stopped;
  const auto begun = Clock::now();
  server_->stop(1600ms, [&stopped] { stopped.set_value(); });
  // Their order is not promised, so this compares all of them together.
  std::vector<Clock::time_point> told;
  EXPECT_EQ(sockets.say_goodbye([&] { told.push_back(Clock::now()); }), kCount);
  EXPECT_GE(told.back() - begun, 600ms) << "not spread over the first half of the grace";
  stopped.get_future().get();
  for (int i = 0; i < kCount; ++i) EXPECT_TRUE(closed_.wait().was_clean);
  server_.reset();
}

TEST_F(HttpServerTest, StopDoesNotMakeAFewWebSocketsWait) {
  start(2);
  PoliteSockets sockets(port(), 100);
  std::promise<void> stopped;
  const auto begun = std::chrono::steady_clock::now();
  server_->stop(60s, [&stopped] { stopped.set_value(); });
  EXPECT_EQ(sockets.say_goodbye([] {}), 100);
  stopped.get_future().get();
  // A single slice of the first half of that grace would be 1.5 s.
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 1500ms);
  server_.reset();
}

TEST_F(HttpServerTest, AConnectionTooManyGets503AndRoomComesBack) {
  options_.max_connections = 2;
  RawClient one(port());
  one.request(get("/"));
  {
    SocketClient two(port());
    RawClient three(port());
    const Reply reply = three.read_reply();
    EXPECT_EQ(reply.status, 503);
    EXPECT_NE(reply.body.find("unavailable"), std::string::npos);
    EXPECT_TRUE(three.at_end());
  }
  closed_.wait();
  while (server_->connections() > 1) std::this_thread::yield();
  RawClient again(port());
  EXPECT_EQ(again.request(get("/")).status, 200);
  EXPECT_EQ(one.request(get("/")).status, 200);
}

TEST_F(HttpServerTest, EachOfManyConnectionsTooManyGets503) {
  options_.max_connections = 1;
  RawClient one(port());
  one.request(get("/"));
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->send(get("/"));
  }
  int refused = 0;
  for (const auto& client : clients) refused += client->read_reply().status == 503 ? 1 : 0;
  EXPECT_EQ(refused, 200);
  EXPECT_EQ(dropped("connections"), 200);
  EXPECT_EQ(one.request(get("/")).status, 200);
}

TEST_F(HttpServerTest, ALoopThatStandsStillTakesNoConnectionsFromTheOthers) {
  start(2);
  Events<std::size_t> where;
  on_request_ = [&](const std::shared_ptr<HttpExchange>& exchange) {
    where.add(loops_->current().value_or(99));
    exchange->respond({});
  };
  for (const std::size_t stands : {0U, 1U}) {
    std::promise<void> standing;
    std::promise<void> go_on;
    asio::post(loops_->all()[stands].context, [&] {
      standing.set_value();
      go_on.get_future().wait();
    });
    standing.get_future().wait();
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 10; ++i) {
      clients.push_back(std::make_unique<RawClient>(port()));
      clients.back()->send(get("/"));
    }
    // One may have been given to the loop that stands still before it was seen to.
    for (int i = 0; i < 9; ++i) EXPECT_EQ(where.wait(), 1 - stands);
    go_on.set_value();
    for (const auto& client : clients) EXPECT_EQ(client->read_reply().status, 200);
    where.wait();
  }
}

class EventLogger final : public Logger {
 public:
  explicit EventLogger(Events<std::string>& events) : events_(events) {}
  [[nodiscard]] bool enabled(LogLevel) const override { return true; }
  void write(LogLevel, std::string_view event, std::span<const LogField>) override {
    events_.add(std::string(event));
  }

 private:
  Events<std::string>& events_;
};

TEST_F(HttpServerTest, WithoutADescriptorItIsLoggedAndTheClientGets503WithoutSpinning) {
  Events<std::string> logged;
  logger_ = std::make_unique<EventLogger>(logged);
  start();
  RawClient client{RawClient::Later()};
  {
    const hearth::testing::FewDescriptors none(0);
    client.connect(port());
    client.send(get("/"));
    EXPECT_EQ(logged.wait(), "net.accept_failed");
    EXPECT_EQ(client.read_reply().status, 503);
  }
  EXPECT_EQ(RawClient(port()).request(get("/")).status, 200);
  EXPECT_LE(logged.count(), 50U);
  EXPECT_EQ(dropped("connections"), 1);
}

TEST_F(HttpServerTest, ListensOnANameAndOnTheOtherFamily) {
  options_.host = "localhost";
  EXPECT_NE(port(), 0);
  NetOptions v6;
  v6.host = "::1";
  const auto listening = HttpServer::listen(v6, loops_->all(), *this, supplies());
  if (!listening) GTEST_SKIP() << "no IPv6 here";
  EXPECT_TRUE(listening.value()->address().starts_with("[::1]:"));
}

TEST_F(HttpServerTest, DealsHttpConnectionsToAllLoops) {
  Events<std::size_t> where;
  on_request_ = [&](const std::shared_ptr<HttpExchange>& exchange) {
    where.add(loops_->current().value_or(99));
    exchange->respond({});
  };
  start(2);
  for (int i = 0; i < 4; ++i) RawClient(port()).request(get("/"));
  std::size_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += where.wait();
  EXPECT_EQ(sum, 2U);
}

}  // namespace
}  // namespace hearth::net
