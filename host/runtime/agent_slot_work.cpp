// When an agent does its durable work, and which permits it holds for it: permits.hpp.
#include "runtime/agent_slot.hpp"
#include "runtime/paced_steps.hpp"
#include "runtime/shard_services.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace hearth::runtime {
namespace {

// Until an agent whose notifications may not leave now looks again.
constexpr std::chrono::milliseconds kCrowdedPause{200};

}  // namespace

void AgentSlot::look() {
  Live* live = life_.as<Live>();
  if (live == nullptr || std::exchange(live->looks_soon, true)) return;
  // From the loop: the caller may be inside settle(), and each piece of work is a turn of its own.
  const StepKind kind = permits_.recovery ? StepKind::kRecovery
                        : permits_.waking ? StepKind::kWaking
                                          : StepKind::kWork;
  parts_.steps.add(kind, task([](AgentSlot& slot) { slot.pump(); }));
}

void AgentSlot::come_for_work() {
  look();
  Ending* const ending = life_.as<Ending>();
  if (ending != nullptr && ending->was_only_opened()) ending->has_come_for_work = true;
  if (ending != nullptr && ending->pace == Ending::Pace::kWaitsForTurn)
    end_in_turn(StepKind::kWaking);
}

void AgentSlot::let_recover() {
  if (state() != AgentState::kLive || permits_.recovery) return;  // it asks once it has started
  parts_.services.alarms.take(permits_, PermitKind::kRecovery);
  look();
}

void AgentSlot::wake_for_work(PermitKind kind) {
  if (state() == AgentState::kAwaitingRoom) return;  // it looks for due work once it is awake
  if (state() == AgentState::kCondemned) return;     // its work is removed with its files
  const ShardServices& services = parts_.services;
  services.alarms.take(permits_, kind);
  services.metrics.woken_by_alarm.add();
  services.durable_events.report(extensions::DurableEvent::kAlarmWoken,
                                 {.agent_class = key_.agent_class, .agent = key_.name}, "", "");
  wake();
  if (!in_memory() && state() != AgentState::kAwaitingRoom) give_back_permits();  // it was refused
}

void AgentSlot::pump() {
  Live* live = life_.as<Live>();
  if (live == nullptr) return;
  live->looks_soon = false;
  if (parts_.stopping) return;  // finish_end() does the rest
  LiveAgent& agent = *live->live;
  if (agent.lent()) return;  // take_back() looks again
  // A claim is a write, and one that fails breaks the agent, which may still be read.
  const bool has_room = agent.work().empty() || parts_.services.data.has_room();
  if (has_room && agent.work_waits_for_room()) return must_leave(EvictReason::kAdmin, true);
  const bool may_begin = has_room && !agent.is_crowded();  // after_turn() comes when some has left
  if (may_begin && agent.work().recovery().due())
    parts_.services.alarms.ask_to_recover(key_, permits_);
  const bool may_notify = !parts_.admission.is_crowded();
  const bool has_begun = may_begin && agent.dispatch(permits_.recovery, may_notify);
  count_trial();
  if (state() != AgentState::kLive) return;
  if (permits_.waking || (permits_.recovery && !agent.work().recovery().in_progress() &&
                          !agent.work().recovery().due()))
    give_back_permits();
  if (has_begun) {
    look();
  } else if (agent.broken()) {
    after_turn();
  } else if (!has_room) {
    constexpr std::int64_t kLookForRoomMs = 1'000;
    parts_.services.alarms.look_at(
        key_, unix_millis(parts_.services.loop.clock().wall_now()) + kLookForRoomMs);
  } else if (const auto at = agent.work().next_look_ms()) {
    // Later work must not be forgotten while the agent stays in memory.
    const std::int64_t soon =
        unix_millis(parts_.services.loop.clock().wall_now()) + kCrowdedPause.count();
    const bool waits_to_notify = !may_notify && agent.work().due();
    parts_.services.alarms.look_at(key_, waits_to_notify ? std::min(*at, soon) : *at);
  }
}

void AgentSlot::give_back_permits() {
  const Live* live = life_.as<Live>();
  const bool recovers = live != nullptr && (live->live->work().recovery().in_progress() ||
                                            live->live->work().recovery().due());
  parts_.services.alarms.give_back(permits_, recovers);
  parts_.admission.may_be_idle(*this);
}

}  // namespace hearth::runtime
