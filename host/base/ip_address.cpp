#include "base/ip_address.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include <arpa/inet.h>

namespace hearth {
namespace {

struct AddressBlock {
  std::string_view first;
  int prefix;
};

// IANA's registries of special-purpose addresses. Public IPv6 is 2000::/3 without these.
constexpr std::array<AddressBlock, 15> kSpecialV4 = {{{"0.0.0.0", 8},
                                                      {"10.0.0.0", 8},
                                                      {"100.64.0.0", 10},
                                                      {"127.0.0.0", 8},
                                                      {"169.254.0.0", 16},
                                                      {"172.16.0.0", 12},
                                                      {"192.0.0.0", 24},
                                                      {"192.0.2.0", 24},
                                                      {"192.88.99.0", 24},
                                                      {"192.168.0.0", 16},
                                                      {"198.18.0.0", 15},
                                                      {"198.51.100.0", 24},
                                                      {"203.0.113.0", 24},
                                                      {"224.0.0.0", 4},
                                                      {"240.0.0.0", 4}}};
constexpr std::array<AddressBlock, 3> kSpecialV6 = {
    {{"2001::", 23}, {"2001:db8::", 32}, {"3fff::", 20}}};

bool is_in_block(const IpAddress& address, const AddressBlock& block) {
  const std::optional<IpAddress> first = parse_ip_address(block.first);
  return first && is_in_network(address, *first, block.prefix);
}

IpAddress v4_at(const IpAddress& address, std::size_t offset) {
  IpAddress v4{.bytes = {}, .is_v4 = true};
  std::copy_n(address.bytes.begin() + static_cast<std::ptrdiff_t>(offset), 4, v4.bytes.begin());
  return v4;
}

// A number of an IPv4 address as the C library reads it.
std::optional<std::uint32_t> parse_v4_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
    if (text.empty()) return 0;
  } else if (text.size() > 1 && text.front() == '0') {
    base = 8;
  }
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The last number fills the remaining bytes.
std::optional<IpAddress> parse_loose_v4(std::string_view text) {
  IpAddress address{.bytes = {}, .is_v4 = true};
  for (std::size_t at = 0; at < 4; ++at) {
    const std::size_t dot = text.find('.');
    const std::optional<std::uint32_t> number = parse_v4_number(text.substr(0, dot));
    if (!number) return std::nullopt;
    if (dot != std::string_view::npos) {
      if (*number > 0xFF) return std::nullopt;
      address.bytes[at] = static_cast<std::uint8_t>(*number);
      text.remove_prefix(dot + 1);
      continue;
    }
    if (at > 0 && *number >> (8 * (4 - at)) != 0) return std::nullopt;
    for (std::size_t byte = at; byte < 4; ++byte)
      address.bytes[byte] = static_cast<std::uint8_t>(*number >> (8 * (3 - byte)));
    return address;
  }
  return std::nullopt;
}

}  // namespace

bool is_in_network(const IpAddress& address, const IpAddress& network, int prefix) {
  if (address.is_v4 != network.is_v4) return false;
  const auto whole = static_cast<std::size_t>(prefix / 8);
  if (!std::equal(address.bytes.begin(), address.bytes.begin() + static_cast<std::ptrdiff_t>(whole),
                  network.bytes.begin()))
    return false;
  if (prefix % 8 == 0) return true;
  return ((address.bytes[whole] ^ network.bytes[whole]) >> (8 - prefix % 8)) == 0;
}

std::optional<IpAddress> parse_ip_address(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string copy(text);  // inet_pton wants a zero at the end
  IpAddress address;
  if (::inet_pton(AF_INET, copy.c_str(), address.bytes.data()) == 1) {
    address.is_v4 = true;
    return address;
  }
  address = {};
  if (::inet_pton(AF_INET6, copy.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

std::optional<IpAddress> parse_ip_host(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    const std::optional<IpAddress> inside = parse_ip_address(text.substr(1, text.size() - 2));
    return inside && !inside->is_v4 ? inside : std::nullopt;
  }
  if (text.find(':') != std::string_view::npos) return parse_ip_address(text);
  return parse_loose_v4(text);
}

bool ends_in_number(std::string_view host) {
  const std::size_t dot = host.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? host : host.substr(dot + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !last.empty() && (std::ranges::all_of(last, is_digit) || parse_v4_number(last));
}

std::string to_text(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(address.is_v4 ? AF_INET : AF_INET6, address.bytes.data(), text.data(),
              static_cast<socklen_t>(text.size()));
  return text.data();
}

std::optional<IpAddress> embedded_v4(const IpAddress& address) {
  if (address.is_v4) return std::nullopt;
  if (is_in_block(address, {"::ffff:0:0", 96}) || is_in_block(address, {"64:ff9b::", 96}) ||
      is_in_block(address, {"::", 96}))
    return v4_at(address, 12);
  if (is_in_block(address, {"2002::", 16})) return v4_at(address, 2);
  return std::nullopt;
}

bool is_public(const IpAddress& address) {
  const auto has = [&address](const AddressBlock& block) { return is_in_block(address, block); };
  if (address.is_v4) return std::ranges::none_of(kSpecialV4, has);
  if (const std::optional<IpAddress> v4 = embedded_v4(address)) return is_public(*v4);
  return has({"2000::", 3}) && std::ranges::none_of(kSpecialV6, has);
}

}  // namespace hearth
