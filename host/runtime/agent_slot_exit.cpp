// The way out of an agent: its eviction, whatever the reason, and what is left when it has been
// destroyed.
#include "runtime/agent_slot.hpp"
#include "runtime/shard.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {

Error AgentSlot::why_it_ended(EvictReason reason) {
  if (reason == EvictReason::kDestroyed) return Error{Errc::kNotFound, "the agent was destroyed"};
  return Error{Errc::kClosing,
               "the agent was evicted (" + std::string(to_string(reason)) + "); try again"};
}

void AgentSlot::evict(EvictReason reason, bool sudden) {
  if (state_ != AgentState::kLive) return;
  state_ = AgentState::kEvicting;
  shard_.admission_.leaving();
  reason_ = reason;
  const std::chrono::milliseconds grace = served_->settings.evict_grace;
  if (sudden || grace.count() <= 0 || live_->broken()) {
    schedule_end(reason, std::nullopt);
  } else {
    live_->ask_to_leave(reason, grace);
  }
}

// The end comes from the loop: whoever called us may still be using the live agent.
void AgentSlot::schedule_end(EvictReason reason, std::optional<Error> start_failure) {
  if (end_posted_) return;
  end_posted_ = true;
  if (std::exchange(state_, AgentState::kEvicting) != AgentState::kEvicting)
    shard_.admission_.leaving();
  shard_.admission_.ending();
  reason_ = reason;
  start_failure_ = std::move(start_failure);
  if (ends_here_) return;
  // Nobody waits for the end of an idle one, and after a recovery there are thousands.
  if (reason == EvictReason::kIdle && !shard_.stopping_) {
    end_in_turn(shard_.departures_);
  } else {
    post_end();
  }
}

void AgentSlot::post_end() {
  shard_.loop().post([alive = shard_.alive_, this] {  // until then it is not cold, so it is there
    if (*alive) finish_eviction();
  });
}

void AgentSlot::end_in_turn(PacedSteps& steps) {
  end_waits_ = true;
  // By name: the end may be over when its turn comes, and the slot gone.
  steps.add([&shard = shard_, key = key_] {
    const auto found = shard.slots_.find(key);
    if (found == shard.slots_.end()) return;
    AgentSlot& slot = *found->second;
    if (std::exchange(slot.end_waits_, false)) slot.finish_eviction();
  });
}

void AgentSlot::hurry_end() {
  if (std::exchange(end_waits_, false)) post_end();
}

// What must be known of the instance when it is gone.
struct AgentSlot::Ending {
  durable::Wake next_wake;
  std::optional<std::int64_t> next_look;
  std::chrono::milliseconds at_least{0};
  bool destroyed = false;
};

void AgentSlot::finish_eviction() {
  if (live_ && live_->postpone([this] { finish_eviction(); })) return;
  shard_.loop().cancel_timer(idle_timer_);
  idle_timer_ = 0;
  // Asked before the instance goes: what it lets go of then was interrupted, not finished.
  Ending ending;
  if (live_) {
    ending.next_wake = live_->wake();
    ending.next_look = live_->next_look_ms();
    settling_ = true;
    live_->finish_turns(live_->destruction_requested() ? EvictReason::kDestroyed : reason_);
    settling_ = false;
    if (live_->postpone([this, ending] { end_instance(ending); })) return;
  }
  end_instance(ending);
}

void AgentSlot::end_instance(Ending ending) {
  // When storage failed, memory is ahead of the disk, and the wake index knows better; and trying
  // again at once would only fail again.
  const bool failed = start_failure_ || lost_descriptors_ || !live_ || live_->broken();
  ending.destroyed = live_ && live_->destruction_requested();
  if (ending.destroyed) reason_ = EvictReason::kDestroyed;  // whatever it was that ended it
  if (failed) {
    ending.next_wake = durable::either(ending.next_wake, shard_.alarms_.known(key_));
    if (!ending.next_wake.none() && !lost_descriptors_)
      ending.at_least = shard_.alarms_.wait_after_failure(key_);
    if (ending.next_wake.working)
      ending.at_least = std::min(ending.at_least, served_->settings.keep_alive_interval);
  }
  const auto left = [this, ending](const std::string& trouble) {
    if (!ending.destroyed) return closed(ending, trouble);
    shard_.finish_destruction(key_, [this, ending, trouble] { closed(ending, trouble); });
  };
  if (!live_) {
    left({});
    return;
  }
  settling_ = true;
  live_->shut(reason_, why_it_ended(reason_));
  settling_ = false;
  put_back(live_->take_interrupted());
  // The next instance counts its writes anew, and undoes none of these.
  queue_.forget_state_writes();
  // Events that come meanwhile wait, as during any eviction.
  if (!shard_.close_elsewhere(*live_, left)) left(live_->close_database());
}

