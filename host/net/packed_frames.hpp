#pragma once
// Frames that carry compressed messages, made into frames that Beast takes.

#include "net/frame_heads.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace hearth::net {

// Beast of Boost 1.81 cannot unpack every message (its own round trips fail, boostorg/beast 3028),
// and refuses frames that carry a reserved bit. So the bytes of a connection whose messages may be
// compressed pass here before Beast sees them: a compressed message becomes a binary one without
// the bit, and what it was is kept until Beast has put it together. Everything else that RFC 6455
// asks of frames stays Beast's: it refuses the bit where it may not stand (RFC 7692 section 6), and
// masks, fragments, lengths and opcodes.
//
// Bounded   By the messages that one read of Beast's brings in (1.5 KiB, 6 bytes each).
// Threads   One at a time.
class PackedFrames {
 public:
  // How a message came.
  struct Mark {
    bool is_packed = false;
    bool is_text = false;
  };

  // Bytes that have come in, in order, all of them. Returns how many frames begin in them.
  std::size_t pass(std::span<char> bytes);
  // Of the next message that Beast has put together. There must be one.
  [[nodiscard]] Mark take();
  // From now on messages are not delivered: nothing is kept of them.
  void stop();

 private:
  char begin_frame(char byte);

  FrameHeads heads_;
  std::vector<Mark> marks_;
  bool stopped_ = false;
};

}  // namespace hearth::net
