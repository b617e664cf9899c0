#include "net/body_inflater.hpp"

#include "base/http_token.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <zlib.h>

namespace hearth::net {
namespace {

constexpr int kWithoutHeader = -MAX_WBITS;
constexpr int kAnyHeader = MAX_WBITS + 32;  // of gzip or zlib (zlib.h, inflateInit2())
constexpr std::size_t kHeaderOfZlib = 2;
constexpr std::size_t kChecksum = 4;

// RFC 1950 2.2.
bool begins_as_zlib(std::string_view bytes) {
  constexpr unsigned kDeflate = 8;
  const auto method = static_cast<unsigned char>(bytes[0]);
  const auto flags = static_cast<unsigned char>(bytes[1]);
  return (method & 0x0FU) == kDeflate && (method * 256U + flags) % 31 == 0;
}

}  // namespace

std::optional<BodyInflater::Coding> BodyInflater::coding_of(std::string_view content_encoding) {
  for (const std::string_view name : {"gzip", "x-gzip"}) {
    if (equal_ignoring_case(content_encoding, name)) return Coding::kGzip;
  }
  if (equal_ignoring_case(content_encoding, "deflate")) return Coding::kDeflate;
  return std::nullopt;
}

BodyInflater::BodyInflater(Coding coding) : coding_(coding), stream_(new z_stream{}) {
  if (inflateInit2(stream_.get(), kAnyHeader) != Z_OK) throw std::bad_alloc();
}

void BodyInflater::End::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;  // NOLINT(cppcoreguidelines-owning-memory): this is the deleter
}

void BodyInflater::add(std::string_view packed) {
  packed_.erase(0, std::exchange(at_, 0));
  packed_ += packed;
  has_more_ = has_more_ || !packed.empty();
}

// False: there are too few bytes yet to recognise the format.
bool BodyInflater::begin() {
  if (coding_ == Coding::kDeflate) {
    if (left().size() < kHeaderOfZlib) return false;
    is_raw_ = !begins_as_zlib(left());
    if (is_raw_) inflateReset2(stream_.get(), kWithoutHeader);
  }
  state_ = State::kInside;
  return true;
}

// Handles bytes after the end of a stream. False: they are not allowed.
bool BodyInflater::go_on_behind_end() {
  if (coding_ == Coding::kGzip) {
    inflateReset(stream_.get());
    state_ = State::kInside;
    return true;
  }
  skipped_ += left().size();
  at_ = packed_.size();
  return is_raw_ && skipped_ <= kChecksum;
}

std::optional<std::string_view> BodyInflater::next(std::span<char> room) {
  std::size_t used = 0;
  while (has_more_ && used < room.size()) {
    if (state_ == State::kEnded && !left().empty() && !go_on_behind_end()) return std::nullopt;
    if (state_ == State::kEnded || (state_ == State::kBeginning && !begin())) {
      has_more_ = false;
      break;
    }
    const std::string_view in = left();
    // zlib does not write to its input; its interface only lacks the `const`.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_->avail_in = static_cast<uInt>(in.size());
    stream_->next_out = reinterpret_cast<Bytef*>(room.data() + used);
    stream_->avail_out = static_cast<uInt>(room.size() - used);
    const int result = inflate(stream_.get(), Z_NO_FLUSH);
    at_ += in.size() - stream_->avail_in;
    used = room.size() - stream_->avail_out;
    if (result == Z_STREAM_END) {
      state_ = State::kEnded;
      has_more_ = !left().empty();
    } else if (result == Z_BUF_ERROR) {
      has_more_ = false;
    } else if (result != Z_OK) {
      return std::nullopt;
    }
  }
  return std::string_view(room.data(), used);
}

}  // namespace hearth::net
