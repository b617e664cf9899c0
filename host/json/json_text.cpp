#include "json/json_text.hpp"

#include "base/utf8.hpp"

#include <hearth/json_rules.h>

#include <cstdint>
#include <cstring>

namespace hearth {
namespace {

constexpr std::uint64_t repeat(unsigned char byte) {
  return 0x0101010101010101U * byte;
}

constexpr std::uint64_t kTopBits = repeat(0x80);

// Nonzero in a word of ASCII when one of its bytes equals `byte`.
std::uint64_t holds(std::uint64_t word, unsigned char byte) {
  const std::uint64_t difference = word ^ repeat(byte);
  return (difference - repeat(1)) & ~difference & kTopBits;
}

// Whether all eight bytes are plain. A borrow between bytes can only follow a true hit, so zero is
// exact.
bool is_plain_word(std::uint64_t word) {
  const std::uint64_t control = (word - repeat(0x20)) & ~word;
  return (((word | control) & kTopBits) | holds(word, '"') | holds(word, '\\')) == 0;
}

bool is_plain_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

void append_escaped_ascii(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  out += "\\u00";
  out += kHex[byte >> 4U];
  out += kHex[byte & 0x0FU];
}

}  // namespace

std::size_t plain_json_bytes(std::string_view text) noexcept {
  std::size_t length = 0;
  while (text.size() - length >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + length, sizeof(word));
    if (!is_plain_word(word)) break;
    length += sizeof(word);
  }
  while (length < text.size() && is_plain_byte(text[length])) ++length;
  return length;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (true) {
    const std::size_t plain = plain_json_bytes(text);
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;

    const std::size_t sequence = first_utf8_character(text).length;
    if (sequence == 0) {
      out += "\xEF\xBF\xBD";
    } else if (sequence == 1) {
      append_escaped_ascii(out, text.front());
    } else {
      out.append(text.substr(0, sequence));
    }
    text.remove_prefix(sequence == 0 ? 1 : sequence);
  }
  out += '"';
}

std::optional<std::string> without_lone_surrogates(std::string_view json) {
  if (json.find("\\u") == std::string_view::npos) return std::nullopt;
  std::size_t at = hearth_lone_surrogate(json.data(), json.size(), 0);
  if (at == json.size()) return std::nullopt;
  std::string mended(json);
  for (; at < mended.size(); at = hearth_lone_surrogate(mended.data(), mended.size(), at))
    mended.replace(at + 2, 4, HEARTH_REPLACEMENT_DIGITS);
  return mended;
}

}  // namespace hearth
