// A minimal WebSocket echo server on Beast: one thread, one read and one write in progress a
// connection, no compression. Hearth's own numbers are given as a ratio to the numbers of this
// server.
//
//   bare_beast_echo [PORT]     prints "port N" when it listens; ends with SIGTERM

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using tcp = asio::ip::tcp;

class Echo : public std::enable_shared_from_this<Echo> {
 public:
  explicit Echo(tcp::socket socket) : socket_(std::move(socket)) {}

  void run() {
    socket_.auto_fragment(false);
    socket_.async_accept([self = shared_from_this()](beast::error_code error) {
      if (!error) self->read();
    });
  }

 private:
  void read() {
    socket_.async_read(buffer_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (!error) self->write();
    });
  }
  void write() {
    socket_.text(socket_.got_text());
    socket_.async_write(buffer_.data(),
                        [self = shared_from_this()](beast::error_code error, std::size_t) {
                          self->buffer_.consume(self->buffer_.size());
                          if (!error) self->read();
                        });
  }

  beast::websocket::stream<beast::tcp_stream, false> socket_;
  beast::flat_buffer buffer_;
};

void accept(tcp::acceptor& acceptor) {
  acceptor.async_accept([&acceptor](beast::error_code error, tcp::socket socket) {
    if (!error) {
      socket.set_option(tcp::no_delay(true), error);
      std::make_shared<Echo>(std::move(socket))->run();
    }
    accept(acceptor);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : 0;
  asio::io_context loop(1);
  tcp::acceptor acceptor(
      loop, {asio::ip::make_address("127.0.0.1"), static_cast<asio::ip::port_type>(port)});
  std::printf("port %u\n", static_cast<unsigned>(acceptor.local_endpoint().port()));
  std::fflush(stdout);
  accept(acceptor);
  loop.run();
}
