#include "runtime/agent_slot.hpp"

#include "base/assert.hpp"
#include "extensions/connections.hpp"
#include "runtime/shard.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {
namespace {

// An agent that was idle for so long gives back caches; it stays in memory until its idle timeout.
constexpr std::chrono::milliseconds kTrimAfter{1000};

// An agent that should be awake and cannot be is looked at again after so long.
constexpr std::chrono::milliseconds kClassMissingRetry{60'000};

}  // namespace

AgentSlot::AgentSlot(Shard& shard, storage::AgentKey key, std::string segment)
    : shard_(shard),
      key_(std::move(key)),
      segment_(std::move(segment)),
      queue_(shard.connections_, shard.environment_.client_memory, shard.limits()) {}

AgentSlot::~AgentSlot() {
  HEARTH_ASSERT(state_ == AgentState::kCold, "slot destroyed with a live agent");
  shard_.loop().cancel_timer(interrupted_timer_);
  shard_.loop().cancel_timer(trial_timer_);
  HEARTH_ASSERT(!room.waiting, "slot destroyed while it waits for room");
}

// ---- events in ----------------------------------------------------------------------------------

void AgentSlot::accept(Event incoming) {
  touch();
  const bool ready = state_ == AgentState::kLive && incoming.kind != EventKind::kConnect &&
                     queue_.empty() && !settling_ && !live_->broken() &&
                     (!leave_for_ || leave_when_idle_) &&
                     deliverable(incoming.kind, incoming.connection);
  if (ready) {
    live_->deliver(std::move(incoming));  // borrowed views: nothing is copied on this path
    return;
  }
  queue_.push(std::move(incoming));
  hurry_end();
  if (leave_for_ && !leave_when_idle_) leave_now(false);  // and meets the other version
  if (state_ == AgentState::kCold) {
    wake();
  } else if (state_ == AgentState::kLive) {
    after_turn();  // what waits may be another client's, held up by its CONNECT
  }
}

bool AgentSlot::deliverable(EventKind kind, ConnectionId connection) const {
  if (live_->lent() || live_->checkpoint_due()) return false;
  if (live_->client_events() >= served_->settings.max_events || live_->is_crowded()) return false;
  if (connection == 0 || kind == EventKind::kConnect) return true;
  const Connection* client = shard_.find_connection(connection);
  return client == nullptr || !client->connect_in_progress;
}

bool AgentSlot::deliver_next() {
  if (state_ != AgentState::kLive || live_->broken() || goes_on_later_) return false;
  std::optional<OwnedEvent> event = queue_.take_first(
      [this](const OwnedEvent& each) { return deliverable(each.kind, each.connection); });
  if (!event) return false;
  deliver(std::move(*event));
  return true;
}

void AgentSlot::go_on_later() {
  if (state_ != AgentState::kLive || queue_.empty() || std::exchange(goes_on_later_, true)) return;
  // By name: the slot may be gone by then.
  shard_.loop().post([alive = shard_.alive_, &shard = shard_, key = key_] {
    if (!*alive) return;
    const auto found = shard.slots_.find(key);
    if (found == shard.slots_.end()) return;
    found->second->goes_on_later_ = false;
    found->second->after_turn();
  });
}

void AgentSlot::deliver(OwnedEvent event) {
  const bool again = event.interruptions.count > 0;
  if (again && shard_.loop().clock().steady_now() >= event.interruptions.due) {
    give_up(event);
    return;
  }
  if (event.kind == EventKind::kConnect) {
    Connection* client = shard_.find_connection(event.connection);
    if (client == nullptr) return;
    client->connect_in_progress = true;
    if (!again) {
      if (!live_->admit(*client)) client->connect_in_progress = false;
      return;
    }
    event.name = client->target;  // it was let in before, and has its handshake
  }
  const Connection* client = shard_.find_connection(event.connection);
  const bool is_closed = client != nullptr && client->state == ConnectionState::kClosed;
  if (again && event.kind == EventKind::kCall && client != nullptr &&
      (is_closed || client->closing))
    return;  // it has run once, and nobody reads what comes of a second time
  if (is_closed) event.sink.reset();  // what it asked for is done; there is nobody to tell
  live_->deliver(lend(event));
}

void AgentSlot::state_changed(ConnectionId source, std::string_view json, std::uint64_t state_write,
                              std::shared_ptr<unsigned> chain) {
  Event incoming;
  incoming.kind = EventKind::kStateChanged;
  incoming.connection = source;
  incoming.body = json;
  incoming.state_write = state_write;
  incoming.state_chain = std::move(chain);
  queue_.push(std::move(incoming));  // this turn is still running
}

void AgentSlot::states_undone(std::uint64_t last_write) {
  (void)queue_.take_if(
      [last_write](const OwnedEvent& event) { return event.state_write > last_write; });
}

// ---- clients ------------------------------------------------------------------------------------

void AgentSlot::connect(ConnectionId id) {
  connections_.push_back(id);
  Event incoming;
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
    (void)queue_.take_if([id](const OwnedEvent& event) { return event.connection == id; });
    forget(id);
    return;
  }
  Event incoming;
  incoming.kind = EventKind::kClose;
  incoming.connection = id;
  incoming.name = reason;
  incoming.flags = code | (was_clean ? 0x10000U : 0U);  // HEARTH_CLOSE_WAS_CLEAN
  accept(std::move(incoming));
}

