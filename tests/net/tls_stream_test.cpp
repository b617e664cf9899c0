#include "net/tls_stream.hpp"

#include "net/tls_fixture.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::net {
namespace {

using std::chrono::milliseconds;
using testing::RawClient;
using testing::SecureClient;
using testing::TlsClient;

class TlsStreamTest : public TlsFixture {
 protected:
  void start_by_default() override { start_tls(); }
  // A client with an open WebSocket.
  std::unique_ptr<TlsClient> open() {
    auto client = std::make_unique<TlsClient>(port());
    EXPECT_EQ(client->handshake(), "");
    EXPECT_EQ(client->upgrade().status, 101);
    return client;
  }
};

// More than a record, than a read, and than the system's buffers; both ways.
TEST_F(TlsStreamTest, BytesOfAnyLengthGoBothWays) {
  const auto client = open();
  for (const std::size_t size : {0U, 1U, 125U, 16'384U, 16'385U, 70'000U, 3U << 20U}) {
    std::string text(size, 'x');
    for (std::size_t i = 0; i < size; i += 1000) text[i] = static_cast<char>('a' + i / 1000 % 26);
    client->send(RawClient::text_frame(text));
    EXPECT_TRUE(client->read_text() == text) << size;
  }
}

TEST_F(TlsStreamTest, AWebSocketMovesToTheLoopOfItsPlan) {
  start_tls(3);
  for (const std::size_t loop : {0U, 1U, 2U}) {
    on_upgrade_ = on_loop(loop);
    Events<std::size_t> loops;
    on_open_ = [&](WebSocket&) { loops.add(loops_->current().value()); };
    // What is sent ahead of the answer moves along.
    SecureClient client(port());
    client.send(RawClient::upgrade_text("/") + RawClient::text_frame("ahead"));
    EXPECT_EQ(client.read_reply(false).status, 101);
    EXPECT_EQ(client.read_text(), "ahead");
    EXPECT_EQ(loops.wait(), loop);
  }
}

TEST_F(TlsStreamTest, AnswersToABurstLeaveTogether) {
  const auto client = open();
  const auto socket = opened_.wait();
  std::string burst;
  for (int i = 0; i < 64; ++i) burst += RawClient::text_frame("a");
  client->send(burst);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(client->read_text(), "a");
  std::uint64_t sends = 0;
  loops_->run_on(0, [&] { sends = socket->sends(); });
  EXPECT_LE(sends, 4U);
}

// ---- the end ------------------------------------------------------------------------------------

TEST_F(TlsStreamTest, BothSidesSayThatTheyEnd) {
  SecureClient client(port());
  client.send("GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.read_reply().body, "GET /x ");
  EXPECT_TRUE(client.at_end());
  EXPECT_TRUE(client.saw_end());
}

TEST_F(TlsStreamTest, AClientThatSaysThatItEndsIsToldSoToo) {
  SecureClient client(port());
  EXPECT_EQ(get(client), "GET /x ");
  client.end_tls();
  EXPECT_TRUE(client.at_end());
  EXPECT_TRUE(client.saw_end());
}

// The request may be only a part: a request that a proxy has cut off is not answered.
TEST_F(TlsStreamTest, AnEndWithoutCloseNotifyIsALostConnection) {
  Events<int> aborted;
  on_request_ = [&](std::shared_ptr<HttpExchange> exchange) {
    exchange->on_abort([&aborted] { aborted.add(1); });
    held_.push_back(std::move(exchange));
  };
  SecureClient client(port());
  client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
  client.end_sending();
  EXPECT_EQ(aborted.wait(), 1);
}

TEST_F(TlsStreamTest, ABrokenRecordEndsTheConnection) {
  const auto client = open();
  client->send_raw(std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x'));
  EXPECT_EQ(closed_.wait().code, 1006);
}

TEST_F(TlsStreamTest, CloseFramesAndCloseNotifyGoBothWays) {
  const auto client = open();
  client->send(RawClient::close_frame(1000, "bye"));
  EXPECT_EQ(client->read_frame().close_code(), 1000);
  EXPECT_TRUE(client->at_end());
  EXPECT_TRUE(client->saw_end());
  EXPECT_EQ(closed_.wait().reason, "bye");
}

// ---- limits -------------------------------------------------------------------------------------

TEST_F(TlsStreamTest, AClientThatDoesNotReadIsDroppedAsOnPlainTcp) {
  options_.send_queue = 256 << 10;
  options_.rate_window = milliseconds(300);
  on_message_ = [](WebSocket& socket, std::string_view, bool) {
    socket.send(std::string(200 << 10, 'x'), true);
  };
  const auto client = open();
  for (int i = 0; i < 200 && client->send(RawClient::text_frame("more")); ++i) {
    if (closed_.count() != 0) break;
  }
  EXPECT_EQ(closed_.wait().code, 1013);
}

TEST_F(TlsStreamTest, KeysAreUpdatedOnTheWay) {
  const auto client = open();
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(SSL_key_update(client->ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
    client->send(RawClient::text_frame("after a new key"));
    EXPECT_EQ(client->read_text(), "after a new key");
  }
}

}  // namespace
}  // namespace hearth::net
