#pragma once
// What the bytes of a WebSocket pass through before Beast sees them.

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

// Charges what is read to the client's address, and makes compressed messages into ones that Beast
// takes. It is done with bytes, not with messages: a ping, a fragment and a message that never ends
// cost the server something too, and Beast tells nobody of them.
//
// Threads   One loop's thread only.
class IncomingFrames {
 public:
  // `address`: none if it has no limits. `packed`: none if nothing is compressed.
  IncomingFrames(std::shared_ptr<const ClientAddress> address, std::shared_ptr<PackedFrames> packed)
      : address_(std::move(address)), packed_(std::move(packed)) {}

  // The next bytes, in their place. Each frame that begins in them counts as a message. What is
  // charged is `arrived` (ByteStream::take_arrived()): what TLS adds costs too, and what the HTTP
  // session has read ahead was charged there. False: the address, or all together, have sent too
  // much. Nothing of these bytes, nor of later ones, may reach Beast then.
  [[nodiscard]] bool pass(const ByteStream::ReadBuffers& read, std::size_t bytes,
                          std::size_t arrived);
  [[nodiscard]] bool has_refused() const { return has_refused_; }

  // Whether a frame is incomplete, and the bytes that have passed in all: for noticing a peer that
  // trickles what Beast tells nobody of, a head or a ping.
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
