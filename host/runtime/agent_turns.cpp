#include "runtime/agent_turns.hpp"

#include "base/assert.hpp"
#include "base/close_codes.hpp"
#include "extensions/connections.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/idleness.hpp"

#include <utility>
#include <vector>

namespace hearth::runtime {

// ---- events in ----------------------------------------------------------------------------------

bool AgentTurns::deliver_now(Event& incoming) {
  const Live* live = place_.life.as<Live>();
  if (live == nullptr || incoming.kind == EventKind::kConnect || !place_.inbox.empty())
    return false;
  if (live->settling || live->live->store().broken() || live->leaves_before_event()) return false;
  if (!delivery().may_begin(incoming.kind, incoming.name, incoming.connection)) return false;
  // Borrowed views: nothing is copied on this path.
  live->live->deliver(std::move(incoming), last_activity_);
  return true;
}

Delivery AgentTurns::delivery() const {
  const Resident& resident = *place_.life.resident();
  LiveAgent& live = *resident.live;
  const AgentCalls& calls = live.calls();
  return {.clients = place_.services.connections,
          .order = resident.served->call_order(),
          .is_full = live.store().loan().is_out() || live.store().checkpoint_due() ||
                     live.store().outbox().is_crowded() ||
                     calls.client_events() >= resident.served->settings.max_events,
          .runs_method = calls.runs_method(),
          .runs_alone = calls.runs_alone()};
}

bool AgentTurns::deliver_next() {
  const Live* live = place_.life.as<Live>();
  if (live == nullptr || live->live->store().broken() || live->goes_on_later ||
      place_.inbox.empty())
    return false;
  std::optional<OwnedEvent> event = delivery().take_next(place_.inbox.queue());
  if (event) deliver(std::move(*event));
  return event.has_value();
}

void AgentTurns::go_on_later() {
  Live* live = place_.life.as<Live>();
  if (live == nullptr || place_.inbox.empty() || std::exchange(live->goes_on_later, true)) return;
  place_.services.loop.post(place_.task([this] {
    if (Live* waited = place_.life.as<Live>()) waited->goes_on_later = false;
    after_turn();
  }));
}

void AgentTurns::deliver(OwnedEvent event) {
  LiveAgent& live = *place_.life.live();
  const bool again = event.interruptions.count > 0;
  const bool has_due = event.interruptions.has_due();
  if (has_due && place_.now() >= event.interruptions.due) {
    place_.inbox.give_up(event);
    return;
  }
  Connection* const client = place_.services.connections.find(event.connection);
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

// ---- START and CONNECT --------------------------------------------------------------------------

void AgentTurns::end(EvictReason reason, const char* why) {
  Ending how{.reason = reason};
  if (const Waking* const waking = place_.life.as<Waking>())
    how.start_failure =
        Ending::StartFailure{.error = Error{Errc::kInternal, why}, .span = waking->span};
  exit_.begin(std::move(how));
}

void AgentTurns::start_failed(const Completion& completion, const Error& why) {
  exit_.begin(Ending{.reason = EvictReason::kAdmin,
                     .start_failure = Ending::StartFailure{
                         .error = why, .call = completion.call, .span = completion.span}});
}

void AgentTurns::migrated(const Completion& completion) {
  if (place_.life.state() != AgentState::kWaking)
    return;  // the agent leaves, and MIGRATE is rolled back
  const Result<void> begun = place_.life.live()->migrated(completion);
  if (begun.has_error()) start_failed(completion, begun.error());
}

void AgentTurns::started(const Completion& completion) {
  // An agent that ends whenever it starts must not be started again and again for one waiting
  // event.
  if (completion.error) return start_failed(completion, *completion.error);
  Waking* waking = place_.life.as<Waking>();
  if (waking == nullptr) return;
  const char* const trouble = waking->live->store().broken() ? "the agent's storage failed"
                              : waking->live->context().wants_eviction()
                                  ? "the agent evicted itself as it started"
                                  : nullptr;
  if (trouble != nullptr) return start_failed(completion, Error{Errc::kInternal, trouble});
  if (waking->served->settings.is_object) {
    place_.services.metrics.of_class(place_.key.agent_class)
        .object_started(place_.now() - waking->since);
    (void)place_.services.logger.record_limited(
        LogLevel::kDebug, "object.woken", {place_.key.agent_class},
        {{"class", place_.key.agent_class}, {"agent", place_.key.name}}, extensions::kAuditLimit);
  }
  Live next;
  static_cast<Resident&>(next) = std::move(*waking);
  next.intent = waking->intent;
  Live& live = place_.life.enter(std::move(next));
  place_.services.metrics.of_class(place_.key.agent_class).starts.add();
  work_.count_trial();
  place_.services.alarms.forget_failures(place_.key);
  place_.services.logger.write(LogLevel::kDebug, "agent.started",
                               {{"class", place_.key.agent_class}, {"agent", place_.key.name}});
  touch();
  watch_idleness();
  if (live.leaves_before_event()) {
    exit_.leave_now();
  } else if (work_.permits().any() || !live.live->store().work().empty()) {
    work_.look();
  }
  if (place_.life.state() == AgentState::kLive) visits_.go_to(*live.live);
}

void AgentTurns::connected(const Completion& completion) {
  Connection* client = place_.services.connections.find(completion.connection);
  if (client == nullptr) return;
  client->connect_in_progress = false;
  client->forget_headers();
  if (completion.error) {
    place_.services.write_failure("agent.connect_failed", place_.key, *completion.error,
                                  completion.call, completion.span);
    (void)place_.life.live()->context().of<extensions::ConnectionExtension>().close(
        completion.connection, kCloseInternalError, "connection set-up failed");
  }
  if (client->state == ConnectionState::kConnecting) client->state = ConnectionState::kOpen;
}

// ---- turns --------------------------------------------------------------------------------------

void AgentTurns::after_turn() {
  Resident* const resident = place_.life.resident();
  if (resident == nullptr || resident->live == nullptr || resident->settling) return;
  resident->settling = true;
  try {
    settle();
  } catch (
      const StorageError& failure) {  // agent boundary: whatever touched storage on the way here
    place_.life.live()->context().storage_failed(failure.what());
    exit_.end(EvictReason::kAdmin);
  }
  place_.life.resident()->settling = false;  // its state may be another one by now
  work_.count_trial();
}

void AgentTurns::settle() {
  SteadyTime began{};
  unsigned delivered = 0;
  LiveAgent* const agent = place_.life.live();  // it stays until the loop's next task
  do {
    touch();
    if (delivered == 0) began = last_activity_;
    // An agent that destroys itself whenever it starts must not be started again and again for one
    // waiting event.
    if (agent->context().wants_destruction())
      end(EvictReason::kDestroyed, "the agent destroyed itself");
    for (const Completion& completion : agent->calls().take_completions()) completed(completion);
    if (agent->store().broken()) {
      end(EvictReason::kAdmin, "the agent's storage failed");
    } else if (agent->context().wants_eviction()) {
      exit_.evict(EvictReason::kAdmin);
    }
    // Answers share a wait for the device with other agents' answers while there is time.
    if (place_.shard.stopping && agent->calls().empty() && !agent->store().awaits_durability())
      exit_.evict(EvictReason::kShutdown);
    if (delivered++ == kMostAtOnce || last_activity_ - began >= kLongestAtOnce) go_on_later();
  } while (deliver_next() || agent->calls().has_completions());
  after_settling();
}

// What the slot does once no event can be delivered now.
void AgentTurns::after_settling() {
  if (Live* live = place_.life.as<Live>()) {
    LiveAgent& agent = *live->live;
    if (!agent.store().loan().is_out() && !agent.entered() && agent.store().checkpoint_due())
      checkpoint(agent);
    exit_.leave_if_idle();  // then another thread may get its database
  }
  if (Live* live = place_.life.as<Live>()) {
    LiveAgent& agent = *live->live;
    if (agent.store().work().due() ||
        (work_.permits().recovery && agent.store().work().recovery().due()))
      work_.look();
  }
  place_.shard.admission.may_be_idle(place_.applicant);
}

void AgentTurns::completed(const Completion& completion) {
  if (rule_of(completion.kind).is_timed)
    place_.life.live()->context().figures().event_took(last_activity_ - completion.began);
  if (completion.kind == EventKind::kMigrate) migrated(completion);
  if (completion.kind == EventKind::kStart) started(completion);
  if (completion.kind == EventKind::kConnect) connected(completion);
  if (completion.kind == EventKind::kClose) place_.forget(completion.connection);
  if (completion.kind == EventKind::kEvict) {
    if (const Leaving* leaving = place_.life.as<Leaving>()) exit_.end(leaving->reason);
  }
  if (rule_of(completion.kind).sender == EventSender::kWork) work_.look();
}

void AgentTurns::checkpoint(LiveAgent& agent) {
  HEARTH_ASSERT(!agent.entered(), "lent while its code is on the stack");
  agent.store().lend();
  const auto run = [&agent, &loop = place_.services.loop](bool) {
    loop.post([&agent, trouble = agent.store().database().checkpoint()] {
      agent.store().take_back(trouble);
    });
  };
  BlockingPool* const pool = place_.services.checkpointers;
  if (pool == nullptr || !pool->run(run)) run(true);
}

// ---- idleness -----------------------------------------------------------------------------------

void AgentTurns::touch() {
  last_activity_ = place_.now();
  Live* live = place_.life.as<Live>();
  if (live != nullptr && std::exchange(live->trimmed, false)) watch_idleness();
  if (place_.life.in_memory())
    place_.shard.admission.residents().used(place_.applicant, last_activity_);
}

void AgentTurns::watch_idleness() {
  // One timer a live agent, moved only when it fires: traffic costs nothing.
  Live& live = *place_.life.as<Live>();
  const SteadyTime due =
      last_activity_ + next_look(live.served->settings.idle_timeout, live.trimmed);
  live.idle_timer = LoopTimer(place_.services.loop, due, [this] { look_if_idle(); });
}

void AgentTurns::look_if_idle() {
  Live& live = *place_.life.as<Live>();
  const bool is_busy = !place_.inbox.empty() || !live.live->idle();
  const auto timeout = live.served->settings.idle_timeout;
  const IdleStep step = idle_step(place_.now() - last_activity_, timeout, is_busy, live.trimmed);
  if (is_busy) touch();
  if (step == IdleStep::kLeave) return exit_.evict(EvictReason::kIdle);
  if (step == IdleStep::kTrimUnused) live.live->store().trim(extensions::Trim::kUnused);
  if (step == IdleStep::kTrimAll) {
    live.live->store().trim(extensions::Trim::kAll);
    live.trimmed = true;
    if (live.live->store().checkpoint_due(true)) checkpoint(*live.live);
  }
  watch_idleness();
}

}  // namespace hearth::runtime
