// What the alarm clock asks of a shard's agents.
#include "runtime/shard.hpp"

namespace hearth::runtime {
namespace {

// The class of an agent that should be awake is not loaded: it may come later.
constexpr std::chrono::milliseconds kUnknownClassRetry{60'000};

}  // namespace

void Shard::start_alarms() {
  if (!condemned_.empty()) destructions_.finish_later();
  alarms_.start();
}

bool Shard::is_cold(const storage::AgentKey& key) const {
  const AgentSlot* slot = find_slot(key);
  return slot == nullptr || !slot->in_memory();
}

AlarmClock::Agents Shard::alarmed_agents() {
  return {.is_cold = [this](const storage::AgentKey& key) { return is_cold(key); },
          .look = [this](const storage::AgentKey& key) { slots_.at(key)->come_for_work(); },
          .let_recover = [this](const storage::AgentKey& key) { slots_.at(key)->let_recover(); },
          .wake = [this](const storage::AgentKey& key, PermitKind kind) { wake(key, kind); }};
}

void Shard::wake(const storage::AgentKey& key, PermitKind kind) {
  const auto served = environment_.classes.find_by_name(key.agent_class);
  if (!served || !served->refusal.empty()) {
    alarms_.look_again(key, kUnknownClassRetry);
    durable_events_.report(extensions::DurableEvent::kAlarmClassMissing,
                           {.agent_class = key.agent_class, .agent = key.name}, "", "");
    return;
  }
  slot_for(key, served->segment).wake_for_work(kind);
}

}  // namespace hearth::runtime
