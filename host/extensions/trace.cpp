#include "extensions/trace.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace hearth::extensions {
namespace {

// In bytes, each of them two digits.
constexpr std::size_t kTraceBytes = 16;
constexpr std::size_t kSpanBytes = 8;
constexpr std::size_t kSpanPlace = 36;  // in a traceparent

bool is_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// An id of random bytes, not all zero.
template <std::size_t kBytes>
std::string new_id(Random& random) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<std::byte, kBytes> bytes{};
  random.fill(bytes);
  bytes.back() |= std::byte{1};
  std::string text;
  for (const std::byte byte : bytes) {
    const auto value = std::to_integer<unsigned>(byte);
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

}  // namespace

std::string new_trace(Random& random) {
  const std::string trace = new_id<kTraceBytes>(random);
  return "00-" + trace + "-" + new_id<kSpanBytes>(random) + "-01";
}

std::string next_span(std::string_view trace, Random& random) {
  std::string next(valid_trace(trace));
  if (!next.empty()) next.replace(kSpanPlace, 2 * kSpanBytes, new_id<kSpanBytes>(random));
  return next;
}

std::string_view valid_trace(std::string_view text) {
  // 00-<32 hex, not all 0>-<16 hex, not all 0>-<2 hex>
  const bool has_form =
      text.size() == 55 && text.substr(0, 3) == "00-" && text[35] == '-' && text[52] == '-';
  if (!has_form) return {};
  const std::string_view trace = text.substr(3, 32);
  const std::string_view parent = text.substr(36, 16);
  const bool is_valid = is_hex(trace) && is_hex(parent) && is_hex(text.substr(53, 2)) &&
                        trace.find_first_not_of('0') != std::string_view::npos &&
                        parent.find_first_not_of('0') != std::string_view::npos;
  return is_valid ? text : std::string_view();
}

}  // namespace hearth::extensions
