#include "net/tls_session.hpp"

#include "base/assert.hpp"

#include <sys/socket.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace hearth::net {
namespace {

TlsSession::Wire& wire_of(BIO* bio) {
  return *static_cast<TlsSession::Wire*>(BIO_get_data(bio));
}

bool would_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

int wire_write(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  TlsSession::Wire& wire = wire_of(bio);
  // OpenSSL's own socket would raise SIGPIPE.
  const ssize_t sent = ::send(wire.descriptor, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent >= 0) {
    wire.written += static_cast<std::uint64_t>(sent);
  } else if (would_wait()) {
    BIO_set_retry_write(bio);
  }
  return static_cast<int>(sent);
}

int wire_read(BIO* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  TlsSession::Wire& wire = wire_of(bio);
  const ssize_t got = ::recv(wire.descriptor, into, static_cast<std::size_t>(size), 0);
  if (got > 0) {
    wire.received += static_cast<std::size_t>(got);
  } else if (got < 0 && would_wait()) {
    BIO_set_retry_read(bio);
  }
  return static_cast<int>(got);
}

long wire_control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

struct FreeMethod {
  void operator()(BIO_METHOD* method) const { BIO_meth_free(method); }
};

std::unique_ptr<BIO_METHOD, FreeMethod> make_wire_method() {
  std::unique_ptr<BIO_METHOD, FreeMethod> method(
      BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "hearth socket"));
  HEARTH_ASSERT(method != nullptr, "OpenSSL makes no BIO");
  BIO_meth_set_write(method.get(), wire_write);
  BIO_meth_set_read(method.get(), wire_read);
  BIO_meth_set_ctrl(method.get(), wire_control);
  return method;
}

// Made once, and never changed.
const BIO_METHOD* wire_method() {
  static const auto method = make_wire_method();
  return method.get();
}

}  // namespace

void TlsSession::Free::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context, int descriptor)
    : context_(std::move(context)),
      wire_{.descriptor = descriptor},
      ssl_(SSL_new(context_->get())) {
  BIO* const bio = BIO_new(wire_method());
  HEARTH_ASSERT(ssl_ != nullptr && bio != nullptr, "OpenSSL has no memory");
  BIO_set_data(bio, &wire_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);  // owns it from here on
  SSL_set_accept_state(ssl_.get());
}

TlsSession::~TlsSession() = default;

TlsSession::Outcome TlsSession::handshake() {
  ERR_clear_error();
  return outcome_of(SSL_do_handshake(ssl_.get()));
}

TlsSession::Moved TlsSession::read(std::span<char> into) {
  if (failed_) return {.outcome = Outcome::kFailed};
  ERR_clear_error();
  std::size_t bytes = 0;
  const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &bytes);
  return {.outcome = outcome_of(result), .bytes = result == 1 ? bytes : 0};
}

TlsSession::Moved TlsSession::write(std::string_view text) {
  if (failed_) return {.outcome = Outcome::kFailed};
  ERR_clear_error();
  std::size_t bytes = 0;
  const int result = SSL_write_ex(ssl_.get(), text.data(), std::min(text.size(), kRecord), &bytes);
  return {.outcome = outcome_of(result), .bytes = result == 1 ? bytes : 0};
}

TlsSession::Outcome TlsSession::end() {
  if (failed_ || SSL_in_init(ssl_.get()) != 0) return Outcome::kDone;
  ERR_clear_error();
  const int result = SSL_shutdown(ssl_.get());
  if (result >= 0) return Outcome::kDone;  // 0: the peer's close_notify is missing
  return outcome_of(result) == Outcome::kWrites ? Outcome::kWrites : Outcome::kDone;
}

bool TlsSession::has_more() const {
  return SSL_has_pending(ssl_.get()) == 1;
}

TlsSession::Outcome TlsSession::outcome_of(int result) {
  if (result == 1) return Outcome::kDone;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ: return Outcome::kReads;
    case SSL_ERROR_WANT_WRITE: return Outcome::kWrites;
    case SSL_ERROR_ZERO_RETURN: return Outcome::kEnded;
    default: break;
  }
  failed_ = true;
  const unsigned long error = ERR_peek_error();
  const char* const reason = ERR_reason_error_string(error);
  failure_ = reason == nullptr ? "connection lost" : reason;
  const int number = ERR_GET_REASON(error);
  ERR_clear_error();
  const bool is_http = number == SSL_R_HTTP_REQUEST || number == SSL_R_HTTPS_PROXY_REQUEST;
  return is_http ? Outcome::kPlainHttp : Outcome::kFailed;
}

}  // namespace hearth::net
