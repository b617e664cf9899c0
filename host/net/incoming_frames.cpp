#include "net/incoming_frames.hpp"

#include <algorithm>

namespace hearth::net {

bool IncomingFrames::pass(const ByteStream::ReadBuffers& read, std::size_t bytes,
                          std::size_t arrived) {
  if (has_refused_) return false;
  std::size_t frames = 0;
  std::size_t left = bytes;
  for (const asio::mutable_buffer& each : read) {
    const std::size_t here = std::min(left, each.size());
    frames += count({static_cast<char*>(each.data()), here});
    left -= here;
  }
  passed_ += bytes;
  has_refused_ = address_ != nullptr && !address_->may_send(frames, arrived);
  return !has_refused_;
}

std::size_t IncomingFrames::count(std::span<char> bytes) {
  const std::size_t frames = heads_.pass(bytes, [](char) {});
  if (packed_ != nullptr) packed_->pass(bytes);
  return frames;
}

}  // namespace hearth::net
