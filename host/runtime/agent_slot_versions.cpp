// An agent whose code is replaced or taken away while its clients stay.
#include "runtime/agent_slot.hpp"
#include "runtime/shard.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {

void AgentSlot::must_leave(EvictReason reason, bool when_idle) {
  leave_trial();
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

void AgentSlot::leave_suddenly(EvictReason reason) {
  if (state_ == AgentState::kCold) return;
  hurry_end();
  schedule_end(state_ == AgentState::kEvicting ? reason_ : reason, std::nullopt);
}

// ---- a version on trial -------------------------------------------------------------------------

void AgentSlot::may_try(const std::shared_ptr<VersionTrial>& trial) {
  if (state_ != AgentState::kLive) return;
  leave_trial();
  const bool is_busy = settling_ || !queue_.empty() || !live_->idle();
  ++trial->candidates;
  trial_ = trial;
  if (!is_busy || !trial->only_idle) leave_while_idle();
}

// Or now, if nobody waits for that any more.
void AgentSlot::leave_while_idle() {
  if (!trial_) return leave_now(false);
  const bool has_place = trial_->take_place();  // before it is no candidate: it always counts
  leave_trial();
  if (!has_place) return;
  leave_for_ = EvictReason::kCodeUpdate;
  leave_now(true);
}

void AgentSlot::leave_trial() {
  if (trial_) std::exchange(trial_, nullptr)->lose_candidate();
}

void AgentSlot::start_failed(const std::shared_ptr<StartCounts>& version, Error failure) {
  // In this order: who takes a version back puts the other one first, then decides, then tells the
  // shards.
  const SteadyTime until = version->undecided_until;
  const bool is_undecided = shard_.loop().clock().steady_now() < until;
  const auto served = shard_.environment_.classes.find(segment_);
  if (shard_.stopping_ || (!is_undecided && served && served->starts == version)) {
    refuse_waiting(failure, kCloseInternalError);
  } else if (!is_undecided) {
    if (!queue_.empty()) wake();
  } else {
    failed_trial_ = FailedTrial{version, std::move(failure)};
    trial_timer_ = shard_.loop().call_at(until, [this] {
      trial_timer_ = 0;
      trial_is_over();
    });
  }
}

bool AgentSlot::awaits_decision(const ServedClass& version) const {
  return failed_trial_ && failed_trial_->version == version.starts &&
         shard_.loop().clock().steady_now() < version.starts->undecided_until.load();
}

void AgentSlot::forget_failed_trial() {
  failed_trial_.reset();
  shard_.loop().cancel_timer(std::exchange(trial_timer_, 0));
}

void AgentSlot::trial_is_over() {
  if (!failed_trial_ || state_ != AgentState::kCold) return;
  const auto served = shard_.environment_.classes.find(segment_);
  if (served && awaits_decision(*served)) return;  // this was the end of another one
  const FailedTrial failed = *failed_trial_;
  forget_failed_trial();
  if (served && served->starts == failed.version) {
    refuse_waiting(failed.failure, kCloseInternalError);
  } else if (!queue_.empty()) {
    wake();
  }
}

// ---- a class that is away -----------------------------------------------------------------------

// While its class is awaited, what the clients of the agent have sent waits with them, and that
// they have left. Nobody else does.
void AgentSlot::refuse_strangers() {
  const auto is_strange = [this](const OwnedEvent& event) {
    const Connection* client = shard_.find_connection(event.connection);
    return client == nullptr || (client->state != ConnectionState::kClosed &&
                                 (client->state == ConnectionState::kWaiting || client->closing));
  };
  refuse(queue_.take_if(is_strange), Error{Errc::kUnavailable, "the class is not loaded"},
         kCloseTryAgainLater);
}

void AgentSlot::class_is_back() {
  if (failed_trial_) {
    trial_is_over();
  } else if (state_ == AgentState::kCold && !queue_.empty()) {
    wake();
  }
}

void AgentSlot::class_is_gone() {
  if (state_ != AgentState::kCold) return;
  forget_failed_trial();
  refuse_waiting(Error{Errc::kUnavailable, "the class is not loaded"}, kCloseServiceRestart);
  for (const ConnectionId id : connections_) {
    Connection* client = shard_.find_connection(id);
    if (client->state == ConnectionState::kClosed) continue;
    client->end(kCloseServiceRestart, "the class is not loaded");
  }
}

}  // namespace hearth::runtime
