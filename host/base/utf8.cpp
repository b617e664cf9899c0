#include "base/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace hearth {
namespace {

constexpr Utf8Character kMalformed{0, 0};

char32_t byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

bool is_continuation(char32_t byte) {
  return (byte & 0xC0U) == 0x80U;
}

// Eight bytes at once: nearly all text is ASCII.
std::size_t ascii_prefix(std::string_view text) {
  std::size_t done = 0;
  while (text.size() - done >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + done, sizeof word);
    if ((word & 0x8080808080808080U) != 0) break;
    done += sizeof word;
  }
  while (done < text.size() && byte_at(text, done) < 0x80) ++done;
  return done;
}

}  // namespace

Utf8Character first_utf8_character(std::string_view text) noexcept {
  if (text.empty()) return kMalformed;
  const char32_t lead = byte_at(text, 0);
  if (lead < 0x80) return {lead, 1};

  // 0xC0 and 0xC1 begin only overlong forms; 0xF5 and above, only characters past U+10FFFF.
  if (lead < 0xC2 || lead > 0xF4) return kMalformed;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < length) return kMalformed;

  char32_t code_point = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const char32_t byte = byte_at(text, i);
    if (!is_continuation(byte)) return kMalformed;
    code_point = (code_point << 6U) | (byte & 0x3FU);
  }
  if (length == 3 && code_point < 0x800) return kMalformed;
  if (length == 4 && (code_point < 0x10000 || code_point > 0x10FFFF)) return kMalformed;
  if (code_point >= 0xD800 && code_point <= 0xDFFF) return kMalformed;
  return {code_point, length};
}

std::size_t valid_utf8_prefix(std::string_view text) noexcept {
  std::size_t done = 0;
  while (true) {
    done += ascii_prefix(text.substr(done));
    if (done == text.size()) return done;
    const std::size_t length = first_utf8_character(text.substr(done)).length;
    if (length == 0) return done;
    done += length;
  }
}

bool is_valid_utf8(std::string_view text) noexcept {
  return valid_utf8_prefix(text) == text.size();
}

bool has_control_character(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F) return true;
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0)
      return true;
  }
  return false;
}

}  // namespace hearth
