#include "runtime/agent_slots.hpp"

#include "runtime/condemned_agents.hpp"
#include "runtime/shard_services.hpp"

#include <string>
#include <utility>

namespace hearth::runtime {

AgentSlots::AgentSlots(unsigned shard, ShardServices& services, Admission& admission,
                       PacedSteps& steps)
    : shard_(shard),
      handles_(shard),
      parts_{services,
             admission,
             handles_,
             steps,
             stopping_,
             [this](const AgentSlot& slot) { look_at_unused(slot); },
             [this] { one_left(); },
             [this](const storage::AgentKey& key) { end_below(key); }} {}

AgentSlot& AgentSlots::at(const storage::AgentKey& key, std::string_view segment) {
  std::unique_ptr<AgentSlot>& slot = slots_[key];
  if (!slot) {
    slot = std::make_unique<AgentSlot>(parts_, key, std::string(segment));
    parts_.services.metrics.slots.set(std::ssize(slots_));
  }
  return *slot;
}

AgentSlot* AgentSlots::find(const storage::AgentKey& key) const {
  const auto found = slots_.find(key);
  return found == slots_.end() ? nullptr : found->second.get();
}

LiveAgent* AgentSlots::find(AgentHandle handle) {
  const AgentLife* const agent = handles_.find(handle);
  return agent == nullptr ? nullptr : agent->live();
}

bool AgentSlots::is_in_memory(const storage::AgentKey& key) const {
  const AgentSlot* const slot = find(key);
  return slot != nullptr && slot->life().in_memory();
}

void AgentSlots::look_at_unused(const AgentSlot& slot) {
  if (!slot.is_unused()) return;
  parts_.services.loop.post([alive = parts_.services.alive, this, key = slot.key()] {
    if (!*alive) return;
    const auto found = slots_.find(key);
    if (found == slots_.end() || !found->second->is_unused()) return;
    slots_.erase(found);
    parts_.services.metrics.slots.set(std::ssize(slots_));
  });
}

std::vector<AgentSlot*> AgentSlots::all(
    const std::function<bool(const AgentSlot& slot)>& fits) const {
  std::vector<AgentSlot*> found;
  for (const auto& [key, slot] : slots_) {
    if (!fits || fits(*slot)) found.push_back(slot.get());
  }
  return found;
}

std::vector<AgentSlot*> AgentSlots::residents() const {
  std::vector<AgentSlot*> slots;
  slots.reserve(parts_.admission.residents().size());
  for (Admission::Applicant* const agent : parts_.admission.residents().all())
    slots.push_back(static_cast<AgentSlot*>(agent));  // all residents are slots
  return slots;
}

// Later, because code of an agent may be on the stack.
void AgentSlots::end_condemned(const storage::AgentKey& key) {
  parts_.services.loop.post([alive = parts_.services.alive, this, key] {
    if (!*alive || !parts_.services.condemned.contains(key)) return;
    AgentSlot* const slot = find(key);
    if (slot != nullptr && slot->life().in_memory())
      return slot->exit().end(EvictReason::kDestroyed);
    if (slot != nullptr) slot->was_condemned();
    parts_.services.condemned.finish(key);
  });
}

void AgentSlots::end_below(const storage::AgentKey& above) {
  for (const storage::AgentKey& key : parts_.services.condemned.below(above)) end_condemned(key);
}

void AgentSlots::stop(SteadyTime deadline, std::function<void()> done) {
  stopping_ = true;
  stopped_ = std::move(done);
  for (AgentSlot* const slot : all()) slot->begin_shutdown();
  stop_timer_ = LoopTimer(parts_.services.loop, deadline, [this] {
    const std::vector<AgentSlot*> busy = residents();
    parts_.services.logger.write(LogLevel::kWarn, "shard.stop_deadline",
                                 {{"shard", shard_}, {"busy_agents", busy.size()}});
    for (AgentSlot* const slot : busy) slot->exit().end(EvictReason::kShutdown);
  });
  one_left();
}

void AgentSlots::one_left() {
  if (!stopped_ || !parts_.admission.residents().all().empty()) return;
  stop_timer_.cancel();
  parts_.admission.stop();
  const std::function<void()> done = std::exchange(stopped_, {});
  done();
}

}  // namespace hearth::runtime