void AgentSlot::forget(ConnectionId id) {
  if (live_) live_->forget_connection(id);
  std::erase(connections_, id);
  shard_.connections_.remove(id);
  shard_.remove_if_unused(*this);
}

// ---- the way in ---------------------------------------------------------------------------------

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
    shard_.alarms_.look_again(key_, kClassMissingRetry);
    if (shard_.environment_.classes.is_awaited(segment_)) return refuse_strangers();
    refuse_waiting(Error{Errc::kUnavailable, "the class is not loaded"}, kCloseTryAgainLater);
    return;
  }
  if (!served_->refusal.empty()) {
    const Error why{Errc::kUnavailable, std::exchange(served_, nullptr)->refusal};
    shard_.alarms_.look_again(key_, kClassMissingRetry);
    refuse_waiting(why, kCloseTryAgainLater);
    return;
  }
  if (awaits_decision(*served_)) {
    served_.reset();
    shard_.alarms_.look_again(key_, kClassMissingRetry);
    return;
  }
  forget_failed_trial();
  if (lacks_room()) return;
  state_ = AgentState::kWaking;
  ++served_->starts->agents;
  handle_ = shard_.admit(*this);
  shard_.metrics_.of_class(key_.agent_class).live_agents.add(1);
  settling_ = true;  // what START causes is looked at below, once it is on its way
  Result<void> starting;
  try {
    live_ = std::make_unique<LiveAgent>(*this, shard_.services_, served_->agent_class,
                                        served_->settings, handle_);
    starting = live_->start();
  } catch (const OutOfDescriptors& failure) {  // agent boundary
    // Somebody else took what lacks_room() had found: no fault of the agent's, which waits for
    // others.
    shard_.logger().write(LogLevel::kDebug, "agent.lost_descriptors",
                          {{"class", key_.agent_class},
                           {"agent", key_.name},
                           {"error", std::string_view(failure.what())}});
    lost_descriptors_ = true;
  } catch (const StorageError& failure) {  // agent boundary
    shard_.logger().write_limited(LogLevel::kError, "agent.storage_failed", {key_.agent_class},
                                  {{"class", key_.agent_class},
                                   {"agent", key_.name},
                                   {"error", std::string_view(failure.what())}});
    starting = Error{Errc::kInternal, "the agent's storage cannot be opened"};
  }
  settling_ = false;
  if (lost_descriptors_) {
    schedule_end(EvictReason::kAdmin, std::nullopt);
  } else if (starting.has_error()) {
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
  // One that ends whenever it starts must not be made again and again for an event that waits.
  std::optional<Error> failure = completion.error;
  if (!failure && live_->broken()) failure = if_waking("the agent's storage failed");
  if (!failure && live_->eviction_requested())
    failure = if_waking("the agent evicted itself as it started");
  if (failure) {
    schedule_end(EvictReason::kAdmin, std::move(failure));
    return;
  }
  if (state_ != AgentState::kWaking) return;
  state_ = AgentState::kLive;
  shard_.metrics_.of_class(key_.agent_class).starts.add();
  served_->starts->count_start();
  shard_.alarms_.forget_failures(key_);
  shard_.logger().write(LogLevel::kDebug, "agent.started",
                        {{"class", key_.agent_class}, {"agent", key_.name}});
  touch();
  arm_idle_timer(last_activity_ + std::min(kTrimAfter, served_->settings.idle_timeout));
  if (leave_for_ && !leave_when_idle_) {
    leave_now(false);
  } else if (permits_.any() || live_->has_durable_work()) {
    look();
  }
}

