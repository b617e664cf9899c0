// How an agent comes in when there is no room for it: too many are in memory, or the process has hardly a file descriptor left. Idle
// ones go, and it waits in the shard's line until they have. Whoever comes while others wait stands behind them.
#include "base/assert.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/shard.hpp"
#include "storage/descriptors.hpp"

#include <utility>

namespace hearth::runtime {
namespace {

// An agent has up to three (its file, the WAL, the WAL again for syncing). The others are for those who come in meanwhile, and
// so that clients find one for their socket: without clients nobody would ask for an agent.
constexpr unsigned kWanted = 8;

// Each of those that end gives back two or more.
constexpr std::size_t kEnoughEnd = kWanted / 2;

// Sockets and other shards give back descriptors too, and do not say so.
constexpr std::chrono::milliseconds kLookAgainAfter{10};
constexpr std::chrono::milliseconds kLongestWaitForRoom{5'000};
constexpr std::chrono::milliseconds kNextTry{1'000};

// An agent that becomes idle says so at the end of its turn; this is for what becomes idle without one.
constexpr std::chrono::milliseconds kNoneIdleFor{100};

}  // namespace

// ---- one agent --------------------------------------------------------------------------------------------

// True: not now. It waits in the line, or what waits for it has been told.
bool AgentSlot::lacks_room() {
  if (has_room_) return false;
  const bool is_first = !room_place_ && shard_.room_line_.empty();
  const RoomLack lack = is_first ? shard_.find_room() : RoomLack::kAgents;
  if (lack == RoomLack::kNothing) return false;
  served_.reset();  // a cold agent keeps no code
  if (is_first && shard_.leaving_ == 0) {
    refuse_for_room(lack);
  } else if (!room_place_) {
    join_room_line(false);
  }
  return true;
}

void AgentSlot::join_room_line(bool is_first) {
  if (!room_lacked_since_) room_lacked_since_ = shard_.loop().clock().steady_now();
  std::list<AgentSlot*>& line = shard_.room_line_;
  room_place_ = line.insert(is_first ? line.begin() : line.end(), this);
  room_for_events_ = !queue_.empty();
  if (is_first || shard_.room_timer_ == 0) shard_.serve_room_line_in(kLookAgainAfter);
}

void AgentSlot::rejoin_room_line() {
  const SteadyTime now = shard_.loop().clock().steady_now();
  if (!room_lacked_since_ || now - *room_lacked_since_ < kLongestWaitForRoom) {
    join_room_line(true);
    return;
  }
  refuse_for_room(RoomLack::kFiles);
  shard_.give_back_permits(*this);
}

void AgentSlot::leave_room_line() {
  room_lacked_since_.reset();
  if (!room_place_) return;
  shard_.room_line_.erase(*room_place_);
  room_place_.reset();
  shard_.look_again(*this, kNextTry);
  shard_.give_back_permits(*this);
}

bool AgentSlot::take_turn_for_room() {
  HEARTH_ASSERT(state_ == AgentState::kCold && room_place_, "a turn of one that does not wait");
  if (room_for_events_ && queue_.empty()) {  // whoever wanted it has gone
    leave_room_line();
    shard_.remove_if_unused(*this);
    return true;
  }
  const RoomLack lack = shard_.find_room();
  if (lack == RoomLack::kNothing) {
    if (room_place_) shard_.room_line_.erase(*room_place_);
    room_place_.reset();
    has_room_ = true;
    wake();
    has_room_ = false;
    if (state_ == AgentState::kCold) shard_.give_back_permits(*this);  // it was refused
    return true;
  }
  const SteadyTime now = shard_.loop().clock().steady_now();
  if (shard_.leaving_ > 0 && now - *room_lacked_since_ < kLongestWaitForRoom) return false;
  refuse_for_room(lack);
  return true;
}

void AgentSlot::refuse_for_room(RoomLack lack) {
  const bool has_files = lack == RoomLack::kAgents;
  if (has_permit_ || has_waking_permit_) {  // others that wait for their time would find no more
    shard_.room_again_ = shard_.loop().clock().steady_now() + kNextTry;
    shard_.durable_events_.report(DurableEvent::kAlarmNoRoom, key_.agent_class, key_.name,
                                  has_files ? "" : "too many files are open");
  }
  if (!has_files) {
    shard_.logger().write_limited(LogLevel::kWarn, "agent.no_descriptors", {key_.agent_class},
                                  {{"class", key_.agent_class},
                                   {"agent", key_.name},
                                   {"advice", "raise the limit of open files (LimitNOFILE)"}});
  }
  shard_.look_again(*this, kNextTry);
  refuse_waiting(Error{Errc::kUnavailable, has_files ? "too many agents are busy; try again later"
                                                     : "too many files are open; try again later"},
                 kCloseTryAgainLater);
}

// ---- the shard --------------------------------------------------------------------------------------------

RoomLack Shard::find_room() {
  if (!storage::can_open_files(kWanted)) {
    if (ending_ < kEnoughEnd) (void)evict_idle();
    return RoomLack::kFiles;
  }
  // Who is evicted leaves a moment later; the limit is exceeded by one until then.
  if (recent_.size() < max_live_ || evict_idle()) return RoomLack::kNothing;
  return RoomLack::kAgents;
}

bool Shard::evict_idle() {
  const SteadyTime now = loop_.clock().steady_now();
  if (now < none_idle_until_) return false;
  for (std::size_t left = recent_.size(); left > 0; --left) {
    AgentSlot* const slot = recent_.front();
    if (slot->can_be_evicted_for_room()) {
      slot->evict(EvictReason::kLimit, true);
      return true;
    }
    recent_.splice(recent_.end(), recent_, recent_.begin());  // it is in use
  }
  none_idle_until_ = now + kNoneIdleFor;
  return false;
}

void Shard::serve_room_line_in(std::chrono::milliseconds wait) {
  loop_.cancel_timer(room_timer_);
  room_timer_ = loop_.call_at(loop_.clock().steady_now() + wait, [this] {
    room_timer_ = 0;
    serve_room_line();
  });
}

void Shard::serve_room_line() {
  if (room_line_.empty()) return;
  const bool goes = room_line_.front()->take_turn_for_room();
  // The next one from the loop: what else is ready comes in between.
  if (!room_line_.empty())
    serve_room_line_in(goes ? std::chrono::milliseconds(0) : kLookAgainAfter);
}

}  // namespace hearth::runtime
