#include "runtime/agent_slot.hpp"

#include "base/assert.hpp"
#include "base/close_codes.hpp"
#include "extensions/connections.hpp"
#include "runtime/agent_handles.hpp"
#include "runtime/condemned_agents.hpp"
#include "runtime/shard_services.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {
namespace {

// An agent that was idle this long gives back caches. It stays in memory until its idle timeout.
constexpr std::chrono::milliseconds kTrimAfter{1000};

// How long until the next look at an agent that should be awake and cannot be.
constexpr std::chrono::milliseconds kClassMissingRetry{60'000};

}  // namespace

AgentSlot::AgentSlot(const Parts& parts, storage::AgentKey key, std::string segment)
    : parts_(parts),
      key_(std::move(key)),
      segment_(std::move(segment)),
      inbox_(key_,
             {parts.services.connections, parts.services.client_memory, parts.services.limits,
              parts.services.loop, parts.services.logger},
             [this] {
               if (state() == AgentState::kLive) after_turn();  // events that waited behind them
               parts_.look_at_unused(*this);
             }),
      self_(std::make_shared<AgentSlot*>(this)) {}

AgentSlot::~AgentSlot() {
  *self_ = nullptr;
  HEARTH_ASSERT(!in_memory(), "slot destroyed with a live agent");
  HEARTH_ASSERT(!stands_in_line(), "slot destroyed while it waits for room");
}

std::function<void()> AgentSlot::task(void (*what)(AgentSlot& slot)) const {
  return [self = self_, what] {
    if (*self != nullptr) what(**self);
  };
}

LiveAgent* AgentSlot::live() {
  Resident* resident = life_.resident();
  return resident == nullptr ? nullptr : resident->live.get();
}

// ---- events in ----------------------------------------------------------------------------------

void AgentSlot::accept(Event incoming) {
  touch();
  if (is_ready_for(incoming)) {
    live()->deliver(std::move(incoming),
                    last_activity_);  // borrowed views: nothing is copied on this path
    return;
  }
  if (rule_of(incoming.kind).runs_method && !incoming.interruptions.has_due() &&
      call_order().holds_calls())
    incoming.interruptions.due = last_activity_ + call_timeout();
  inbox_.push(std::move(incoming));
  hurry_end();
  const Live* live = life_.as<Live>();
  if (live != nullptr && live->intent && !live->intent->when_idle)
    leave_now(false);  // the event meets the other version
  if (!in_memory()) {
    wake();
  } else if (state() == AgentState::kLive) {
    after_turn();  // events of another client may wait for its CONNECT
  }
}

bool AgentSlot::is_ready_for(const Event& incoming) const {
  const Live* live = life_.as<Live>();
  if (live == nullptr || incoming.kind == EventKind::kConnect || !inbox_.empty()) return false;
  if (settling_ || live->live->broken() || (live->intent && !live->intent->when_idle)) return false;
  return deliverable(incoming.kind, incoming.name, incoming.connection);
}

bool AgentSlot::deliverable(EventKind kind, std::string_view name, ConnectionId connection) const {
  const Resident& resident = *life_.resident();
  const LiveAgent& live = *resident.live;
  if (live.lent() || live.checkpoint_due()) return false;
  if (live.in_progress().client_events() >= resident.served->settings.max_events ||
      live.is_crowded())
    return false;
  if (waits_for_calls(kind, name)) return false;
  return connection == 0 || kind == EventKind::kConnect || !is_connecting(connection);
}

bool AgentSlot::is_connecting(ConnectionId connection) const {
  const Connection* client = parts_.services.connections.find(connection);
  return client != nullptr && client->connect_in_progress;
}

bool AgentSlot::waits_for_calls(EventKind kind, std::string_view name) const {
  const Resident& resident = *life_.resident();
  return rule_of(kind).runs_method && resident.live->in_progress().runs_method() &&
         (resident.live->in_progress().runs_alone() ||
          resident.served->call_order().runs_alone(kind, name));
}

bool AgentSlot::deliver_next() {
  const Live* live = life_.as<Live>();
  if (live == nullptr || live->live->broken() || live->goes_on_later) return false;
  const extensions::CallOrder order = call_order();
  // A client's later events wait behind its waiting call. Clients' calls wait behind a waiting call
  // that runs alone.
  std::vector<ConnectionId> held;
  bool one_waits_alone = false;
  std::optional<OwnedEvent> event = inbox_.queue().take_first([&](const OwnedEvent& each) {
    if (std::ranges::find(held, each.connection) != held.end()) return false;
    const bool is_method = rule_of(each.kind).runs_method;
    const bool is_agents = each.origin && each.origin->is_agent();
    const bool is_behind = one_waits_alone && is_method && !is_agents;
    if (!is_behind && deliverable(each.kind, each.name, each.connection)) return true;
    if (each.connection != 0 && order.holds_calls()) held.push_back(each.connection);
    // An event that waits for its client's CONNECT does not block other calls.
    one_waits_alone |= waits_for_calls(each.kind, each.name) && !is_connecting(each.connection) &&
                       order.runs_alone(each.kind, each.name);
    return false;
  });
  if (!event) return false;
  deliver(std::move(*event));
  return true;
}

extensions::CallOrder AgentSlot::call_order() const {
  if (const Resident* const resident = life_.resident()) return resident->served->call_order();
  const auto served = parts_.services.classes.find(segment_);
  return served == nullptr ? extensions::CallOrder() : served->call_order();
}

std::chrono::milliseconds AgentSlot::call_timeout() const {
  std::chrono::milliseconds own{0};
  if (const Resident* const resident = life_.resident()) {
    own = resident->served->settings.call_timeout;
  } else if (const auto served = parts_.services.classes.find(segment_)) {
    own = served->settings.call_timeout;
  }
  return own.count() > 0 ? own : parts_.services.limits.call_timeout;
}

void AgentSlot::go_on_later() {
  Live* live = life_.as<Live>();
  if (live == nullptr || inbox_.empty() || std::exchange(live->goes_on_later, true)) return;
  parts_.services.loop.post(task([](AgentSlot& slot) { slot.go_on(); }));
}

void AgentSlot::go_on() {
  if (Live* live = life_.as<Live>()) live->goes_on_later = false;
  after_turn();
}

void AgentSlot::deliver(OwnedEvent event) {
  LiveAgent& live = *this->live();
  const bool again = event.interruptions.count > 0;
  const bool has_due = event.interruptions.has_due();
  if (has_due && parts_.services.loop.clock().steady_now() >= event.interruptions.due) {
    inbox_.give_up(event);
    return;
  }
  Connection* const client = parts_.services.connections.find(event.connection);
  if (event.kind == EventKind::kConnect) {
    if (client == nullptr) return;
    client->connect_in_progress = true;
    if (!again) {
      if (!live.admit(*client, last_activity_)) client->connect_in_progress = false;
      return;
    }
    event.name = client->target;  // the client was let in before, and has its handshake
  }
  const bool is_closed = client != nullptr && client->state == ConnectionState::kClosed;
  if (again && event.kind == EventKind::kCall && client != nullptr &&
      (is_closed || client->closing))
    return;                           // it ran once, and no client is left to read a second answer
  if (is_closed) event.sink.reset();  // the event counts, but no client gets the answer
  live.deliver(lend(event), last_activity_);
}

// ---- clients ------------------------------------------------------------------------------------

void AgentSlot::connect(ConnectionId id) {
  inbox_.add(id);
  Event incoming;
  incoming.kind = EventKind::kConnect;
  incoming.connection = id;
  accept(std::move(incoming));
}

void AgentSlot::disconnected(ConnectionId id, std::uint16_t code, std::string_view reason,
                             bool was_clean) {
  Connection* client = parts_.services.connections.find(id);
  const bool known =
      client->state == ConnectionState::kConnecting || client->state == ConnectionState::kOpen;
  client->state = ConnectionState::kClosed;
  if (LiveAgent* agent = live()) agent->in_progress().forget_connection(id);
  if (!known || parts_.stopping) {
    (void)inbox_.queue().take_if([id](const OwnedEvent& event) { return event.connection == id; });
    forget(id);
    return;
  }
  Event incoming;
  incoming.kind = EventKind::kClose;
  incoming.connection = id;
  incoming.origin = client->origin;
  incoming.name = reason;
  incoming.flags = code | (was_clean ? 0x10000U : 0U);  // HEARTH_CLOSE_WAS_CLEAN
  accept(std::move(incoming));
}

void AgentSlot::forget(ConnectionId id) {
  if (LiveAgent* agent = live()) agent->in_progress().forget_connection(id);
  inbox_.forget(id);
  parts_.look_at_unused(*this);
}

// ---- the way in ---------------------------------------------------------------------------------

void AgentSlot::be_awake() {
  touch();
  hurry_end();
  if (!in_memory()) wake();
}

void AgentSlot::wake() {
  HEARTH_ASSERT(!in_memory(), "wake() of an agent that is in memory");
  AlarmClock& alarms = parts_.services.alarms;
  if (parts_.stopping) {
    refuse_waiting(Error{Errc::kClosing, "the server is shutting down"}, kCloseGoingAway);
    return;
  }
  if (state() == AgentState::kCondemned || parts_.services.condemned.is_under_way(key_))
    return await_removal();
  if (parts_.services.condemned.contains(
          key_)) {  // files that could not be removed must not come back
    refuse_waiting(Error{Errc::kUnavailable, "the agent is being destroyed; try again later"},
                   kCloseTryAgainLater);
    return;
  }
  std::shared_ptr<const ServedClass> served = parts_.services.classes.find(segment_);
  if (!served) {
    alarms.look_again(key_, kClassMissingRetry);
    const Error missing{Errc::kUnavailable, "the class is not loaded"};
    if (!parts_.services.classes.is_awaited(segment_))
      return refuse_waiting(missing, kCloseTryAgainLater);
    // Events of the agent's own clients wait with their clients, CLOSE included.
    leave_room_line();
    inbox_.refuse_strangers(missing, kCloseTryAgainLater);
    parts_.look_at_unused(*this);
    return;
  }
  if (!served->refusal.empty()) {
    alarms.look_again(key_, kClassMissingRetry);
    refuse_waiting(Error{Errc::kUnavailable, served->refusal}, kCloseTryAgainLater);
    return;
  }
  if (awaits_decision(*served)) {
    alarms.look_again(key_, kClassMissingRetry);
    return;
  }
  forget_failed_start();
  if (!lacks_room()) make_instance(std::move(served));
}

void AgentSlot::make_instance(std::shared_ptr<const ServedClass> served) {
  const ShardServices& services = parts_.services;
  ++served->starts->agents;
  parts_.admission.enter(*this);
  services.metrics.of_class(key_.agent_class).live_agents.add(1);
  Waking& waking = life_.enter(Waking{{served, nullptr, parts_.handles.add(*this)}});
  waking.since = services.loop.clock().steady_now();
  const extensions::Span span = parts_.services.spans.root();
  waking.span = span;
  if (served->settings.is_object) services.metrics.of_class(key_.agent_class).object_came();
  settling_ = true;  // results of START are handled below, once START is delivered
  Result<void> starting;
  Ending how{.reason = EvictReason::kAdmin};
  try {
    waking.live = make_live(waking);
    starting = waking.live->start(span);
  } catch (const OutOfDescriptors& failure) {  // agent boundary
    // Another taker got the descriptors that lacks_room() had found. This is no failure of the
    // agent, which waits for others.
    services.logger.write(LogLevel::kDebug, "agent.lost_descriptors",
                          {{"class", key_.agent_class},
                           {"agent", key_.name},
                           {"error", std::string_view(failure.what())}});
    if (waking.live) waking.live->give_up(failure.what());
    how.lost_descriptors = true;
  } catch (const StorageError& failure) {  // agent boundary
    services.note_storage_failed(key_, failure, span);
    if (waking.live) waking.live->give_up(failure.what());
    starting = Error{Errc::kInternal, "the agent's storage cannot be opened"};
  }
  settling_ = false;
  if (starting.has_error()) {
    const bool is_for_clients = waking.live && waking.live->check_schema().has_error();
    how.start_failure = Ending::StartFailure{
        .error = starting.error(), .is_for_clients = is_for_clients, .span = span};
  }
  if (how.lost_descriptors || how.start_failure) {
    begin_ending(std::move(how));
  } else {
    after_turn();
  }
}

std::unique_ptr<LiveAgent> AgentSlot::make_live(const Resident& resident) {
  const ServedClass& served = *resident.served;
  const LiveAgent::Parts parts{key_, segment_, inbox_, [this] { after_turn(); },
                               [this] { look(); }};
  return std::make_unique<LiveAgent>(parts, parts_.services, served.agent_class, served.settings,
                                     resident.handle);
}

void AgentSlot::migrated(const Completion& completion) {
  if (state() != AgentState::kWaking) return;  // the agent leaves, and MIGRATE is rolled back
  const Result<void> begun = live()->migrated(completion);
  if (begun.has_error())
    begin_ending(
        Ending{.reason = EvictReason::kAdmin,
               .start_failure = Ending::StartFailure{
                   .error = begun.error(), .call = completion.call, .span = completion.span}});
}

void AgentSlot::started(const Completion& completion) {
  // An agent that ends whenever it starts must not be started again and again for one waiting
  // event.
  std::optional<Ending::StartFailure> failure;
  if (completion.error) failure = Ending::StartFailure{.error = *completion.error};
  if (!failure && live()->broken()) failure = if_waking("the agent's storage failed");
  if (!failure && live()->eviction_requested())
    failure = if_waking("the agent evicted itself as it started");
  if (failure) {
    failure->call = completion.call;
    failure->span = completion.span;
    begin_ending(Ending{.reason = EvictReason::kAdmin, .start_failure = std::move(failure)});
    return;
  }
  Waking* waking = life_.as<Waking>();
  if (waking == nullptr) return;
  if (waking->served->settings.is_object) {
    parts_.services.metrics.of_class(key_.agent_class).object_started(now() - waking->since);
    (void)parts_.services.logger.record_limited(
        LogLevel::kDebug, "object.woken", {key_.agent_class},
        {{"class", key_.agent_class}, {"agent", key_.name}}, extensions::kAuditLimit);
  }
  Live next;
  static_cast<Resident&>(next) = std::move(*waking);
  next.intent = waking->intent;
  Live& live = life_.enter(std::move(next));
  parts_.services.metrics.of_class(key_.agent_class).starts.add();
  count_trial();
  parts_.services.alarms.forget_failures(key_);
  parts_.services.logger.write(LogLevel::kDebug, "agent.started",
                               {{"class", key_.agent_class}, {"agent", key_.name}});
  touch();
  arm_idle_timer(last_activity_ + std::min(kTrimAfter, live.served->settings.idle_timeout));
  if (live.intent && !live.intent->when_idle) {
    leave_now(false);
  } else if (permits_.any() || !live.live->work().empty()) {
    look();
  }
  receive_visits();
}

void AgentSlot::connected(const Completion& completion) {
  Connection* client = parts_.services.connections.find(completion.connection);
  if (client == nullptr) return;
  client->connect_in_progress = false;
  client->forget_headers();
  if (completion.error) {
    write_failure("agent.connect_failed", *completion.error, completion.call, completion.span);
    (void)live()->of<extensions::ConnectionExtension>().close(
        completion.connection, kCloseInternalError, "connection set-up failed");
  }
  if (client->state == ConnectionState::kConnecting) client->state = ConnectionState::kOpen;
}

void AgentSlot::write_failure(std::string_view line, const Error& failure, CallId call,
                              const extensions::Span& span) const {
  const std::string trace = span.text();
  parts_.services.logger.write_limited(
      LogLevel::kWarn, line, {key_.agent_class, to_string(failure.code)},
      extensions::agent_line(
          {.agent_class = key_.agent_class, .agent = key_.name, .call = call, .trace = trace},
          {{"error", failure.message}}));
}

// ---- turns --------------------------------------------------------------------------------------

void AgentSlot::after_turn() {
  if (settling_) return;  // the loop below goes on
  settling_ = true;
  try {
    settle();
  } catch (
      const StorageError& failure) {  // agent boundary: whatever touched storage on the way here
    live()->storage_failed(failure.what());
    end(EvictReason::kAdmin);
  }
  settling_ = false;
  count_trial();
}

void AgentSlot::settle() {
  SteadyTime began{};
  unsigned delivered = 0;
  LiveAgent* const agent = live();  // it stays until the loop's next task, whatever happens here
  if (agent == nullptr) return;
  do {
    touch();
    if (delivered == 0) began = last_activity_;
    // An agent that destroys itself whenever it starts must not be started again and again for one
    // waiting event.
    if (agent->destruction_requested())
      begin_ending(Ending{.reason = EvictReason::kDestroyed,
                          .start_failure = if_waking("the agent destroyed itself")});
    for (const Completion& completion : agent->in_progress().take_completions())
      completed(completion);
    if (agent->broken()) {
      begin_ending(Ending{.reason = EvictReason::kAdmin,
                          .start_failure = if_waking("the agent's storage failed")});
    } else if (agent->eviction_requested()) {
      evict(EvictReason::kAdmin);
    }
    // Answers share a wait for the device with other agents' answers while there is time.
    if (parts_.stopping && agent->in_progress().empty() && !agent->awaits_durability())
      evict(EvictReason::kShutdown);
    if (delivered++ == kMostAtOnce || last_activity_ - began >= kLongestAtOnce) go_on_later();
  } while (deliver_next() || agent->in_progress().has_completions());
  after_settling();
}

// What the slot does once no event can be delivered now.
void AgentSlot::after_settling() {
  if (Live* live = life_.as<Live>()) {
    LiveAgent& agent = *live->live;
    if (!agent.lent() && !agent.entered() && agent.checkpoint_due()) checkpoint(agent);
    // When the agent leaves, another thread may get its database.
    const bool leaves_when_idle = live->candidacy || (live->intent && live->intent->when_idle);
    if (leaves_when_idle && inbox_.empty() && agent.idle()) leave_while_idle();
  }
  if (Live* live = life_.as<Live>()) {
    const LiveAgent& agent = *live->live;
    if (agent.work().due() || (permits_.recovery && agent.work().recovery().due())) look();
  }
  parts_.admission.may_be_idle(*this);
}

void AgentSlot::completed(const Completion& completion) {
  if (rule_of(completion.kind).is_timed)
    live()->figures().event_took(last_activity_ - completion.began);
  if (completion.kind == EventKind::kMigrate) migrated(completion);
  if (completion.kind == EventKind::kStart) started(completion);
  if (completion.kind == EventKind::kConnect) connected(completion);
  if (completion.kind == EventKind::kClose) forget(completion.connection);
  if (completion.kind == EventKind::kEvict) {
    if (const Leaving* leaving = life_.as<Leaving>()) end(leaving->reason);
  }
  if (rule_of(completion.kind).sender == EventSender::kWork) look();
}

void AgentSlot::checkpoint(LiveAgent& agent) {
  agent.lend();
  const auto run = [&agent, &loop = parts_.services.loop](bool) {
    loop.post([&agent, trouble = agent.checkpoint()] { agent.take_back(trouble); });
  };
  BlockingPool* const pool = parts_.services.checkpointers;
  if (pool == nullptr || !pool->run(run)) run(true);
}

// ---- idleness -----------------------------------------------------------------------------------

void AgentSlot::touch() {
  last_activity_ = parts_.services.loop.clock().steady_now();
  Live* live = life_.as<Live>();
  if (live != nullptr && std::exchange(live->trimmed, false))
    arm_idle_timer(last_activity_ + std::min(kTrimAfter, live->served->settings.idle_timeout));
  if (in_memory()) parts_.admission.used(*this, last_activity_);
}

void AgentSlot::arm_idle_timer(SteadyTime due) {
  // One timer a live agent, moved only when it fires: traffic costs nothing.
  life_.as<Live>()->idle_timer =
      LoopTimer(parts_.services.loop, due, [this] { idle_timer_fired(); });
}

void AgentSlot::idle_timer_fired() {
  Live& live = *life_.as<Live>();
  const SteadyTime now = parts_.services.loop.clock().steady_now();
  const std::chrono::milliseconds timeout = live.served->settings.idle_timeout;
  if (!inbox_.empty() || !live.live->idle()) {
    touch();
    // With a shorter timeout it soon leaves memory anyway.
    if (timeout >= kTrimAfter) live.live->trim(extensions::Trim::kUnused);
  } else if (now - last_activity_ >= timeout) {
    evict(EvictReason::kIdle);
    return;
  } else if (!live.trimmed && now - last_activity_ >= kTrimAfter) {
    live.live->trim(extensions::Trim::kAll);
    live.trimmed = true;
    if (live.live->checkpoint_due(true)) checkpoint(*live.live);
  }
  arm_idle_timer(last_activity_ + (live.trimmed ? timeout : std::min(kTrimAfter, timeout)));
}

}  // namespace hearth::runtime
