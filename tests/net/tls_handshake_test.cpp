#include "net/tls_handshake.hpp"

#include "net/tls_fixture.hpp"

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hearth::net {
namespace {

using std::chrono::milliseconds;
using testing::CertificateFiles;
using testing::KeyKind;
using testing::make_certificate;
using testing::RawClient;
using testing::SecureClient;
using testing::TlsClient;
using testing::TlsOffer;

class TlsHandshakeTest : public TlsFixture {
 protected:
  void start_by_default() override { start_tls(); }
};

TEST_F(TlsHandshakeTest, OnlyModernVersionsAndCiphersAreSpoken) {
  struct Case {
    TlsOffer offer;
    std::string version;  // empty: refused
  };
  const Case cases[] = {
      {{.min_version = TLS1_VERSION, .max_version = TLS1_VERSION, .ciphers = "ALL"}, ""},
      {{.min_version = TLS1_1_VERSION, .max_version = TLS1_1_VERSION, .ciphers = "ALL"}, ""},
      {{.max_version = TLS1_2_VERSION}, "TLSv1.2"},
      {{}, "TLSv1.3"},
      // Without forward secrecy, with CBC, without encryption, anonymous.
      {{.max_version = TLS1_2_VERSION, .ciphers = "AES128-GCM-SHA256"}, ""},
      {{.max_version = TLS1_2_VERSION, .ciphers = "ECDHE+AES:!AESGCM:!AESCCM"}, ""},
      {{.max_version = TLS1_2_VERSION, .ciphers = "DHE"}, ""},
      {{.max_version = TLS1_2_VERSION, .ciphers = "eNULL"}, ""},
      {{.max_version = TLS1_2_VERSION, .ciphers = "aNULL"}, ""},
  };
  start_tls(1, KeyKind::kRsa2048);
  for (const Case& each : cases) {
    TlsClient client(port(), each.offer);
    const std::string fault = client.handshake();
    const std::string told =
        each.offer.ciphers + " up to " + std::to_string(each.offer.max_version) + ": " + fault;
    EXPECT_EQ(fault.empty(), !each.version.empty()) << told;
    if (fault.empty()) {
      EXPECT_EQ(client.version(), each.version) << told;
      EXPECT_EQ(get(client), "GET /x ") << told;
    }
  }
  stop();  // the last alert leaves before it is counted
  EXPECT_EQ(dropped("handshake"), 7);
}

// What a scanner would list.
TEST_F(TlsHandshakeTest, TheSuitesOfTls12AreTheseAndNoOther) {
  start_tls(1, KeyKind::kRsa2048);
  std::set<std::string> spoken;
  const TlsClient lists(port());
  STACK_OF(SSL_CIPHER)* const all = SSL_get_ciphers(const_cast<TlsClient&>(lists).ssl());
  std::vector<std::string> names;
  for (int i = 0; i < sk_SSL_CIPHER_num(all); ++i) {
    const SSL_CIPHER* const each = sk_SSL_CIPHER_value(all, i);
    if (std::string(SSL_CIPHER_get_version(each)) != "TLSv1.3")
      names.emplace_back(SSL_CIPHER_get_name(each));
  }
  ASSERT_GT(names.size(), 20U);
  for (const std::string& name : names) {
    TlsClient client(port(), {.max_version = TLS1_2_VERSION, .ciphers = name});
    if (client.handshake().empty()) spoken.insert(client.cipher());
  }
  EXPECT_EQ(spoken,
            (std::set<std::string>{"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384",
                                   "ECDHE-RSA-CHACHA20-POLY1305"}));
}

TEST_F(TlsHandshakeTest, TheServersOrderDecidesExceptForWhoPrefersChacha) {
  start_tls(1, KeyKind::kRsa2048);
  const auto chosen = [this](const std::string& order) {
    TlsClient client(port(), {.max_version = TLS1_2_VERSION, .ciphers = order});
    return client.handshake() + client.cipher();
  };
  EXPECT_EQ(chosen("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384"),
            "ECDHE-RSA-AES256-GCM-SHA384");
  EXPECT_EQ(chosen("ECDHE-RSA-CHACHA20-POLY1305:ECDHE-RSA-AES256-GCM-SHA384"),
            "ECDHE-RSA-CHACHA20-POLY1305");
}

TEST_F(TlsHandshakeTest, TheFloorCanBeRaised) {
  options_.tls.min_version = TlsVersion::k13;
  EXPECT_NE(TlsClient(port(), {.max_version = TLS1_2_VERSION}).handshake(), "");
  EXPECT_EQ(TlsClient(port()).handshake(), "");
}

TEST_F(TlsHandshakeTest, AlpnChoosesHttp11OrRefuses) {
  TlsClient speaks(port(), {.protocol = "http/1.1"});
  EXPECT_EQ(speaks.handshake(), "");
  EXPECT_EQ(speaks.protocol(), "http/1.1");
  EXPECT_NE(TlsClient(port(), {.protocol = "h2"}).handshake().find("no application protocol"),
            std::string::npos);
  TlsClient silent(port());
  EXPECT_EQ(silent.handshake(), "");
  EXPECT_EQ(silent.protocol(), "");
}

TEST_F(TlsHandshakeTest, NoSessionOutlivesItsConnection) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    SecureClient first(port(), {.max_version = version});
    EXPECT_EQ(get(first), "GET /x ");  // a ticket of TLS 1.3 would have come with it
    EXPECT_FALSE(first.has_ticket());
    TlsClient again(port(), {.max_version = version});
    SSL_set_session(again.ssl(), SSL_get0_session(first.ssl()));
    ASSERT_EQ(again.handshake(), "");
    EXPECT_FALSE(again.was_resumed());
  }
}

