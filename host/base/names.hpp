#pragma once
// The rule for names of classes, which settings, libraries and storage share; and the rule for
// their aliases in URLs.

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace hearth {

// The longest class name. It is a directory's name on disk and a word in logs and metrics.
inline constexpr std::size_t kMaxClassNameBytes = 64;

// True for [A-Za-z_][A-Za-z0-9_-]{0,63}: a class becomes part of a path, so nothing else may reach
// storage.
[[nodiscard]] constexpr bool is_class_name(std::string_view text) noexcept {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto may_follow = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= kMaxClassNameBytes && is_letter(text.front()) &&
         std::ranges::all_of(text, may_follow);
}

// True for a valid alias, a further URL segment of a class: 1 to 64 lower-case letters, digits and
// `-`. It starts with a letter and does not end with `-`. Clients use such a text unchanged; the
// rule for other texts is in protocol/class_segment.hpp.
[[nodiscard]] constexpr bool is_class_alias(std::string_view text) noexcept {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= kMaxClassNameBytes && text.front() >= 'a' &&
         text.front() <= 'z' && text.back() != '-' && std::ranges::all_of(text, is_allowed);
}

}  // namespace hearth
