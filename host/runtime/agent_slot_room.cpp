// An agent and its place among the agents in memory: admission.hpp.
#include "base/assert.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/shard.hpp"

namespace hearth::runtime {
namespace {

constexpr std::chrono::milliseconds kNextTry{1'000};

}  // namespace

// True: not now. It waits in the line, or what waits for it has been told.
bool AgentSlot::lacks_room() {
  const bool waited = room.waiting.has_value();
  const Admission::Verdict verdict = shard_.admission_.ask(*this);
  if (!waited) wakes_for_itself_ = queue_.empty();
  if (verdict.answer == Admission::Answer::kComeIn) return false;
  served_.reset();  // a cold agent keeps no code
  if (verdict.answer == Admission::Answer::kRefused) refuse_for_room(verdict.lack);
  return true;
}

void AgentSlot::rejoin_room_line() {
  wakes_for_itself_ = queue_.empty();
  if (shard_.admission_.ask_again(*this)) return;
  refuse_for_room(RoomLack::kFiles);
  shard_.give_back_permits(*this);
}

void AgentSlot::leave_room_line() {
  if (!shard_.admission_.drop_out(*this)) return;
  shard_.alarms_.look_again(key_, kNextTry);
  shard_.give_back_permits(*this);
}

bool AgentSlot::may_leave_for_room() const {
  // One that was just woken for its work is about to do it.
  return state_ == AgentState::kLive && queue_.empty() && live_->idle() && !permits_.waking;
}

void AgentSlot::leave_for_room() {
  evict(EvictReason::kLimit, true);
}

bool AgentSlot::is_wanted() const {
  return !queue_.empty() || wakes_for_itself_;
}

void AgentSlot::come_in() {
  HEARTH_ASSERT(state_ == AgentState::kCold, "a turn of one that is in memory");
  wake();
  if (state_ == AgentState::kCold) shard_.give_back_permits(*this);  // it was refused
}

void AgentSlot::turn_away(RoomLack lack) {
  if (lack != RoomLack::kNothing) return refuse_for_room(lack);
  leave_room_line();  // whatever wanted it has gone
  shard_.remove_if_unused(*this);
}

void AgentSlot::refuse_for_room(RoomLack lack) {
  const bool has_files = lack == RoomLack::kAgents;
  if (permits_.any()) {  // others that wait for their time would find no more
    shard_.alarms_.no_room_until(shard_.loop().clock().steady_now() + kNextTry);
    shard_.durable_events_.report(extensions::DurableEvent::kAlarmNoRoom, key_.agent_class,
                                  key_.name, "", has_files ? "" : "too many files are open");
  }
  if (!has_files) {
    shard_.logger().write_limited(LogLevel::kWarn, "agent.no_descriptors", {key_.agent_class},
                                  {{"class", key_.agent_class},
                                   {"agent", key_.name},
                                   {"advice", "raise the limit of open files (LimitNOFILE)"}});
  }
  shard_.alarms_.look_again(key_, kNextTry);
  refuse_waiting(Error{Errc::kUnavailable, has_files ? "too many agents are busy; try again later"
                                                     : "too many files are open; try again later"},
                 kCloseTryAgainLater);
}

}  // namespace hearth::runtime
