#pragma once
// Unpacks the compressed body of an answer.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct z_stream_s;  // NOLINT(readability-identifier-naming): zlib's

namespace hearth::net {

// Unpacks added bytes step by step, and keeps no unpacked bytes.
//
// kGzip     one or several members, one after the other (RFC 1952).
// kDeflate  the format of zlib (RFC 9110 8.4.1.2), or deflate without a header, which some servers
//           send. Then up to four bytes in the place of the checksum are skipped.
// Bounded   It keeps added bytes until they are unpacked, and zlib's 40 KiB.
class BodyInflater {
 public:
  enum class Coding : std::uint8_t { kGzip, kDeflate };

  // The coding that a Content-Encoding names; nothing: another coding, or several.
  [[nodiscard]] static std::optional<Coding> coding_of(std::string_view content_encoding);

  explicit BodyInflater(Coding coding);

  void add(std::string_view packed);
  // Whether next() may return more bytes.
  [[nodiscard]] bool has_more() const { return has_more_; }
  // The next bytes, in `room`. Empty: none yet. Nothing: the body is not valid in its coding.
  [[nodiscard]] std::optional<std::string_view> next(std::span<char> room);
  // Whether all added bytes are unpacked, and the stream is complete.
  [[nodiscard]] bool is_whole() const { return state_ == State::kEnded && !has_more_; }

 private:
  enum class State : std::uint8_t { kBeginning, kInside, kEnded };
  struct End {
    void operator()(z_stream_s* stream) const;
  };

  [[nodiscard]] std::string_view left() const { return std::string_view(packed_).substr(at_); }
  bool begin();
  bool go_on_behind_end();

  const Coding coding_;
  bool is_raw_ = false;  // without a header
  State state_ = State::kBeginning;
  std::unique_ptr<z_stream_s, End> stream_;
  std::string packed_;
  std::size_t at_ = 0;  // unpacked bytes of `packed_`
  bool has_more_ = false;
  std::size_t skipped_ = 0;  // bytes after the end
};

}  // namespace hearth::net
