#pragma once
// TLS behind a ByteStream.

#include "net/byte_stream.hpp"
#include "net/tcp_stream.hpp"
#include "net/tls_session.hpp"

#include <memory>

namespace hearth::net {

// Takes over a connected socket whose handshake is over.
//
// Order     finish() sends close_notify behind the last byte. abort() sends none: what is missing
//           then, the peer notices.
// Failure   A peer that ends the connection without close_notify may have been cut off: reading
//           ends with connection_reset, and not with eof.
// Lifetime  `pool` and `turn_end`, of the socket's loop, outlive the stream's last operation.
std::shared_ptr<ByteStream> make_tls_stream(TcpSocket socket, std::unique_ptr<TlsSession> session,
                                            BufferPool& pool, TurnEnd& turn_end);

}  // namespace hearth::net
