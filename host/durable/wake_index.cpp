#include "durable/wake_index.hpp"

#include <algorithm>
#include <vector>

namespace hearth::durable {

void WakeIndex::load(std::int64_t now_ms, const std::function<bool(const storage::AgentKey&)>& mine,
                     Random& random) {
  if (directory_.seen_ms() > now_ms) directory_.hurry_wakes(now_ms);
  std::vector<storage::WakeEntry> entries = directory_.wakes();
  std::erase_if(entries, [&mine](const storage::WakeEntry& each) { return !mine(each.key); });
  const auto wake_of = [](const storage::WakeEntry& entry) {
    return Wake{entry.working, entry.at_ms, entry.unknown_operations, entry.needs_person};
  };
  const auto is_due = [](const Wake& wake) { return wake.working || wake.may_wait_for_code(); };
  const auto due = static_cast<std::uint32_t>(std::ranges::count_if(entries, is_due, wake_of));
  const std::uint32_t spread_ms = due > kSpreadFrom ? due / 2 : 0;
  for (const storage::WakeEntry& entry : entries) {
    const Wake wake = wake_of(entry);
    wakes_[entry.key] = Known{wake, entry.at_ms};
    count(wake, 1);
    schedule(entry.key, is_due(wake) ? now_ms + random_up_to(spread_ms, random) : entry.at_ms);
  }
}

Wake WakeIndex::find(const storage::AgentKey& key) const {
  const auto found = wakes_.find(key);
  return found == wakes_.end() ? Wake{} : found->second.wake;
}

void WakeIndex::set(const storage::AgentKey& key, const Wake& wake) {
  const Wake before = find(key);
  if (wake.is_empty()) {
    directory_.clear_wake(key);
    wakes_.erase(key);
  } else {
    Known& known = wakes_[key];
    const bool nearer = wake.at_ms && (!known.at_on_disk || *wake.at_ms < *known.at_on_disk);
    if (!wake.working || !before.working || nearer ||
        wake.unknown_operations != before.unknown_operations ||
        wake.needs_person != before.needs_person) {
      directory_.set_wake({.key = key,
                           .at_ms = wake.at_ms,
                           .working = wake.working,
                           .unknown_operations = wake.unknown_operations,
                           .needs_person = wake.needs_person});
      known.at_on_disk = wake.at_ms;
    }
    known.wake = wake;
  }
  count(before, -1);
  count(wake, 1);
  schedule(key, wake.at_ms);
}

void WakeIndex::forget(const storage::AgentKey& key) {
  count(find(key), -1);
  wakes_.erase(key);
  schedule(key, std::nullopt);
}

void WakeIndex::look_again(const storage::AgentKey& key, std::int64_t at_ms) {
  schedule(key, at_ms);
}

void WakeIndex::taken(const storage::AgentKey& key) {
  last_class_ = key.agent_class;
  schedule(key, std::nullopt);
}

void WakeIndex::schedule(const storage::AgentKey& key, std::optional<std::int64_t> at_ms) {
  if (const auto found = moments_.find(key); found != moments_.end()) {
    const auto of_class = in_order_.find(key.agent_class);
    of_class->second.erase({found->second, key.name});
    if (of_class->second.empty()) in_order_.erase(of_class);
    moments_.erase(found);
  }
  if (!at_ms) return;
  moments_.emplace(key, *at_ms);
  in_order_[key.agent_class].emplace(*at_ms, key.name);
}

void WakeIndex::count(const Wake& wake, int sign) {
  if (!wake.none()) must_wake_ += static_cast<std::size_t>(sign);
  unknown_operations_ += sign * wake.unknown_operations.value_or(0);
}

void WakeIndex::hurry(const std::string& agent_class, std::int64_t now_ms) {
  const auto of_class = in_order_.find(agent_class);
  if (of_class == in_order_.end()) return;
  std::vector<storage::AgentKey> put_off;
  for (const auto& [at_ms, name] : of_class->second) {
    const Wake wake = find({agent_class, name});
    const bool is_due =
        wake.working || wake.may_wait_for_code() || (wake.at_ms && *wake.at_ms <= now_ms);
    if (is_due && at_ms > now_ms) put_off.push_back({agent_class, name});
  }
  for (const storage::AgentKey& key : put_off) schedule(key, now_ms);
}

void WakeIndex::clock_was_set_back(std::int64_t now_ms) {
  std::vector<storage::AgentKey> later;
  for (const auto& [key, at_ms] : moments_)
    if (at_ms > now_ms && !is_next_version(at_ms)) later.push_back(key);
  for (const storage::AgentKey& key : later) schedule(key, now_ms);
  directory_.hurry_wakes(now_ms);
}

std::optional<storage::AgentKey> WakeIndex::due(std::int64_t now_ms) const {
  if (in_order_.empty()) return std::nullopt;
  auto of_class = in_order_.upper_bound(last_class_);
  for (std::size_t looked_at = 0; looked_at < in_order_.size(); ++looked_at, ++of_class) {
    if (of_class == in_order_.end()) of_class = in_order_.begin();
    const auto& [at_ms, name] = *of_class->second.begin();
    if (at_ms <= now_ms) return storage::AgentKey{of_class->first, name};
  }
  return std::nullopt;
}

std::optional<std::int64_t> WakeIndex::next_ms() const {
  std::optional<std::int64_t> next;
  for (const auto& [agent_class, agents] : in_order_) next = earliest(next, agents.begin()->first);
  return next;
}

}  // namespace hearth::durable
