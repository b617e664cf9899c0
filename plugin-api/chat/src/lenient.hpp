#pragma once
// Members of JSON that a provider or a client has sent: what is missing or has another type is
// empty.

#include "parts.hpp"

#include <hearth/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::chat {

inline const Json& member(const Json& object, std::string_view name) {
  static const Json null;
  const Json* const found = parts::find(object, name);
  return found ? *found : null;
}

inline std::string_view as_text(const Json& value) {
  const auto* text = value.get_ptr<const std::string*>();
  return text ? std::string_view(*text) : std::string_view();
}
inline std::string_view text_member(const Json& object, std::string_view name) {
  return parts::text(object, name);
}

inline std::optional<std::int64_t> as_integer(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  return value.get<std::int64_t>();
}
inline std::optional<std::int64_t> integer_member(const Json& object, std::string_view name) {
  return as_integer(member(object, name));
}

// Nothing if it is no JSON.
inline std::optional<Json> parse_any(std::string_view text) {
  try {
    return parse_json(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The first `max` bytes or a little less: a character of UTF-8 stays whole.
inline std::string_view first_bytes(std::string_view text, std::size_t max) {
  if (text.size() <= max) return text;
  while (max > 0 && (static_cast<unsigned char>(text[max]) & 0xC0U) == 0x80U) --max;
  return text.substr(0, max);
}

// `text` as UTF-8: what is none becomes U+FFFD, as a client of an event stream decodes it.
inline std::string as_utf8(const std::string& text) {
  const std::string json = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return std::string(as_text(parse_json(json)));
}

inline std::string joined(std::string_view a, std::string_view b) {
  std::string text(a);
  return text += b;
}

}  // namespace hearth::chat
