#pragma once
// Runs the TLS handshake of a connection.

#include "net/loop_share.hpp"
#include "net/tcp_stream.hpp"
#include "net/tls_session.hpp"

#include <functional>
#include <memory>
#include <string>

namespace hearth::net {

// The result of a handshake.
struct EndedHandshake {
  enum class How {
    kDone,
    kPlainHttp,  // the peer speaks HTTP without TLS
    kFailed,     // an alert has told the peer why
    kSilent,     // it took longer than NetOptions::handshake_timeout
    kMemory,     // client memory was above its limit
    kCut,        // Session::cut()
  } how = How::kDone;
  TcpSocket socket;
  std::unique_ptr<TlsSession> session;
  std::string reason;  // with kFailed: OpenSSL's text
};

// Begins the server's side of a handshake on a new connection. The handshake is in `share.table`,
// and calls `ended` right before it leaves the table.
//
// Bounded   kHandshakeBytes of client memory, and NetOptions::handshake_timeout.
// Threads   On the share's loop. It takes up to a millisecond or two of the loop at a time (RSA).
void start_tls_handshake(LoopShare& share, TcpSocket socket,
                         std::shared_ptr<const TlsContext> context,
                         std::function<void(EndedHandshake)> ended);

// The memory that an unfinished handshake counts: OpenSSL's state and one record each way.
inline constexpr std::size_t kHandshakeBytes = std::size_t{64} << 10;

}  // namespace hearth::net
