#include "runtime/serial_waits.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace hearth::runtime {

using storage::AgentKey;

bool SerialWaits::add(const std::vector<AgentKey>& waiting, const AgentKey& callee) {
  const MutexLock lock(mutex_);
  if (leads_to(callee, waiting)) return false;
  for (const AgentKey& each : waiting) waits_.emplace(each, callee);
  return true;
}

void SerialWaits::remove(const std::vector<AgentKey>& waiting, const AgentKey& callee) {
  const MutexLock lock(mutex_);
  for (const AgentKey& each : waiting) {
    const auto found = waits_.find({each, callee});
    HEARTH_ASSERT(found != waits_.end(), "a wait ends that was not added");
    waits_.erase(found);
  }
}

bool SerialWaits::leads_to(const AgentKey& from, const std::vector<AgentKey>& to) const {
  std::vector<AgentKey> next{from};
  std::set<AgentKey> seen{from};
  while (!next.empty()) {
    const AgentKey agent = std::move(next.back());
    next.pop_back();
    if (std::ranges::find(to, agent) != to.end()) return true;
    for (auto at = waits_.lower_bound({agent, {}}); at != waits_.end() && at->first == agent;
         ++at) {
      if (seen.insert(at->second).second) next.push_back(at->second);
    }
  }
  return false;
}

}  // namespace hearth::runtime
