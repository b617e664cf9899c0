#pragma once
// The bytes that a stream must send, in order.

#include "base/client_memory.hpp"
#include "net/buffer_pool.hpp"

#include <boost/asio/buffer.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::net {

namespace asio = boost::asio;

// A piece has bytes of its own, perhaps in a buffer of the pool, and behind them bytes that it
// shares with other queues without a copy. An empty queue holds nearly no memory.
//
// Threads   One loop's thread only.
class OutgoingQueue {
 public:
  // The most buffers in one call to the system.
  static constexpr std::size_t kMostAtOnce = 16;
  using Buffers = std::array<asio::const_buffer, kMostAtOnce>;

  explicit OutgoingQueue(BufferPool& pool) : pool_(pool) {}

  void append(std::string_view bytes);
  // A short `head`, such as a frame's, takes no buffer of the pool.
  void append(std::string_view head, SharedBytes bytes);

  // Bytes that have not left.
  [[nodiscard]] std::size_t size() const { return size_; }
  // What it holds for itself: its own bytes, with those that were sent but not freed yet, and the
  // list of the pieces, which is the larger part for many short frames that are shared.
  [[nodiscard]] std::size_t own() const { return own_ + pieces_.capacity() * sizeof(Piece); }

  // The first pieces, stored in `into`. Valid until the next call of another member.
  [[nodiscard]] std::span<const asio::const_buffer> front(Buffers& into) const;
  // Removes the first `bytes` bytes, which were sent.
  void drop(std::size_t bytes);
  void clear();
  // Copies all bytes into one piece; the queue is empty afterwards.
  [[nodiscard]] std::string take_all();

 private:
  struct Piece {
    std::string own;
    std::optional<SharedBytes> shared;
    [[nodiscard]] std::string_view behind() const {
      return shared ? shared->view() : std::string_view();
    }
    [[nodiscard]] std::size_t size() const { return own.size() + behind().size(); }
  };
  void free_front();

  BufferPool& pool_;
  std::vector<Piece> pieces_;
  std::size_t first_ = 0;  // pieces before it were sent
  std::size_t sent_ = 0;   // leading bytes of pieces_[first_] that were sent
  std::size_t size_ = 0;
  std::size_t own_ = 0;
};

}  // namespace hearth::net
