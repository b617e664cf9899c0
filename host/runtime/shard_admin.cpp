// What an administrator asks of a shard.
#include "runtime/shard.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace hearth::runtime {

namespace {

// What the wake index alone says about an agent.
std::vector<extensions::Wait> waits_of(const durable::Wake& wake) {
  using extensions::WaitKind;
  std::vector<extensions::Wait> all;
  if (wake.unknown_operations.value_or(0) > 0) all.push_back({.kind = WaitKind::kUnknown});
  if (wake.needs_person) all.push_back({.kind = WaitKind::kDeadItem});
  if (wake.at_ms && durable::is_next_version(*wake.at_ms)) {
    all.push_back({.kind = WaitKind::kCode});
  } else if (wake.at_ms) {
    all.push_back({.kind = WaitKind::kAlarm, .until_ms = wake.at_ms});
  }
  return all;
}

}  // namespace

Shard::Standing Shard::standing(const storage::AgentKey& key) const {
  Standing standing;
  standing.wake = alarms_.known(key);
  standing.condemned = condemned_.contains(key);
  const AgentSlot* slot = find_slot(key);
  if (slot == nullptr) return standing;
  standing.connections = slot->connections().size();
  if (slot->is_only_open()) return standing;  // only administrators see it as not cold
  standing.state = slot->state();
  standing.in_memory = slot->in_memory();
  if (standing.in_memory) {
    standing.last_active_ms = unix_millis_of(slot->last_activity(), loop_.clock());
  }
  standing.served = slot->version();
  if (standing.served != nullptr) {
    standing.version = standing.served->agent_class->version();
    standing.sha256 = standing.served->agent_class->sha256();
  }
  return standing;
}

std::vector<extensions::Wait> Shard::waits(const storage::AgentKey& key) {
  using extensions::WaitKind;
  std::vector<extensions::Wait> all;
  if (AgentSlot* const slot = find_slot(key)) all = slot->list_waits();
  if (const auto permit = alarms_.awaited_permit(key)) {
    const bool is_waking = *permit == PermitKind::kWaking;
    all.push_back({.kind = WaitKind::kPermit,
                   .detail = is_waking ? "their time has come" : "their work is to be recovered",
                   .since_ms = alarms_.known(key).at_ms});
  }
  const bool is_told = std::ranges::any_of(
      all, [](const extensions::Wait& each) { return each.kind == WaitKind::kRemoval; });
  if (!is_told && condemned_.contains(key)) all.push_back({.kind = WaitKind::kRemoval});
  return all;
}

std::vector<storage::AgentKey> Shard::waiting(
    const std::function<bool(const extensions::Wait&)>& fits) {
  std::set<storage::AgentKey> found;
  for (const auto& [key, slot] : slots_) {
    std::vector<extensions::Wait> all = waits(key);
    const LiveAgent* const live = slot->live();
    const auto since = live != nullptr ? live->work().fibers().runs().since_ms() : std::nullopt;
    if (since) all.push_back({.kind = extensions::WaitKind::kRunning, .since_ms = since});
    if (std::ranges::any_of(all, fits)) found.insert(key);
  }
  alarms_.each_known([&](const storage::AgentKey& key, const durable::Wake& wake) {
    if (std::ranges::any_of(waits_of(wake), fits)) found.insert(key);
  });
  return {found.begin(), found.end()};
}

std::vector<std::string> Shard::names_in_memory(std::string_view agent_class,
                                                std::string_view after, std::size_t at_most) const {
  std::vector<std::string> names;
  for (const auto& [key, slot] : slots_) {
    if (key.agent_class != agent_class || key.name <= after) continue;
    if (!slot->in_memory() && slot->connections().empty()) continue;
    names.push_back(key.name);
  }
  const std::size_t count = std::min(at_most, names.size());
  std::ranges::partial_sort(names, names.begin() + static_cast<std::ptrdiff_t>(count));
  names.resize(count);
  return names;
}

std::map<std::string, std::size_t> Shard::live_by_class() const {
  std::map<std::string, std::size_t> counts;
  for (const AgentSlot* slot : residents()) ++counts[slot->key().agent_class];
  return counts;
}

AgentState Shard::evict(const storage::AgentKey& key) {
  AgentSlot* const slot = find_slot(key);
  if (slot == nullptr) return AgentState::kCold;
  const AgentState was = slot->state();
  if (was == AgentState::kLive) slot->evict(EvictReason::kAdmin);
  if (was == AgentState::kWaking) slot->must_leave(EvictReason::kAdmin, false);
  return was;
}

void Shard::evict(const storage::AgentKey& key, EvictReason reason,
                  std::chrono::milliseconds grace) {
  AgentSlot* const slot = find_slot(key);
  if (slot == nullptr) return;
  if (grace.count() > 0) {
    slot->evict(reason, grace);
  } else {
    slot->end(reason);
  }
}

void Shard::wake(const storage::AgentKey& key, std::string_view segment) {
  AgentSlot& slot = slot_for(key, segment);
  slot.be_awake();
  look_at_unused(slot);
}

void Shard::visit(const storage::AgentKey& key, std::string_view segment, AgentVisit visit) {
  AgentSlot& slot = slot_for(key, segment);
  slot.visit(std::move(visit));
  look_at_unused(slot);
}

Result<bool> Shard::create_object(const storage::AgentKey& key) {
  if (condemned_.contains(key)) return Error{Errc::kUnavailable, "the agent is being destroyed"};
  try {
    if (!files_.record_object(key, services_.random)) return false;
    files_.record(key);
    return true;
  } catch (const StorageError& failure) {  // agent boundary
    services_.logger.write_limited(LogLevel::kError, "directory.write_failed", {},
                                   {{"error", std::string_view(failure.what())}});
    return Error{Errc::kInternal, "the directory of agents failed"};
  }
}

Result<void> Shard::destroy(const storage::AgentKey& key) {
  if (condemned_.contains(key)) return Error{Errc::kUnavailable, "the agent is being destroyed"};
  AgentSlot* const slot = find_slot(key);
  try {
    if (slot != nullptr && slot->state() == AgentState::kLive) {
      if (const auto condemned = slot->live()->destroy(); !condemned) return condemned.error();
      slot->after_turn();
      return {};
    }
    if (slot != nullptr && slot->is_only_open()) {  // its end does the rest
      condemned_.condemn(key);
      end_below(key);
      return {};
    }
    if (slot != nullptr && slot->in_memory())
      return Error{Errc::kUnavailable, "the agent is starting or leaving; try again"};
    condemned_.condemn(key);
  } catch (const StorageError& failure) {  // agent boundary
    services_.note_storage_failed(key, failure);
    return Error{Errc::kInternal, "the directory of agents failed"};
  }
  if (slot != nullptr) slot->was_condemned();
  condemned_.finish(key);
  end_below(key);
  return {};
}

}  // namespace hearth::runtime
