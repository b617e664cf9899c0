#pragma once
// Counts the memory that the server holds for its clients: incomplete messages, messages that wait
// for an agent, and output that clients have not read yet.

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hearth {

// A holder enters the bytes that it has, and calls refuses() before it takes more. While the sum is
// above the limit, the holder that asks is refused; bytes that are already held stay.
//
// Bounded   Between two checks each connection can exceed the limit by a few KiB (kFree) and one
//           message.
// Threads   Any.
// Lifetime  Outlives its holders.
class ClientMemory {
 public:
  // A holder may have this many bytes even while the sum is above the limit, so that large requests
  // do not block small ones. The number of connections bounds the total.
  static constexpr std::size_t kFree = std::size_t{8} << 10;

  explicit ClientMemory(std::size_t limit) : limit_(limit) {}
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;

  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  // Whether a holder of `bytes` must release them.
  [[nodiscard]] bool refuses(std::size_t bytes) const noexcept {
    return bytes > kFree && used() > limit_;
  }

  // For HeldBytes: a holder had `before` bytes and has `now`.
  void enter(std::size_t before, std::size_t now) noexcept {
    used_.fetch_add(now - before, std::memory_order_relaxed);  // wraps when it falls
  }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_ = 0;
};

// The bytes that one holder has entered. The destructor takes them off the sum.
//
// Threads   One at a time.
class HeldBytes {
 public:
  explicit HeldBytes(ClientMemory& memory, std::size_t bytes = 0) : memory_(memory) { set(bytes); }
  ~HeldBytes() { set(0); }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  void set(std::size_t bytes) noexcept {
    if (bytes == bytes_) return;
    memory_.enter(bytes_, bytes);
    bytes_ = bytes;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  // Whether the holder must release its bytes.
  [[nodiscard]] bool refused() const noexcept { return memory_.refuses(bytes_); }

 private:
  ClientMemory& memory_;
  std::size_t bytes_ = 0;
};

// Bytes that any number of holders share. They count once, until the last holder releases them.
//
// Threads   Any: the bytes do not change.
class SharedBytes {
 public:
  SharedBytes(ClientMemory& memory, std::string bytes)
      : block_(std::make_shared<const Block>(memory, std::move(bytes))) {}

  [[nodiscard]] std::string_view view() const noexcept { return block_->bytes; }

 private:
  struct Block {
    Block(ClientMemory& memory, std::string text)
        : bytes(std::move(text)), held(memory, bytes.size()) {}
    const std::string bytes;
    const HeldBytes held;
  };
  std::shared_ptr<const Block> block_;
};

}  // namespace hearth