void AgentSlot::note_kept(bool destroyed) {
  if (live_ && live_->kept_at_end() && !destroyed)
    shard_.files_.note_kept(key_, storage::Kept::kOnDevice);
}

void AgentSlot::closed(const Ending& ending, const std::string& trouble) {
  const auto& [next_wake, next_look, at_least, destroyed] = ending;
  end_posted_ = false;
  if (!trouble.empty()) {
    shard_.logger().write_limited(
        LogLevel::kWarn, "agent.close_failed", {key_.agent_class},
        {{"class", key_.agent_class}, {"agent", key_.name}, {"error", trouble}});
  }
  note_kept(destroyed);
  live_.reset();
  if (start_failure_) served_->starts->count_failure(key_.name);
  served_->starts->count_leave();
  const std::shared_ptr<StartCounts> version = std::exchange(served_, nullptr)->starts;
  leave_trial();
  leave_for_.reset();
  leave_when_idle_ = false;
  const bool wake_again = std::exchange(wake_again_, false);
  const bool waits_for_room =
      std::exchange(lost_descriptors_, false) && !destroyed && !shard_.stopping_;
  if (!waits_for_room) room.lacks_since.reset();
  shard_.release(*this);
  ClassMetrics& figures = shard_.metrics_.of_class(key_.agent_class);
  figures.live_agents.add(-1);
  if (!start_failure_ && !waits_for_room) figures.evicted(reason_);
  if (permits_.any() && !waits_for_room) shard_.give_back_permits(*this);
  if (destroyed) {
    part_with_the_known();
  } else {
    shard_.alarms_.rest(key_, next_wake, next_look, at_least);
  }
  state_ = AgentState::kCold;
  trimmed_ = false;
  shard_.logger().write(
      LogLevel::kDebug, "agent.evicted",
      {{"class", key_.agent_class}, {"agent", key_.name}, {"reason", to_string(reason_)}});
  // A CLOSE that was in progress ended with the instance: nothing else would ever forget its
  // connection. Nor would the new instance know a client whose CONNECT the old one never finished,
  // and which does not come again.
  for (const ConnectionId id : std::vector(connections_)) {
    Connection* client = shard_.find_connection(id);
    const bool closed = client->state == ConnectionState::kClosed;
    if (closed && !queue_.has_close_of(id)) {
      forget(id);
    } else if (client->connect_in_progress) {
      part_with_unconnected(*client);
    }
  }
  if (std::optional<Error> failure = std::exchange(start_failure_, std::nullopt)) {
    figures.failed_starts.add();
    shard_.logger().write_limited(
        LogLevel::kWarn, "agent.start_failed", {key_.agent_class, to_string(failure->code)},
        {{"class", key_.agent_class}, {"agent", key_.name}, {"error", failure->message}});
    const bool is_told = std::exchange(tells_start_failure_, false);
    start_failed(version, Error{Errc::kUnavailable,
                                is_told ? failure->message
                                        : "the agent failed to start; the server's log says why"});
  } else if (waits_for_room) {
    rejoin_room_line();  // with its permit
  } else if (!queue_.empty() || (wake_again && !destroyed)) {
    wake();
  }
  shard_.remove_if_unused(*this);
  shard_.check_stopped();
}

// The clients and the events of an agent that is destroyed. What came too late for it to know waits
// for the next one.
void AgentSlot::part_with_the_known() {
  const Error gone = why_it_ended(EvictReason::kDestroyed);
  const auto is_known = [this](const OwnedEvent& event) {
    const Connection* client = shard_.find_connection(event.connection);
    const bool unknown_client =
        client != nullptr && client->state == ConnectionState::kWaiting && !client->closing;
    return event.kind != EventKind::kRequest && !unknown_client;
  };
  for (const OwnedEvent& event : queue_.take_if(is_known)) {
    const Connection* client = shard_.find_connection(event.connection);
    if (event.sink && client != nullptr && client->state != ConnectionState::kClosed)
      event.sink->finish(ResponseHead{404, {}}, gone);
  }
  for (const ConnectionId id : connections_) {
    Connection* client = shard_.find_connection(id);
    client->connect_in_progress = false;
    if (client->state == ConnectionState::kClosed || client->state == ConnectionState::kWaiting)
      continue;
    client->state = ConnectionState::kWaiting;  // no agent knows it: its end is nobody's event
    client->end(kCloseDestroyed, gone.message);
  }
}

void AgentSlot::begin_shutdown() {
  if (state_ == AgentState::kCold) {  // what waits for its class waits in vain
    forget_failed_trial();
    refuse_waiting(Error{Errc::kClosing, "the server is shutting down"}, kCloseGoingAway);
    return;
  }
  hurry_end();
  if (state_ == AgentState::kLive && !settling_ && live_->events_in_progress() == 0 &&
      !live_->awaits_durability())
    evict(EvictReason::kShutdown);
}

}  // namespace hearth::runtime
