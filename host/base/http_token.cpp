#include "base/http_token.hpp"

#include <algorithm>
#include <array>

namespace hearth {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_token_character(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') ||
         kMarks.find(c) != std::string_view::npos;
}

bool is_value_character(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\t' || (byte >= 0x20 && byte != 0x7F);
}

}  // namespace

std::string_view trimmed(std::string_view text, std::string_view blanks) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

bool is_http_token(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

bool is_http_field_value(std::string_view text) noexcept {
  return std::ranges::all_of(text, is_value_character);
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_forbidden_http_method(std::string_view method) noexcept {
  constexpr std::array<std::string_view, 3> kMethods = {"CONNECT", "TRACE", "TRACK"};
  return std::ranges::any_of(
      kMethods, [method](std::string_view each) { return equal_ignoring_case(method, each); });
}

bool is_host_owned_request_header(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 10> kNames = {
      "host",    "connection", "content-length", "transfer-encoding", "te",
      "trailer", "upgrade",    "expect",         "keep-alive",        "accept-encoding"};
  return equal_ignoring_case(name.substr(0, 6), "proxy-") ||
         std::ranges::any_of(
             kNames, [name](std::string_view own) { return equal_ignoring_case(name, own); });
}

bool is_host_owned_header(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 10> kNames = {
      "connection", "keep-alive", "transfer-encoding", "content-length", "upgrade", "date",
      "trailer",    "te",         "proxy-connection",  "server"};
  return std::ranges::any_of(
      kNames, [name](std::string_view own) { return equal_ignoring_case(name, own); });
}

}  // namespace hearth
