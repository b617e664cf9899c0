#pragma once
// Messages to deflate data and back (RFC 7692 section 7.2). The only door to zlib.

#include "base/client_memory.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct z_stream_s;  // NOLINT(readability-identifier-naming): zlib's name

namespace hearth::net {

// What one side has sent so far is its context: what comes next may refer to it, until forget().
//
// Threads   One at a time.
// Failure   std::bad_alloc from the constructor.
class MessageDeflater {
 public:
  // What one of them takes (zlib's own figures for its window, and the memory level that is used).
  static constexpr std::size_t kMemory = std::size_t{40} << 10;

  MessageDeflater();

  // Replaces `packed` by a message as its frame carries it. `message` is not empty.
  void pack(std::string_view message, std::string& packed);
  void forget();

 private:
  struct End {
    void operator()(z_stream_s* stream) const;
  };
  std::unique_ptr<z_stream_s, End> stream_;
};

enum class Unpacked {
  kWhole,     // the message is there
  kTooLong,   // it has more bytes than it may have
  kBroken,    // it is not deflate data
  kNotText,   // a text that is not UTF-8: found by MessagePacking
  kNoMemory,  // the account of client memory is overdrawn
};

// Threads   One at a time.
// Failure   std::bad_alloc from the constructor.
// Bounded   By the room that a message may take. No more than that is ever unpacked, however much
//           the data stand for.
class MessageInflater {
 public:
  // What one takes, for a window of `bits`.
  static constexpr std::size_t memory_for(int bits) {
    return (std::size_t{8} << 10) + (std::size_t{1} << static_cast<unsigned>(bits));
  }

  // Reads what was written with a window of at most that size.
  explicit MessageInflater(int window_bits);

  // Replaces `message` by what `packed`, from one message's frames, stands for. What it takes is
  // entered in `held` as it grows. After anything but kWhole only forget() makes it usable again.
  // A block marked as the last one (RFC 7692 7.2.3.4) ends the context as well.
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
