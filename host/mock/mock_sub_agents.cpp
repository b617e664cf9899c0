#include "mock/mock_sub_agents.hpp"

#include "mock/stored_agent.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

namespace hearth::mock {

using extensions::SubAgent;
using storage::AgentKey;

std::vector<SubAgent> MockSubAgents::list(const AgentKey& above, const AgentKey& after,
                                          std::size_t limit) {
  const auto place = [](const AgentKey& key) { return std::tie(key.name, key.agent_class); };
  std::vector<SubAgent> found;
  for (const auto& agent : agents_) {
    const AgentKey& key = agent->key();
    const std::optional<std::int64_t> created = agent->created_at_ms();
    if (created && key.parent() == above && place(key) > place(after))
      found.push_back({key, *created});
  }
  std::ranges::sort(found, {}, [&](const SubAgent& each) { return place(each.key); });
  if (found.size() > limit) found.resize(limit);
  return found;
}

Result<void> MockSubAgents::destroy(const AgentKey& key, extensions::AgentHandle /*by*/) {
  const auto found = std::ranges::find(agents_, key, &StoredAgent::key);
  if (found == agents_.end() || !(*found)->created_at_ms())
    return Error{Errc::kNotFound, "there is no such sub-agent"};
  end_soon(**found);
  destroyed(key);
  return {};
}

void MockSubAgents::destroyed(const AgentKey& key) {
  const std::string prefix = key.prefix_below();
  for (const auto& agent : agents_) {
    if (agent->created_at_ms() && agent->key().name.starts_with(prefix)) end_soon(*agent);
  }
}

void MockSubAgents::end_soon(StoredAgent& agent) {
  agent.forget_creation();
  world_.soon.emplace_back([&agent] { agent.destroy_for_good(); });
}

}  // namespace hearth::mock
