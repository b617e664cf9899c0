#pragma once
// An IP address as a value, and whether it is public.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

struct IpAddress {
  // In network order; an IPv4 address has the first four.
  std::array<std::uint8_t, 16> bytes{};
  bool is_v4 = false;

  bool operator==(const IpAddress&) const = default;
};

// Whether both are of one version and equal in their first `prefix` bits (32 or 128 at most).
[[nodiscard]] bool is_in_network(const IpAddress& address, const IpAddress& network, int prefix);

// The usual form of an address: four decimal numbers, or IPv6 without brackets and zone.
[[nodiscard]] std::optional<IpAddress> parse_ip_address(std::string_view text);

// Also accepts IPv4 addresses as URLs and the C library do: fewer than four numbers, octal and
// hexadecimal numbers ("0177.1", "0x7f000001"). IPv6 may be in brackets.
[[nodiscard]] std::optional<IpAddress> parse_ip_host(std::string_view text);

// Whether a host's last label is a number. Such a host is an IPv4 address, or invalid.
[[nodiscard]] bool ends_in_number(std::string_view host);

// The usual form: "127.0.0.1", "fd00::1".
[[nodiscard]] std::string to_text(const IpAddress& address);

// The IPv4 address that an IPv6 address leads to: IPv4-mapped and -compatible, NAT64
// (64:ff9b::/96) and 6to4. Otherwise nothing.
[[nodiscard]] std::optional<IpAddress> embedded_v4(const IpAddress& address);

// Whether it is a unicast address of the public internet: not private, loopback, link-local, shared
// (CGNAT), multicast, unspecified, reserved or for documentation. An IPv6 address that leads to an
// IPv4 address is public if the IPv4 address is.
[[nodiscard]] bool is_public(const IpAddress& address);

}  // namespace hearth
