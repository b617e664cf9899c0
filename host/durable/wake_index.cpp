#include "durable/wake_index.hpp"

namespace hearth::durable {

void WakeIndex::load(std::int64_t now_ms,
                     const std::function<bool(const storage::AgentKey&)>& mine) {
  for (const storage::WakeEntry& entry : directory_.wakes()) {
    if (!mine(entry.key)) continue;
    wakes_[entry.key] = Wake{entry.working, entry.at_ms};
    schedule(entry.key, entry.working ? now_ms : entry.at_ms);
  }
}

Wake WakeIndex::find(const storage::AgentKey& key) const {
  const auto found = wakes_.find(key);
  return found == wakes_.end() ? Wake{} : found->second;
}

void WakeIndex::set(const storage::AgentKey& key, const Wake& wake) {
  if (wake.none()) {
    directory_.clear_wake(key);
    wakes_.erase(key);
  } else {
    directory_.set_wake(key, wake.at_ms, wake.working);
    wakes_[key] = wake;
  }
  schedule(key, wake.at_ms);
}

void WakeIndex::look_again(const storage::AgentKey& key, std::int64_t at_ms) {
  schedule(key, at_ms);
}

void WakeIndex::taken(const storage::AgentKey& key) {
  schedule(key, std::nullopt);
}

void WakeIndex::schedule(const storage::AgentKey& key, std::optional<std::int64_t> at_ms) {
  if (const auto found = moments_.find(key); found != moments_.end()) {
    in_order_.erase({found->second, key});
    moments_.erase(found);
  }
  if (!at_ms) return;
  moments_.emplace(key, *at_ms);
  in_order_.emplace(*at_ms, key);
}

std::optional<storage::AgentKey> WakeIndex::due(std::int64_t now_ms) const {
  if (in_order_.empty() || in_order_.begin()->first > now_ms) return std::nullopt;
  return in_order_.begin()->second;
}

std::optional<std::int64_t> WakeIndex::next_ms() const {
  if (in_order_.empty()) return std::nullopt;
  return in_order_.begin()->first;
}

}  // namespace hearth::durable
