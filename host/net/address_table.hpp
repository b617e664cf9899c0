#pragma once
// The addresses that clients connect from.

#include "base/ip_address.hpp"
#include "base/ip_network.hpp"
#include "net/address_limits.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::net {

// Keeps the use of each address while it matters. All addresses of an IPv6 /64 count as one,
// because one client has them all.
//
// Bounded   By the open connections, plus twice kMostUnconnected addresses. With more addresses,
//           the use of those without a connection is forgotten.
// Threads   The acceptor's.
// Lifetime  Admitted connections may outlive the table.
class AddressTable {
 public:
  static constexpr std::size_t kMostUnconnected = 16'384;

  // `total`: the use of all addresses that are not exempt.
  AddressTable(std::shared_ptr<const AddressPolicy> policy, std::shared_ptr<AddressUse> total);

  struct Admission {
    bool is_admitted = true;
    std::shared_ptr<const ClientAddress> address;  // null: it has no limits
  };
  // Checks a new connection. `address`: nothing if the peer has already left.
  [[nodiscard]] Admission admit(const std::optional<IpAddress>& address, SocketTime now);

  [[nodiscard]] std::size_t size() const { return uses_.size(); }

 private:
  void forget(SocketTime now);

  struct InOrder {
    bool operator()(const IpAddress& a, const IpAddress& b) const {
      return a.is_v4 != b.is_v4 ? a.is_v4 : a.bytes < b.bytes;
    }
  };

  const std::shared_ptr<const AddressPolicy> policy_;
  const std::shared_ptr<AddressUse> total_;
  std::vector<IpNetwork> exempt_;
  std::map<IpAddress, std::shared_ptr<AddressUse>, InOrder> uses_;
  std::size_t look_at_size_ = kMostUnconnected;  // the size at which forget() runs next
};

}  // namespace hearth::net
