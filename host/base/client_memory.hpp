#pragma once
// One account for the memory that the server holds for its clients: what they have sent in part,
// what waits for an agent, and what they have not read yet.

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hearth {

// Holders enter what they hold, and ask whether it is too much before they hold more: a holder that
// asks while the account is overdrawn is the one that is refused, and what is held already goes on.
//
// Bounded   Overdrawn by what its holders take between two looks: a few KiB a connection (kFree),
//           and one message.
// Threads   Any.
// Lifetime  Outlives its holders.
class ClientMemory {
 public:
  // What a single holder may have even while the account is overdrawn, so that small requests are
  // answered whatever large ones do. The number of connections bounds it.
  static constexpr std::size_t kFree = std::size_t{8} << 10;

  explicit ClientMemory(std::size_t limit) : limit_(limit) {}
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;

  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  // Whether a holder of `bytes` must let go of them.
  [[nodiscard]] bool refuses(std::size_t bytes) const noexcept {
    return bytes > kFree && used() > limit_;
  }

  // For HeldBytes: a holder that had `before` has `now`.
  void enter(std::size_t before, std::size_t now) noexcept {
    used_.fetch_add(now - before, std::memory_order_relaxed);  // wraps when it falls
  }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_ = 0;
};

// What one holder has on the account; nothing at first, and nothing any more once it is destroyed.
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
  // Whether the holder must let go of what it has.
  [[nodiscard]] bool refused() const noexcept { return memory_.refuses(bytes_); }

 private:
  ClientMemory& memory_;
  std::size_t bytes_ = 0;
};

// Bytes that any number of holders share: held, and on the account, once, until the last of them
// lets go.
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
