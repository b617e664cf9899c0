#include "base/ip_network.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>

namespace hearth {
namespace {

std::optional<int> parse_prefix(std::string_view text, int bits) {
  int prefix = 0;
  const auto [stopped, error] = std::from_chars(text.begin(), text.end(), prefix);
  if (error != std::errc{} || stopped != text.end() || prefix < 0 || prefix > bits)
    return std::nullopt;
  return prefix;
}

}  // namespace

IpAddress network_of(const IpAddress& address, int prefix) {
  IpAddress network = address;
  for (std::size_t i = 0; i < network.bytes.size(); ++i) {
    const int kept = std::clamp(prefix - static_cast<int>(8 * i), 0, 8);
    network.bytes[i] &= static_cast<std::uint8_t>(0xFF00U >> static_cast<unsigned>(kept));
  }
  return network;
}

std::optional<IpNetwork> parse_ip_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::optional<IpAddress> address = parse_ip_address(text.substr(0, slash));
  if (!address) return std::nullopt;
  const int bits = address->is_v4 ? 32 : 128;
  if (slash == std::string_view::npos) return IpNetwork{.first = *address, .prefix = bits};
  const std::optional<int> prefix = parse_prefix(text.substr(slash + 1), bits);
  if (!prefix || network_of(*address, *prefix) != *address) return std::nullopt;
  return IpNetwork{.first = *address, .prefix = *prefix};
}

}  // namespace hearth
