#include "runtime/permits.hpp"

#include "base/assert.hpp"

#include <utility>

namespace hearth::runtime {

bool Permits::take() {
  if (out_ >= limit_) return false;
  ++out_;
  return true;
}

void Permits::give_back() {
  HEARTH_ASSERT(out_ > 0, "a permit came back that was never given");
  --out_;
}

void Permits::wait(const storage::AgentKey& key) {
  if (in_line_.insert(key).second) lines_[key.agent_class].push_back(key);
}

std::optional<storage::AgentKey> Permits::next() {
  if (lines_.empty() || out_ >= limit_) return std::nullopt;
  auto line = lines_.upper_bound(last_class_);
  if (line == lines_.end()) line = lines_.begin();
  last_class_ = line->first;
  storage::AgentKey key = std::move(line->second.front());
  line->second.pop_front();
  if (line->second.empty()) lines_.erase(line);
  in_line_.erase(key);
  return key;
}

}  // namespace hearth::runtime
