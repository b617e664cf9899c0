#pragma once
// Bytes that wait to leave a stream, in order.

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

// Pieces of two kinds: bytes of its own, in a buffer that the pool lends, and bytes that it shares
// with other queues and does not copy. Empty, it holds next to no memory.
//
// Threads   One loop's thread only.
class OutgoingQueue {
 public:
  // As many pieces leave with one call to the system.
  static constexpr std::size_t kMostAtOnce = 16;
  using Buffers = std::array<asio::const_buffer, kMostAtOnce>;

  explicit OutgoingQueue(BufferPool& pool) : pool_(pool) {}

  void append(std::string_view bytes);
  // A short head in front, such as a frame's, takes no buffer of the pool.
  void append(std::string_view head, SharedBytes bytes);

  // Bytes that have not left.
  [[nodiscard]] std::size_t size() const { return size_; }
  // Bytes that only this queue holds: those of its own pieces, and what has left of them already.
  [[nodiscard]] std::size_t own() const { return own_; }

  // The first pieces; `into` is the place for them. Valid until the next call of another member.
  [[nodiscard]] std::span<const asio::const_buffer> front(Buffers& into) const;
  // The first `bytes` bytes have left.
  void drop(std::size_t bytes);
  void clear();
  // Everything, copied, in one piece; the queue is empty afterwards.
  [[nodiscard]] std::string take_all();

 private:
  struct Piece {
    std::string own;
    std::optional<SharedBytes> shared;
    [[nodiscard]] std::string_view view() const { return shared ? shared->view() : own; }
  };
  void free_front();

  BufferPool& pool_;
  std::vector<Piece> pieces_;
  std::size_t first_ = 0;  // pieces before it have left
  std::size_t sent_ = 0;   // leading bytes of pieces_[first_] that have left
  std::size_t size_ = 0;
  std::size_t own_ = 0;
};

}  // namespace hearth::net
