#include "runtime/shard.hpp"

#include "base/assert.hpp"
#include "storage/data_directory.hpp"
#include "storage/descriptors.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace hearth::runtime {
namespace {

// One shard's part of a limit of the whole server.
std::size_t share_of(std::size_t limit, unsigned count) {
  return std::max<std::size_t>(1, (limit + count - 1) / count);
}

// The class of an agent that should be awake is not loaded: it may come later.
constexpr std::chrono::milliseconds kUnknownClassRetry{60'000};

Event event_of(const Connection& client, EventKind kind, std::string_view body,
               std::unique_ptr<CallSink> sink = nullptr) {
  Event event;
  event.kind = kind;
  event.connection = client.id;
  event.origin = client.origin;
  event.body = body;
  event.sink = std::move(sink);
  return event;
}

}  // namespace

unsigned shard_index(const storage::AgentKey& key, unsigned count) {
  // (Most agents are roots, whose key needs no copy.)
  const std::hash<storage::AgentKey> hash;
  return static_cast<unsigned>((key.is_sub_agent() ? hash(key.root()) : hash(key)) % count);
}

Shard::Shard(unsigned index, unsigned count, ShardLoop& loop, const ShardEnvironment& environment,
             Metrics& metrics)
    : index_(index),
      loop_(loop),
      metrics_(metrics),
      durable_events_(
          environment.logger, metrics,
          [&classes = environment.classes](std::string_view agent_class, std::string_view kind) {
            const auto served = classes.find_by_name(agent_class);
            return served != nullptr && served->agent_class->listed_effect(kind).has_value();
          }),
      connections_({metrics_.connections, metrics_.dropped_for_memory, environment.logger,
                    environment.client_memory}),
      directory_(environment.data.directory_path(), environment.data.directory_vfs()),
      files_(environment.data, directory_, loop.clock(), environment.logger),
      wakes_(directory_),
      admission_(loop, share_of(environment.limits.max_live_agents, count),
                 environment.object_places, &storage::can_open_files),
      steps_(loop, environment.limits.recovery_share),
      alarms_({loop, wakes_, steps_, metrics_, environment.random}, alarmed_agents(),
              share_of(environment.limits.max_recovering, count),
              share_of(environment.limits.max_waking, count)),
      condemned_({directory_, environment.data, wakes_, environment.logger, loop, alarms_,
                  environment.closers, environment.sync, environment.directory_wal, alive_,
                  [this](const storage::AgentKey& key) { return !is_cold(key); },
                  [this](const storage::AgentKey& key) {
                    if (AgentSlot* slot = find_slot(key)) slot->removal_is_over();
                  }}),
      handles_(index),
      services_{environment,
                loop,
                durable_events_,
                metrics_,
                connections_,
                files_,
                condemned_,
                alarms_,
                alive_,
                {.http = environment.http_port ? environment.http_port(index) : nullptr,
                 .agents = environment.agent_router ? environment.agent_router(index) : nullptr,
                 .sub_agents = this},
                extensions::SpanSource(environment.random, environment.span_log)},
      slot_parts_{services_,
                  admission_,
                  handles_,
                  steps_,
                  stopping_,
                  [this](const AgentSlot& slot) { look_at_unused(slot); },
                  [this] { one_left(); },
                  [this](const storage::AgentKey& key) { end_below(key); }} {
  services_.ports.spans = &services_.spans;
  directory_.leave_wal_to(environment.directory_checkpointer);
  const auto mine = [index, count](const storage::AgentKey& key) {
    return shard_index(key, count) == index;
  };
  condemned_.load(mine);  // first: no work of such an agent is due any more
  wakes_.load(unix_millis(loop_.clock().wall_now()), mine, environment.random);
}

Shard::~Shard() {
  *alive_ = false;
}

// ---- what clients do ----------------------------------------------------------------------------

ConnectionId Shard::connect(const storage::AgentKey& key, std::string_view segment,
                            ConnectRequest request, std::unique_ptr<ConnectionPort> port) {
  client_came();
  AgentSlot& slot = slot_for(key, segment);
  const ConnectionId id = connections_.add(&slot, std::move(request), std::move(port)).id;
  slot.connect(id);
  return id;
}

Connection* Shard::client_of(ConnectionId id) {
  client_came();
  Connection* client = connections_.find(id);
  return client == nullptr || client->closing ? nullptr : client;
}

void Shard::message(ConnectionId id, std::string_view payload, FrameKind kind) {
  if (Connection* const client = client_of(id)) {
    Event incoming = event_of(*client, EventKind::kMessage, payload);
    incoming.flags = static_cast<std::uint32_t>(kind);
    client->slot->accept(std::move(incoming));
  }
}

void Shard::call(ConnectionId id, std::string_view method, std::string_view arguments,
                 std::unique_ptr<CallSink> sink) {
  if (Connection* const client = client_of(id)) {
    Event incoming = event_of(*client, EventKind::kCall, arguments, std::move(sink));
    incoming.name = method;
    client->slot->accept(std::move(incoming));
  }
}

void Shard::write_state(ConnectionId id, std::string_view json, std::unique_ptr<CallSink> sink) {
  if (Connection* const client = client_of(id))
    client->slot->accept(event_of(*client, EventKind::kStateCheck, json, std::move(sink)));
}

void Shard::disconnected(ConnectionId id, std::uint16_t code, std::string_view reason,
                         bool was_clean) {
  Connection* client = connections_.find(id);
  if (client == nullptr || client->state == ConnectionState::kClosed) return;
  client->slot->disconnected(id, code, reason, was_clean);
}

void Shard::ask_for_sub_agent(const storage::AgentKey& key, std::string_view segment,
                              const storage::AgentKey& child, std::unique_ptr<RequestHead> head,
                              std::unique_ptr<CallSink> sink) {
  const std::string name = child.own_name();
  Event incoming;
  incoming.kind = EventKind::kSubAgent;
  incoming.name = child.agent_class;
  incoming.body = name;
  accept_request(slot_for(key, segment), std::move(incoming), std::move(head), std::move(sink));
}

void Shard::request(const storage::AgentKey& key, std::string_view segment, std::string_view method,
                    std::string_view body, std::unique_ptr<RequestHead> head,
                    std::unique_ptr<CallSink> sink) {
  Event incoming;
  incoming.kind = EventKind::kRequest;
  incoming.name = method;
  incoming.body = body;
  if (head->body) incoming.flags = extensions::kUnreadBody;
  accept_request(slot_for(key, segment), std::move(incoming), std::move(head), std::move(sink));
}

void Shard::accept_request(AgentSlot& slot, Event event, std::unique_ptr<RequestHead> head,
                           std::unique_ptr<CallSink> sink) {
  client_came();
  head->held.emplace(services_.client_memory, text_bytes(*head));
  event.origin = traced_origin(head->headers);
  event.request = std::move(head);
  event.sink = std::move(sink);
  slot.accept(std::move(event));
}

void Shard::call(const AgentCallIn& call, std::unique_ptr<CallSink> sink) {
  try {
    if (call.must_exist && !exists(call.key))
      return sink->finish({}, Error{Errc::kNotFound, "there is no such agent"});
  } catch (const StorageError& failure) {  // agent boundary
    services_.logger.write_limited(LogLevel::kError, "directory.read_failed", {},
                                   {{"error", std::string_view(failure.what())}});
    return sink->finish({}, Error{Errc::kInternal, "the directory of agents cannot be read"});
  }
  if (call.is_of_client) {
    client_came();
    metrics_.of_class(call.key.agent_class).object_called(call.method, [&] {
      const auto served = services_.classes.find(call.segment);
      return std::string(served == nullptr ? "[]" : served->agent_class->methods());
    });
  }
  if (call.retry_key) sink = keyed_calls_.enter(call.key, *call.retry_key, std::move(sink));
  if (!sink) return;
  Event incoming;
  incoming.kind = EventKind::kCall;
  incoming.name = call.method;
  incoming.body = call.arguments;
  incoming.sink = std::move(sink);
  incoming.origin = call.origin;
  incoming.retry_key = call.retry_key;
  AgentSlot& slot = slot_for(call.key, call.segment);
  const auto timeout = call.timeout.count() > 0 ? call.timeout : slot.call_timeout();
  incoming.interruptions.timeout = timeout;
  incoming.interruptions.reads_no_parts = call.is_of_client;
  incoming.interruptions.due = loop_.clock().steady_now() + timeout;
  slot.accept(std::move(incoming));
}

void Shard::pace(std::function<void()> step) {
  admission_.work_waits();
  steps_.add(StepKind::kArrival, [this, step = std::move(step)] {
    admission_.work_goes_on();
    step();
  });
}

bool Shard::exists(const storage::AgentKey& key) {
  if (condemned_.contains(key)) return false;
  const AgentSlot* const slot = find_slot(key);
  return (slot != nullptr && slot->life().in_memory()) || directory_.contains(key);
}

// ---- agents whose time has come ----------------------------------------------------------------

void Shard::start_alarms() {
  if (!condemned_.empty()) condemned_.finish_later();
  alarms_.start();
}

bool Shard::is_cold(const storage::AgentKey& key) const {
  const AgentSlot* slot = find_slot(key);
  return slot == nullptr || !slot->life().in_memory();
}

AlarmClock::Agents Shard::alarmed_agents() {
  return {
      .is_cold = [this](const storage::AgentKey& key) { return is_cold(key); },
      .look = [this](const storage::AgentKey& key) { slots_.at(key)->come_for_work(); },
      .let_recover = [this](const storage::AgentKey& key) { slots_.at(key)->work().let_recover(); },
      .wake = [this](const storage::AgentKey& key, PermitKind kind) { wake(key, kind); }};
}

void Shard::wake(const storage::AgentKey& key, PermitKind kind) {
  const auto served = services_.classes.find_by_name(key.agent_class);
  if (!served || !served->refusal.empty()) {
    alarms_.look_again(key, kUnknownClassRetry);
    durable_events_.report(extensions::DurableEvent::kAlarmClassMissing,
                           {.agent_class = key.agent_class, .agent = key.name}, "", "");
    return;
  }
  slot_for(key, served->segment).entry().wake_for_work(kind);
}

// ---- sub-agents ---------------------------------------------------------------------------------

std::vector<extensions::SubAgent> Shard::list(const storage::AgentKey& above,
                                              const storage::AgentKey& after, std::size_t limit) {
  std::vector<extensions::SubAgent> found;
  for (storage::DirectoryEntry& each : directory_.list_below(above, true, after, limit)) {
    if (!condemned_.contains(each.key)) found.push_back({std::move(each.key), each.created_at_ms});
  }
  return found;
}

Result<void> Shard::destroy(const storage::AgentKey& key, extensions::AgentHandle by) {
  if (condemned_.contains(key) || !directory_.contains(key))
    return Error{Errc::kNotFound, "there is no such sub-agent"};
  condemned_.condemn(key);
  if (LiveAgent* const live = find_agent(by)) live->store().commits().directory_was_written(true);
  end_condemned(key);
  end_below(key);
  return {};
}

// ---- slots --------------------------------------------------------------------------------------

AgentSlot& Shard::slot_for(const storage::AgentKey& key, std::string_view segment) {
  std::unique_ptr<AgentSlot>& slot = slots_[key];
  if (!slot) {
    slot = std::make_unique<AgentSlot>(slot_parts_, key, std::string(segment));
    metrics_.slots.set(std::ssize(slots_));
  }
  return *slot;
}

AgentSlot* Shard::find_slot(const storage::AgentKey& key) const {
  const auto found = slots_.find(key);
  return found == slots_.end() ? nullptr : found->second.get();
}

void Shard::look_at_unused(const AgentSlot& slot) {
  if (!slot.is_unused()) return;
  loop_.post([alive = alive_, this, key = slot.key()] {
    if (!*alive) return;
    const auto found = slots_.find(key);
    if (found == slots_.end() || !found->second->is_unused()) return;
    slots_.erase(found);
    metrics_.slots.set(std::ssize(slots_));
  });
}

LiveAgent* Shard::find_agent(AgentHandle handle) {
  const AgentLife* const agent = handles_.find(handle);
  return agent == nullptr ? nullptr : agent->live();
}

std::vector<AgentSlot*> Shard::residents() const {
  std::vector<AgentSlot*> slots;
  slots.reserve(admission_.residents().size());
  for (Admission::Applicant* const agent : admission_.residents())
    slots.push_back(static_cast<AgentSlot*>(agent));  // all residents are slots
  return slots;
}

Shard::Counts Shard::counts() const {
  return Counts{admission_.residents().size(), slots_.size(), connections_.size()};
}

void Shard::end_below(const storage::AgentKey& above) {
  for (const storage::AgentKey& key : condemned_.below(above)) end_condemned(key);
}

// Later, because code of an agent may be on the stack.
void Shard::end_condemned(const storage::AgentKey& key) {
  loop_.post([alive = alive_, this, key] {
    if (!*alive || !condemned_.contains(key)) return;
    AgentSlot* const slot = find_slot(key);
    if (slot != nullptr && slot->life().in_memory())
      return slot->exit().end(EvictReason::kDestroyed);
    if (slot != nullptr) slot->was_condemned();
    condemned_.finish(key);
  });
}

// ---- the end ------------------------------------------------------------------------------------

void Shard::stop(SteadyTime deadline, std::function<void()> done) {
  stopping_ = true;
  alarms_.stop();
  condemned_.stop();
  stopped_ = std::move(done);
  std::vector<AgentSlot*> slots;
  slots.reserve(slots_.size());
  for (const auto& [key, slot] : slots_) slots.push_back(slot.get());
  for (AgentSlot* slot : slots) slot->begin_shutdown();
  stop_timer_ = LoopTimer(loop_, deadline, [this] {
    services_.logger.write(LogLevel::kWarn, "shard.stop_deadline",
                           {{"shard", index_}, {"busy_agents", admission_.residents().size()}});
    for (AgentSlot* slot : residents()) slot->exit().end(EvictReason::kShutdown);
  });
  one_left();
}

void Shard::one_left() {
  if (!stopped_ || !admission_.residents().empty()) return;
  stop_timer_.cancel();
  admission_.stop();
  const std::function<void()> done = std::exchange(stopped_, {});
  done();
}

}  // namespace hearth::runtime
