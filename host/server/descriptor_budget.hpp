#pragma once
// How many files the server may have open, and how it uses them.

#include "base/logger.hpp"
#include "config/config.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace hearth::server {

// How many sockets, agents and requests of agents fit into a limit of open files.
struct DescriptorBudget {
  std::uint64_t limit = 0;
  std::uint64_t wanted = 0;  // descriptors for all that the configuration allows
  // The numbers that fit: at least 1 each, at most what the configuration allows.
  std::size_t max_live_agents = 0;
  std::size_t max_connections = 0;
  std::size_t max_requests = 0;  // of one shard

  [[nodiscard]] bool fits() const { return wanted <= limit; }
  // What the numbers mean, and what an operator may do: half a sentence.
  [[nodiscard]] std::string advice() const;
};

// If not everything fits:
//   sockets    get what they may need, at most half of the descriptors, or what agents and requests
//              leave if that is more
//   requests   get an eighth of the rest, or what the agents leave if that is more
//   agents     get the remainder
// A socket is one descriptor, a request to another server too. A live agent that has written is
// two: its file and its WAL; with durability `power` three. Pure.
[[nodiscard]] DescriptorBudget descriptor_budget(const config::Config& config, std::size_t shards,
                                                 std::uint64_t limit);

// The budget that claim_descriptors() finds in a process with the hard limit of this one.
[[nodiscard]] DescriptorBudget descriptor_budget_here(const config::Config& config);

// Raises this process's limit as far as it may. If the configuration still allows more than fits,
// logs that with advice, and lowers limits.max_live_agents, limits.max_connections and
// egress.max_requests to what fits. Then idle agents leave memory for others, instead of the server
// refusing those, and neither sockets nor requests use the descriptors that agents need.
void claim_descriptors(config::Config& config, Logger& logger);

}  // namespace hearth::server
