#include "net/message_deflate.hpp"

#include "base/assert.hpp"
#include "net/deflate_terms.hpp"

#include <algorithm>
#include <array>
#include <new>

#include <zlib.h>

namespace hearth::net {
namespace {

// The last bytes of a flush, which are not sent (RFC 7692 7.2.1).
constexpr std::string_view kFlushTail("\x00\x00\xFF\xFF", 4);
// A flush writes at most this many bytes besides the data.
constexpr std::size_t kFlushRoom = 16;
// With this level the hash tables take as much memory as the window.
constexpr int kMemoryLevel = 5;
// The first room for a message; it doubles.
constexpr std::size_t kFirstRoom = 4096;
// zlib's mark in data_type that the last byte ended a block (zlib.h, inflate()).
constexpr int kBetweenBlocks = 128;

// zlib does not write to its input; its interface only lacks the `const`.
void set_input(z_stream& stream, std::string_view bytes) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
}

void set_output(z_stream& stream, std::string& out, std::size_t used) {
  stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
  stream.avail_out = static_cast<uInt>(out.size() - used);
}

}  // namespace

// The fastest level, because a loop's other connections wait: the slowest level packs a fifth
// better and takes several times as long.
MessageDeflater::MessageDeflater() : stream_(new z_stream{}) {
  if (deflateInit2(stream_.get(), Z_BEST_SPEED, Z_DEFLATED, -kDeflateWindowBits, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
}

void MessageDeflater::End::operator()(z_stream_s* stream) const {
  deflateEnd(stream);
  delete stream;  // NOLINT(cppcoreguidelines-owning-memory): this is the deleter
}

void MessageDeflater::pack(std::string_view message, std::string& packed) {
  HEARTH_ASSERT(!message.empty(), "zlib writes nothing for an empty message");
  packed.resize(deflateBound(stream_.get(), message.size()) + kFlushRoom);
  set_input(*stream_, message);
  set_output(*stream_, packed, 0);
  const int result = deflate(stream_.get(), Z_SYNC_FLUSH);
  HEARTH_ASSERT(result == Z_OK && stream_->avail_out > 0, "a message does not fit into its bound");
  packed.resize(packed.size() - stream_->avail_out - kFlushTail.size());
}

void MessageDeflater::forget() {
  deflateReset(stream_.get());
}

MessageInflater::MessageInflater(int window_bits) : stream_(new z_stream{}) {
  if (inflateInit2(stream_.get(), -window_bits) != Z_OK) throw std::bad_alloc();
}

void MessageInflater::End::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;  // NOLINT(cppcoreguidelines-owning-memory): this is the deleter
}

Unpacked MessageInflater::unpack(std::string_view packed, std::size_t most, std::string& message,
                                 HeldBytes& held) {
  z_stream& stream = *stream_;
  std::size_t used = 0;
  message.clear();
  for (const std::string_view piece : {packed, kFlushTail}) {
    set_input(stream, piece);
    do {
      if (used == message.size()) {
        if (used > most) return Unpacked::kTooLong;
        message.resize(std::min(most + 1, std::max(kFirstRoom, 2 * used)));
        held.set(message.size());
        if (held.refused()) return Unpacked::kNoMemory;
      }
      set_output(stream, message, used);
      const int result = inflate(&stream, Z_SYNC_FLUSH);
      used = message.size() - stream.avail_out;
      if (result == Z_STREAM_END) {
        inflateReset(&stream);  // the next block has no context
      } else if (result == Z_BUF_ERROR) {
        break;  // the piece is used up
      } else if (result != Z_OK) {
        return Unpacked::kBroken;
      }
    } while (stream.avail_in > 0 || stream.avail_out == 0);
  }
  if (used > most) return Unpacked::kTooLong;
  message.resize(used);
  return (stream.data_type & kBetweenBlocks) != 0 ? Unpacked::kWhole : Unpacked::kBroken;
}

void MessageInflater::forget() {
  inflateReset(stream_.get());
}

}  // namespace hearth::net
