#pragma once
// A connection until its TLS handshake is over.

#include "net/loop_share.hpp"
#include "net/tcp_stream.hpp"
#include "net/tls_session.hpp"

#include <functional>
#include <memory>
#include <string>

namespace hearth::net {

// What has become of a handshake.
struct EndedHandshake {
  enum class How {
    kDone,
    kPlainHttp,  // the peer speaks HTTP without TLS
    kFailed,     // the peer was told why, in an alert
    kSilent,     // it took longer than NetOptions::handshake_timeout
    kMemory,     // the account of client memory was overdrawn
    kCut,        // Session::cut()
  } how = How::kDone;
  TcpSocket socket;
  std::unique_ptr<TlsSession> session;
  std::string reason;  // with kFailed: OpenSSL's words
};

// Begins the handshake of a server on a fresh connection. It is in `share.table` until `ended` is
// called, which is right before it leaves.
//
// Bounded   kHandshakeBytes on the account of client memory, and NetOptions::handshake_timeout.
// Threads   On the share's loop. It costs up to a millisecond or two of it at a time (RSA).
void start_tls_handshake(LoopShare& share, TcpSocket socket,
                         std::shared_ptr<const TlsContext> context,
                         std::function<void(EndedHandshake)> ended);

// What an unfinished handshake is taken to hold: OpenSSL's state and one record each way.
inline constexpr std::size_t kHandshakeBytes = std::size_t{64} << 10;

}  // namespace hearth::net
