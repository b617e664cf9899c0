#include "protocol/request_query.hpp"

#include <algorithm>
#include <charconv>

namespace hearth::protocol {
namespace {

// The byte that %XX at the front of `text` stands for.
std::optional<char> escaped_byte(std::string_view text) {
  if (text.size() < 3 || text[0] != '%') return std::nullopt;
  unsigned char byte = 0;
  const char* const end = text.data() + 3;
  const auto parsed = std::from_chars(text.data() + 1, end, byte, 16);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return static_cast<char>(byte);
}

std::string form_decode(std::string_view text) {
  std::string spaced(text);
  std::ranges::replace(spaced, '+', ' ');
  return percent_decode(spaced);
}

bool is_printable(char c) {
  return c >= 0x20 && c <= 0x7E;
}

}  // namespace

std::string percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::optional<char> byte = escaped_byte(text);
    out += byte.value_or(text[0]);
    text.remove_prefix(byte ? 3 : 1);
  }
  return out;
}

std::optional<std::string> query_value(std::string_view query, std::string_view key,
                                       std::size_t max_bytes) {
  while (!query.empty()) {
    const std::size_t pair_end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, pair_end);
    query.remove_prefix(std::min(pair_end + 1, query.size()));

    const std::size_t name_end = std::min(pair.find('='), pair.size());
    const std::string_view name = pair.substr(0, name_end);
    // Three written bytes decode to at least one, so a longer name cannot be `key`.
    if (name.size() > key.size() * 3 || form_decode(name) != key) continue;
    const std::string_view value = pair.substr(std::min(name_end + 1, pair.size()));
    if (value.size() > max_bytes) return std::nullopt;
    return form_decode(value);
  }
  return std::nullopt;
}

std::optional<std::string> connection_id(std::string_view query) {
  // Each byte may be written as three.
  std::optional<std::string> id = query_value(query, "_pk", kMaxConnectionIdBytes * 3);
  if (!id || id->empty() || id->size() > kMaxConnectionIdBytes) return std::nullopt;
  if (!std::ranges::all_of(*id, is_printable)) return std::nullopt;
  return id;
}

bool asks_for_other_transport(std::string_view query) {
  constexpr std::size_t kMaxTransportBytes = 64;
  const std::optional<std::string> transport =
      query_value(query, "__agents_transport", kMaxTransportBytes);
  return transport && !transport->empty();
}

}  // namespace hearth::protocol
