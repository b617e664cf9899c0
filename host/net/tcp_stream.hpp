#pragma once
// Plain TCP behind a ByteStream.

#include "base/ip_address.hpp"
#include "net/byte_stream.hpp"
#include "net/net_loop.hpp"

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace hearth::net {

// A socket bound to the concrete executor of a loop: cheaper than asio's type-erased default.
using TcpSocket = asio::basic_stream_socket<asio::ip::tcp, asio::io_context::executor_type>;

// Takes over a connected socket. TCP_NODELAY is set, since the stream gathers small writes itself.
//
// Lifetime  `pool` and `turn_end`, of the socket's loop, outlive the stream's last operation.
std::shared_ptr<ByteStream> make_tcp_stream(TcpSocket socket, BufferPool& pool, TurnEnd& turn_end);

// A plain or a TLS stream over a socket that another loop has released: it is the new stream's from
// here on, and what the old one had not sent leaves first. Nothing if the loop cannot take it; the
// descriptor is closed then.
std::shared_ptr<ByteStream> adopt_stream(LooseSocket socket, const NetLoop& loop, BufferPool& pool);

// Takes a socket from its loop. Nothing if that fails; no operation may be pending.
std::optional<LooseSocket> loosen(TcpSocket& socket);

// What both kinds of stream ask of a socket.
void prepare_socket(TcpSocket& socket);
[[nodiscard]] std::size_t unacknowledged(TcpSocket& socket);  // bytes, that the system has taken
[[nodiscard]] bool has_ended(TcpSocket& socket);  // by its peer; what it said may be unread yet

// Where the peer is; nothing when it is already gone.
std::optional<IpAddress> address_of(const TcpSocket& socket);
// "127.0.0.1:50312", "[::1]:50312"; "unknown" when the peer is already gone.
std::string peer_of(const TcpSocket& socket);

}  // namespace hearth::net
