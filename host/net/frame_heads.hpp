#pragma once
// Finds where the frames of a WebSocket begin.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth::net {

// Follows the heads of frames (RFC 6455 5.2) through bytes that arrive in pieces of any size. It
// does not validate: after an invalid head its results have no meaning.
//
// Threads   One at a time.
class FrameHeads {
 public:
  // Takes all received bytes, in order. Calls `begin` with the first byte of each frame, which
  // `begin` may change. Returns the number of frames that begin in the bytes.
  template <class Begin>
  std::size_t pass(std::span<char> bytes, Begin begin) {
    std::size_t begun = 0;
    while (!bytes.empty()) {
      std::size_t passed = 1;
      if (payload_left_ > 0) {
        passed = static_cast<std::size_t>(std::min<std::uint64_t>(payload_left_, bytes.size()));
        payload_left_ -= passed;
      } else {
        if (seen_ == 0) {
          ++begun;
          begin(bytes.front());
        }
        see(static_cast<std::uint8_t>(bytes.front()));
      }
      bytes = bytes.subspan(passed);
    }
    return begun;
  }
  // Whether the last byte was inside a frame.
  [[nodiscard]] bool inside() const { return seen_ != 0 || payload_left_ != 0; }

 private:
  static constexpr std::uint8_t kMaskBit = 0x80;
  static constexpr std::uint8_t kLongest = 14;

  void see(std::uint8_t byte) {
    if (seen_ == 0) {
      size_ = kLongest;
    } else if (seen_ == 1) {
      const std::uint8_t length = byte & static_cast<std::uint8_t>(~kMaskBit);
      const std::uint8_t more = length == 126 ? 2 : length == 127 ? 8 : 0;
      length_ = more == 0 ? length : 0;
      length_end_ = 2 + more;
      size_ = length_end_ + ((byte & kMaskBit) != 0 ? 4 : 0);
    } else if (seen_ < length_end_) {
      length_ = length_ << 8U | byte;
    }
    if (++seen_ < size_) return;
    seen_ = 0;
    payload_left_ = length_;
  }

  std::uint64_t length_ = 0;        // of the frame whose head is being read
  std::uint64_t payload_left_ = 0;  // bytes until the next head
  std::uint8_t seen_ = 0;           // bytes of the head
  std::uint8_t size_ = 0;           // of the head; known from its second byte on
  std::uint8_t length_end_ = 0;
};

}  // namespace hearth::net
