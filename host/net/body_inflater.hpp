#pragma once
// The body of an answer that came compressed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct z_stream_s;  // NOLINT(readability-identifier-naming): zlib's

namespace hearth::net {

// Unpacks what is added, step by step: nothing that is unpacked is kept here.
//
// kGzip     one member or several, one behind the other (RFC 1952).
// kDeflate  the format of zlib (RFC 9110 8.4.1.2), or deflate without a header, which some servers
//           send; up to four bytes that stand where the checksum would are skipped then.
// Bounded   It keeps what was added until it is unpacked, and zlib's 40 KiB.
class BodyInflater {
 public:
  enum class Coding : std::uint8_t { kGzip, kDeflate };

  // The one that a Content-Encoding names; nothing: another one, or more than one.
  [[nodiscard]] static std::optional<Coding> coding_of(std::string_view content_encoding);

  explicit BodyInflater(Coding coding);

  void add(std::string_view packed);
  // Whether next() may give more of what was added.
  [[nodiscard]] bool has_more() const { return has_more_; }
  // The next bytes, in `room`. Empty: there are none yet. Nothing: it is not what the coding says.
  [[nodiscard]] std::optional<std::string_view> next(std::span<char> room);
  // Whether all that was added is unpacked, and ends where a stream ends.
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
  std::size_t at_ = 0;  // in `packed_`: so much is unpacked
  bool has_more_ = false;
  std::size_t skipped_ = 0;  // behind the end
};

}  // namespace hearth::net
