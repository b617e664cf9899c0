// A minimal HTTP echo server on Beast: one thread, keep-alive, the request's body as the answer.
// Hearth's own numbers are given as a ratio to the numbers of this server.
//
//   bare_beast_http [PORT]     prints "port N" when it listens; ends with SIGTERM

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

class HttpEcho : public std::enable_shared_from_this<HttpEcho> {
 public:
  explicit HttpEcho(tcp::socket socket) : stream_(std::move(socket)) {}

  void read() {
    request_ = {};
    http::async_read(stream_, buffer_, request_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) self->write();
                     });
  }

 private:
  void write() {
    answer_ = {http::status::ok, request_.version()};
    answer_.set(http::field::content_type, "application/json");
    answer_.keep_alive(request_.keep_alive());
    answer_.body() = std::move(request_.body());
    answer_.prepare_payload();
    http::async_write(stream_, answer_,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (!error && self->answer_.keep_alive()) self->read();
                      });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> answer_;
};

void accept(tcp::acceptor& acceptor) {
  acceptor.async_accept([&acceptor](beast::error_code error, tcp::socket socket) {
    if (!error) {
      socket.set_option(tcp::no_delay(true), error);
      std::make_shared<HttpEcho>(std::move(socket))->read();
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
