#include "server/descriptor_budget.hpp"

#include "config/server_file.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <string>

namespace hearth::server {
namespace {

// For the loop, the shard's connection to the directory of agents, and the name resolver.
constexpr std::uint64_t kOfOneShard = 8;
// Requests may have one in this many of the descriptors that they share with agents.
constexpr std::uint64_t kShareOfRequests = 8;
// Libraries, logs, watchers, pipes of other threads, and agents that are leaving.
constexpr std::uint64_t kOfTheProcess = 32;

std::uint64_t of_one_agent(const config::Config& config) {
  const auto is_synced = [](const config::ClassConfig& each) {
    return each.settings.durability == runtime::Durability::kPower;
  };
  const bool any =
      std::ranges::any_of(config.classes, [&](const auto& each) { return is_synced(each.second); });
  return any ? 3 : 2;
}

}  // namespace

DescriptorBudget descriptor_budget(const config::Config& config, std::size_t shards,
                                   std::uint64_t limit) {
  const std::size_t connections = config.server.net.max_connections;
  const std::size_t agents = config.server.runtime.max_live_agents;
  const std::uint64_t own = kOfTheProcess + kOfOneShard * shards;
  const std::uint64_t each = of_one_agent(config);
  const std::uint64_t requests = config.server.egress.max_requests * shards;
  DescriptorBudget budget;
  budget.limit = limit;
  budget.wanted = own + connections + each * agents + requests;
  budget.max_live_agents = agents;
  budget.max_connections = connections;
  budget.max_requests = config.server.egress.max_requests;
  if (budget.fits()) return budget;
  const std::uint64_t left = limit > own ? limit - own : 0;
  const std::uint64_t of_agents = std::min(left, each * agents + requests);
  const std::uint64_t sockets =
      std::min<std::uint64_t>(connections, std::max(left / 2, left - of_agents));
  const std::uint64_t shared = left - sockets;
  const std::uint64_t spare = shared - std::min(shared, each * agents);
  const std::uint64_t of_requests = std::min(requests, std::max(shared / kShareOfRequests, spare));
  const std::uint64_t fitting = std::max<std::uint64_t>(1, (shared - of_requests) / each);
  budget.max_connections = std::max<std::uint64_t>(1, sockets);
  budget.max_live_agents = std::min<std::uint64_t>(fitting, agents);
  budget.max_requests = std::max<std::uint64_t>(1, of_requests / shards);
  return budget;
}

std::string DescriptorBudget::advice() const {
  return "at most " + std::to_string(max_live_agents) +
         " agents stay in memory at once, and at most " + std::to_string(max_connections) +
         " sockets are open, and at most " + std::to_string(max_requests) +
         " requests to other servers are in progress on a shard; allow " + std::to_string(wanted) +
         " open files (systemd: LimitNOFILE; a shell: ulimit -Hn), or lower "
         "limits.max_connections and limits.max_live_agents";
}

DescriptorBudget descriptor_budget_here(const config::Config& config) {
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) descriptors.rlim_max = RLIM_INFINITY;
  return descriptor_budget(config, config::shard_count(config.server), descriptors.rlim_max);
}

void claim_descriptors(config::Config& config, Logger& logger) {
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
  const rlim_t before = descriptors.rlim_cur;
  descriptors.rlim_cur = descriptors.rlim_max;
  // If the limit may not be raised, the limit before holds.
  const rlim_t limit =
      ::setrlimit(RLIMIT_NOFILE, &descriptors) == 0 ? descriptors.rlim_max : before;
  const DescriptorBudget budget =
      descriptor_budget(config, config::shard_count(config.server), limit);
  if (budget.fits()) return;
  const std::string advice = budget.advice();
  logger.write(LogLevel::kWarn, "server.few_descriptors",
               {{"limit", static_cast<std::int64_t>(budget.limit)},
                {"wanted", static_cast<std::int64_t>(budget.wanted)},
                {"max_live_agents", static_cast<std::int64_t>(budget.max_live_agents)},
                {"max_connections", static_cast<std::int64_t>(budget.max_connections)},
                {"max_requests", static_cast<std::int64_t>(budget.max_requests)},
                {"advice", std::string_view(advice)}});
  config.server.runtime.max_live_agents = budget.max_live_agents;
  config.server.net.max_connections = budget.max_connections;
  config.server.egress.max_requests = budget.max_requests;
}

}  // namespace hearth::server
