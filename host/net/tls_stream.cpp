#include "net/tls_stream.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace hearth::net {
namespace {

using Outcome = TlsSession::Outcome;

class TlsStream final : public SocketStream {
 public:
  TlsStream(TcpSocket socket, std::unique_ptr<TlsSession> session, BufferPool& pool,
            TurnEnd& turn_end)
      : SocketStream(std::move(socket), pool, turn_end),
        pool_(pool),
        session_(std::move(session)) {}

  std::size_t take_arrived() override { return session_ ? session_->take_received() : 0; }

  std::optional<LooseSocket> release() override {
    auto loose = loosen(socket_);
    if (!loose) return std::nullopt;
    loose->tls = std::move(session_);
    loose->unsent = give_up();
    return loose;
  }

 private:
  void start_read(ReadBuffers into, ReadHandler handler) override {
    std::size_t bytes = 0;
    const error_code error = read_all(into, bytes);
    if (error == asio::error::would_block) return wait_to_read(into, std::move(handler));
    asio::post(executor(), [self = shared(), handler = std::move(handler), error, bytes]() mutable {
      self->read_done(std::move(handler), error, bytes);
    });
  }

  void wait_to_read(ReadBuffers into, ReadHandler handler) {
    const auto what =
        reading_writes_ ? asio::socket_base::wait_write : asio::socket_base::wait_read;
    socket_.async_wait(
        what, [self = shared(), into, handler = std::move(handler)](error_code error) mutable {
          std::size_t bytes = 0;
          if (!error) error = self->read_all(into, bytes);
          // New keys and empty records use bytes of the wire and return none.
          if (error == asio::error::would_block && !self->has_drained_enough())
            return self->wait_to_read(into, std::move(handler));
          self->read_done(std::move(handler), error, bytes);
        });
  }

  // Reads all available bytes that fit. Returns an error only if no byte was read: otherwise the
  // next read meets it again.
  error_code read_all(ReadBuffers into, std::size_t& bytes) {
    for (const asio::mutable_buffer& buffer : into) {
      std::span<char> room(static_cast<char*>(buffer.data()), buffer.size());
      while (!room.empty()) {
        if (bytes != 0 && !session_->has_more()) return {};
        const TlsSession::Moved read = session_->read(room);
        if (read.outcome != Outcome::kDone) {
          reading_writes_ = read.outcome == Outcome::kWrites;
          return bytes != 0 ? error_code() : error_of(read.outcome);
        }
        room = room.subspan(read.bytes);
        bytes += read.bytes;
      }
    }
    return {};
  }

  static error_code error_of(Outcome outcome) {
    switch (outcome) {
      case Outcome::kReads:
      case Outcome::kWrites: return asio::error::would_block;
      case Outcome::kEnded: return asio::error::eof;
      default: return asio::error::connection_reset;
    }
  }

  std::size_t read_now(ReadBuffers into, error_code& error) override {
    std::size_t bytes = 0;
    error = read_all(into, bytes);
    return bytes;
  }

  // Joins small pieces, so that each record is full (16 KiB).
  std::size_t send_now(std::span<const asio::const_buffer> pieces, error_code& error) override {
    std::size_t taken = 0;
    for (std::string_view next = part(pieces, taken); !next.empty(); next = part(pieces, taken)) {
      const TlsSession::Moved written = session_->write(next);
      if (written.outcome != Outcome::kDone) {
        error = error_of(written.outcome);
        break;
      }
      taken += written.bytes;
    }
    plain_ += taken;
    return taken;
  }

  // The bytes from `skipped` on that go into one record.
  std::string_view part(std::span<const asio::const_buffer> pieces, std::size_t skipped) {
    const std::span<char> room = pool_.scratch();
    std::size_t used = 0;
    for (const asio::const_buffer& piece : pieces) {
      if (skipped >= piece.size()) {
        skipped -= piece.size();
        continue;
      }
      const std::string_view rest(static_cast<const char*>(piece.data()) + skipped,
                                  piece.size() - skipped);
      const bool is_alone = &piece == &pieces.back() || rest.size() >= room.size();
      if (used == 0 && is_alone) return rest;
      const std::size_t fits = std::min(rest.size(), room.size() - used);
      std::ranges::copy(rest.substr(0, fits), room.begin() + static_cast<std::ptrdiff_t>(used));
      used += fits;
      skipped = 0;
      if (used == room.size()) break;
    }
    return {room.data(), used};
  }

  // The system also counts the bytes that TLS adds. The result is zero when all bytes have arrived.
  std::size_t on_the_way() override {
    const std::uint64_t arrived = session_->written() - unacknowledged();
    return arrived >= plain_ ? 0 : static_cast<std::size_t>(plain_ - arrived);
  }

  bool try_shutdown_send() override {
    if (session_->end() == Outcome::kWrites) return false;
    shutdown_send();
    return true;
  }

  std::shared_ptr<TlsStream> shared() {
    return std::static_pointer_cast<TlsStream>(shared_from_this());
  }

  BufferPool& pool_;
  std::unique_ptr<TlsSession> session_;  // null after release()
  std::uint64_t plain_ = 0;              // bytes that the session has taken
  bool reading_writes_ = false;          // TLS must write before it can read on (a key update)
};

}  // namespace

std::shared_ptr<ByteStream> make_tls_stream(TcpSocket socket, std::unique_ptr<TlsSession> session,
                                            BufferPool& pool, TurnEnd& turn_end) {
  return std::make_shared<TlsStream>(std::move(socket), std::move(session), pool, turn_end);
}

}  // namespace hearth::net
