// What a client sends on a WebSocket, through all of its readers, including Beast.
#include "base/utf8.hpp"
#include "fuzz/targets.hpp"
#include "net/beast_web_socket.hpp"
#include "net/net_loop.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hearth::fuzz {
namespace {

namespace asio = net::asio;

constexpr std::size_t kMaxFrame = 1000;

// A peer that sends `bytes` in pieces of at most `step`, and then leaves. It accepts all that it is
// sent.
class SaidStream final : public net::ByteStream {
 public:
  SaidStream(const net::NetLoop& loop, net::BufferPool& pool, std::string_view bytes,
             std::size_t step)
      : ByteStream(loop.context.get_executor(), pool, loop.turn_end), left_(bytes), step_(step) {}

  std::string sent;

 private:
  void start_read(ReadBuffers into, ReadHandler handler) override {
    const std::size_t bytes = take(into);
    net::error_code error;
    if (bytes == 0) error = asio::error::eof;
    asio::post(executor(), [self = std::static_pointer_cast<SaidStream>(shared_from_this()),
                            handler = std::move(handler), error, bytes]() mutable {
      self->read_done(std::move(handler), error, bytes);
    });
  }
  std::size_t read_now(ReadBuffers into, net::error_code& error) override {
    const std::size_t bytes = take(into);
    if (bytes == 0) error = asio::error::eof;
    return bytes;
  }
  std::size_t send_now(std::span<const asio::const_buffer> pieces,
                       net::error_code& /*error*/) override {
    for (const asio::const_buffer& piece : pieces)
      sent.append(static_cast<const char*>(piece.data()), piece.size());
    return asio::buffer_size(pieces);
  }
  std::size_t on_the_way() override { return 0; }
  void start_wait_writable() override {}
  bool wire_has_ended() override { return false; }
  bool try_shutdown_send() override { return true; }
  void cancel_wire() override {}
  void close_wire() override {}

  std::size_t take(const ReadBuffers& into) {
    const std::string_view piece = left_.substr(0, step_);
    const std::size_t bytes = asio::buffer_copy(into, asio::buffer(piece));
    left_.remove_prefix(bytes);
    return bytes;
  }

  std::string_view left_;
  const std::size_t step_;
};

// What a socket's owner has heard of it.
struct Heard {
  std::vector<std::string> messages;
  int closes = 0;
  CloseCode code = 0;

  bool operator==(const Heard&) const = default;
};

// Sends each message back.
class EchoListener final : public net::WebSocketListener {
 public:
  EchoListener(std::shared_ptr<net::WebSocket> socket, Heard& heard)
      : socket_(std::move(socket)), heard_(heard) {}

  void on_message(std::string_view payload, bool is_text) override {
    require(heard_.closes == 0, "no message comes after the end");
    require(payload.size() <= kMaxFrame, "a message is bounded");
    require(!is_text || is_valid_utf8(payload), "a text is UTF-8");
    heard_.messages.push_back((is_text ? "t" : "b") + std::string(payload));
    socket_->send(payload, is_text);
  }
  void on_close(CloseCode code, std::string_view /*reason*/, bool /*was_clean*/) override {
    ++heard_.closes;
    heard_.code = code;
    socket_.reset();
  }

 private:
  std::shared_ptr<net::WebSocket> socket_;
  Heard& heard_;
};

// The answer to the handshake, and frames of RFC 6455 5.2.
void check_sent(std::string_view sent) {
  require(sent.starts_with("HTTP/1.1 101 "), "a handshake is answered");
  sent.remove_prefix(sent.find("\r\n\r\n") + 4);
  bool has_closed = false;
  while (!sent.empty()) {
    require(!has_closed, "nothing follows a close frame");
    require(sent.size() >= 2, "a frame has a head");
    const auto byte = [sent](std::size_t at) -> std::size_t {
      return static_cast<unsigned char>(sent[at]);
    };
    const std::size_t opcode = byte(0) & 0x0FU;
    const std::size_t length = byte(1);
    require(length <= 126, "a server's frame has no mask, and an echo is short");
    require(opcode < 8 || length < 126, "a control frame is short");
    require((byte(0) & 0x80U) != 0, "a server's message is one frame");
    has_closed = opcode == 8;
    std::size_t size = 2 + length;
    if (length == 126) {
      require(sent.size() >= 4, "a frame has a length");
      size = 4 + (byte(2) << 8U | byte(3));
    }
    require(sent.size() >= size, "a frame is whole");
    sent.remove_prefix(size);
  }
}

struct Terms {
  bool is_packed = false;
  bool is_limited = false;
};

Heard converse(std::string_view bytes, std::size_t step, Terms terms) {
  asio::io_context context(1);
  TurnEnd turn_end(
      [&context](std::function<void()> task) { asio::post(context, std::move(task)); });
  const net::NetLoop loop{context, turn_end};
  const std::unique_ptr<Logger> logger = make_null_logger();
  Metrics metrics;
  ClientMemory memory(std::size_t{64} << 20);
  net::NetOptions options;
  options.max_frame = kMaxFrame;
  if (terms.is_packed) options.compression = net::Compression::kContextTakeover;
  int ended = 0;
  net::LoopShare share(loop, options, std::chrono::hours(1), {*logger, metrics, memory},
                       [&ended] { ++ended; });
  net::AddressLimits limits;
  limits.new_connections = limits.bytes = 0;
  limits.messages = terms.is_limited ? 1 : 0;
  const auto use = std::make_shared<net::AddressUse>(
      std::make_shared<const net::AddressPolicy>(limits, metrics, *logger));
  require(use->may_connect(std::chrono::steady_clock::now()), "a first connection is let in");

  net::HttpRequest request;
  request.method = "GET";
  request.target = "/";
  request.headers = {{"Host", "a"},
                     {"Upgrade", "websocket"},
                     {"Connection", "Upgrade"},
                     {"Sec-WebSocket-Version", "13"},
                     {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
                     {"Sec-WebSocket-Extensions", "permessage-deflate"}};
  request.address = std::make_shared<const net::ClientAddress>(use);
  Heard heard;
  net::UpgradePlan plan;
  plan.opened = [&heard](std::shared_ptr<net::WebSocket> socket) {
    return std::make_shared<EchoListener>(std::move(socket), heard);
  };
  const auto stream = std::make_shared<SaidStream>(loop, share.buffers, bytes, step);
  net::open_web_socket(share, stream, request, plan);
  context.poll();
  require(ended == 1 && share.table.size() == 0, "a connection ends with its peer");
  require(heard.closes == 1, "the end is told once");
  check_sent(stream->sent);
  return heard;
}

}  // namespace

// The first byte says how many of the others come at a time, whether messages may be compressed,
// and whether the address may send only a few.
void web_socket(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto first = static_cast<unsigned char>(bytes.front());
  const std::size_t step = 1U + first % 32U;
  const Terms terms{.is_packed = (first & 0x20U) != 0, .is_limited = (first & 0x40U) != 0};
  bytes.remove_prefix(1);
  const Heard at_once = converse(bytes, bytes.size() + 1, terms);
  const Heard in_pieces = converse(bytes, step, terms);
  // With a limit the piece that is one too many is dropped as a whole.
  require(terms.is_limited || at_once == in_pieces, "it does not matter how the bytes are cut");
}

}  // namespace hearth::fuzz
