#include "api/new_agents.hpp"

namespace hearth::api {

bool makes_too_many(runtime::Shard& shard, const net::ClientAddress* address,
                    const storage::AgentKey& key) {
  if (address == nullptr) return false;
  try {
    return !shard.exists(key) && !address->may_make_agent();
  } catch (const StorageError&) {  // agent boundary
    return false;
  }
}

}  // namespace hearth::api
