#pragma once
// RawClient over TLS, with OpenSSL's own client.

#include "net/raw_client.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hearth::testing {

// What a client offers. It trusts every certificate.
struct TlsOffer {
  int min_version = 0;  // 0: whatever OpenSSL has
  int max_version = 0;
  std::string ciphers = {};   // of TLS 1.2; empty: OpenSSL's, the weak ones too
  std::string protocol = {};  // ALPN; empty: none
};

class TlsClient : public RawClient {
 public:
  explicit TlsClient(std::uint16_t port, const TlsOffer& offer = {})
      : RawClient(port), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    ::signal(SIGPIPE, SIG_IGN);                     // which OpenSSL's own socket raises
    SSL_CTX_set_security_level(context_.get(), 0);  // it offers ciphers that the server must refuse
    SSL_CTX_set_min_proto_version(context_.get(), offer.min_version);
    SSL_CTX_set_max_proto_version(context_.get(), offer.max_version);
    if (!offer.ciphers.empty()) {
      if (SSL_CTX_set_cipher_list(context_.get(), offer.ciphers.c_str()) != 1)
        throw std::runtime_error("no such ciphers: " + offer.ciphers);
    }
    ssl_.reset(SSL_new(context_.get()));
    if (!offer.protocol.empty()) {
      const std::string list = static_cast<char>(offer.protocol.size()) + offer.protocol;
      SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(list.data()),
                          static_cast<unsigned>(list.size()));
    }
    SSL_set_fd(ssl_.get(), descriptor());
  }

  // Empty, or OpenSSL's error.
  std::string handshake() {
    ERR_clear_error();
    if (SSL_connect(ssl_.get()) == 1) return "";
    const char* const reason = ERR_reason_error_string(ERR_peek_error());
    return reason == nullptr ? "connection lost" : reason;
  }

  [[nodiscard]] std::string version() const { return SSL_get_version(ssl_.get()); }
  [[nodiscard]] std::string cipher() const { return SSL_get_cipher_name(ssl_.get()); }
  [[nodiscard]] std::string protocol() const {
    const unsigned char* text = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &text, &size);
    return {reinterpret_cast<const char*>(text), size};
  }
  // The common name of the server's certificate.
  [[nodiscard]] std::string peer_name() const {
    const std::unique_ptr<X509, decltype(&X509_free)> peer(SSL_get1_peer_certificate(ssl_.get()),
                                                           X509_free);
    if (peer == nullptr) return "";
    std::array<char, 256> name{};
    X509_NAME_get_text_by_NID(X509_get_subject_name(peer.get()), NID_commonName, name.data(),
                              static_cast<int>(name.size()));
    return name.data();
  }
  [[nodiscard]] bool was_resumed() const { return SSL_session_reused(ssl_.get()) == 1; }
  [[nodiscard]] bool has_ticket() const {
    const SSL_SESSION* const session = SSL_get0_session(ssl_.get());
    return session != nullptr && SSL_SESSION_has_ticket(session) == 1;
  }
  SSL* ssl() { return ssl_.get(); }
  // Sends bytes below TLS.
  void send_raw(std::string_view bytes) { RawClient::put(bytes); }
  // Sends the TLS alert close_notify.
  void end_tls() { SSL_shutdown(ssl_.get()); }
  // After the server's last byte: whether the server has sent close_notify as well.
  [[nodiscard]] bool saw_end() const {
    return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0;
  }

 protected:
  ssize_t put(std::string_view bytes) override {
    return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
  }
  ssize_t get(char* into, std::size_t size) override {
    errno = 0;
    const int got = SSL_read(ssl_.get(), into, static_cast<int>(size));
    return got > 0 ? got : errno == EAGAIN ? -1 : 0;
  }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  std::unique_ptr<SSL, Free> ssl_;
};

// A client whose handshake has succeeded.
class SecureClient : public TlsClient {
 public:
  explicit SecureClient(std::uint16_t port, const TlsOffer& offer = {}) : TlsClient(port, offer) {
    if (const std::string fault = handshake(); !fault.empty()) throw std::runtime_error(fault);
  }
};

}  // namespace hearth::testing
