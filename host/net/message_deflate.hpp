#pragma once
// Packs messages as deflate data and unpacks them (RFC 7692 section 7.2), with zlib.

#include "base/client_memory.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct z_stream_s;  // NOLINT(readability-identifier-naming): zlib's name

namespace hearth::net {

// The earlier messages of a side are its context. Later messages may refer to them, until forget().
//
// Threads   One at a time.
// Failure   std::bad_alloc from the constructor.
class MessageDeflater {
 public:
  // The memory of one deflater (zlib's figures for the window and memory level in use).
  static constexpr std::size_t kMemory = std::size_t{40} << 10;

  MessageDeflater();

  // Replaces `packed` by the payload of the message's frame. `message` is not empty.
  void pack(std::string_view message, std::string& packed);
  void forget();

 private:
  struct End {
    void operator()(z_stream_s* stream) const;
  };
  std::unique_ptr<z_stream_s, End> stream_;
};

enum class Unpacked {
  kWhole,     // the message is unpacked
  kTooLong,   // it has too many bytes
  kBroken,    // it is not deflate data
  kNotText,   // a text that is not UTF-8: MessagePacking finds this
  kNoMemory,  // client memory is above its limit
};

// Threads   One at a time.
// Failure   std::bad_alloc from the constructor.
// Bounded   By `most` of unpack(): it never unpacks more bytes, however many the data would give.
class MessageInflater {
 public:
  // The memory of one inflater with a window of `bits`.
  static constexpr std::size_t memory_for(int bits) {
    return (std::size_t{8} << 10) + (std::size_t{1} << static_cast<unsigned>(bits));
  }

  // Reads data that were written with a window of at most this size.
  explicit MessageInflater(int window_bits);

  // Replaces `message` by the unpacked payload `packed` of one message's frames. `held` counts the
  // bytes of `message` as it grows. After any result but kWhole, call forget() before the next use.
  // A block that is marked as the last one (RFC 7692 7.2.3.4) also ends the context.
  [[nodiscard]] Unpacked unpack(std::string_view packed, std::size_t most, std::string& message,
                                HeldBytes& held);
  void forget();

 private:
  struct End {
    void operator()(z_stream_s* stream) const;
  };
  std::unique_ptr<z_stream_s, End> stream_;
};

}  // namespace hearth::net
