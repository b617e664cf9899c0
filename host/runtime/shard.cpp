#include "runtime/shard.hpp"

#include "runtime/object_places.hpp"
#include "storage/data_directory.hpp"
#include "storage/descriptors.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {
namespace {

// One shard's part of a limit of the whole server.
std::size_t share_of(std::size_t limit, unsigned count) {
  return std::max<std::size_t>(1, (limit + count - 1) / count);
}

// The class of an agent that should be awake is not loaded: it may come later.
constexpr std::chrono::milliseconds kUnknownClassRetry{60'000};

// Wakes a cold agent for its work, if its class is served.
void wake_for_work(AgentSlots& slots, const ShardServices& services, const storage::AgentKey& key,
                   PermitKind kind) {
  const auto served = services.classes.find_by_name(key.agent_class);
  if (!served || !served->refusal.empty()) {
    services.alarms.look_again(key, kUnknownClassRetry);
    services.durable_events.report(extensions::DurableEvent::kAlarmClassMissing,
                                   {.agent_class = key.agent_class, .agent = key.name}, "", "");
    return;
  }
  slots.at(key, served->segment).entry().wake_for_work(kind);
}

AlarmClock::Agents alarmed_agents(AgentSlots& slots, const ShardServices& services) {
  using Key = storage::AgentKey;
  return {
      .is_cold = [&slots](const Key& key) { return !slots.is_in_memory(key); },
      .look = [&slots](const Key& key) { slots.find(key)->come_for_work(); },
      .let_recover = [&slots](const Key& key) { slots.find(key)->work().let_recover(); },
      .wake = [&slots, &services](const Key& key,
                                  PermitKind kind) { wake_for_work(slots, services, key, kind); }};
}

// The client, if its event is to be delivered; else null.
Connection* client_of(Connections& connections, ConnectionId id) {
  Connection* const client = connections.find(id);
  return client == nullptr || client->closing ? nullptr : client;
}

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
    : metrics_(metrics),
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
      alarms_({loop, wakes_, steps_, metrics_, environment.random},
              alarmed_agents(slots_, services_), share_of(environment.limits.max_recovering, count),
              share_of(environment.limits.max_waking, count)),
      condemned_({directory_, environment.data, wakes_, environment.logger, loop, alarms_,
                  environment.closers, environment.sync, environment.directory_wal, alive_,
                  [this](const storage::AgentKey& key) { return slots_.is_in_memory(key); },
                  [this](const storage::AgentKey& key) {
                    if (AgentSlot* slot = slots_.find(key)) slot->removal_is_over();
                  }}),
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
                 .agents = environment.agent_router ? environment.agent_router(index) : nullptr},
                extensions::SpanSource(environment.random, environment.span_log)},
      sub_agents_(directory_, services_, slots_),
      slots_(index, services_, admission_, steps_),
      admin_(services_, slots_),
      versions_(services_, slots_, steps_) {
  services_.ports.sub_agents = &sub_agents_;
  services_.ports.spans = &services_.spans;
  directory_.leave_wal_to(environment.directory_checkpointer);
  const auto mine = [index, count](const storage::AgentKey& key) {
    return shard_index(key, count) == index;
  };
  condemned_.load(mine);  // first: no work of such an agent is due any more
  wakes_.load(unix_millis(loop.clock().wall_now()), mine, environment.random);
}

Shard::~Shard() {
  *alive_ = false;
}

ConnectionId Shard::connect(const storage::AgentKey& key, std::string_view segment,
                            ConnectRequest request, std::unique_ptr<ConnectionPort> port) {
  steps_.client_came();
  AgentSlot& slot = slots_.at(key, segment);
  const ConnectionId id = connections_.add(&slot, std::move(request), std::move(port)).id;
  slot.connect(id);
  return id;
}

void Shard::message(ConnectionId id, std::string_view payload, FrameKind kind) {
  steps_.client_came();
  if (Connection* const client = client_of(connections_, id)) {
    Event incoming = event_of(*client, EventKind::kMessage, payload);
    incoming.flags = static_cast<std::uint32_t>(kind);
    client->slot->accept(std::move(incoming));
  }
}

void Shard::call(ConnectionId id, std::string_view method, std::string_view arguments,
                 std::unique_ptr<CallSink> sink) {
  steps_.client_came();
  if (Connection* const client = client_of(connections_, id)) {
    Event incoming = event_of(*client, EventKind::kCall, arguments, std::move(sink));
    incoming.name = method;
    client->slot->accept(std::move(incoming));
  }
}

void Shard::write_state(ConnectionId id, std::string_view json, std::unique_ptr<CallSink> sink) {
  steps_.client_came();
  if (Connection* const client = client_of(connections_, id))
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
  accept_request(slots_.at(key, segment), std::move(incoming), std::move(head), std::move(sink));
}

void Shard::request(const storage::AgentKey& key, std::string_view segment, std::string_view method,
                    std::string_view body, std::unique_ptr<RequestHead> head,
                    std::unique_ptr<CallSink> sink) {
  Event incoming;
  incoming.kind = EventKind::kRequest;
  incoming.name = method;
  incoming.body = body;
  if (head->body) incoming.flags = extensions::kUnreadBody;
  accept_request(slots_.at(key, segment), std::move(incoming), std::move(head), std::move(sink));
}

void Shard::accept_request(AgentSlot& slot, Event event, std::unique_ptr<RequestHead> head,
                           std::unique_ptr<CallSink> sink) {
  steps_.client_came();
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
    steps_.client_came();
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
  AgentSlot& slot = slots_.at(call.key, call.segment);
  const auto timeout = call.timeout.count() > 0 ? call.timeout : slot.call_timeout();
  incoming.interruptions.timeout = timeout;
  incoming.interruptions.reads_no_parts = call.is_of_client;
  incoming.interruptions.due = services_.loop.clock().steady_now() + timeout;
  slot.accept(std::move(incoming));
}

void Shard::pace(std::function<void()> step) {
  services_.object_places.work_waits();
  steps_.add(StepKind::kArrival, [this, step = std::move(step)] {
    services_.object_places.work_goes_on();
    step();
  });
}

bool Shard::exists(const storage::AgentKey& key) {
  if (condemned_.contains(key)) return false;
  return slots_.is_in_memory(key) || directory_.contains(key);
}

void Shard::start_alarms() {
  if (!condemned_.empty()) condemned_.finish_later();
  alarms_.start();
}

void Shard::stop(SteadyTime deadline, std::function<void()> done) {
  alarms_.stop();
  condemned_.stop();
  slots_.stop(deadline, std::move(done));
}

Shard::Counts Shard::counts() const {
  return Counts{admission_.residents().size(), slots_.size(), connections_.size()};
}

}  // namespace hearth::runtime
