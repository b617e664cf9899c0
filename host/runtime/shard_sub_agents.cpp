#include "runtime/shard_sub_agents.hpp"

#include "runtime/condemned_agents.hpp"
#include "runtime/shard_services.hpp"

#include <utility>

namespace hearth::runtime {

std::vector<extensions::SubAgent> ShardSubAgents::list(const storage::AgentKey& above,
                                                       const storage::AgentKey& after,
                                                       std::size_t limit) {
  std::vector<extensions::SubAgent> found;
  for (storage::DirectoryEntry& each : directory_.list_below(above, true, after, limit)) {
    if (!services_.condemned.contains(each.key))
      found.push_back({std::move(each.key), each.created_at_ms});
  }
  return found;
}

Result<void> ShardSubAgents::destroy(const storage::AgentKey& key, extensions::AgentHandle by) {
  if (services_.condemned.contains(key) || !directory_.contains(key))
    return Error{Errc::kNotFound, "there is no such sub-agent"};
  services_.condemned.condemn(key);
  if (LiveAgent* const live = slots_.find(by)) live->store().commits().directory_was_written(true);
  slots_.end_condemned(key);
  slots_.end_below(key);
  return {};
}

}  // namespace hearth::runtime
