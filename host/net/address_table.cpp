#include "net/address_table.hpp"

#include <algorithm>
#include <utility>

namespace hearth::net {
namespace {

// A socket for both families has IPv4 addresses as ::ffff:1.2.3.4.
IpAddress unmapped(const IpAddress& address) {
  constexpr int kMappedBits = 96;
  IpAddress mapped;
  mapped.bytes[10] = mapped.bytes[11] = 0xFF;
  if (!is_in_network(address, mapped, kMappedBits)) return address;
  IpAddress v4{.bytes = {}, .is_v4 = true};
  std::copy_n(address.bytes.begin() + 12, 4, v4.bytes.begin());
  return v4;
}

}  // namespace

AddressTable::AddressTable(std::shared_ptr<const AddressPolicy> policy,
                           std::shared_ptr<AddressUse> total)
    : policy_(std::move(policy)), total_(std::move(total)) {
  for (const std::string& text : policy_->limits().exempt) {
    if (const auto network = parse_ip_network(text)) exempt_.push_back(*network);
  }
}

AddressTable::Admission AddressTable::admit(const std::optional<IpAddress>& address,
                                            SocketTime now) {
  if (!address) return {};
  const IpAddress client = unmapped(*address);
  if (std::ranges::any_of(exempt_, [&](const IpNetwork& each) { return each.has(client); }))
    return {};
  std::shared_ptr<AddressUse>& use = uses_[client.is_v4 ? client : network_of(client, 64)];
  if (use == nullptr) use = std::make_shared<AddressUse>(policy_, total_);
  Admission admission{.is_admitted = use->may_connect(now), .address = nullptr};
  if (admission.is_admitted) admission.address = std::make_shared<ClientAddress>(use);
  if (uses_.size() > look_at_size_) forget(now);
  return admission;
}

// Its cost is proportional to the growth of the table since the last time.
void AddressTable::forget(SocketTime now) {
  std::erase_if(uses_, [now](const auto& each) { return each.second->is_unused(now); });
  if (uses_.size() > kMostUnconnected) {
    std::erase_if(uses_, [](const auto& each) { return each.second.use_count() == 1; });
  }
  look_at_size_ = uses_.size() + kMostUnconnected;
}

}  // namespace hearth::net
