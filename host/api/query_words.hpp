#pragma once
// Values in the query of a request.

#include "base/error.hpp"
#include "protocol/request_query.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
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

// Reads the values of a query one after the other.
class QueryReader {
 public:
  explicit QueryReader(std::string_view query) : query_(query) {}

  // "" for an absent one.
  std::string word(std::string_view key) {
    return taken(value_in(query_, key, kMaxValueBytes)).value_or("");
  }
  std::optional<std::int64_t> number(std::string_view key, std::int64_t least = 0,
                                     std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    return taken(number_in(query_, key, least, most));
  }
  // The `limit` of a page.
  std::size_t limit() {
    return static_cast<std::size_t>(number("limit", 1, kMaxPage).value_or(100));
  }

  // `request`, which was made of the values, or what is wrong with the first wrong one.
  template <class Request>
  [[nodiscard]] Result<Request> result(Request request) const {
    if (wrong_) return *wrong_;
    return request;
  }
  [[nodiscard]] const std::optional<Error>& wrong() const { return wrong_; }

 private:
  template <class Value>
  Value taken(Result<Value> value) {
    if (value) return *std::move(value);
    if (!wrong_) wrong_ = value.error();
    return {};
  }

  const std::string_view query_;
  std::optional<Error> wrong_;
};

}  // namespace hearth::api
