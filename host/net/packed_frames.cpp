#include "net/packed_frames.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace hearth::net {
namespace {

// RFC 6455 5.2.
constexpr std::uint8_t kFirstReservedBit = 0x40;
constexpr std::uint8_t kOpcodeBits = 0x0F;
constexpr std::uint8_t kTextFrame = 0x01;
constexpr std::uint8_t kBinaryFrame = 0x02;
constexpr std::uint8_t kMaskBit = 0x80;
constexpr std::uint8_t kLongestHead = 14;

}  // namespace

void PackedFrames::pass(std::span<char> bytes) {
  while (!bytes.empty()) {
    std::size_t passed = 1;
    if (payload_left_ > 0) {
      passed = static_cast<std::size_t>(std::min<std::uint64_t>(payload_left_, bytes.size()));
      payload_left_ -= passed;
    } else {
      see(bytes.front());
    }
    bytes = bytes.subspan(passed);
  }
}

void PackedFrames::see(char& byte) {
  const auto value = static_cast<std::uint8_t>(byte);
  if (head_seen_ == 0) {
    byte = begin_frame(value);
  } else if (head_seen_ == 1) {
    const std::uint8_t length = value & static_cast<std::uint8_t>(~kMaskBit);
    const std::uint8_t more = length == 126 ? 2 : length == 127 ? 8 : 0;
    length_ = more == 0 ? length : 0;
    length_end_ = 2 + more;
    head_size_ = length_end_ + ((value & kMaskBit) != 0 ? 4 : 0);
  } else if (head_seen_ < length_end_) {
    length_ = length_ << 8U | value;
  }
  if (++head_seen_ < head_size_) return;
  head_seen_ = 0;
  payload_left_ = length_;
}

char PackedFrames::begin_frame(std::uint8_t first) {
  head_size_ = kLongestHead;
  const std::uint8_t opcode = first & kOpcodeBits;
  if (opcode != kTextFrame && opcode != kBinaryFrame) return static_cast<char>(first);
  const Mark mark{.is_packed = (first & kFirstReservedBit) != 0, .is_text = opcode == kTextFrame};
  if (!stopped_) marks_.push_back(mark);
  if (!mark.is_packed) return static_cast<char>(first);
  return static_cast<char>((first & ~(kFirstReservedBit | kOpcodeBits)) | kBinaryFrame);
}

PackedFrames::Mark PackedFrames::take() {
  HEARTH_ASSERT(!marks_.empty(), "a message without a frame");
  const Mark mark = marks_.front();
  marks_.erase(marks_.begin());
  return mark;
}

void PackedFrames::stop() {
  stopped_ = true;
  marks_ = {};
}

}  // namespace hearth::net
