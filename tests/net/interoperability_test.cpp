// The server against a client that we did not write: Beast's.

#include "net/server_fixture.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <string>

namespace hearth::net {
namespace {

namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;
using tcp = asio::ip::tcp;

class InteroperabilityTest : public ServerFixture {
 protected:
  void connect() {
    socket_.next_layer().connect({asio::ip::make_address("127.0.0.1"), port()});
    socket_.handshake("localhost", "/agents/x/y");
  }
  std::string read() {
    beast::flat_buffer buffer;
    socket_.read(buffer);
    return beast::buffers_to_string(buffer.cdata());
  }

  asio::io_context io_;
  websocket::stream<tcp::socket> socket_{io_};
};

TEST_F(InteroperabilityTest, EchoesToBeastsClientWithItsDefaults) {
  websocket::permessage_deflate wanted;
  wanted.client_enable = true;
  socket_.set_option(wanted);
  connect();
  for (const std::size_t size : {0UL, 10UL, 5000UL, 200'000UL}) {
    socket_.write(asio::buffer(std::string(size, 'a')));
    EXPECT_EQ(read(), std::string(size, 'a'));
    EXPECT_TRUE(socket_.got_text());
  }
  socket_.binary(true);
  socket_.write(asio::buffer(std::string("\x00\xFF", 2)));
  EXPECT_EQ(read(), std::string("\x00\xFF", 2));
  EXPECT_TRUE(socket_.got_binary());
}

TEST_F(InteroperabilityTest, ClosesInGoodOrderFromTheClientsSide) {
  connect();
  socket_.close({static_cast<websocket::close_code>(4000), "bye"});
  EXPECT_EQ(closed_.wait(), (Closed{4000, "bye", true}));
}

TEST_F(InteroperabilityTest, ClosesInGoodOrderFromTheServersSide) {
  on_message_ = [](WebSocket& socket, std::string_view, bool) { socket.close(1008, "no"); };
  connect();
  socket_.write(asio::buffer(std::string("hello")));
  beast::flat_buffer buffer;
  beast::error_code error;
  socket_.read(buffer, error);
  EXPECT_EQ(error, websocket::error::closed);
  EXPECT_EQ(socket_.reason().code, websocket::close_code::policy_error);
  EXPECT_EQ(socket_.reason().reason, "no");
  EXPECT_TRUE(closed_.wait().was_clean);
}

}  // namespace
}  // namespace hearth::net
