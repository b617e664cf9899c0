#pragma once
// Adapts ByteStream to Beast. Only the one source that instantiates Beast's WebSocket includes it.

#include "net/byte_stream.hpp"
#include "net/incoming_frames.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/role.hpp>

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

namespace hearth::net {

inline constexpr std::string_view kTooBig = "message too big";

// When a message is too long, Beast sends a close frame without a reason (RFC 6455 5.5.1):
// kBareTooBig. AnyStream sends kTooBigHead and kTooBig instead.
inline constexpr std::string_view kBareTooBig = "\x88\x02\x03\xF1";
inline constexpr std::string_view kTooBigHead = "\x88\x11\x03\xF1";
static_assert(kTooBigHead[1] == static_cast<char>(2 + kTooBig.size()));

// Writing never waits: it appends a whole frame to the stream's outgoing buffer. So Beast's
// synchronous write() is safe while an async_read() is pending: a pong or a close frame that the
// read sends is appended whole, before or after the written frame.
class AnyStream {
 public:
  using executor_type = ByteStream::Executor;  // NOLINT(readability-identifier-naming): Asio's name

  // `frames`: gets all bytes that are read. After it has refused, reading fails.
  AnyStream(std::shared_ptr<ByteStream> stream, std::shared_ptr<IncomingFrames> frames)
      : stream_(std::move(stream)), frames_(std::move(frames)) {}

  executor_type get_executor() const noexcept { return stream_->executor(); }
  ByteStream& bytes() { return *stream_; }

  // Asio takes a token by reference and moves it.
  // NOLINTBEGIN(cppcoreguidelines-missing-std-forward)
  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(error_code, std::size_t)>(
        [this](auto handler, ByteStream::ReadBuffers into) {
          stream_->async_read_some(
              into, [&stream = *stream_, frames = frames_, into, handler = std::move(handler)](
                        error_code error, std::size_t bytes) mutable {
                if (!frames->pass(into, bytes, stream.take_arrived())) {
                  error = asio::error::operation_aborted;
                  bytes = 0;
                }
                std::move(handler)(error, bytes);
              });
        },
        token, first_two(buffers));
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(error_code, std::size_t)>(
        [this](auto handler, std::size_t written) {
          stream_->flush_soon();
          asio::post(stream_->executor(),
                     boost::beast::bind_front_handler(std::move(handler), error_code(), written));
        },
        token, append(buffers));
  }
  // NOLINTEND(cppcoreguidelines-missing-std-forward)

  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, error_code& error) {
    error = {};
    return append(buffers);
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers) {
    return append(buffers);
  }

  // Beast requires them, but does not call them here.
  template <class Buffers>
  std::size_t read_some(const Buffers&, error_code& error) {
    error = asio::error::operation_not_supported;
    return 0;
  }
  template <class Buffers>
  std::size_t read_some(const Buffers&) {
    return 0;
  }

 private:
  template <class Buffers>
  static ByteStream::ReadBuffers first_two(const Buffers& buffers) {
    ByteStream::ReadBuffers found;
    std::size_t count = 0;
    const auto end = asio::buffer_sequence_end(buffers);
    for (auto it = asio::buffer_sequence_begin(buffers); it != end && count < 2; ++it) {
      const asio::mutable_buffer buffer(*it);
      if (buffer.size() != 0) found[count++] = buffer;
    }
    return found;
  }

  template <class Buffers>
  std::size_t append(const Buffers& buffers) {
    std::size_t total = 0;
    const auto end = asio::buffer_sequence_end(buffers);
    for (auto it = asio::buffer_sequence_begin(buffers); it != end; ++it) {
      const asio::const_buffer buffer(*it);
      const std::string_view bytes(static_cast<const char*>(buffer.data()), buffer.size());
      total += bytes.size();
      if (bytes == kBareTooBig) {
        stream_->append(kTooBigHead);
        stream_->append(kTooBig);
      } else {
        stream_->append(bytes);
      }
    }
    return total;
  }

  std::shared_ptr<ByteStream> stream_;
  std::shared_ptr<IncomingFrames> frames_;
};

inline void beast_close_socket(AnyStream& stream) {
  stream.bytes().abort();
}

// The closing handshake is over. The session ends the TCP connection (ByteStream::finish()), so
// this does nothing.
inline void teardown(boost::beast::role_type, AnyStream&, error_code& error) {
  error = {};
}
template <class Handler>
void async_teardown(boost::beast::role_type, AnyStream& stream, Handler&& handler) {
  asio::post(stream.get_executor(),
             boost::beast::bind_front_handler(std::forward<Handler>(handler), error_code()));
}

}  // namespace hearth::net
