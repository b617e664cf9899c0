#include "net/packed_frames.hpp"

#include "base/assert.hpp"

#include <cstdint>

namespace hearth::net {
namespace {

// RFC 6455 5.2.
constexpr std::uint8_t kFirstReservedBit = 0x40;
constexpr std::uint8_t kOpcodeBits = 0x0F;
constexpr std::uint8_t kTextFrame = 0x01;
constexpr std::uint8_t kBinaryFrame = 0x02;

}  // namespace

std::size_t PackedFrames::pass(std::span<char> bytes) {
  return heads_.pass(bytes, [this](char& first) { first = begin_frame(first); });
}

char PackedFrames::begin_frame(char byte) {
  const auto first = static_cast<std::uint8_t>(byte);
  const std::uint8_t opcode = first & kOpcodeBits;
  if (opcode != kTextFrame && opcode != kBinaryFrame) return byte;
  const Mark mark{.is_packed = (first & kFirstReservedBit) != 0, .is_text = opcode == kTextFrame};
  if (!stopped_) marks_.push_back(mark);
  if (!mark.is_packed) return byte;
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
