// Life, events and turns. What the instance may ask of its host: live_agent_host.cpp.
#include "runtime/live_agent.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "extensions/call_answers.hpp"
#include "extensions/operations.hpp"
#include "extensions/state.hpp"
#include "runtime/agent_inbox.hpp"
#include "runtime/shard_services.hpp"

#include <algorithm>
#include <type_traits>

namespace hearth::runtime {
namespace {

storage::AgentDatabaseOptions database_options(const AgentClass& agent_class,
                                               const ClassSettings& settings, storage::Kept kept,
                                               ShardServices& services) {
  storage::AgentDatabaseOptions options = settings.database;
  options.class_schema = agent_class.schema_version();
  options.must_exist = kept != storage::Kept::kUnknown;
  options.sync = settings.durability == Durability::kPower ? &services.sync : nullptr;
  options.copy_mark = &services.files.data().copy_mark();
  return options;
}

}  // namespace

LiveAgent::LiveAgent(const Parts& parts, ShardServices& services,
                     std::shared_ptr<const AgentClass> agent_class, const ClassSettings& settings,
                     AgentHandle handle)
    : LiveAgent(parts, services, std::move(agent_class), settings, handle,
                services.files.kept(parts.key)) {}

LiveAgent::LiveAgent(const Parts& parts, ShardServices& services,
                     std::shared_ptr<const AgentClass> agent_class, const ClassSettings& settings,
                     AgentHandle handle, storage::Kept kept)
    : AgentContext({.handle = handle,
                    .key = parts.key,
                    .settings = settings,
                    .database = database_,
                    .clock = services.loop.clock(),
                    .work = work_,
                    .calls = calls_,
                    .clients = clients_,
                    .watchers = *this,
                    .ports = services.ports}),
      parts_(parts),
      services_(services),
      class_(std::move(agent_class)),
      figures_(services.metrics.of_class(parts.key.agent_class)),
      database_(services.files.data().agent_path(parts.key), parts.key,
                database_options(*class_, settings, kept, services)),
      commits_({services.files, services.alarms, services.logger, parts_.key, database_}, kept,
               settings.durability == Durability::kPower ? services.make_gate(database_) : nullptr),
      work_(database_, parts_.key, services.loop.clock(), services.random, settings,
            services.durable_events, commits_.stops()),
      outbox_(*this, commits_.gate(), services.client_memory),
      clients_(parts_.inbox, services, outbox_),
      operations_({.loop = services.loop,
                   .outbox = outbox_,
                   .connections = services.connections,
                   .loan = loan_,
                   .run_offloaded =
                       [this](const OffloadEffect& job, std::function<void(Result<void>)> done) {
                         return services_.run_offloaded(class_, job.job, origin_of(job),
                                                        job.abandoned, std::move(done));
                       },
                   .tell = [this](OperationNews news) { tell(std::move(news)); }}),
      calls_({.agent = *this,
              .agent_class = *class_,
              .services = services,
              .clients = clients_,
              .outbox = outbox_,
              .operations = operations_,
              .code = code_,
              .figures = figures_,
              .ended = [this](const Call& call,
                              const Result<std::string_view>& outcome) { ended(call, outcome); },
              .timed_out = [this](CallId id) { time_out(id); }}),
      self_(std::make_shared<LiveAgent*>(this)) {}

LiveAgent::~LiveAgent() {
  *self_ = nullptr;
  HEARTH_ASSERT(!instance_, "live agent destroyed before shut()");
}

Result<void> LiveAgent::start(const extensions::Span& span) {
  if (commits_.must_hold_back()) outbox_.hold_back();
  // The parent lists a sub-agent, and destroys it with itself, even if it stores nothing. An object
  // that was only called is listed too.
  if (parts_.key.is_sub_agent() || settings().is_object) commits_.record();
  const bool is_object = settings().is_object && !parts_.key.is_sub_agent();
  if (is_object && services_.files.record_object(parts_.key, services_.random))
    commits_.directory_was_written(false);
  work_.reports().use(calls_);
  load_work(true);
  if (Result<void> known = check_schema(); known.has_error()) return known;
  const bool migrates = must_migrate();  // asked before the instance writes anything
  {
    const auto entry = enter_code(0, span);
    auto made = class_->create(*this, parts_.key.own_name(), settings().options);
    if (made.has_error()) return calls_.explained(made.error());
    instance_ = std::move(made.value());
    calls_.instance_is_made();
  }
  if (broken_) return storage_error_for_clients();
  if (destruction_requested()) return Error{Errc::kPlugin, "the agent destroyed itself"};
  if (migrates) {
    deliver_migrate(span);
  } else {
    deliver_start(span);
  }
  return {};
}

void LiveAgent::deliver_start(const Span& cause) {
  AgentEvent event;
  event.kind = EventKind::kStart;
  deliver_own(event, spans().below(cause), services_.limits.start_timeout);
}

void LiveAgent::deliver_own(AgentEvent event, Span span, std::chrono::milliseconds time) {
  span.parent = 0;  // no span of an event
  event.call = calls_.begin(event.kind, span).first;
  event.deadline_ms = static_cast<std::uint64_t>(time.count());
  accept_call(event);
}

void LiveAgent::deliver(Event incoming, SteadyTime now) {
  if (incoming.kind == EventKind::kStateCheck) return write_state_of_client(incoming);
  if (calls_.answer_again(incoming)) return leave();
  // The request was let in while another version of the class was served.
  if (incoming.request && incoming.request->body && !class_->reads_bodies())
    return incoming.sink->finish({}, Error{Errc::kUnavailable, "the class has just changed"});
  calls_.begin(incoming, span_of(incoming.origin), now);
  if (incoming.kind == EventKind::kStateChanged) begin_cause(std::move(incoming.state_chain));
  accept_call(incoming);
}

void LiveAgent::accept_call(const AgentEvent& event) {
  calls_.entered(event, enter(event));
  leave();
}

CodeOnStack::Entry LiveAgent::enter_code(CallId call, const Span& span, std::string_view method) {
  HEARTH_ASSERT(!lent(), "instance entered while another thread has the database");
  does(code_.work_at_entry());
  return {code_, call, span.is_none() ? spans().root() : span, method};
}

Result<void> LiveAgent::enter(const AgentEvent& event, const Span& span) {
  Result<void> accepted;
  {
    const Call* const call = calls_.find(event.call);
    const auto entry =
        enter_code(event.call, call != nullptr ? call->span : span,
                   call != nullptr ? std::string_view(call->method) : std::string_view());
    if (const WorkMark work = work_of(event.call); work != WorkMark()) does(work);
    accepted = instance_->on_event(event);
  }
  // The turn is over, and so are the savepoints that it left open: later writes of the host do not
  // belong to them.
  if (extensions().in_transaction()) flush();
  return calls_.explained(accepted);
}

bool LiveAgent::admit(Connection& connection, SteadyTime now) {
  const ConnectionId id = connection.id;
  AgentEvent event;
  event.connection = id;
  event.name = connection.target;
  event.kind = EventKind::kConnecting;
  connection.deciding = true;
  const Span span = span_of(connection.origin);
  extensions::OpenSpan traced(spans().log(), span, extensions::SpanKind::kServer);
  const Result<void> decision = enter(event, span);
  connection.deciding = false;
  const bool is_let_in = !decision.has_error() || decision.error().code == Errc::kUnsupported;
  calls_.end_span(traced, event.kind, {}, is_let_in ? "" : to_string(decision.error().code));
  figures_.event_ended(EventKind::kConnecting,
                       is_let_in ? EventOutcome::kOk : EventOutcome::kError);
  if (decision.has_error() && decision.error().code != Errc::kUnsupported && !connection.closing) {
    const bool forbidden = decision.error().code == Errc::kForbidden;
    const UnderSpan under(code_, span);
    calls_.write_line(LogLevel::kInfo, "agent.client_refused",
                      {class_->name(), to_string(decision.error().code)}, 0,
                      {{"error", decision.error().message}});
    // A client may read the text of an author's refusal, but not that of a bug.
    end_connection(
        connection, forbidden ? kCloseForbidden : kCloseInternalError,
        forbidden ? std::string_view(decision.error().message) : "connection set-up failed");
  }
  // An agent that destroyed itself during admission gets no CONNECT. It knows this client, which is
  // closed with the others.
  if (destruction_requested()) connection.state = ConnectionState::kConnecting;
  if (connection.closing || destruction_requested()) {
    leave();
    return false;
  }
  std::optional<std::string> state;
  std::vector<std::string> missed;
  const bool is_read = guard([&] {
    if (const auto current = of<extensions::StateExtension>().get()) state.emplace(*current);
    if (connection.protocol_enabled()) missed = extensions::missed_frames(work_);
  });
  if (!is_read) {
    end_connection(connection, kCloseInternalError, "the agent's storage failed");
    leave();
    return false;
  }
  connection.state = ConnectionState::kConnecting;
  if (connection.protocol_enabled()) outbox_.push(HandshakeEffect{id, std::move(state)});
  for (const std::string& frame : missed) clients_.send(connection, FrameKind::kText, frame);
  Event connect;
  connect.kind = EventKind::kConnect;
  connect.connection = id;
  connect.name = connection.target;
  connect.origin = connection.origin;
  deliver(std::move(connect), now);
  return true;
}

void LiveAgent::deliver_post(std::uint64_t token) {
  if (loan_.postpone([this, token] { deliver_post(token); })) return;
  if (!instance_ || shutting() || broken_) return;
  {
    const auto entry = enter_code();
    instance_->on_result(OperationResult{std::string_view(), 0, token});
  }
  leave();
}

void LiveAgent::ask_to_leave(EvictReason reason, std::chrono::milliseconds grace) {
  if (loan_.postpone([this, reason, grace] { ask_to_leave(reason, grace); })) return;
  AgentEvent event;
  event.kind = EventKind::kEvict;
  event.flags = static_cast<std::uint32_t>(reason);
  deliver_own(event, spans().root(), grace);
}

bool LiveAgent::idle() const {
  return !code_.entered() && !lent() && !extensions().keeps_alive() &&
         work().fibers().runs().size() == 0 && calls_.empty() && operations_.empty() &&
         outbox_.empty() && !database_.dirty() && !calls_.has_unwritten_answers();
}

void LiveAgent::trim(extensions::Trim what) {
  if (lent()) return;
  extensions().trim(what);
  if (what == extensions::Trim::kAll) return database_.release_memory();
  database_.release_unused();
}

// ---- turns --------------------------------------------------------------------------------------

bool LiveAgent::dirty() const {
  return commits_.dirty([this] { return wake(); }) || calls_.has_unwritten_answers();
}

void LiveAgent::commit() {
  const bool writes = dirty();
  if (writes) {
    if (calls_.has_unwritten_answers() && of<extensions::CallAnswers>().write())
      commits_.stops().add("call.answer.committed");
    commits_.commit(wake());
    figures_.commits.add();
  }
  outbox_.committed(writes);
}

void LiveAgent::synced(bool ok) {
  if (ok) {
    std::optional<durable::Wake> rest;
    if (!dirty()) rest = wake();
    commits_.all_durable(rest ? &*rest : nullptr);
  } else {
    storage_failed("what was committed could not be synced to the device");
  }
  parts_.after_turn();
}

void LiveAgent::leave() {
  operations_.end_turn();
  extensions().end_turn();
  if (!broken_ && database_.broken()) lose_turn();
  if (!broken_ && dirty()) {
    // An open savepoint could undo writes of a later turn, so that turn must not share the commit.
    if (extensions().in_transaction()) {
      flush();
    } else {
      schedule_flush();
    }
  } else if (!broken_ && !awaits_durability()) {
    guard([this] { commits_.keep(wake()); });  // a keep-alive reference alone writes nothing else
  }
  parts_.after_turn();
}

// Events that are ready together share one commit.
void LiveAgent::schedule_flush() {
  if (std::exchange(flush_scheduled_, true)) return;
  turns_before_ = code_.turns();
  services_.loop.turn_end().add(TurnEnd::Phase::kCommit, [self = self_](bool is_last) {
    return *self == nullptr || (*self)->flush_at_turn_end(is_last);
  });
}

// False: more events are coming.
bool LiveAgent::flush_at_turn_end(bool is_last) {
  const bool more_came = std::exchange(turns_before_, code_.turns()) != code_.turns();
  if (more_came && !is_last) return false;
  flush_scheduled_ = false;
  flush();
  parts_.after_turn();
  return true;
}

void LiveAgent::flush() {
  if (broken_ || shutting() || phase_ == AgentPhase::kMigrating || lent()) return;
  try {
    commit();
  } catch (const StorageError& failure) {  // agent boundary
    write_failed(failure);
  }
}

void LiveAgent::storage_failed(std::string_view what) {
  if (broken_) return;
  calls_.write_line(LogLevel::kError, "agent.storage_failed", {class_->name()}, code_.call(),
                    {{"error", what}});
  figures_.storage_failures.add();
  give_up(what);
}

void LiveAgent::give_up(std::string_view what) {
  if (broken_) return;
  broken_ = what;
  outbox_.discard_all();
}

// ---- calls --------------------------------------------------------------------------------------

void LiveAgent::time_out(CallId id) {
  if (loan_.postpone([this, id] { time_out(id); })) return;
  Call* call = calls_.find(id);
  if (call == nullptr) return;
  call->deadline = 0;
  calls_.write_line(LogLevel::kWarn, "agent.event_timed_out",
                    {class_->name(), to_string(call->kind)}, id,
                    {{"event_kind", to_string(call->kind)}});
  abandon(id, Error{Errc::kTimeout, "the agent did not answer in time"});
}

void LiveAgent::abandon(CallId id, const Error& why) {
  Call* const call = calls_.find(id);
  if (call == nullptr) return;
  const Span span = call->span;
  const std::string method = call->method;
  calls_.finish(id, *call, why);
  {
    const auto entry = enter_code(id, span, method);
    instance_->on_cancel(id);
  }
  leave();
}

// A hung agent does not get the events again that may have hung it.
bool LiveAgent::may_try_again(EvictReason reason) const {
  const bool comes_back = reason != EvictReason::kShutdown && reason != EvictReason::kDestroyed &&
                          reason != EvictReason::kHung;
  return comes_back && !broken_ && phase_ != AgentPhase::kMigrating && !destruction_requested();
}

std::vector<OwnedEvent> LiveAgent::shut(EvictReason reason, const Error& why) {
  HEARTH_ASSERT(!code_.entered() && !lent(), "shut() while the agent is in use");
  const bool again = may_try_again(reason);
  phase_ = AgentPhase::kClosing;
  operations_.abandon();
  if (broken_) outbox_.discard_all();
  std::vector<OwnedEvent> cut_off =
      calls_.cut_off_all(again, broken_ ? storage_error_for_clients() : why);
  {
    const auto entry = enter_code();
    instance_.reset();
  }
  outbox_.discard_all();
  extensions().release();
  const bool is_settled = !broken_ && !database_.dirty();
  work_.close();
  // What was in progress is still known, as far as it will be continued.
  if (is_settled) commits_.at_end(work_waits_for_room_ ? wake() : work_.wake());
  return cut_off;
}

std::string LiveAgent::close_database() {
  try {
    commits_.close();
    return {};
  } catch (const StorageError& failure) {  // agent boundary: everything committed is on disk
    return failure.what();
  }
}

}  // namespace hearth::runtime
