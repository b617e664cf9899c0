#pragma once
// Compression of the messages of one WebSocket, and what the WebSockets of a loop share for it.

#include "base/client_memory.hpp"
#include "net/deflate_terms.hpp"
#include "net/message_deflate.hpp"
#include "net/packed_frames.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::net {

// What connections that keep no context use in turn, and room for the message of the moment. Made
// when it is first used.
//
// Threads   One loop's thread only.
// Bounded   A received message, for the time of a call; 64 KiB of room for it and 1 MiB of room for
//           one that is sent are kept.
struct PackingShare {
  std::unique_ptr<MessageDeflater> deflater;
  std::unique_ptr<MessageInflater> inflater;
  std::string packed;
  std::string unpacked;
};

// A message for the socket's owner. `payload` is borrowed until the next call of done().
struct ReceivedMessage {
  Unpacked outcome = Unpacked::kWhole;
  std::string_view payload;
  bool is_text = false;
};

// Threads   One loop's thread only.
// Lifetime  The share and the account outlive it.
// Bounded   Without context a connection keeps nothing but its marks. With it it keeps at most
//           kMostKept, from the first compressed message on, on the account of client memory.
class MessagePacking {
 public:
  // Shorter messages leave as they are: what they would save is not worth the time.
  static constexpr std::size_t kSmallest = 128;
  // So do longer ones: this is some 10 ms of the loop.
  static constexpr std::size_t kLargest = std::size_t{1} << 20;
  static constexpr std::size_t kMostKept =
      MessageDeflater::kMemory + MessageInflater::memory_for(kDeflateWindowBits);

  MessagePacking(const DeflateTerms& terms, PackingShare& share, ClientMemory& memory);

  // Shared with the stream that gives Beast its bytes.
  [[nodiscard]] const std::shared_ptr<PackedFrames>& frames() const { return frames_; }

  // A message that Beast has put together: as it arrived, or unpacked. done() must follow.
  [[nodiscard]] ReceivedMessage receive(std::string_view arrived, std::size_t most);
  void done();

  // The payload of a frame with the bit of RFC 7692, valid until the next call; nothing: the
  // message leaves as it is.
  [[nodiscard]] std::optional<std::string_view> pack(std::string_view message);

 private:
  [[nodiscard]] MessageDeflater* deflater();
  [[nodiscard]] MessageInflater* inflater();
  [[nodiscard]] bool may_keep(std::size_t more);

  const DeflateTerms terms_;
  PackingShare& share_;
  std::shared_ptr<PackedFrames> frames_;       // with the stream
  std::unique_ptr<MessageDeflater> deflater_;  // both only with a context
  std::unique_ptr<MessageInflater> inflater_;
  HeldBytes kept_;      // of these two
  HeldBytes unpacked_;  // of the message that is being delivered
};

}  // namespace hearth::net