void AgentSlot::look() {
  if (state_ != AgentState::kLive || std::exchange(pump_posted_, true)) return;
  // From the loop: whoever calls may be inside settle(), and each piece of work is a turn of its
  // own.
  if (permits_.any()) {
    PacedSteps& steps = permits_.recovery ? shard_.recoveries_ : shard_.steps_;
    steps.add([&shard = shard_, key = key_] { shard.pump(key); });
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
    shard_.logger().write_limited(
        LogLevel::kWarn, "agent.connect_failed",
        {key_.agent_class, to_string(completion.error->code)},
        {{"class", key_.agent_class}, {"agent", key_.name}, {"error", completion.error->message}});
    (void)live_->of<extensions::ConnectionExtension>().close(
        completion.connection, kCloseInternalError, "connection set-up failed");
  }
  if (client->state == ConnectionState::kConnecting) client->state = ConnectionState::kOpen;
}

// ---- turns --------------------------------------------------------------------------------------

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
  SteadyTime began{};
  unsigned delivered = 0;
  do {
    if (!live_) return;
    touch();
    if (delivered == 0) began = last_activity_;
    // One that destroys itself whenever it starts must not be made again and again for an event
    // that waits.
    if (live_->destruction_requested())
      schedule_end(EvictReason::kDestroyed, if_waking("the agent destroyed itself"));
    for (const Completion& completion : live_->take_completions()) completed(completion);
    if (live_->broken()) {
      schedule_end(EvictReason::kAdmin, if_waking("the agent's storage failed"));
    } else if (live_->eviction_requested()) {
      evict(EvictReason::kAdmin);
    }
    // Answers that wait for the device share the wait with others' as long as there is time.
    if (shard_.stopping_ && live_->events_in_progress() == 0 && !live_->awaits_durability())
      evict(EvictReason::kShutdown);
    if (delivered++ == kMostAtOnce || last_activity_ - began >= kLongestAtOnce) go_on_later();
  } while (deliver_next() || live_->has_completions());
  after_settling();
}

// What it does once nothing can be delivered now.
void AgentSlot::after_settling() {
  if (state_ == AgentState::kLive && !live_->lent() && !live_->entered() && live_->checkpoint_due())
    shard_.checkpoint_elsewhere(*live_);
  // While it leaves, its database may be another thread's.
  if ((leave_when_idle_ || trial_) && state_ == AgentState::kLive && queue_.empty() &&
      live_->idle())
    leave_while_idle();
  if (state_ == AgentState::kLive &&
      (live_->work_due() || (permits_.recovery && live_->recovery_due()))) {
    look();
  }
  shard_.admission_.may_be_idle(*this);
}

void AgentSlot::completed(const Completion& completion) {
  if (rule_of(completion.kind).is_timed)
    live_->figures().event_took(last_activity_ - completion.began);
  if (completion.kind == EventKind::kMigrate) migrated(completion);
  if (completion.kind == EventKind::kStart) started(completion);
  if (completion.kind == EventKind::kConnect) connected(completion);
  if (completion.kind == EventKind::kClose) forget(completion.connection);
  if (completion.kind == EventKind::kEvict) schedule_end(reason_, std::nullopt);
  if (rule_of(completion.kind).sender == EventSender::kWork) look();
}

std::optional<Error> AgentSlot::if_waking(const char* why) const {
  if (state_ != AgentState::kWaking) return std::nullopt;
  return Error{Errc::kInternal, why};
}

// ---- idleness -----------------------------------------------------------------------------------

void AgentSlot::touch() {
  last_activity_ = shard_.loop().clock().steady_now();
  trimmed_ = false;
  if (state_ != AgentState::kCold) shard_.admission_.used(*this);
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
    if (live_->checkpoint_due(true)) shard_.checkpoint_elsewhere(*live_);
  }
  arm_idle_timer(last_activity_ + (trimmed_ ? timeout : std::min(kTrimAfter, timeout)));
}

}  // namespace hearth::runtime
