#include "runtime/call_waits.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace hearth::runtime {

using extensions::WaitingAgent;
using storage::AgentKey;

bool CallWaits::add(const std::vector<WaitingAgent>& waiting, const AgentKey& callee, bool whole) {
  const MutexLock lock(mutex_);
  for (const WaitingAgent& each : waiting) {
    if (closes_circle(each, {.alone = each.alone, .callee = callee, .whole = whole})) return false;
  }
  for (const WaitingAgent& each : waiting)
    waits_.emplace(each.agent, Wait{.alone = each.alone, .callee = callee, .whole = whole});
  return true;
}

void CallWaits::remove(const std::vector<WaitingAgent>& waiting, const AgentKey& callee,
                       bool whole) {
  const MutexLock lock(mutex_);
  for (const WaitingAgent& each : waiting) {
    const Wait over{.alone = each.alone, .callee = callee, .whole = whole};
    const auto [begin, end] = waits_.equal_range(each.agent);
    const auto found =
        std::find_if(begin, end, [&](const auto& wait) { return wait.second == over; });
    HEARTH_ASSERT(found != end, "a wait ends that was not added");
    waits_.erase(found);
  }
}

bool CallWaits::closes_circle(const WaitingAgent& waiting, const Wait& first) const {
  std::vector<const Wait*> next{&first};
  std::vector<const Wait*> seen;
  while (!next.empty()) {
    const Wait& wait = *next.back();
    next.pop_back();
    if (wait.callee == waiting.agent && wait.is_held_up_by(waiting.alone)) return true;
    const auto [begin, end] = waits_.equal_range(wait.callee);
    for (auto at = begin; at != end; ++at) {
      const Wait* const further = &at->second;
      if (!wait.is_held_up_by(further->alone) || std::ranges::find(seen, further) != seen.end())
        continue;
      seen.push_back(further);
      next.push_back(further);
    }
  }
  return false;
}

}  // namespace hearth::runtime
