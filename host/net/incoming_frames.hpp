#pragma once
// Gets the bytes of a WebSocket before Beast does.

#include "net/address_limits.hpp"
#include "net/byte_stream.hpp"
#include "net/frame_heads.hpp"
#include "net/packed_frames.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace hearth::net {

// Charges the client's address for the bytes that are read, and changes the frames of compressed
// messages so that Beast accepts them. It charges bytes and frames, not messages: pings, fragments
// and messages that never end also cost time, and Beast does not report them.
//
// Threads   One loop's thread only.
class IncomingFrames {
 public:
  // `address`: null if it has no limits. `packed`: null if messages are not compressed.
  IncomingFrames(std::shared_ptr<const ClientAddress> address, std::shared_ptr<PackedFrames> packed)
      : address_(std::move(address)), packed_(std::move(packed)) {}

  // Takes the next bytes, and changes them in place. Each frame that begins in them counts as a
  // message. The charged bytes are `arrived` (ByteStream::take_arrived()): they include the bytes
  // of TLS, but not bytes that the HTTP session has read ahead and charged. False: the address, or
  // all addresses together, have sent too much. Then Beast must not get these bytes or later ones.
  [[nodiscard]] bool pass(const ByteStream::ReadBuffers& read, std::size_t bytes,
                          std::size_t arrived);
  [[nodiscard]] bool has_refused() const { return has_refused_; }

  // Whether a frame is incomplete, and the total of bytes so far. They detect a peer that sends a
  // head or a ping too slowly, which Beast does not report.
  [[nodiscard]] bool inside_frame() const { return heads_.inside(); }
  [[nodiscard]] std::uint64_t passed() const { return passed_; }

 private:
  [[nodiscard]] std::size_t count(std::span<char> bytes);

  const std::shared_ptr<const ClientAddress> address_;  // shared with the connection's session
  const std::shared_ptr<PackedFrames> packed_;          // shared with its MessagePacking
  FrameHeads heads_;
  std::uint64_t passed_ = 0;
  bool has_refused_ = false;
};

}  // namespace hearth::net
