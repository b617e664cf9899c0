#pragma once
// UTF-8 as RFC 3629 defines it: no surrogates, no overlong forms, nothing above U+10FFFF.

#include <cstddef>
#include <string_view>

namespace hearth {

// Whether all of `text` is well-formed. NUL and other control characters are well-formed: see
// has_control_character().
[[nodiscard]] bool is_valid_utf8(std::string_view text) noexcept;

// Where the first malformed sequence starts, or text.size() when there is none.
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view text) noexcept;

// The character that a text begins with.
struct Utf8Character {
  char32_t code_point;
  std::size_t
      length;  // bytes, 1 to 4; 0 when the text is empty or begins with a malformed sequence
};
[[nodiscard]] Utf8Character first_utf8_character(std::string_view text) noexcept;

// Whether `text`, well-formed UTF-8, has one of U+0000 to U+001F, U+007F, or U+0080 to U+009F.
[[nodiscard]] bool has_control_character(std::string_view text) noexcept;

}  // namespace hearth
