#include "runtime/agent_work.hpp"

#include "runtime/object_places.hpp"
#include "runtime/paced_steps.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace hearth::runtime {
namespace {

// Until an agent whose notifications may not leave now looks again.
constexpr std::chrono::milliseconds kCrowdedPause{200};

}  // namespace

void AgentWork::look() {
  Live* live = place_.life.as<Live>();
  if (live == nullptr || std::exchange(live->looks_soon, true)) return;
  // From the loop: the caller may be inside settle(), and each piece of work is a turn of its own.
  const StepKind kind = permits_.recovery ? StepKind::kRecovery
                        : permits_.waking ? StepKind::kWaking
                                          : StepKind::kWork;
  place_.shard.steps.add(kind, place_.task([this] { step_(); }));
}

void AgentWork::let_recover() {
  if (place_.life.state() != AgentState::kLive || permits_.recovery)
    return;  // it asks once it has started
  take(PermitKind::kRecovery);
  look();
}

AgentWork::Then AgentWork::begin_due() {
  Live* live = place_.life.as<Live>();
  if (live == nullptr) return Then::kNothing;
  live->looks_soon = false;
  if (place_.shard.stopping) return Then::kNothing;  // AgentExit does the rest
  LiveAgent& agent = *live->live;
  if (agent.store().loan().is_out()) return Then::kNothing;  // take_back() looks again
  // A claim is a write, and one that fails breaks the agent, which may still be read.
  const bool has_room = agent.store().work().empty() || place_.services.data.has_room();
  if (has_room && agent.store().work_waits_for_room()) return Then::kLeaveIfIdle;
  const bool may_begin =
      has_room && !agent.store().outbox().is_crowded();  // after_turn() comes when some has left
  if (may_begin && agent.store().work().recovery().due())
    place_.services.alarms.ask_to_recover(place_.key, permits_);
  const bool may_notify = !place_.services.object_places.is_crowded();
  const bool has_begun = may_begin && agent.dispatch(permits_.recovery, may_notify);
  count_trial();
  if (place_.life.state() != AgentState::kLive) return Then::kNothing;
  if (permits_.waking || (permits_.recovery && !agent.store().work().recovery().in_progress() &&
                          !agent.store().work().recovery().due()))
    give_back();
  if (has_begun) {
    look();
  } else if (agent.store().broken()) {
    return Then::kSettle;
  } else if (!has_room) {
    constexpr std::int64_t kLookForRoomMs = 1'000;
    place_.services.alarms.look_at(
        place_.key, unix_millis(place_.services.loop.clock().wall_now()) + kLookForRoomMs);
  } else if (const auto at = agent.store().work().next_look_ms()) {
    // Later work must not be forgotten while the agent stays in memory.
    const std::int64_t soon =
        unix_millis(place_.services.loop.clock().wall_now()) + kCrowdedPause.count();
    const bool waits_to_notify = !may_notify && agent.store().work().due();
    place_.services.alarms.look_at(place_.key, waits_to_notify ? std::min(*at, soon) : *at);
  }
  return Then::kNothing;
}

void AgentWork::count_trial() {
  Live* live = place_.life.as<Live>();
  if (live == nullptr) return;
  if (live->live->store().work().reports().take_unreadable()) {
    live->is_tried = true;
    live->served->starts->count_unreadable(place_.key.name);
  } else if (!live->is_tried && !live->live->store().work().recovery().in_progress() &&
             !live->live->store().work().recovery().due()) {
    live->is_tried = true;
    live->served->starts->count_start();
  }
}

void AgentWork::give_back() {
  const Live* live = place_.life.as<Live>();
  const bool recovers = live != nullptr && (live->live->store().work().recovery().in_progress() ||
                                            live->live->store().work().recovery().due());
  place_.services.alarms.give_back(permits_, recovers);
  place_.shard.admission.may_be_idle(place_.applicant);
}

}  // namespace hearth::runtime
