#pragma once
// JSON as plugins use it: nlohmann/json without streams, a writer that allocates only for its
// output, and a parser that limits the depth of foreign JSON.

#include <hearth/error.hpp>
#include <hearth/json_rules.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace hearth::detail {

// Reading a missing key of a const Json would be undefined behaviour: here it throws.
[[noreturn]] inline void json_misused(const char* condition) {
  throw std::logic_error(std::string("JSON misused (a missing key of a const value?): ") +
                         condition);
}

}  // namespace hearth::detail

// NOLINTBEGIN(readability-identifier-naming): nlohmann/json's own switches
#ifndef JSON_NO_IO
#define JSON_NO_IO 1
#endif
// Conversions of paths and of views cost a third of a second of each first build.
#ifndef JSON_HAS_FILESYSTEM
#define JSON_HAS_FILESYSTEM 0
#endif
#ifndef JSON_HAS_EXPERIMENTAL_FILESYSTEM
#define JSON_HAS_EXPERIMENTAL_FILESYSTEM 0
#endif
#ifndef JSON_HAS_RANGES
#define JSON_HAS_RANGES 0
#endif
#ifndef JSON_ASSERT
#define JSON_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::hearth::detail::json_misused(#condition))
#endif
// NOLINTEND(readability-identifier-naming)
#include <nlohmann/json.hpp>

// Compiled once with the SDK, not with each change of a plugin.
extern template class nlohmann::basic_json<>;

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <type_traits>

namespace hearth {

using Json = nlohmann::json;

// Most levels of arrays and objects. The host has the same limit.
inline constexpr int kMaxJsonDepth = HEARTH_MAX_JSON_DEPTH;

namespace detail {

template <class Number>
void append_number(std::string& out, Number number) {
  std::array<char, 40> digits;  // the longest shortest form of a double has 24 characters
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void append_double(std::string& out, double number);

bool too_deep(std::string_view text);

// `text` with U+FFFD in the place of each escaped half of a character, which nlohmann/json rejects.
// Empty if it has no such half.
std::string without_lone_surrogates(std::string_view text);

// The text of nlohmann/json without its tag in front.
std::string_view json_error_text(const Json::exception& error);

}  // namespace detail

// Appends `value` as JSON text without white space.
void append_json(std::string& out, const Json& value);

// Appends `text` as a JSON string with its quotes, without a Json in between. The bytes are taken
// as UTF-8; the host rejects any other bytes.
void append_json_text(std::string& out, std::string_view text);

[[nodiscard]] inline std::string to_text(const Json& value) {
  std::string text;
  append_json(text, value);
  return text;
}

// An escaped half of a character (JavaScript writes it as an escape such as \uD83D) becomes U+FFFD.
// Failure   Error(INVALID) if `text` is not one JSON value or is nested deeper than kMaxJsonDepth.
[[nodiscard]] Json parse_json(std::string_view text);

}  // namespace hearth
