#pragma once
// Plain TCP behind a ByteStream, and what it shares with TLS.

#include "base/ip_address.hpp"
#include "net/byte_stream.hpp"
#include "net/net_loop.hpp"

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace hearth::net {

// A socket with the concrete executor of a loop: cheaper than Asio's type-erased default.
using TcpSocket = asio::basic_stream_socket<asio::ip::tcp, asio::io_context::executor_type>;

// Takes over a connected socket. Sets TCP_NODELAY, because the stream gathers small writes itself.
//
// Lifetime  `pool` and `turn_end`, of the socket's loop, outlive the stream's last operation.
std::shared_ptr<ByteStream> make_tcp_stream(TcpSocket socket, BufferPool& pool, TurnEnd& turn_end);

// A plain or a TLS stream over a socket that another loop has released. The new stream owns the
// socket, and sends the unsent bytes of the old stream first. Null if the loop cannot take the
// socket; the descriptor is then closed.
std::shared_ptr<ByteStream> adopt_stream(LooseSocket socket, const NetLoop& loop, BufferPool& pool);

// Detaches a socket from its loop. Nothing if that fails. No operation may be pending.
std::optional<LooseSocket> loosen(TcpSocket& socket);

void prepare_socket(TcpSocket& socket);

// A stream over a socket.
class SocketStream : public ByteStream {
 protected:
  SocketStream(TcpSocket socket, BufferPool& pool, TurnEnd& turn_end)
      : ByteStream(socket.get_executor(), pool, turn_end), socket_(std::move(socket)) {
    prepare_socket(socket_);
  }

  [[nodiscard]] std::size_t unacknowledged();  // bytes that the system has taken
  void shutdown_send();
  void start_wait_writable() final;
  bool wire_has_ended() final;
  void cancel_wire() final;
  void close_wire() final;

  TcpSocket socket_;
};

// The peer's address; nothing if the peer has already left.
std::optional<IpAddress> address_of(const TcpSocket& socket);
// "127.0.0.1:50312", "[::1]:50312"; "unknown" if the peer has already left.
std::string peer_of(const TcpSocket& socket);

}  // namespace hearth::net
