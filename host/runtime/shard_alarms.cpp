// What the alarm clock asks of a shard's agents, and the work of those that are awake.
#include "runtime/shard.hpp"

#include <utility>

namespace hearth::runtime {
namespace {

// The class of an agent that should be awake is not loaded: it may come later.
constexpr std::chrono::milliseconds kUnknownClassRetry{60'000};

}  // namespace

void Shard::start_alarms() {
  if (!condemned_.empty()) finish_destructions_later();
  alarms_.start();
}

// ---- AlarmedAgents ------------------------------------------------------------------------------

bool Shard::is_cold(const storage::AgentKey& key) const {
  const auto found = slots_.find(key);
  return found == slots_.end() || found->second->state() == AgentState::kCold;
}

void Shard::look(const storage::AgentKey& key) {
  AgentSlot& slot = *slots_.at(key);
  slot.look();
  if (slot.end_waits_) slot.end_in_turn(steps_);  // so that it can come back for it
}

void Shard::let_recover(const storage::AgentKey& key) {
  AgentSlot& slot = *slots_.at(key);
  if (slot.state() != AgentState::kLive || slot.permits_.recovery)
    return;  // it asks once it has started
  alarms_.take(slot.permits_, &HeldPermits::recovery);
  slot.look();
}

void Shard::wake(const storage::AgentKey& key, bool HeldPermits::* kind) {
  const auto served = environment_.classes.find_by_name(key.agent_class);
  if (!served || !served->refusal.empty()) {
    alarms_.look_again(key, kUnknownClassRetry);
    durable_events_.report(extensions::DurableEvent::kAlarmClassMissing, key.agent_class, key.name,
                           "", "");
    return;
  }
  AgentSlot& slot = slot_for(key, served->segment);
  if (slot.room.waiting) return;  // it looks at what is due once it is awake
  alarms_.take(slot.permits_, kind);
  metrics_.woken_by_alarm.add();
  durable_events_.report(extensions::DurableEvent::kAlarmWoken, key.agent_class, key.name, "", "");
  slot.wake();
  if (slot.state() == AgentState::kCold && !slot.room.waiting)
    give_back_permits(slot);  // it was refused
}

// ---- live agents --------------------------------------------------------------------------------

void Shard::pump(const storage::AgentKey& key) {
  const auto found = slots_.find(key);
  if (found == slots_.end()) return;
  AgentSlot& slot = *found->second;
  slot.pump_posted_ = false;
  if (slot.state() != AgentState::kLive || stopping_) return;  // finish_eviction() sees to the rest
  LiveAgent& live = *slot.live_;
  if (live.lent()) return;                 // take_back() looks again
  const bool crowded = live.is_crowded();  // after_turn() comes when some of it has left
  if (!crowded && live.recovery_due()) alarms_.ask_to_recover(key, slot.permits_);
  const bool has_begun = !crowded && live.dispatch(slot.permits_.recovery);
  if (slot.state() != AgentState::kLive) return;
  if (slot.permits_.waking ||
      (slot.permits_.recovery && !live.recovering() && !live.recovery_due()))
    give_back_permits(slot);
  if (has_begun) {
    slot.look();
  } else if (live.broken()) {
    slot.after_turn();
  } else if (const auto at = live.next_look_ms()) {
    // What is due later must not be forgotten while the agent stays up.
    alarms_.look_at(key, *at);
  }
}

void Shard::give_back_permits(AgentSlot& slot) {
  const bool recovers =
      slot.state() == AgentState::kLive && (slot.live_->recovering() || slot.live_->recovery_due());
  alarms_.give_back(slot.permits_, recovers);
  admission_.may_be_idle(slot);
}

}  // namespace hearth::runtime
