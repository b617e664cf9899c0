#pragma once
// Buffers that the connections of one loop share.

#include "base/client_memory.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hearth::net {

// Outgoing bytes are in a buffer only between an answer and its send. So a few buffers serve
// thousands of connections, and an idle connection has none.
//
// Bounded   At most kKept buffers of at most kLargestKept bytes each are kept.
// Threads   One loop's thread only.
class BufferPool {
 public:
  // `memory`: where the connections count the bytes that they hold for their clients.
  explicit BufferPool(ClientMemory& memory) : memory_(memory) { kept_.reserve(kKept); }
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // An empty buffer, usually with capacity.
  [[nodiscard]] std::string take() {
    if (kept_.empty()) {
      std::string fresh;
      fresh.reserve(kFirstSize);
      return fresh;
    }
    std::string buffer = std::move(kept_.back());
    kept_.pop_back();
    return buffer;
  }

  // Takes a buffer back. Frees it if there are enough, if it has grown too large, or if it is not
  // from the pool.
  void give(std::string buffer) {
    if (kept_.size() == kKept || buffer.capacity() > kLargestKept) return;
    if (buffer.capacity() < kFirstSize) return;
    buffer.clear();
    kept_.push_back(std::move(buffer));
  }

  [[nodiscard]] ClientMemory& memory() { return memory_; }

  // Room for bytes that are read and dropped. All connections share it, so do not read it.
  [[nodiscard]] std::span<char> scratch() { return scratch_; }

 private:
  static constexpr std::size_t kFirstSize = 4096;
  static constexpr std::size_t kKept = 32;
  static constexpr std::size_t kLargestKept = 256 * 1024;

  ClientMemory& memory_;
  std::vector<std::string> kept_;
  std::array<char, 16 * 1024> scratch_{};
};

}  // namespace hearth::net
