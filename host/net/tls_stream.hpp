#pragma once
// TLS behind a ByteStream.

#include "net/byte_stream.hpp"
#include "net/tcp_stream.hpp"
#include "net/tls_session.hpp"

#include <memory>

namespace hearth::net {

// Takes over a connected socket whose handshake is over.
//
// Order     finish() sends close_notify after the last byte. abort() sends none, so that the peer
//           notices the missing bytes.
// Failure   If the peer ends the connection without close_notify, bytes may be missing: reading
//           ends with connection_reset, not with eof.
// Lifetime  `pool` and `turn_end`, of the socket's loop, outlive the stream's last operation.
std::shared_ptr<ByteStream> make_tls_stream(TcpSocket socket, std::unique_ptr<TlsSession> session,
                                            BufferPool& pool, TurnEnd& turn_end);

}  // namespace hearth::net
