#pragma once
// A range of IP addresses, as "10.0.0.0/8" or "::1".

#include "base/ip_address.hpp"

#include <optional>
#include <string_view>

namespace hearth {

struct IpNetwork {
  IpAddress first;
  int prefix = 0;  // bits that count

  [[nodiscard]] bool has(const IpAddress& address) const {
    return is_in_network(address, first, prefix);
  }
};

// An address alone is a network of its own. Nothing if the text is neither, or if bits behind the
// prefix are set ("10.0.0.1/8"): it may mean either.
[[nodiscard]] std::optional<IpNetwork> parse_ip_network(std::string_view text);

// The network of an address: its first `prefix` bits, and zeros.
[[nodiscard]] IpAddress network_of(const IpAddress& address, int prefix);

}  // namespace hearth
