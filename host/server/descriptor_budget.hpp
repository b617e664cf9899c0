#pragma once
// How many files the server may have open, and what it needs them for.

#include "base/logger.hpp"
#include "config/config.hpp"

#include <cstddef>
#include <cstdint>

namespace hearth::server {

// What a limit of open files leaves for sockets, agents and their requests.
struct DescriptorBudget {
  std::uint64_t limit = 0;
  std::uint64_t wanted = 0;  // for as many of each as the configuration allows
  // That fit; at least 1 each, at most what the configuration allows.
  std::size_t max_live_agents = 0;
  std::size_t max_connections = 0;
  std::size_t max_requests = 0;  // of one shard

  [[nodiscard]] bool fits() const { return wanted <= limit; }
};

// If not everything fits, sockets get what they may need but at most half of what is there, or what
// the agents leave if that is more. Agents and their requests get the rest: requests an eighth of
// it, or what the agents leave if that is more. Pure.
// A socket is a descriptor, and so is a request to another server. A live agent that has written is
// two, its file and its WAL; of durability `power` three.
[[nodiscard]] DescriptorBudget descriptor_budget(const config::Config& config, std::size_t shards,
                                                 std::uint64_t limit);

// Raises this process's limit as far as it may. If what the configuration allows does not fit even
// so, says so, with what to do, and lowers limits.max_live_agents, limits.max_connections and
// egress.max_requests to what fits: idle agents then leave memory for others, instead of the others
// being refused, and neither sockets nor requests take what agents need.
void claim_descriptors(config::Config& config, Logger& logger);

}  // namespace hearth::server
