#include "runtime/agent_slot.hpp"

#include "base/assert.hpp"
#include "runtime/shard.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {
namespace {

// A connection with so many undelivered events is not read from until it has few again.
constexpr std::size_t kPauseReadingAt = 16;
constexpr std::size_t kResumeReadingAt = 4;
// Nor one with so many bytes in them. One frame more may have been read already.
constexpr std::size_t kPauseReadingAtBytes = std::size_t{256} << 10;

// An agent that was idle for so long gives back caches; it stays in memory until its idle timeout.
constexpr std::chrono::milliseconds kTrimAfter{1000};

// An agent that should be awake and cannot be is looked at again after so long.
constexpr std::chrono::milliseconds kClassMissingRetry{60'000};
constexpr std::chrono::milliseconds kNoRoomRetry{1'000};

}  // namespace

AgentSlot::AgentSlot(Shard& shard, storage::AgentKey key, std::string segment)
    : shard_(shard), key_(std::move(key)), segment_(std::move(segment)) {}

AgentSlot::~AgentSlot() {
  HEARTH_ASSERT(state_ == AgentState::kCold, "slot destroyed with a live agent");
}

// ---- events in ------------------------------------------------------------------------------------------

void AgentSlot::accept(Incoming incoming) {
  touch();
  const bool ready = state_ == AgentState::kLive && incoming.kind != EventKind::kConnect &&
                     queue_.empty() && !settling_ && !live_->broken() &&
                     (!leave_for_ || leave_when_idle_) &&
                     deliverable(incoming.kind, incoming.connection);
  if (ready) {
    live_->deliver(std::move(incoming));  // borrowed views: nothing is copied on this path
    return;
  }
  enqueue(std::move(incoming));
  if (leave_for_ && !leave_when_idle_) leave_now(false);  // and meets the other version
  if (state_ == AgentState::kCold) {
    wake();
  } else if (state_ == AgentState::kLive) {
    after_turn();  // what waits may be another client's, held up by its CONNECT
  }
}

void AgentSlot::enqueue(Incoming incoming) {
  const std::size_t bytes = incoming.name.size() + incoming.body.size();
  const bool full = queue_.size() >= shard_.limits().max_waiting ||
                    queue_bytes_ + bytes > shard_.limits().max_waiting_bytes;
  if (full && incoming.sink != nullptr) {
    incoming.sink->finish(ResponseHead{503, {}},
                          Error{Errc::kUnavailable, "too many requests wait for this agent"});
    return;
  }
  queue_.push_back(PendingEvent{incoming.kind, incoming.connection, std::string(incoming.name),
                                std::string(incoming.body), incoming.flags,
                                std::move(incoming.sink), std::move(incoming.request)});
  queue_bytes_ += bytes;
  Connection* client = shard_.find_connection(incoming.connection);
  if (client == nullptr) return;
  ++client->waiting_events;
  client->waiting_bytes += bytes;
  const bool crowded = full || client->waiting_events >= kPauseReadingAt ||
                       client->waiting_bytes >= kPauseReadingAtBytes;
  if (crowded && !client->reading_paused && client->state != ConnectionState::kClosed) {
    client->reading_paused = true;
    client->port->set_reading(false);
  }
}

// Takes an event off the books of the queue, which it leaves.
void AgentSlot::note_removed(const PendingEvent& event) {
  const std::size_t bytes = event.name.size() + event.body.size();
  queue_bytes_ -= bytes;
  Connection* client = shard_.find_connection(event.connection);
  if (client == nullptr) return;
  --client->waiting_events;
  client->waiting_bytes -= bytes;
  const bool has_room = client->waiting_events <= kResumeReadingAt &&
                        client->waiting_bytes <= kPauseReadingAtBytes / 2;
  if (client->reading_paused && has_room && client->state != ConnectionState::kClosed) {
    client->reading_paused = false;
    client->port->set_reading(true);
  }
}

bool AgentSlot::deliverable(EventKind kind, ConnectionId connection) const {
  if (live_->client_events() >= served_->settings.max_events || live_->is_crowded()) return false;
  if (connection == 0 || kind == EventKind::kConnect) return true;
  const Connection* client = shard_.find_connection(connection);
  return client == nullptr || !client->connect_in_progress;
}

bool AgentSlot::deliver_next() {
  if (state_ != AgentState::kLive || live_->broken()) return false;
  for (auto at = queue_.begin(); at != queue_.end(); ++at) {
    if (!deliverable(at->kind, at->connection)) continue;
    PendingEvent event = std::move(*at);
    queue_.erase(at);
    note_removed(event);
    deliver(std::move(event));
    return true;
  }
  return false;
}

void AgentSlot::deliver(PendingEvent event) {
  if (event.kind == EventKind::kConnect) {
    Connection* client = shard_.find_connection(event.connection);
    if (client == nullptr) return;
    client->connect_in_progress = true;
    if (!live_->admit(*client)) client->connect_in_progress = false;
    return;
  }
  Incoming incoming;
  incoming.kind = event.kind;
  incoming.connection = event.connection;
  incoming.name = event.name;
  incoming.body = event.body;
  incoming.flags = event.flags;
  incoming.sink = std::move(event.sink);
  incoming.request = std::move(event.request);
  const Connection* client = shard_.find_connection(event.connection);
  if (client != nullptr && client->state == ConnectionState::kClosed) {
    incoming.sink.reset();  // what it asked for is done; there is nobody to tell
  }
  live_->deliver(std::move(incoming));
}

void AgentSlot::state_changed(ConnectionId source, std::string_view json) {
  Incoming incoming;
  incoming.kind = EventKind::kStateChanged;
  incoming.connection = source;
  incoming.body = json;
  enqueue(std::move(incoming));  // this turn is still running
}

// ---- clients --------------------------------------------------------------------------------------------

void AgentSlot::connect(ConnectionId id) {
  connections_.push_back(id);
  Incoming incoming;
  incoming.kind = EventKind::kConnect;
  incoming.connection = id;
  accept(std::move(incoming));
}

void AgentSlot::disconnected(ConnectionId id, std::uint16_t code, std::string_view reason,
                             bool was_clean) {
  Connection* client = shard_.find_connection(id);
  const bool known =
      client->state == ConnectionState::kConnecting || client->state == ConnectionState::kOpen;
  client->state = ConnectionState::kClosed;
  if (live_) live_->forget_connection(id);
  if (!known || shard_.stopping_) {
    drop_waiting(id);
    forget(id);
    return;
  }
  Incoming incoming;
  incoming.kind = EventKind::kClose;
  incoming.connection = id;
  incoming.name = reason;
  incoming.flags = code | (was_clean ? 0x10000U : 0U);  // HEARTH_CLOSE_WAS_CLEAN
  accept(std::move(incoming));
}

void AgentSlot::drop_waiting(ConnectionId id) {
  std::erase_if(queue_, [this, id](const PendingEvent& event) {
    if (event.connection != id) return false;
    note_removed(event);
    return true;
  });
}

void AgentSlot::forget(ConnectionId id) {
  if (live_) live_->forget_connection(id);
  std::erase(connections_, id);
  shard_.connections_.erase(id);
  shard_.metrics_.connections.set(std::ssize(shard_.connections_));
  shard_.remove_if_unused(*this);
}

// ---- the way in ---------------------------------------------------------------------------------------------

void AgentSlot::wake() {
  HEARTH_ASSERT(state_ == AgentState::kCold, "wake() of an agent that is not cold");
  if (shard_.stopping_) {
    refuse_waiting(Error{Errc::kClosing, "the server is shutting down"}, kCloseGoingAway);
    return;
  }
  if (shard_.condemned_.contains(key_)) {  // files that could not be removed must not come back
    refuse_waiting(Error{Errc::kUnavailable, "the agent is being destroyed; try again later"},
                   kCloseTryAgainLater);
    return;
  }
  served_ = shard_.environment_.classes.find(segment_);
  if (!served_) {
    shard_.look_again(*this, kClassMissingRetry);
    if (shard_.environment_.classes.is_awaited(segment_)) return refuse_strangers();
    refuse_waiting(Error{Errc::kUnavailable, "the class is not loaded"}, kCloseTryAgainLater);
    return;
  }
  if (!served_->refusal.empty()) {
    const Error why{Errc::kUnavailable, std::exchange(served_, nullptr)->refusal};
    shard_.look_again(*this, kClassMissingRetry);
    refuse_waiting(why, kCloseTryAgainLater);
    return;
  }
  if (!shard_.make_room()) {
    shard_.look_again(*this, kNoRoomRetry);
    if (has_permit_ || has_waking_permit_) {
      shard_.room_again_ = shard_.loop().clock().steady_now() + kNoRoomRetry;
      shard_.durable_events_.report(DurableEvent::kAlarmNoRoom, key_.agent_class, key_.name, "");
    }
    served_.reset();  // a cold agent keeps no code
    refuse_waiting(Error{Errc::kUnavailable, "too many agents are busy; try again later"},
                   kCloseTryAgainLater);
    return;
  }
  state_ = AgentState::kWaking;
  handle_ = shard_.admit(*this);
  shard_.metrics_.of_class(key_.agent_class).live_agents.add(1);
  settling_ = true;  // what START causes is looked at below, once it is on its way
  Result<void> starting;
  ShardServices& services = shard_;
  try {
    live_ = std::make_unique<LiveAgent>(*this, services, served_->agent_class, served_->settings,
                                        handle_);
    starting = live_->start();
  } catch (const StorageError& failure) {  // agent boundary
    shard_.logger().write(LogLevel::kError, "agent.storage_failed",
                          {{"class", key_.agent_class},
                           {"agent", key_.name},
                           {"error", std::string_view(failure.what())}});
    starting = Error{Errc::kInternal, "the agent's storage cannot be opened"};
  }
  settling_ = false;
  if (starting.has_error()) {
    tells_start_failure_ = live_ && live_->check_schema().has_error();
    schedule_end(EvictReason::kAdmin, starting.error());
  } else {
    after_turn();
  }
}

void AgentSlot::migrated(const Completion& completion) {
  if (state_ != AgentState::kWaking) return;  // it is on its way out, and what it wrote with it
  const Result<void> begun = live_->migrated(completion.error);
  if (begun.has_error()) schedule_end(EvictReason::kAdmin, begun.error());
}

void AgentSlot::started(const Completion& completion) {
  if (completion.error) {
    schedule_end(EvictReason::kAdmin, completion.error);
    return;
  }
  if (state_ != AgentState::kWaking) return;
  state_ = AgentState::kLive;
  shard_.metrics_.of_class(key_.agent_class).starts.add();
  ++served_->starts->started;
  shard_.failures_.erase(key_);
  shard_.logger().write(LogLevel::kDebug, "agent.started",
                        {{"class", key_.agent_class}, {"agent", key_.name}});
  touch();
  arm_idle_timer(last_activity_ + std::min(kTrimAfter, served_->settings.idle_timeout));
  if (leave_for_ && !leave_when_idle_) {
    leave_now(false);
  } else if (has_permit_ || has_waking_permit_ || live_->has_durable_work()) {
    look();
  }
}

void AgentSlot::look() {
  if (state_ != AgentState::kLive || std::exchange(pump_posted_, true)) return;
  // From the loop: whoever calls may be inside settle(), and each piece of work is a turn of its own.
  if (has_permit_ || has_waking_permit_) {
    shard_.steps_.add([&shard = shard_, key = key_] { shard.pump(key); });
    return;
  }
  shard_.loop().post([alive = shard_.alive_, &shard = shard_, key = key_] {
    if (*alive) shard.pump(key);
  });
}

void AgentSlot::connected(const Completion& completion) {
  Connection* client = shard_.find_connection(completion.connection);
  if (client == nullptr) return;
  client->connect_in_progress = false;
  client->headers = {};
  if (completion.error) {
    shard_.logger().write(
        LogLevel::kWarn, "agent.connect_failed",
        {{"class", key_.agent_class}, {"agent", key_.name}, {"error", completion.error->message}});
    (void)live_->close(completion.connection, kCloseInternalError, "connection set-up failed");
  }
  if (client->state == ConnectionState::kConnecting) client->state = ConnectionState::kOpen;
}

// ---- turns ------------------------------------------------------------------------------------------------

void AgentSlot::after_turn() {
  if (settling_) return;  // the loop below goes on
  settling_ = true;
  try {
    settle();
  } catch (
      const StorageError& failure) {  // agent boundary: whatever touched storage on the way here
    live_->storage_failed(failure.what());
    schedule_end(EvictReason::kAdmin, std::nullopt);
  }
  settling_ = false;
}

void AgentSlot::settle() {
  do {
    if (!live_) return;
    touch();
    if (live_->destruction_requested()) {
      // One that destroys itself whenever it starts must not be made again and again for an event that waits.
      schedule_end(EvictReason::kDestroyed,
                   state_ == AgentState::kWaking
                       ? std::optional(Error{Errc::kInternal, "the agent destroyed itself"})
                       : std::nullopt);
    }
    for (const Completion& completion : live_->take_completions()) {
      if (ClassMetrics::is_timed(completion.kind))
        live_->figures().event_took(last_activity_ - completion.began);
      if (completion.kind == EventKind::kMigrate) migrated(completion);
      if (completion.kind == EventKind::kStart) started(completion);
      if (completion.kind == EventKind::kConnect) connected(completion);
      if (completion.kind == EventKind::kClose) forget(completion.connection);
      if (completion.kind == EventKind::kEvict) schedule_end(reason_, std::nullopt);
      if (is_durable_work(completion.kind)) look();
    }
    if (live_->broken()) {
      schedule_end(EvictReason::kAdmin,
                   state_ == AgentState::kWaking
                       ? std::optional(Error{Errc::kInternal, "the agent's storage failed"})
                       : std::nullopt);
    } else if (live_->eviction_requested()) {
      evict(EvictReason::kAdmin);
    }
    // Answers that wait for the device share the wait with others' as long as there is time.
    if (shard_.stopping_ && live_->events_in_progress() == 0 && !live_->awaits_durability())
      evict(EvictReason::kShutdown);
  } while (deliver_next() || live_->has_completions());
  // While it leaves, its database may be another thread's.
  if (leave_when_idle_ && state_ == AgentState::kLive && queue_.empty() && live_->idle())
    leave_now(false);
  if (state_ == AgentState::kLive &&
      (live_->work_due() || (has_permit_ && live_->recovery_due()))) {
    look();
  }
}

void AgentSlot::refuse_waiting(const Error& error, std::uint16_t close_code) {
  for (PendingEvent& event : std::exchange(queue_, {})) {
    note_removed(event);  // and reads on from a client that waited and stays
    Connection* client = shard_.find_connection(event.connection);
    if (event.sink) {
      if (event.connection == 0 || client != nullptr)
        event.sink->finish(ResponseHead{503, {}}, error);
    } else if (event.kind == EventKind::kClose) {
      forget(event.connection);
    } else if (client != nullptr && !client->closing) {
      // Nothing can be answered to a frame that asks nothing: the client is told by the end of its connection.
      client->closing = true;
      client->port->close(close_code, error.message);
    }
  }
  shard_.remove_if_unused(*this);
}

// ---- idleness -----------------------------------------------------------------------------------------------

void AgentSlot::touch() {
  last_activity_ = shard_.loop().clock().steady_now();
  trimmed_ = false;
  if (state_ != AgentState::kCold)
    shard_.recent_.splice(shard_.recent_.end(), shard_.recent_, recency_);
}

void AgentSlot::arm_idle_timer(SteadyTime due) {
  // One timer a live agent, moved only when it fires: traffic costs nothing.
  idle_timer_ = shard_.loop().call_at(due, [alive = shard_.alive_, this] {
    if (*alive) idle_timer_fired();
  });
}

void AgentSlot::idle_timer_fired() {
  idle_timer_ = 0;
  if (state_ != AgentState::kLive) return;
  const SteadyTime now = shard_.loop().clock().steady_now();
  const std::chrono::milliseconds timeout = served_->settings.idle_timeout;
  if (!queue_.empty() || !live_->idle()) {
    touch();
  } else if (now - last_activity_ >= timeout) {
    evict(EvictReason::kIdle);
    return;
  } else if (!trimmed_ && now - last_activity_ >= kTrimAfter) {
    live_->trim();
    trimmed_ = true;
  }
  arm_idle_timer(last_activity_ + (trimmed_ ? timeout : std::min(kTrimAfter, timeout)));
}

}  // namespace hearth::runtime
