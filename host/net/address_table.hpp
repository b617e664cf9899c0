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

// Keeps what each address uses for as long as that matters. All addresses of an IPv6 /64 are one,
// since one client has them all.
//
// Bounded   By the connections that are open, and twice kMostUnconnected addresses: when there are
//           more, those without a connection are forgotten, and begin anew.
// Threads   The acceptor's.
// Lifetime  The connections that it has admitted may outlive it.
class AddressTable {
 public:
  static constexpr std::size_t kMostUnconnected = 16'384;

  // `total`: what all that are not exempt use together.
  AddressTable(std::shared_ptr<const AddressPolicy> policy, std::shared_ptr<AddressUse> total);

  struct Admission {
    bool is_admitted = true;
    std::shared_ptr<const ClientAddress> address;  // none: it has no limits
  };
  // A connection from there. `address`: none if the peer is already gone.
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
  std::size_t look_at_size_ = kMostUnconnected;  // when the table is looked through next
};

}  // namespace hearth::net
