// Limits of an address as its clients meet them, over real sockets from two addresses.
#include "net/byte_stream.hpp"
#include "net/http_server.hpp"
#include "net/raw_client.hpp"
#include "net/tls_fixture.hpp"
#include "net/tls_session.hpp"

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hearth::net {
namespace {

using testing::RawClient;

class ClientAddressTest : public TlsFixture {
 protected:
  ClientAddressTest() { options_.per_address.exempt.clear(); }

  std::unique_ptr<RawClient> from(const char* address) {
    auto client = std::make_unique<RawClient>(RawClient::Later{});
    client->bind_to(address);
    client->connect(port());
    return client;
  }
  static testing::Reply get(RawClient& client) {
    return client.request("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  [[nodiscard]] bool has_counted(const std::string& limit, int times) const {
    return metrics_.text().find("hearth_addresses_limited_total{limit=\"" + limit + "\"} " +
                                std::to_string(times) + "\n") != std::string::npos;
  }
};

TEST_F(ClientAddressTest, AConnectionTooManyGets429AndOthersAreServed) {
  options_.per_address.connections = 2;
  const auto first = from("127.0.0.1");
  EXPECT_EQ(get(*first).status, 200);
  auto second = from("127.0.0.1");
  EXPECT_EQ(second->upgrade().status, 101);
  const auto third = from("127.0.0.1");
  const auto refused = third->read_reply();
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.head.find("Retry-After: 10\r\n"), std::string::npos) << refused.head;
  EXPECT_NE(refused.body.find("too many connections"), std::string::npos);
  EXPECT_TRUE(third->at_end());
  EXPECT_EQ(get(*from("127.0.0.2")).status, 200);
  EXPECT_TRUE(has_counted("connections", 1));
  // The connection of a WebSocket is free again when the socket is gone.
  second->send(RawClient::close_frame(1000));
  (void)closed_.wait();
  second->read_to_end();
  const auto is_served = [&] {
    try {
      return get(*from("127.0.0.1")).status == 200;
    } catch (const std::exception&) {
      return false;  // a refused connection may be closed before its request is read
    }
  };
  // The server lets go of a socket some turns of its loop after its client has seen the end.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  bool served = is_served();
  while (!served && std::chrono::steady_clock::now() < deadline) served = is_served();
  EXPECT_TRUE(served);
}

TEST_F(ClientAddressTest, ConnectionsInQuickSuccessionGet429) {
  options_.per_address.new_connections = 1;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(get(*from("127.0.0.1")).status, 200);
  EXPECT_EQ(from("127.0.0.1")->read_reply().status, 429);
  EXPECT_EQ(get(*from("127.0.0.2")).status, 200);
}

TEST_F(ClientAddressTest, WithTlsSuchAConnectionIsClosed) {
  options_.per_address.connections = 1;
  start_tls();
  const auto first = from("127.0.0.1");
  EXPECT_TRUE(from("127.0.0.1")->at_end());
  EXPECT_TRUE(has_counted("connections", 1));
}

TEST_F(ClientAddressTest, MessagesAreCountedOverAllConnectionsAndWaysOfAnAddress) {
  options_.per_address.messages = 1;
  const auto socket = from("127.0.0.1");
  socket->upgrade();  // the first
  for (int i = 0; i < 8; ++i) {
    socket->send(RawClient::text_frame("a"));
    EXPECT_EQ(socket->read_text(), "a");
  }
  const auto http = from("127.0.0.1");
  EXPECT_EQ(get(*http).status, 200);  // the tenth
  const auto refused = get(*http);
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(http->at_end());
  socket->send(RawClient::text_frame("one too many"));
  const auto end = socket->read_frame();
  EXPECT_EQ(end.close_code(), 1013) << "its clients come back, later and later";
  EXPECT_EQ(end.close_reason(), "too many messages: try again later");
  EXPECT_EQ(get(*from("127.0.0.2")).status, 200);
  EXPECT_TRUE(has_counted("messages", 2));
}

TEST_F(ClientAddressTest, BytesAreCountedToo) {
  options_.per_address.bytes = 1000;
  const auto socket = from("127.0.0.1");
  socket->upgrade();
  const std::string text(3000, 'x');
  for (int i = 0; i < 3; ++i) {
    socket->send(RawClient::text_frame(text));
    EXPECT_EQ(socket->read_text(), text);
  }
  socket->send(RawClient::text_frame(text));
  EXPECT_EQ(socket->read_frame().close_code(), 1013);
  EXPECT_TRUE(has_counted("bytes", 1));
}

TEST_F(ClientAddressTest, WhatIsDroppedBehindARefusalIsCounted) {
  options_.max_body = 100;
  options_.per_address.bytes = 10'000;
  const auto client = from("127.0.0.1");
  client->send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
  EXPECT_EQ(client->read_reply().status, 413);
  const std::string more(10'000, 'x');
  std::size_t said = 0;
  while (said < std::size_t{64} << 20 && client->send(more)) said += more.size();
  EXPECT_LT(said, ByteStream::kMostDrained);
  EXPECT_TRUE(has_counted("bytes", 1)) << said;
}

TEST_F(ClientAddressTest, AllAddressesTogetherHaveLimitsToo) {
  options_.per_address.exempt = {"127.0.0.9"};
  options_.in_total.messages = 1;
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(get(*from(i % 2 == 0 ? "127.0.0.1" : "127.0.0.2")).status, 200);
  EXPECT_EQ(get(*from("127.0.0.3")).status, 429);
  EXPECT_EQ(get(*from("127.0.0.9")).status, 200) << "it is exempt";
  EXPECT_TRUE(has_counted("messages", 0));
  EXPECT_NE(metrics_.text().find("hearth_total_limited_total{limit=\"messages\"} 1\n"),
            std::string::npos);
}

TEST_F(ClientAddressTest, AHeaderChangesNoAddress) {
  options_.per_address.messages = 1;
  const auto client = from("127.0.0.1");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(get(*client).status, 200);
  EXPECT_EQ(client
                ->request("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n"
                          "Forwarded: for=192.0.2.1\r\n\r\n")
                .status,
            429);
}

// A client whose records hold only new keys, so that the layers above TLS do not see them.
class NewKeysTest : public ClientAddressTest {
 protected:
  NewKeysTest() {
    options_.per_address.bytes = 1000;
    options_.rate_window = std::chrono::milliseconds(100);  // looked at four times as often
  }
  // Sends more than the address may send, and less than the server drops behind a refusal. It sends
  // record by record: the server charges all bytes between two of its looks in one piece, and the
  // first piece may have any size. Returns when the server has answered.
  static void flood(testing::TlsClient& client) {
    using Clock = std::chrono::steady_clock;
    EXPECT_EQ(SSL_set_block_padding(client.ssl(), TlsSession::kRecord), 1);
    const auto begin = Clock::now();
    int sent = 0;
    while (!client.has_unread() && Clock::now() < begin + std::chrono::seconds(10)) {
      if (sent < 12 && Clock::now() >= begin + sent * std::chrono::milliseconds(50)) {
        ASSERT_EQ(SSL_key_update(client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        ASSERT_EQ(SSL_do_handshake(client.ssl()), 1);
        ++sent;
      }
      std::this_thread::yield();
    }
  }
  // What a client gets that sends this beginning of a request, and then new keys.
  void expect_429_after(std::string_view begun) {
    start_tls();
    testing::SecureClient client(port());
    if (!begun.empty()) client.send(begun);
    flood(client);
    EXPECT_EQ(client.read_reply().status, 429);
    EXPECT_TRUE(has_counted("bytes", 1));
  }
};

TEST_F(NewKeysTest, CountBeforeARequest) {
  expect_429_after({});
}

TEST_F(NewKeysTest, CountWhileHalfAHeadWaits) {
  expect_429_after("GET /x HT");
}

TEST_F(NewKeysTest, CountOnAWebSocket) {
  start_tls();
  testing::SecureClient client(port());
  client.upgrade();
  flood(client);
  EXPECT_EQ(client.read_frame().close_code(), 1013);
  EXPECT_EQ(closed_.wait().code, 1013);
  EXPECT_TRUE(has_counted("bytes", 1));
}

TEST_F(NewKeysTest, EndTheConnectionWhileAnAnswerIsDue) {
  Events<int> asked;
  Events<int> aborted;
  on_request_ = [&](std::shared_ptr<HttpExchange> exchange) {
    exchange->on_abort([&aborted] { aborted.add(1); });
    held_.push_back(std::move(exchange));
    asked.add(1);
  };
  start_tls();
  testing::SecureClient client(port());
  client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(asked.wait(), 1);
  EXPECT_EQ(SSL_set_block_padding(client.ssl(), TlsSession::kRecord), 1);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (aborted.count() == 0 && std::chrono::steady_clock::now() < deadline) {
    (void)SSL_key_update(client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
    (void)SSL_do_handshake(client.ssl());  // fails once the server has closed
  }
  EXPECT_EQ(aborted.wait(), 1);
  EXPECT_TRUE(has_counted("bytes", 1));
}

// What is no whole message, and goes on until the server has had enough.
struct Flood {
  const char* name;
  const char* limit;  // that ends it
  std::string begin;
  std::string more;
  bool is_http = false;
  bool is_tls = false;
  bool is_padded = false;  // each record of TLS to its full length
};

class AddressFloodTest : public ClientAddressTest, public ::testing::WithParamInterface<Flood> {
 protected:
  std::unique_ptr<RawClient> connect() {
    if (!GetParam().is_tls) {
      start();
      return std::make_unique<RawClient>(port());
    }
    start_tls();
    auto client = std::make_unique<testing::TlsClient>(port());
    EXPECT_EQ(client->handshake(), "");
    if (GetParam().is_padded)
      EXPECT_EQ(SSL_set_block_padding(client->ssl(), TlsSession::kRecord), 1);
    return client;
  }
};

TEST_P(AddressFloodTest, EndsAtTheLimit) {
  const Flood& flood = GetParam();
  options_.per_address.messages = 2;
  options_.per_address.bytes = 2000;
  const auto client = connect();
  if (!flood.is_http) client->upgrade();
  client->send(flood.begin);
  for (int i = 0; i < 30; ++i) client->send(flood.more);
  if (flood.is_http) {
    EXPECT_EQ(client->read_reply().status, 429);
  } else {
    testing::Frame frame;
    do {
      frame = client->read_frame();  // pongs
    } while (frame.opcode != 8);
    EXPECT_EQ(frame.close_code(), 1013);
    EXPECT_EQ(closed_.wait().code, 1013);
  }
  EXPECT_TRUE(has_counted(flood.limit, 1));
  // The server reads it only until it has sent the refusal: less than from other clients. The
  // system holds some MiB each way.
  const std::string more(std::size_t{1} << 20, 'x');
  std::size_t said = 0;
  while (said < std::size_t{64} << 20 && client->send(more)) said += more.size();
  EXPECT_LT(said, ByteStream::kMostDrained);
}

std::vector<Flood> floods() {
  const std::string head = "POST /x HTTP/1.1\r\nHost: a\r\n";
  const std::string kilobyte(1000, 'x');
  const std::string long_message = RawClient::frame(2, std::string(100'000, 'x'));
  std::vector<Flood> floods = {
      {"Pings", "messages", "", RawClient::frame(9, "")},
      {"Pongs", "messages", "", RawClient::frame(10, "")},
      {"EmptyFragments", "messages", RawClient::frame(1, "", false),
       RawClient::frame(0, "", false)},
      {"Fragments", "messages", RawClient::frame(1, "x", false), RawClient::frame(0, "x", false)},
      {"UnfinishedMessage", "bytes", long_message.substr(0, 1000), kilobyte},
      {"Body", "bytes", head + "Content-Length: 100000\r\n\r\n", kilobyte, true},
      {"ChunkedBody", "bytes", head + "Transfer-Encoding: chunked\r\n\r\n",
       "3e8\r\n" + kilobyte + "\r\n", true},
      {"EmptyLines", "bytes", "\r\n", std::string(500, '\r'), true},
  };
  std::string& lines = floods.back().more;
  for (std::size_t at = 1; at < lines.size(); at += 2) lines[at] = '\n';
  lines += lines;
  for (std::size_t i = floods.size(); i > 0; --i) {
    floods.push_back(floods[i - 1]);
    floods.back().is_tls = true;
  }
  for (const bool is_http : {false, true})
    floods.push_back({is_http ? "PaddedBody" : "PaddedMessage", "bytes",
                      is_http ? head + "Content-Length: 100000\r\n\r\n" : "\x82\xfe", "x", is_http,
                      true, true});
  return floods;
}

INSTANTIATE_TEST_SUITE_P(Floods, AddressFloodTest, ::testing::ValuesIn(floods()),
                         [](const auto& flood) {
                           return std::string(flood.param.name) +
                                  (flood.param.is_tls ? "OverTls" : "");
                         });

}  // namespace
}  // namespace hearth::net
