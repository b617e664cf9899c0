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

// An address without a prefix is a network of one address. Nothing if the text is neither an
// address nor a network, or if bits after the prefix are set ("10.0.0.1/8"): it could mean the
// address or the network.
[[nodiscard]] std::optional<IpNetwork> parse_ip_network(std::string_view text);

// The network of an address: its first `prefix` bits, then zeros.
[[nodiscard]] IpAddress network_of(const IpAddress& address, int prefix);

}  // namespace hearth