TEST_F(TlsHandshakeTest, ARenegotiationIsRefused) {
  SecureClient client(port(), {.max_version = TLS1_2_VERSION});
  SSL_renegotiate(client.ssl());
  EXPECT_NE(SSL_do_handshake(client.ssl()), 1);
}

TEST_F(TlsHandshakeTest, PlainHttpIsToldThatThePortSpeaksTls) {
  RawClient client(port());
  const auto reply = client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("this port speaks TLS: use https:// or wss://"), std::string::npos);
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(dropped("handshake"), 1);
}

TEST_F(TlsHandshakeTest, OtherBytesEndTheConnection) {
  RawClient client(port());
  client.send(std::string(600, 'x') + "\r\n\r\n");
  client.read_to_end();  // an alert
  EXPECT_EQ(dropped("handshake"), 1);
}

// No byte, one byte, and half of a client's first message.
TEST_F(TlsHandshakeTest, HalfAHandshakeIsGivenUpInTime) {
  options_.handshake_timeout = milliseconds(200);
  const std::string hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (const std::string& said : {std::string(), hello.substr(0, 1), hello}) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->send(said);
  }
  for (const auto& client : clients) EXPECT_TRUE(client->at_end());
  EXPECT_EQ(dropped("silent"), 3);
}

// The handshake and the request's head share one time.
TEST_F(TlsHandshakeTest, ARequestMustFollowTheHandshakeInTime) {
  options_.handshake_timeout = milliseconds(300);
  SecureClient client(port());
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(client.at_end());
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
}

TEST_F(TlsHandshakeTest, HandshakesCountAsConnectionsAndOnTheAccountOfMemory) {
  options_.max_connections = 2;
  RawClient first(port());
  RawClient second(port());
  RawClient third(port());
  EXPECT_TRUE(third.at_end()) << "one too many is closed without an answer";
  EXPECT_EQ(server_->connections(), 2U);
  EXPECT_EQ(memory_->used(), 2 * kHandshakeBytes);
  EXPECT_EQ(dropped("connections"), 1);
}

TEST_F(TlsHandshakeTest, AHandshakeNeedsMemoryThatIsThere) {
  memory_limit_ = kHandshakeBytes;
  RawClient first(port());
  TlsClient second(port());
  EXPECT_NE(second.handshake(), "");
  EXPECT_EQ(dropped("memory"), 1);
  first.close();
}

TEST_F(TlsHandshakeTest, StoppingEndsHandshakes) {
  RawClient silent(port());
  TlsClient client(port());  // behind it: so the acceptor has both
  ASSERT_EQ(client.handshake(), "");
  stop();
  EXPECT_TRUE(silent.at_end());
}

TEST_F(TlsHandshakeTest, ANewCertificateIsForNewConnectionsAndOldOnesGoOn) {
  start_tls(2);
  std::vector<std::unique_ptr<TlsClient>> old;
  for (int i = 0; i < 100; ++i) {
    old.push_back(std::make_unique<TlsClient>(port()));
    ASSERT_EQ(old.back()->handshake(), "");
    if (i % 2 == 0) ASSERT_EQ(old.back()->upgrade().status, 101);
  }
  const CertificateFiles next = make_certificate(directory_.path(), "second.test");
  std::filesystem::rename(next.certificate, options_.tls.certificate);
  EXPECT_FALSE(server_->reload_certificate()) << "the key of the first does not fit";
  EXPECT_EQ(TlsClient(port()).handshake(), "");
  {
    SecureClient between(port());
    EXPECT_EQ(between.peer_name(), "first.test");
  }
  std::filesystem::rename(next.key, options_.tls.key);
  ASSERT_TRUE(server_->reload_certificate());
  SecureClient fresh(port());
  EXPECT_EQ(fresh.peer_name(), "second.test");
  for (std::size_t i = 0; i < old.size(); ++i) {
    EXPECT_EQ(old[i]->peer_name(), "first.test");
    if (i % 2 == 1) {
      EXPECT_EQ(get(*old[i]), "GET /x ");
      continue;
    }
    old[i]->send(RawClient::text_frame("still here"));
    EXPECT_EQ(old[i]->read_text(), "still here");
  }
}

}  // namespace
}  // namespace hearth::net
