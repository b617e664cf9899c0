#include "runtime/shard_sub_agents.hpp"

#include "runtime/agent_slot.hpp"
#include "runtime/live_agent.hpp"

#include <utility>

namespace hearth::runtime {

ShardSubAgents::ShardSubAgents(Parts parts) : parts_(std::move(parts)) {}

std::vector<extensions::SubAgent> ShardSubAgents::list(const storage::AgentKey& above,
                                                       const storage::AgentKey& after,
                                                       std::size_t limit) {
  std::vector<extensions::SubAgent> found;
  for (storage::DirectoryEntry& each : parts_.directory.list_below(above, true, after, limit)) {
    if (!parts_.condemned.contains(each.key))
      found.push_back({std::move(each.key), each.created_at_ms});
  }
  return found;
}

Result<void> ShardSubAgents::destroy(const storage::AgentKey& key, extensions::AgentHandle by) {
  if (parts_.condemned.contains(key) || !parts_.directory.contains(key))
    return Error{Errc::kNotFound, "there is no such sub-agent"};
  parts_.condemned.condemn(key);
  AgentSlot* const slot = parts_.handles.find(by);
  if (slot != nullptr && slot->live() != nullptr) slot->live()->directory_was_written();
  parts_.end_soon(key);
  return {};
}

}  // namespace hearth::runtime
