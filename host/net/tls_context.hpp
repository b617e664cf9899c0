#pragma once
// What TLS connections of this server begin with: the certificate, its key, and what is spoken.

#include "base/error.hpp"
#include "net/options.hpp"

#include <chrono>
#include <memory>
#include <string>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace hearth::net {

// One certificate with its key, and the rules of all connections that use it:
//   - TLS 1.2 and 1.3, or 1.3 alone; in TLS 1.2 ECDHE with AES-GCM or ChaCha20-Poly1305, and
//     nothing else. The server's order decides, except that a client that prefers ChaCha20 gets it.
//   - Keys of 2048 bits (RSA) or 224 bits (EC) at least: OpenSSL's security level 2.
//   - ALPN: a client that names protocols, and not http/1.1 among them, is refused (RFC 7301, 3.2).
//     A client that names none is served.
//   - No compression and no renegotiation. No session tickets and no session cache: each connection
//     makes a full handshake, and no key of the server outlives a connection. WebSockets live long,
//     so that handshakes are few.
//
// Threads   Any: it does not change. Connections hold it for as long as they live.
class TlsContext {
 public:
  // Reads both files. The certificate's file holds the server's own certificate first, then those
  // between it and its authority. The key's file must belong to the user of this process or to
  // root, and nobody but its owner and its group may have access to it (0600, 0640).
  //   Failure   A sentence for the operator, which names the file and never shows what is in the
  //             key's. kInvalidArgument: no PEM, a key that is encrypted or belongs to another
  //             certificate, one that is too weak. Else what read_file() says.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> load(const TlsOptions& options);
  // For a client that asks a server of this machine that it knows by other means: it does not look
  // at the server's certificate.
  [[nodiscard]] static std::shared_ptr<const TlsContext> for_own_server();

  // When the certificate ends.
  [[nodiscard]] std::chrono::system_clock::time_point not_after() const { return not_after_; }
  // SHA-256 of the certificate, in hexadecimal.
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }
  [[nodiscard]] bool is_client() const { return is_client_; }
  // For TlsSession.
  [[nodiscard]] ssl_ctx_st* get() const { return context_.get(); }

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };

  explicit TlsContext(bool is_client);
  Result<void> use(const TlsOptions& options);

  std::unique_ptr<ssl_ctx_st, Free> context_;
  std::chrono::system_clock::time_point not_after_{};
  std::string fingerprint_;
  const bool is_client_;
};

}  // namespace hearth::net
