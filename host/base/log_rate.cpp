#include "base/log_rate.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hearth {

std::optional<std::uint64_t> LogRate::admit(std::string_view kind, LogLimit limit, SteadyTime now) {
  const MutexLock lock(mutex_);
  auto at = kinds_.find(kind);
  if (at == kinds_.end()) {
    if (kinds_.size() >= kMaxKinds) kind = {};
    at = kinds_.try_emplace(std::string(kind), Kind{limit.burst, now, 0}).first;
  }
  Kind& its = at->second;
  const std::chrono::duration<double> passed = now - its.since;
  its.left = std::min(limit.burst, its.left + passed.count() * limit.per_second);
  its.since = now;
  if (its.left < 1) {
    ++its.suppressed;
    return std::nullopt;
  }
  its.left -= 1;
  return std::exchange(its.suppressed, 0);
}

}  // namespace hearth
