// Life, events and turns. What the instance may ask of its host: live_agent_host.cpp.
#include "runtime/live_agent.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "extensions/call_answers.hpp"
#include "extensions/operations.hpp"
#include "extensions/state.hpp"
#include "extensions/trace.hpp"
#include "runtime/agent_inbox.hpp"
#include "runtime/shard_services.hpp"

#include <algorithm>
#include <type_traits>

namespace hearth::runtime {
namespace {

EventOutcome outcome_of(const Result<std::string_view>& outcome) {
  if (outcome) return EventOutcome::kOk;
  return outcome.error().code == Errc::kTimeout ? EventOutcome::kTimeout : EventOutcome::kError;
}

storage::AgentDatabaseOptions database_options(const AgentClass& agent_class,
                                               const ClassSettings& settings, storage::Kept kept,
                                               ShardServices& services) {
  storage::AgentDatabaseOptions options = settings.database;
  options.class_schema = agent_class.schema_version();
  options.must_exist = kept != storage::Kept::kUnknown;
  options.sync = settings.durability == Durability::kPower ? &services.sync : nullptr;
  options.copy_mark = &services.files.copy_mark();
  return options;
}

}  // namespace

Error LiveAgent::storage_error_for_clients() {
  return Error{Errc::kInternal,
               "the agent's storage failed; do not count on any of this being saved"};
}

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
                    .calls = *this,
                    .clients = clients_,
                    .watchers = *this,
                    .ports = services.ports}),
      parts_(parts),
      services_(services),
      class_(std::move(agent_class)),
      figures_(services.metrics.of_class(parts.key.agent_class)),
      database_(services.files.path(parts.key), parts.key,
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
                   .run_job =
                       [this](const JobEffect& job, std::function<void(Result<void>)> done) {
                         return services_.run_job(class_, job.job, origin_of(job), job.abandoned,
                                                  std::move(done));
                       },
                   .tell = [this](OperationNews news) { tell(std::move(news)); }}),
      calls_(services.loop, services.client_memory, services.limits.max_waiting,
             services.limits.max_waiting_bytes),
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
  work_.use(*this);
  load_work();
  if (Result<void> known = check_schema(); known.has_error()) return known;
  const bool migrates = must_migrate();  // asked before the instance writes anything
  {
    const auto entry = enter_code(0, span);
    auto made = class_->create(*this, parts_.key.own_name(), settings().options);
    if (made.has_error()) return explained(made.error());
    instance_ = std::move(made.value());
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

void LiveAgent::deliver_own(AgentEvent event, const Span& span, std::chrono::milliseconds time) {
  event.call = calls_.begin(event.kind, span).first;
  event.deadline_ms = static_cast<std::uint64_t>(time.count());
  accept_call(event);
}

void LiveAgent::deliver(Event incoming, SteadyTime now) {
  if (incoming.kind == EventKind::kStateCheck) {
    write_state_of_client(incoming);
    return;
  }
  if (incoming.retry_key && answer_again(incoming)) return;
  // The request was let in while another version of the class was served.
  if (incoming.request && incoming.request->body && !class_->reads_bodies())
    return incoming.sink->finish({}, Error{Errc::kUnavailable, "the class has just changed"});
  const auto [id, call] = calls_.begin(incoming.kind, span_of(incoming.origin));
  call.retry_key = std::move(incoming.retry_key);
  if (rule_of(call.kind).runs_method)
    call.method = cut_text(incoming.name, extensions::kMaxShownMethod);
  call.connection = incoming.connection;
  call.sink = std::move(incoming.sink);
  call.request = std::move(incoming.request);
  call.interruptions = incoming.interruptions;
  call.origin = incoming.origin;
  call.began = now;
  const std::chrono::milliseconds time = time_for(incoming.interruptions);
  call.timeout =
      incoming.interruptions.timeout.count() > 0 ? incoming.interruptions.timeout : call_timeout();
  call.due = call.began + time;
  if (rule_of(call.kind).runs_method && call_order().runs_alone(call.kind, incoming.name))
    calls_.run_alone(call);
  const bool shows_failures = settings().show_failures || services_.limits.show_failures;
  if (call.sink) call.sink->begun(id, call.span, shows_failures);
  incoming.call = id;
  incoming.deadline_ms = static_cast<std::uint64_t>(time.count());
  if (incoming.kind == EventKind::kStateChanged) begin_cause(std::move(incoming.state_chain));
  accept_call(incoming);
}

void LiveAgent::accept_call(const AgentEvent& event) {
  const CallId id = event.call;
  const Result<void> accepted = enter(event);
  if (Call* call = calls_.find(id)) {
    if (accepted.has_error() && accepted.error().code == Errc::kUnsupported &&
        rule_of(event.kind).may_ignore) {
      finish(id, *call, std::string_view());
    } else if (accepted.has_error()) {
      const bool is_told_below =
          answers_client(event.kind) && accepted.error().code == Errc::kPlugin;
      if (!is_told_below) {
        write_line(LogLevel::kInfo, "agent.event_refused",
                   {class_->name(), to_string(accepted.error().code)}, id,
                   {{"event_kind", to_string(event.kind)}, {"error", accepted.error().message}});
      }
      finish(id, *call, accepted.error());
    } else {
      // Most events are over by now. Only an event that suspended needs a timer. (The time of
      // `work` differs from the event's if the instance has just continued a fiber that it
      // recovers.)
      const std::chrono::milliseconds time(event.deadline_ms);
      arm_deadline(id, *call, call->work ? call->work->timeout : time);
      calls_.keep_if_interruptible(*call, event, class_->is_idempotent(event.name));
    }
  }
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
  if (state_cause_) state_cause_->has_waited = true;
  state_cause_.reset();
  // The turn is over, and so are the savepoints that it left open: later writes of the host do not
  // belong to them.
  if (extensions().in_transaction()) flush();
  if (accepted.has_error()) return explained(accepted.error());
  refusal_text_.clear();
  return accepted;
}

Error LiveAgent::explained(const Error& error) {
  std::string text = std::exchange(refusal_text_, {});
  return text.empty() ? error : Error{error.code, std::move(text)};
}

bool LiveAgent::admit(Connection& connection, SteadyTime now) {
  const ConnectionId id = connection.id;
  AgentEvent event;
  event.connection = id;
  event.name = connection.target;
  event.kind = EventKind::kConnecting;
  connection.deciding = true;
  const Span span = span_of(connection.origin);
  const Result<void> decision = enter(event, span);
  connection.deciding = false;
  const bool is_let_in = !decision.has_error() || decision.error().code == Errc::kUnsupported;
  figures_.event_ended(EventKind::kConnecting,
                       is_let_in ? EventOutcome::kOk : EventOutcome::kError);
  if (decision.has_error() && decision.error().code != Errc::kUnsupported && !connection.closing) {
    const bool forbidden = decision.error().code == Errc::kForbidden;
    const UnderSpan under(code_, span);
    write_line(LogLevel::kInfo, "agent.client_refused",
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

void LiveAgent::forget_connection(ConnectionId id) {
  calls_.for_each([this, id](CallId, Call& call) {
    if (call.connection != id) return;
    call.sink.reset();
    if (call.kind == EventKind::kCall) calls_.forbid_another_try(call);
  });
}

bool LiveAgent::idle() const {
  return !code_.entered() && !lent() && !extensions().keeps_alive() && work_.idle() &&
         calls_.empty() && operations_.empty() && outbox_.empty() && !database_.dirty() &&
         !has_unwritten_answers();
}

void LiveAgent::trim(extensions::Trim what) {
  if (lent()) return;
  extensions().trim(what);
  if (what == extensions::Trim::kAll) return database_.release_memory();
  database_.release_unused();
}

// ---- turns --------------------------------------------------------------------------------------

bool LiveAgent::dirty() const {
  return commits_.dirty([this] { return wake(); }) || has_unwritten_answers();
}

void LiveAgent::commit() {
  const bool writes = dirty();
  if (writes) {
    write_answers();
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
  write_line(LogLevel::kError, "agent.storage_failed", {class_->name()}, code_.call(),
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

void LiveAgent::arm_deadline(CallId id, Call& call, std::chrono::milliseconds timeout) {
  calls_.arm_deadline(call, timeout, [self = self_, id] {
    if (*self != nullptr) (*self)->time_out(id);
  });
}

void LiveAgent::time_out(CallId id) {
  if (loan_.postpone([this, id] { time_out(id); })) return;
  Call* call = calls_.find(id);
  if (call == nullptr) return;
  call->deadline = 0;
  write_line(LogLevel::kWarn, "agent.event_timed_out", {class_->name(), to_string(call->kind)}, id,
             {{"event_kind", to_string(call->kind)}});
  abandon(id, Error{Errc::kTimeout, "the agent did not answer in time"});
}

void LiveAgent::abandon(CallId id, const Error& why) {
  Call* const call = calls_.find(id);
  if (call == nullptr) return;
  const Span span = call->span;
  const std::string method = call->method;
  finish(id, *call, why);
  {
    const auto entry = enter_code(id, span, method);
    instance_->on_cancel(id);
  }
  leave();
}

void LiveAgent::finish(CallId id, Call& call, const Result<std::string_view>& outcome) {
  const EventKind kind = call.kind;
  const ConnectionId connection = call.connection;
  if (call.retry_key) of<extensions::CallAnswers>().note_ended(*call.retry_key, outcome);
  if (call.sink) {
    if (outbox_.open()) {
      if (connection == 0 || clients_.connection(connection) != nullptr) {
        call.sink->finish(call.head, outcome);
      }
    } else {
      FinishEffect effect{std::move(call.sink), connection, std::move(call.head), std::string()};
      if (outcome.has_error()) {
        effect.outcome = outcome.error();
      } else {
        effect.outcome = std::string(outcome.value());
      }
      outbox_.push(std::move(effect));
    }
  }
  figures_.event_ended(kind, outcome_of(outcome));
  if (outcome.has_error()) tell_failure(id, call, outcome.error());
  if (kind == EventKind::kStart && outcome) {
    phase_ = AgentPhase::kRunning;
    report_left_over();
  }
  if (call.work) end_work(call, outcome);
  const SteadyTime began = call.began;
  const Span span = call.span;
  calls_.end(id, call);
  std::optional<Error> error;
  if (outcome.has_error()) error = outcome.error();
  completions_.push_back(Completion{kind, connection, began, std::move(error), id, span});
}

void LiveAgent::discard(Effect& effect) {
  if (auto* answer = std::get_if<FinishEffect>(&effect)) {
    if (answer->connection != 0 && clients_.connection(answer->connection) == nullptr) return;
    const Result<std::string_view> lost = storage_error_for_clients();
    answer->sink->finish(ResponseHead{500, {}}, lost);
  } else if (auto* closing = std::get_if<CloseEffect>(&effect)) {
    if (Connection* client = clients_.connection(closing->connection)) {
      client->port->close(kCloseInternalError, "the agent's storage failed");
    }
  } else if (auto* handshake = std::get_if<HandshakeEffect>(&effect)) {
    // Without its handshake the client would wait forever. It may come back after the close.
    if (Connection* client = clients_.connection(handshake->connection)) {
      client->closing = true;
      client->port->close(kCloseInternalError, "the agent's storage failed");
    }
  } else if (const auto* job = std::get_if<JobEffect>(&effect)) {
    *job->abandoned = true;
    let_out(*job);
  }
}

std::vector<OwnedEvent> LiveAgent::shut(EvictReason reason, const Error& why) {
  HEARTH_ASSERT(!code_.entered() && !lent(), "shut() while the agent is in use");
  const bool again = may_try_again(reason);
  phase_ = AgentPhase::kClosing;
  operations_.abandon();
  if (broken_) outbox_.discard_all();
  calls_.for_each([&](CallId id, Call& call) {
    (void)id;
    figures_.event_ended(call.kind, EventOutcome::kEvicted);
    calls_.disarm_deadline(call);
    if (again && cut_off(call)) return;
    calls_.forbid_another_try(call);
    if (call.sink && (call.connection == 0 || clients_.connection(call.connection) != nullptr)) {
      call.sink->finish(call.head, broken_ ? storage_error_for_clients() : why);
    }
    call.sink.reset();
  });
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
  return calls_.take_interrupted();
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
