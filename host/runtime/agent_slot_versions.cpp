// An agent whose code is replaced or taken away while its clients stay.
#include "runtime/agent_slot.hpp"
#include "runtime/shard.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {

void AgentSlot::must_leave(EvictReason reason, bool when_idle) {
  leave_for_ = reason;
  leave_when_idle_ = when_idle;
  if (when_idle && state_ == AgentState::kLive && !settling_ && queue_.empty() && live_->idle())
    leave_now(false);
}

void AgentSlot::leave_now(bool wake_again) {
  if (!leave_for_ || state_ != AgentState::kLive) return;  // started() looks again
  wake_again_ = wake_again;
  leave_when_idle_ = false;
  evict(*leave_for_);
}

void AgentSlot::leave_here() {
  if (state_ != AgentState::kLive) return;  // started() looks again
  ends_here_ = true;
  leave_now(false);
  ends_here_ = false;
  if (end_posted_) finish_eviction();
}

// While its class is awaited, what the clients of the agent have sent waits with them, and that they have left. Nobody else does.
void AgentSlot::refuse_strangers() {
  const auto is_known = [this](const PendingEvent& event) {
    const Connection* client = shard_.find_connection(event.connection);
    return client != nullptr && (client->state == ConnectionState::kClosed ||
                                 (client->state != ConnectionState::kWaiting && !client->closing));
  };
  std::list<PendingEvent> known;
  for (auto at = queue_.begin(); at != queue_.end();) {
    const auto next = std::next(at);
    if (is_known(*at)) known.splice(known.end(), queue_, at);
    at = next;
  }
  refuse_waiting(Error{Errc::kUnavailable, "the class is not loaded"}, kCloseTryAgainLater);
  queue_ = std::move(known);
}

void AgentSlot::class_is_back() {
  if (state_ == AgentState::kCold && !queue_.empty()) wake();
}

void AgentSlot::class_is_gone() {
  if (state_ != AgentState::kCold) return;
  refuse_waiting(Error{Errc::kUnavailable, "the class is not loaded"}, kCloseServiceRestart);
  for (const ConnectionId id : connections_) {
    Connection* client = shard_.find_connection(id);
    if (client->state == ConnectionState::kClosed || std::exchange(client->closing, true)) continue;
    client->port->close(kCloseServiceRestart, "the class is not loaded");
  }
}

}  // namespace hearth::runtime
