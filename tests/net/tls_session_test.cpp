// One read of a connection over TLS. More of TLS: tls_handshake_test.cpp, tls_stream_test.cpp.
#include "net/tls_session.hpp"

#include "net/test_certificate.hpp"
#include "support/temp_directory.hpp"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <array>
#include <csignal>
#include <memory>

namespace hearth::net {
namespace {

using TlsOutcome = TlsSession::Outcome;

class TlsSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // which OpenSSL's own socket raises
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends_.data()),
              0);
    const auto files =
        testing::make_certificate(directory_.path(), "a.test", testing::KeyKind::kEc);
    auto context = TlsContext::load({.certificate = files.certificate, .key = files.key});
    ASSERT_TRUE(context) << context.error().message;
    server_ = std::make_unique<TlsSession>(*context, ends_[0]);
    SSL_set_fd(client_.get(), ends_[1]);
    SSL_set_connect_state(client_.get());
    for (int round = 0; round < 10; ++round) {
      SSL_do_handshake(client_.get());
      server_->handshake();
    }
    ASSERT_EQ(SSL_is_init_finished(client_.get()), 1);
    ASSERT_EQ(server_->handshake(), TlsOutcome::kDone);
  }
  void TearDown() override {
    server_.reset();
    for (const int end : ends_) ::close(end);
  }
  [[nodiscard]] int unread() const {
    int bytes = 0;
    EXPECT_EQ(::ioctl(ends_[0], FIONREAD, &bytes), 0);
    return bytes;
  }

  testing::TempDirectory directory_;
  std::array<int, 2> ends_{-1, -1};
  std::unique_ptr<TlsSession> server_;
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{SSL_CTX_new(TLS_client_method()),
                                                                   SSL_CTX_free};
  const std::unique_ptr<SSL, decltype(&SSL_free)> client_{SSL_new(context_.get()), SSL_free};
};

TEST_F(TlsSessionTest, ARowOfNewKeysIsNotReadAtOnce) {
  BIO* const records = BIO_new(BIO_s_mem());
  SSL_set0_wbio(client_.get(), records);  // owns it
  for (int update = 0; update < 3000; ++update) {
    ASSERT_EQ(SSL_key_update(client_.get(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(client_.get()), 1);
  }
  char* text = nullptr;
  const long size = BIO_get_mem_data(records, &text);
  ASSERT_EQ(::send(ends_[1], text, static_cast<std::size_t>(size), 0), size);
  std::array<char, 4096> into{};
  int reads = 0;
  int before = unread();
  while (before > 0) {
    EXPECT_EQ(server_->read(into).outcome, TlsOutcome::kReads);
    const int now = unread();
    ASSERT_LT(now, before) << "it goes on";
    EXPECT_LE(before - now, static_cast<int>(2 * TlsSession::kRecord)) << "others have their turn";
    before = now;
    ++reads;
  }
  EXPECT_GT(reads, 1);
}

TEST_F(TlsSessionTest, CountsWhatComesOverTheWireAndNotWhatItHolds) {
  EXPECT_GT(server_->take_received(), 0U) << "the handshake";
  ASSERT_EQ(SSL_set_block_padding(client_.get(), TlsSession::kRecord), 1);
  std::array<char, 100> into{};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(SSL_write(client_.get(), "x", 1), 1);
    const auto sent = static_cast<std::size_t>(unread());
    EXPECT_GT(sent, TlsSession::kRecord);
    std::size_t bytes = 0;
    while (bytes == 0) {
      const TlsSession::Moved read = server_->read(into);
      ASSERT_TRUE(read.outcome == TlsOutcome::kDone || unread() > 0);
      bytes = read.bytes;
    }
    EXPECT_EQ(bytes, 1U);
    EXPECT_EQ(server_->take_received(), sent);
    EXPECT_EQ(server_->take_received(), 0U);
  }
  ASSERT_EQ(SSL_key_update(client_.get(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
  ASSERT_EQ(SSL_do_handshake(client_.get()), 1);
  const auto sent = static_cast<std::size_t>(unread());
  while (unread() > 0) EXPECT_EQ(server_->read(into).outcome, TlsOutcome::kReads);
  EXPECT_EQ(server_->take_received(), sent) << "it holds nothing to read";
}

}  // namespace
}  // namespace hearth::net
