#include "api/new_agents.hpp"

#include <algorithm>

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

bool makes_too_many(runtime::Shard& shard, const net::ClientAddress* address,
                    const std::vector<Gate>& way, const storage::AgentKey& key) {
  return std::ranges::any_of(way,
                             [&shard, address](const Gate& gate) {
                               return makes_too_many(shard, address, gate.above);
                             }) ||
         makes_too_many(shard, address, key);
}

}  // namespace hearth::api
