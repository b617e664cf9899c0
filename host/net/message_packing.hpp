#pragma once
// Compresses the messages of one WebSocket, with state that the WebSockets of a loop share.

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

// The compressors that connections without a context use in turn, and room for the current message.
// They are made when first used.
//
// Threads   One loop's thread only.
// Bounded   A received message, during a call. Between calls at most 64 KiB of room for a received
//           message and 1 MiB for a sent message are kept.
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
// Bounded   Without a context a connection keeps only its marks. With a context it keeps at most
//           kMostKept from the first compressed message on, which counts as client memory.
class MessagePacking {
 public:
  // Shorter messages are not compressed: they would save too little.
  static constexpr std::size_t kSmallest = 128;
  // Longer messages are not compressed: this length takes some 10 ms of the loop.
  static constexpr std::size_t kLargest = std::size_t{1} << 20;
  static constexpr std::size_t kMostKept =
      MessageDeflater::kMemory + MessageInflater::memory_for(kDeflateWindowBits);

  MessagePacking(const DeflateTerms& terms, PackingShare& share, ClientMemory& memory);

  // Shared with the stream that Beast reads.
  [[nodiscard]] const std::shared_ptr<PackedFrames>& frames() const { return frames_; }

  // Takes a message that Beast has put together, and unpacks it if it is compressed. done() must
  // follow.
  [[nodiscard]] ReceivedMessage receive(std::string_view arrived, std::size_t most);
  void done();

  // The payload of a frame with the bit of RFC 7692, valid until the next call; nothing: send the
  // message without compression.
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
  HeldBytes kept_;      // of the deflater and the inflater
  HeldBytes unpacked_;  // of the message in delivery
};

}  // namespace hearth::net
