#include "runtime/shard_admin.hpp"

#include "runtime/condemned_agents.hpp"
#include "runtime/shard_services.hpp"

#include <algorithm>
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

ShardAdmin::Standing ShardAdmin::standing(const storage::AgentKey& key) const {
  Standing standing;
  standing.wake = services_.alarms.known(key);
  standing.condemned = services_.condemned.contains(key);
  const AgentSlot* slot = slots_.find(key);
  if (slot == nullptr) return standing;
  standing.connections = slot->inbox().clients().size();
  if (slot->life().is_only_open()) return standing;  // only administrators see it as not cold
  standing.state = slot->life().state();
  standing.in_memory = slot->life().in_memory();
  if (standing.in_memory) {
    standing.last_active_ms = unix_millis_of(slot->turns().last_activity(), services_.loop.clock());
  }
  standing.served = slot->life().version();
  if (standing.served != nullptr) {
    standing.version = standing.served->agent_class->version();
    standing.sha256 = standing.served->agent_class->sha256();
  }
  return standing;
}

std::vector<extensions::Wait> ShardAdmin::waits(const storage::AgentKey& key) {
  using extensions::WaitKind;
  std::vector<extensions::Wait> all;
  if (AgentSlot* const slot = slots_.find(key)) all = slot->list_waits();
  if (const auto permit = services_.alarms.awaited_permit(key)) {
    const bool is_waking = *permit == PermitKind::kWaking;
    all.push_back({.kind = WaitKind::kPermit,
                   .detail = is_waking ? "their time has come" : "their work is to be recovered",
                   .since_ms = services_.alarms.known(key).at_ms});
  }
  const bool is_told = std::ranges::any_of(
      all, [](const extensions::Wait& each) { return each.kind == WaitKind::kRemoval; });
  if (!is_told && services_.condemned.contains(key)) all.push_back({.kind = WaitKind::kRemoval});
  return all;
}

std::vector<storage::AgentKey> ShardAdmin::waiting(
    const std::function<bool(const extensions::Wait&)>& fits) {
  std::set<storage::AgentKey> found;
  for (AgentSlot* const slot : slots_.all()) {
    std::vector<extensions::Wait> all = waits(slot->key());
    LiveAgent* const live = slot->life().live();
    const auto since =
        live != nullptr ? live->store().work().fibers().runs().since_ms() : std::nullopt;
    if (since) all.push_back({.kind = extensions::WaitKind::kRunning, .since_ms = since});
    if (std::ranges::any_of(all, fits)) found.insert(slot->key());
  }
  services_.alarms.each_known([&](const storage::AgentKey& key, const durable::Wake& wake) {
    if (std::ranges::any_of(waits_of(wake), fits)) found.insert(key);
  });
  return {found.begin(), found.end()};
}

std::vector<std::string> ShardAdmin::names_in_memory(std::string_view agent_class,
                                                     std::string_view after,
                                                     std::size_t at_most) const {
  std::vector<std::string> names;
  for (const AgentSlot* const slot : slots_.all([&](const AgentSlot& each) {
         return each.key().agent_class == agent_class && each.key().name > after &&
                (each.life().in_memory() || !each.inbox().clients().empty());
       }))
    names.push_back(slot->key().name);
  const std::size_t count = std::min(at_most, names.size());
  std::ranges::partial_sort(names, names.begin() + static_cast<std::ptrdiff_t>(count));
  names.resize(count);
  return names;
}

std::map<std::string, std::size_t> ShardAdmin::live_by_class() const {
  std::map<std::string, std::size_t> counts;
  for (const AgentSlot* slot : slots_.residents()) ++counts[slot->key().agent_class];
  return counts;
}

AgentState ShardAdmin::evict(const storage::AgentKey& key) {
  AgentSlot* const slot = slots_.find(key);
  if (slot == nullptr) return AgentState::kCold;
  const AgentState was = slot->life().state();
  if (was == AgentState::kLive) slot->exit().evict(EvictReason::kAdmin);
  if (was == AgentState::kWaking) slot->exit().must_leave(EvictReason::kAdmin, false);
  return was;
}

void ShardAdmin::evict(const storage::AgentKey& key, EvictReason reason,
                       std::chrono::milliseconds grace) {
  AgentSlot* const slot = slots_.find(key);
  if (slot == nullptr) return;
  if (grace.count() > 0) {
    slot->exit().evict(reason, grace);
  } else {
    slot->exit().end(reason);
  }
}

void ShardAdmin::wake(const storage::AgentKey& key, std::string_view segment) {
  AgentSlot& slot = slots_.at(key, segment);
  slot.be_awake();
  slots_.look_at_unused(slot);
}

void ShardAdmin::visit(const storage::AgentKey& key, std::string_view segment, AgentVisit visit) {
  AgentSlot& slot = slots_.at(key, segment);
  slot.visit(std::move(visit));
  slots_.look_at_unused(slot);
}

Result<bool> ShardAdmin::create_object(const storage::AgentKey& key) {
  if (services_.condemned.contains(key))
    return Error{Errc::kUnavailable, "the agent is being destroyed"};
  try {
    // An agent of an object's class is an object, though host.db may have lost that.
    const bool is_new = !services_.files.lists(key);
    if (!services_.files.record_object(key, services_.random)) return false;
    services_.files.record(key);
    return is_new;
  } catch (const StorageError& failure) {  // agent boundary
    services_.logger.write_limited(LogLevel::kError, "directory.write_failed", {},
                                   {{"error", std::string_view(failure.what())}});
    return Error{Errc::kInternal, "the directory of agents failed"};
  }
}

Result<void> ShardAdmin::destroy(const storage::AgentKey& key) {
  if (services_.condemned.contains(key))
    return Error{Errc::kUnavailable, "the agent is being destroyed"};
  AgentSlot* const slot = slots_.find(key);
  try {
    if (slot != nullptr && slot->life().state() == AgentState::kLive) {
      if (const auto condemned = slot->life().live()->context().destroy(); !condemned)
        return condemned.error();
      slot->turns().after_turn();
      return {};
    }
    if (slot != nullptr && slot->life().is_only_open()) {  // its end does the rest
      services_.condemned.condemn(key);
      slots_.end_below(key);
      return {};
    }
    if (slot != nullptr && slot->life().in_memory())
      return Error{Errc::kUnavailable, "the agent is starting or leaving; try again"};
    services_.condemned.condemn(key);
  } catch (const StorageError& failure) {  // agent boundary
    services_.note_storage_failed(key, failure);
    if (dynamic_cast<const DiskFull*>(&failure) != nullptr) {
      return Error{
          Errc::kUnavailable,
          "the disk is full, and the directory of agents (host.db) needs some room to note "
          "that the agent is to be destroyed. Free some, and try again"};
    }
    return Error{Errc::kInternal, "the directory of agents failed"};
  }
  if (slot != nullptr) slot->was_condemned();
  services_.condemned.finish(key);
  slots_.end_below(key);
  return {};
}

}  // namespace hearth::runtime
