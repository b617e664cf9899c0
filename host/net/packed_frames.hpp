#pragma once
// Changes frames of compressed messages so that Beast accepts them.

#include "net/frame_heads.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace hearth::net {

// Beast of Boost 1.81 cannot unpack every message (its own round trips fail, boostorg/beast 3028),
// and refuses frames with a reserved bit. So this class gets the bytes of a connection with
// compression before Beast does. It makes a compressed message a binary message without the bit,
// and keeps a Mark until Beast has put the message together. Beast still checks everything else of
// RFC 6455: masks, fragments, lengths, opcodes, and the bit where it is not allowed (RFC 7692
// section 6).
//
// Bounded   By the messages in one read of Beast (1.5 KiB, 6 bytes each).
// Threads   One at a time.
class PackedFrames {
 public:
  // What a message was before the change.
  struct Mark {
    bool is_packed = false;
    bool is_text = false;
  };

  // Takes all received bytes, in order. Returns the number of frames that begin in them.
  std::size_t pass(std::span<char> bytes);
  // The mark of the next message that Beast has put together. There must be one (asserted).
  [[nodiscard]] Mark take();
  // Messages are no longer delivered from now on: keeps no marks.
  void stop();

 private:
  char begin_frame(char byte);

  FrameHeads heads_;
  std::vector<Mark> marks_;
  bool stopped_ = false;
};

}  // namespace hearth::net
