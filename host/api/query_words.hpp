#pragma once
// Values in the query of a request.

#include "base/error.hpp"
#include "protocol/request_query.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::api {

// Bytes of a class or name in a query: longer ones do not exist.
inline constexpr std::size_t kMaxValueBytes = 4096;

// A value of a query, if it is there. A value that is too long is an error: without it the request
// would mean something else.
inline Result<std::optional<std::string>> value_in(std::string_view query, std::string_view key,
                                                   std::size_t most) {
  auto value = protocol::query_value(query, key, query.size());
  if (value && value->size() > most)
    return Error{Errc::kInvalidArgument,
                 std::string(key) + " has at most " + std::to_string(most) + " bytes"};
  return value;
}

// The values of several keys; "" for an absent one.
inline Result<void> read_words(
    std::string_view query,
    std::initializer_list<std::pair<std::string_view, std::string*>> words) {
  for (const auto& [key, word] : words) {
    auto value = value_in(query, key, kMaxValueBytes);
    if (!value) return value.error();
    *word = std::move(*value).value_or("");
  }
  return {};
}

// A whole number of a query, if it is there.
inline Result<std::optional<std::int64_t>> number_in(std::string_view query, std::string_view key,
                                                     std::int64_t least, std::int64_t most) {
  const auto value = value_in(query, key, 32);
  if (!value) return value.error();
  const std::optional<std::string>& text = *value;
  if (!text) return std::optional<std::int64_t>();
  std::int64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, number);
  if (read.ec == std::errc() && read.ptr == end && number >= least && number <= most)
    return std::optional(number);
  return Error{Errc::kInvalidArgument, std::string(key) + " is a whole number from " +
                                           std::to_string(least) + " to " + std::to_string(most)};
}

// Items of a page.
inline constexpr std::int64_t kMaxPage = 1000;

// The `limit` of a page.
inline Result<std::size_t> page_limit(std::string_view query) {
  constexpr std::int64_t kByDefault = 100;
  const auto limit = number_in(query, "limit", 1, kMaxPage);
  if (!limit) return limit.error();
  return static_cast<std::size_t>(limit->value_or(kByDefault));
}

}  // namespace hearth::api
