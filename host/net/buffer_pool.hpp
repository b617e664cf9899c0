#pragma once
// Memory that the connections of one loop lend to each other.

#include "base/client_memory.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hearth::net {

// Outgoing bytes live in a buffer only between an answer and its send, so a few buffers serve
// thousands of connections, and an idle connection holds none.
//
// Bounded   At most kKept buffers of at most kLargestKept bytes each are kept.
// Threads   One loop's thread only.
class BufferPool {
 public:
  // `memory`: the account on which the connections enter what they hold for their clients.
  explicit BufferPool(ClientMemory& memory) : memory_(memory) { kept_.reserve(kKept); }
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // An empty buffer, usually with room.
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

  // Takes back a buffer, or frees it when there are enough, or it has grown large, or it is none of
  // the pool's.
  void give(std::string buffer) {
    if (kept_.size() == kKept || buffer.capacity() > kLargestKept) return;
    if (buffer.capacity() < kFirstSize) return;
    buffer.clear();
    kept_.push_back(std::move(buffer));
  }

  [[nodiscard]] ClientMemory& memory() { return memory_; }

  // A place for bytes that nobody will look at. Shared: its contents mean nothing.
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
