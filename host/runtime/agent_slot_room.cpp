// An agent and its place among the agents in memory: admission.hpp.
#include "base/close_codes.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/shard_services.hpp"

namespace hearth::runtime {
namespace {

constexpr std::chrono::milliseconds kNextTry{1'000};

}  // namespace

bool AgentSlot::lacks_room() {
  const Admission::Verdict verdict = parts_.admission.ask(*this);
  if (verdict.answer == Admission::Answer::kComeIn) return false;
  if (verdict.answer == Admission::Answer::kRefused) {
    refuse_for_room(verdict.lack);
  } else if (state() != AgentState::kAwaitingRoom) {
    life_.enter(AwaitingRoom{inbox_.empty(), now()});
  }
  return true;
}

void AgentSlot::rejoin_room_line() {
  if (parts_.admission.ask_again(*this)) {
    life_.enter(AwaitingRoom{inbox_.empty(), now()});
    return;
  }
  refuse_for_room(RoomLack::kFiles);
  give_back_permits();
}

void AgentSlot::leave_room_line() {
  if (state() == AgentState::kAwaitingRoom) life_.enter(Cold{});
  if (!parts_.admission.drop_out(*this)) return;
  parts_.services.alarms.look_again(key_, kNextTry);
  give_back_permits();
}

Admission::Need AgentSlot::need() const {
  const auto served = parts_.services.classes.find(segment_);
  const AwaitingRoom* const waits = life_.as<AwaitingRoom>();
  // The sender of a notification repeats it, and does not wait.
  const auto awaits_it = [](const OwnedEvent& event) {
    return event.origin == nullptr || event.origin->notification.empty();
  };
  return {.is_object = served != nullptr && served->settings.is_object,
          .is_awaited = inbox_.queue().contains(awaits_it),
          .is_wanted = !inbox_.empty() || (waits != nullptr && waits->for_itself)};
}

bool AgentSlot::may_leave_for_room() const {
  // An agent that was just woken for its work is about to do it.
  const Live* live = life_.as<Live>();
  if (live != nullptr) return inbox_.empty() && live->live->idle() && !permits_.waking;
  const Ending* const ending = life_.as<Ending>();
  return ending != nullptr && ending->pace == Ending::Pace::kWaitsForTurn;
}

void AgentSlot::leave_for_room() {
  evict(EvictReason::kLimit, std::chrono::milliseconds(0));
  hurry_end();
}

void AgentSlot::take_turn(const Admission::Verdict& verdict) {
  if (verdict.answer == Admission::Answer::kComeIn) {
    wake();
    if (!in_memory()) give_back_permits();  // it was refused
  } else if (verdict.lack != RoomLack::kNothing) {
    refuse_for_room(verdict.lack);
  } else {
    leave_room_line();  // no event or visit waits for the agent any more
    parts_.look_at_unused(*this);
  }
}

void AgentSlot::refuse_for_room(RoomLack lack) {
  const ShardServices& services = parts_.services;
  const bool has_files = lack != RoomLack::kFiles;
  const char* const why = lack == RoomLack::kAgents ? "too many agents are busy; try again later"
                          : lack == RoomLack::kObjects
                              ? "too many objects are active; try again later"
                              : "too many files are open; try again later";
  if (permits_.any()) {  // other agents whose time has come would find no room either
    services.alarms.no_room_until(services.loop.clock().steady_now() + kNextTry);
    services.durable_events.report(extensions::DurableEvent::kAlarmNoRoom,
                                   {.agent_class = key_.agent_class, .agent = key_.name}, "",
                                   has_files ? "" : "too many files are open");
  }
  if (!has_files) {
    services.logger.write_limited(LogLevel::kWarn, "agent.no_descriptors", {key_.agent_class},
                                  {{"class", key_.agent_class},
                                   {"agent", key_.name},
                                   {"advice", "raise the limit of open files (LimitNOFILE)"}});
  }
  services.alarms.look_again(key_, kNextTry);
  refuse_waiting(Error{Errc::kUnavailable, why}, kCloseTryAgainLater);
}

}  // namespace hearth::runtime
