#pragma once
// The settings of TLS connections: the certificate, its key, versions and ciphers.

#include "base/error.hpp"
#include "net/options.hpp"

#include <chrono>
#include <memory>
#include <string>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace hearth::net {

// One certificate with its key, and the rules of all connections that use it:
//   - TLS 1.2 and 1.3, or 1.3 only. TLS 1.2 has only ECDHE with AES-GCM or ChaCha20-Poly1305. The
//     server's order decides, except that a client that prefers ChaCha20 gets it.
//   - Keys of at least 2048 bits (RSA) or 224 bits (EC): OpenSSL's security level 2.
//   - ALPN: a client that names protocols without http/1.1 is refused (RFC 7301, 3.2). A client
//     that names no protocol is served.
//   - No compression and no renegotiation. No session tickets and no session cache: each connection
//     makes a full handshake, and no session key outlives its connection. Handshakes are few,
//     because WebSockets live long.
//
// Threads   Any: it does not change. Connections share it while they live.
class TlsContext {
 public:
  // Reads both files. The certificate's file has the server's own certificate first, then the
  // certificates between it and its authority. The key's file must belong to the user of this
  // process or to root, and only its owner and its group may have access to it (0600, 0640).
  //   Failure   A sentence for the operator, which names the file and never shows the content of
  //             the key's file. kInvalidArgument: no PEM, a key that is encrypted, belongs to
  //             another certificate or is too weak. Otherwise the error of read_file().
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> load(const TlsOptions& options);

  // When the certificate expires.
  [[nodiscard]] std::chrono::system_clock::time_point not_after() const { return not_after_; }
  // SHA-256 of the certificate, in hexadecimal.
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }
  // For TlsSession.
  [[nodiscard]] ssl_ctx_st* get() const { return context_.get(); }

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };

  TlsContext();
  Result<void> use(const TlsOptions& options);

  std::unique_ptr<ssl_ctx_st, Free> context_;
  std::chrono::system_clock::time_point not_after_{};
  std::string fingerprint_;
};

}  // namespace hearth::net
