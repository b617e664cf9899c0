#include "net/tcp_stream.hpp"

#include "net/tls_stream.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include <linux/sockios.h>
#include <poll.h>

namespace hearth::net {
namespace {

class TcpStream final : public SocketStream {
 public:
  TcpStream(TcpSocket socket, BufferPool& pool, TurnEnd& turn_end)
      : SocketStream(std::move(socket), pool, turn_end) {}

  std::optional<LooseSocket> release() override {
    auto loose = loosen(socket_);
    if (loose) loose->unsent = give_up();
    return loose;
  }

 private:
  void start_read(ReadBuffers into, ReadHandler handler) override {
    auto done = [self = shared(), handler = std::move(handler)](error_code error,
                                                                std::size_t bytes) mutable {
      self->read_done(std::move(handler), error, bytes);
    };
    // Asio uses recv() for one buffer, and recvmsg(), which is slower, for two.
    if (into[1].size() == 0) {
      socket_.async_read_some(into[0], std::move(done));
    } else {
      socket_.async_read_some(into, std::move(done));
    }
  }

  std::size_t read_now(ReadBuffers into, error_code& error) override {
    return socket_.read_some(into, error);
  }

  std::size_t send_now(std::span<const asio::const_buffer> bytes, error_code& error) override {
    // Asio sends with MSG_NOSIGNAL: a peer that has left is an error here, never a SIGPIPE. Asio
    // uses send() for one buffer, and sendmsg(), which is slower, for more.
    return bytes.size() == 1 ? socket_.write_some(bytes.front(), error)
                             : socket_.write_some(bytes, error);
  }

  std::size_t on_the_way() override { return unacknowledged(); }

  bool try_shutdown_send() override {
    shutdown_send();
    return true;
  }

  std::shared_ptr<TcpStream> shared() {
    return std::static_pointer_cast<TcpStream>(shared_from_this());
  }
};

}  // namespace

std::shared_ptr<ByteStream> make_tcp_stream(TcpSocket socket, BufferPool& pool, TurnEnd& turn_end) {
  return std::make_shared<TcpStream>(std::move(socket), pool, turn_end);
}

std::shared_ptr<ByteStream> adopt_stream(LooseSocket loose, const NetLoop& loop, BufferPool& pool) {
  TcpSocket socket(loop.context.get_executor());
  error_code error;
  socket.assign(loose.is_v6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), loose.descriptor, error);
  if (error) {
    ::close(loose.descriptor);
    return nullptr;
  }
  auto stream = loose.tls == nullptr
                    ? make_tcp_stream(std::move(socket), pool, loop.turn_end)
                    : make_tls_stream(std::move(socket), std::move(loose.tls), pool, loop.turn_end);
  if (!loose.unsent.empty()) stream->append(loose.unsent);
  return stream;
}

std::optional<LooseSocket> loosen(TcpSocket& socket) {
  error_code error;
  const auto local = socket.local_endpoint(error);
  LooseSocket loose;
  loose.is_v6 = !error && local.address().is_v6();
  loose.descriptor = socket.release(error);
  if (error) return std::nullopt;
  return loose;
}

void prepare_socket(TcpSocket& socket) {
  error_code ignored;  // the first read finds a peer that has already left
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.non_blocking(true, ignored);
}

std::size_t SocketStream::unacknowledged() {
  int bytes = 0;  // tcp(7)
  return ::ioctl(socket_.native_handle(), SIOCOUTQ, &bytes) == 0 ? static_cast<std::size_t>(bytes)
                                                                 : 0;
}

void SocketStream::shutdown_send() {
  error_code ignored;  // no longer connected: there is nothing to end
  socket_.shutdown(asio::socket_base::shutdown_send, ignored);
}

void SocketStream::start_wait_writable() {
  socket_.async_wait(asio::socket_base::wait_write,
                     [this, self = shared_from_this()](error_code error) { writable(error); });
}

bool SocketStream::wire_has_ended() {
  // A peek would see the end only after all unread bytes; this sees it at once.
  pollfd look{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&look, 1, 0) > 0;
}

void SocketStream::cancel_wire() {
  error_code ignored;
  socket_.cancel(ignored);
}

void SocketStream::close_wire() {
  error_code ignored;
  socket_.close(ignored);
}

std::optional<IpAddress> address_of(const TcpSocket& socket) {
  error_code error;
  const asio::ip::tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return std::nullopt;
  return parse_ip_address(peer.address().to_string());
}

std::string peer_of(const TcpSocket& socket) {
  error_code error;
  const asio::ip::tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return "unknown";
  const std::string address = peer.address().to_string();
  const std::string port = std::to_string(peer.port());
  return peer.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

}  // namespace hearth::net
