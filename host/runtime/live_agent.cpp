#include "runtime/live_agent.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "extensions/operations.hpp"
#include "extensions/state.hpp"
#include "runtime/agent_inbox.hpp"
#include "runtime/shard_services.hpp"

#include <utility>

namespace hearth::runtime {
namespace {

using extensions::AgentPhase;
using extensions::Span;

// Reasons of the operator and of the host: such an interruption does not count against the work.
// (An idle agent has no work in progress.)
bool is_on_purpose(EvictReason reason) {
  return reason == EvictReason::kShutdown || reason == EvictReason::kCodeUpdate ||
         reason == EvictReason::kPluginRemoved || reason == EvictReason::kLimit ||
         reason == EvictReason::kAdmin;
}

// A hung agent does not get the events again that may have hung it.
bool comes_back(EvictReason reason) {
  return reason != EvictReason::kShutdown && reason != EvictReason::kDestroyed &&
         reason != EvictReason::kHung;
}

// A client's write of the state, for the class that checks it.
AgentEvent state_check_of(const Event& incoming) {
  AgentEvent event;
  event.kind = EventKind::kStateCheck;
  event.connection = incoming.connection;
  event.body = incoming.body;
  return event;
}

// The span of an event: below its cause, or the first of a trace if there is no cause.
Span span_of(ShardServices& services, const extensions::OriginPtr& origin) {
  return services.spans.below(
      extensions::read_span(origin ? std::string_view(origin->trace) : std::string_view()));
}

bool is_unsupported(const Result<void>& outcome) {
  return outcome.has_error() && outcome.error().code == Errc::kUnsupported;
}

}  // namespace

LiveAgent::LiveAgent(const Parts& parts, std::shared_ptr<const AgentClass> agent_class,
                     const ClassSettings& settings, AgentHandle handle)
    : parts_(parts),
      store_({.key = parts_.key,
              .services = parts.services,
              .settings = settings,
              .figures = parts.services.metrics.of_class(parts_.key.agent_class),
              .class_schema = agent_class->schema_version(),
              .agent = context_,
              .effects = effects_,
              .failed =
                  [this](std::string_view what) {
                    calls_.write_line(LogLevel::kError, "agent.storage_failed",
                                      {code_.agent_class().name()}, code_.on_stack().call(),
                                      {{"error", what}});
                    context_.figures().storage_failures.add();
                  },
              .after_turn = parts_.after_turn,
              .look = parts_.look},
             parts.services.files.kept(parts_.key)),
      clients_(parts_.inbox, parts.services, store_.outbox()),
      operations_({.loop = parts.services.loop,
                   .outbox = store_.outbox(),
                   .connections = parts.services.connections,
                   .loan = store_.loan(),
                   .run_offloaded =
                       [this](const OffloadEffect& job, std::function<void(Result<void>)> done) {
                         return parts_.services.run_offloaded(code_.shared_class(), job.job,
                                                              {parts_.key.name, job.work},
                                                              job.abandoned, std::move(done));
                       },
                   .tell = [this](OperationNews news) { tell(std::move(news)); }}),
      code_({.agent_class = std::move(agent_class),
             .spans = parts.services.spans,
             .calls = calls_,
             .loan = store_.loan()}),
      calls_({.agent = context_,
              .agent_class = code_.agent_class(),
              .services = parts.services,
              .clients = clients_,
              .outbox = store_.outbox(),
              .operations = operations_,
              .code = code_.on_stack(),
              .figures = parts.services.metrics.of_class(parts_.key.agent_class),
              .ended = [this](const CallInProgress& call,
                              const Result<std::string_view>& outcome) { ended(call, outcome); },
              .timed_out = [this](CallId id) { time_out(id); }}),
      work_({.agent = context_,
             .services = parts.services,
             .store = store_,
             .clients = clients_,
             .operations = operations_,
             .calls = calls_,
             .code = code_.on_stack()}),
      state_({.agent = context_,
              .agent_class = code_.agent_class(),
              .services = parts.services,
              .store = store_,
              .clients = clients_,
              .calls = calls_,
              .code = code_.on_stack(),
              .inbox = parts_.inbox,
              .figures = parts.services.metrics.of_class(parts_.key.agent_class)}),
      effects_({.key = parts_.key,
                .segment = parts_.segment,
                .services = parts.services,
                .settings = settings,
                .agent_class = code_.agent_class(),
                .clients = clients_,
                .operations = operations_}),
      context_({.handle = handle,
                .key = parts_.key,
                .settings = settings,
                .database = store_.database(),
                .clock = parts.services.loop.clock(),
                .work = store_.work(),
                .calls = calls_,
                .clients = clients_,
                .watchers = state_,
                .ports = parts.services.ports},
               {.segment = parts_.segment,
                .services = parts.services,
                .agent_class = code_.agent_class(),
                .store = store_,
                .code = code_,
                .calls = calls_,
                .work = work_,
                .figures = parts.services.metrics.of_class(parts_.key.agent_class),
                .look = parts_.look}) {}

LiveAgent::~LiveAgent() {
  HEARTH_ASSERT(!code_.is_made(), "live agent destroyed before shut()");
}

// ---- the way in ---------------------------------------------------------------------------------

Result<void> LiveAgent::start(const Span& span) {
  const ClassSettings& settings = context_.settings();
  // The parent lists a sub-agent, and destroys it with itself, even if it stores nothing. An object
  // that was only called is listed too, and one that has a file, but no entry in host.db.
  if (parts_.key.is_sub_agent() || settings.is_object || store_.database().stored())
    store_.commits().record();
  const bool is_object = settings.is_object && !parts_.key.is_sub_agent();
  if (is_object && parts_.services.files.record_object(parts_.key, parts_.services.random))
    store_.commits().directory_was_written(false);
  store_.work().reports().use(calls_);
  store_.load(true);
  if (Result<void> known = check_schema(); known.has_error()) return known;
  // Asked before the instance writes anything. The first write gives a new agent the class's
  // version.
  const std::uint32_t from = store_.database().class_schema();
  const std::uint32_t to = code_.agent_class().schema_version();
  const bool migrates = store_.database().exists() && from < to;
  if (Result<void> made = code_.make(context_, parts_.key.own_name(), settings.options, span);
      made.has_error())
    return calls_.explained(made);
  calls_.instance_is_made();
  if (store_.broken()) return storage_error_for_clients();
  if (context_.wants_destruction()) return Error{Errc::kPlugin, "the agent destroyed itself"};
  AgentEvent event;
  event.kind = migrates ? EventKind::kMigrate : EventKind::kStart;
  const std::string versions =
      "{\"from\":" + std::to_string(from) + ",\"to\":" + std::to_string(to) + "}";
  if (migrates) {
    context_.enter(AgentPhase::kMigrating);
    event.body = versions;
  }
  deliver_own(event, parts_.services.spans.below(span), parts_.services.limits.start_timeout);
  return {};
}

Result<void> LiveAgent::check_schema() {
  const std::uint32_t stored = store_.database().class_schema();
  const std::uint32_t known = code_.agent_class().schema_version();
  if (stored <= known) return {};
  const std::string what =
      known == 0 ? std::string("has none") : "knows only " + std::to_string(known);
  return Error{Errc::kUnavailable, "the agent's data has schema version " + std::to_string(stored) +
                                       ", but this version of the class " + what};
}

Result<void> LiveAgent::migrated(const Completion& ended) {
  const std::optional<Error>& failure = ended.error;
  if (store_.broken()) return Error{Errc::kInternal, "the agent's storage failed"};
  const std::string from = std::to_string(store_.database().class_schema());
  const std::string to = std::to_string(code_.agent_class().schema_version());
  const bool ignored = failure && failure->code == Errc::kUnsupported;
  // Data without a version may need no migration. Between two versions a migration is required.
  if (failure && !(ignored && from == "0")) {
    const std::string why = ignored ? "the class does not say how" : failure->message;
    return Error{ignored ? Errc::kPlugin : failure->code,
                 "the agent's data could not be brought from schema version " + from + " to " + to +
                     ": " + why};
  }
  store_.database().store_class_schema(code_.agent_class().schema_version());
  context_.enter(AgentPhase::kStarting);
  store_.flush();
  if (store_.broken()) return Error{Errc::kInternal, "the agent's storage failed"};
  const std::string trace = ended.span.text();
  parts_.services.logger.write_limited(
      LogLevel::kInfo, "agent.migrated", {parts_.key.agent_class},
      extensions::agent_line({.agent_class = parts_.key.agent_class,
                              .agent = parts_.key.name,
                              .call = ended.call,
                              .trace = trace},
                             {{"from", from}, {"to", to}}));
  AgentEvent event;
  event.kind = EventKind::kStart;
  deliver_own(event, parts_.services.spans.below(ended.span), parts_.services.limits.start_timeout);
  return {};
}

void LiveAgent::deliver_own(AgentEvent event, Span span, std::chrono::milliseconds time) {
  span.parent = 0;  // no span of an event
  event.call = calls_.begin(event.kind, span).first;
  event.deadline_ms = static_cast<std::uint64_t>(time.count());
  accept_call(event);
}

// ---- events -------------------------------------------------------------------------------------

void LiveAgent::deliver(Event incoming, SteadyTime now) {
  if (incoming.kind == EventKind::kStateCheck) return write_state_of_client(incoming);
  if (calls_.answer_again(incoming)) return leave();
  // The request was let in while another version of the class was served.
  if (incoming.request && incoming.request->body && !code_.agent_class().reads_bodies())
    return incoming.sink->finish({}, Error{Errc::kUnavailable, "the class has just changed"});
  calls_.begin(incoming, span_of(parts_.services, incoming.origin), now);
  if (incoming.kind == EventKind::kStateChanged)
    state_.begin_cause(std::move(incoming.state_chain));
  accept_call(incoming);
}

void LiveAgent::accept_call(const AgentEvent& event) {
  calls_.entered(event, enter(event));
  leave();
}

Result<void> LiveAgent::enter(const AgentEvent& event, const Span& span) {
  const Result<void> accepted = code_.handle(event, span);
  // The turn is over, and so are the savepoints that it left open: later writes of the host do not
  // belong to them.
  if (context_.extensions().in_transaction()) store_.flush();
  return calls_.explained(accepted);
}

void LiveAgent::leave() {
  operations_.end_turn();
  context_.extensions().end_turn();
  // An error of the agent's own SQL has rolled the transaction back: its memory differs from the
  // file. This is no failure of the storage: for some errors SQLite undoes more than the statement
  // (plugin_sql.hpp).
  if (!store_.broken() && store_.database().broken()) {
    calls_.write_line(
        LogLevel::kWarn, "agent.turn_lost", {code_.agent_class().name()}, code_.on_stack().call(),
        {{"error", "an error of the agent's SQL has undone all that this turn has written"}});
    store_.give_up("the transaction was lost");
  }
  store_.end_turn(code_.on_stack().entries());
  parts_.after_turn();
}

void LiveAgent::write_state_of_client(Event& incoming) {
  const Span span = span_of(parts_.services, incoming.origin);
  StateChanges::Verdict verdict = state_.judge(incoming);
  if (!verdict.accepted.has_error() && code_.agent_class().checks_state())
    verdict.accepted = enter(state_check_of(incoming), span);
  if (is_unsupported(verdict.accepted)) verdict.accepted = {};
  state_.write(incoming, verdict, span);
  leave();
}

bool LiveAgent::is_let_in(Connection& connection) {
  AgentEvent event;
  event.kind = EventKind::kConnecting;
  event.connection = connection.id;
  event.name = connection.target;
  connection.deciding = true;
  const Span span = span_of(parts_.services, connection.origin);
  extensions::OpenSpan traced(parts_.services.spans.log(), span, extensions::SpanKind::kServer);
  const Result<void> decision = enter(event, span);
  connection.deciding = false;
  const bool is_let_in = !decision.has_error() || is_unsupported(decision);
  calls_.end_span(traced, event.kind, {}, is_let_in ? "" : to_string(decision.error().code));
  context_.figures().event_ended(EventKind::kConnecting,
                                 is_let_in ? EventOutcome::kOk : EventOutcome::kError);
  if (!is_let_in && !connection.closing) {
    const bool forbidden = decision.error().code == Errc::kForbidden;
    const CodeOnStack::UnderSpan under(code_.on_stack(), span);
    calls_.write_line(LogLevel::kInfo, "agent.client_refused",
                      {code_.agent_class().name(), to_string(decision.error().code)}, 0,
                      {{"error", decision.error().message}});
    // A client may read the text of an author's refusal, but not that of a bug.
    clients_.end(
        connection, forbidden ? kCloseForbidden : kCloseInternalError,
        forbidden ? std::string_view(decision.error().message) : "connection set-up failed");
  }
  return !connection.closing;
}

bool LiveAgent::admit(Connection& connection, SteadyTime now) {
  bool is_open = is_let_in(connection);
  // An agent that destroyed itself during admission gets no CONNECT. It knows this client, which is
  // closed with the others.
  if (context_.wants_destruction()) {
    connection.state = ConnectionState::kConnecting;
    is_open = false;
  }
  std::optional<std::string> state;
  std::vector<std::string> missed;
  const auto read = [&] {
    if (const auto current = context_.of<extensions::StateExtension>().get())
      state.emplace(*current);
    if (connection.protocol_enabled()) missed = extensions::missed_frames(store_.work());
  };
  if (is_open && !store_.guard(read)) {
    clients_.end(connection, kCloseInternalError, "the agent's storage failed");
    is_open = false;
  }
  if (!is_open) {
    leave();
    return false;
  }
  connection.state = ConnectionState::kConnecting;
  if (connection.protocol_enabled())
    store_.outbox().push(HandshakeEffect{connection.id, std::move(state)});
  for (const std::string& frame : missed) clients_.send(connection, FrameKind::kText, frame);
  Event connect;
  connect.kind = EventKind::kConnect;
  connect.connection = connection.id;
  connect.name = connection.target;
  connect.origin = connection.origin;
  deliver(std::move(connect), now);
  return true;
}

void LiveAgent::deliver_post(std::uint64_t token) {
  if (store_.loan().postpone([this, token] { deliver_post(token); })) return;
  if (!code_.is_made() || context_.phase() == AgentPhase::kClosing || store_.broken()) return;
  code_.hear_post(token);
  leave();
}

void LiveAgent::ask_to_leave(EvictReason reason, std::chrono::milliseconds grace) {
  if (store_.loan().postpone([this, reason, grace] { ask_to_leave(reason, grace); })) return;
  AgentEvent event;
  event.kind = EventKind::kEvict;
  event.flags = static_cast<std::uint32_t>(reason);
  deliver_own(event, parts_.services.spans.root(), grace);
}

bool LiveAgent::dispatch(bool may_recover, bool may_notify) {
  const WorkDelivery::Next next = work_.begin(may_recover, may_notify);
  if (next.event) {
    accept_call(next.event->event());
  } else if (!next.has_begun && !store_.broken() && store_.dirty()) {
    store_.commit_soon();  // work that was given up or put off, or a clock that was set
  }
  return next.has_begun;
}

void LiveAgent::tell(OperationNews news) {
  if (context_.phase() == AgentPhase::kClosing || store_.broken() || !code_.is_made()) return;
  if (!news.notice.empty()) {
    news.ended.reset();
    work_.notice_ended(news);
    leave();
    return parts_.look();
  }
  const bool is_kept = store_.guard([&] {
    if (news.remote != nullptr) news.remote->telling(news.outcome, news.is_final, news.flags);
  });
  news.ended.reset();  // the code may begin another operation in its place
  if (is_kept) code_.hear(news);
  leave();
}

void LiveAgent::receive(AgentVisit& visit) {
  visit.is_over = true;
  if (store_.loan().postpone([this, later = visit]() mutable { receive(later); })) return;
  Result<std::string> outcome = Error{Errc::kUnavailable, "the agent is leaving memory; try again"};
  if (context_.phase() != AgentPhase::kClosing && !store_.broken()) {
    const bool is_done = store_.guard([&] { outcome = visit.work(context_); });
    if (!is_done) outcome = Error{Errc::kInternal, "the agent's storage failed"};
  }
  store_.outbox().push(FinishEffect{visit.sink, 0, {}, std::move(outcome)});
  leave();
}

std::vector<extensions::Wait> LiveAgent::waits() {
  std::vector<extensions::Wait> all = operations_.waits();
  if (const auto since = store_.loan().since())
    all.push_back({.kind = extensions::WaitKind::kLent,
                   .since_ms = unix_millis_of(*since, parts_.services.loop.clock())});
  calls_.add_waits(all);
  clients_.add_waits(all);
  return all;
}

bool LiveAgent::idle() {
  return !entered() && !context_.extensions().keeps_alive() && store_.idle() && calls_.empty() &&
         operations_.empty();
}

// ---- the end of a call --------------------------------------------------------------------------

void LiveAgent::ended(const CallInProgress& call, const Result<std::string_view>& outcome) {
  if (call.kind == EventKind::kStart && outcome) {
    context_.enter(AgentPhase::kRunning);
    work_.report_left_over();
  }
  work_.ended(call, outcome);
}

void LiveAgent::time_out(CallId id) {
  if (store_.loan().postpone([this, id] { time_out(id); })) return;
  CallInProgress* const call = calls_.find(id);
  if (call == nullptr) return;
  call->deadline = 0;
  calls_.write_line(LogLevel::kWarn, "agent.event_timed_out",
                    {code_.agent_class().name(), to_string(call->kind)}, id,
                    {{"event_kind", to_string(call->kind)}});
  abandon(id, Error{Errc::kTimeout, "the agent did not answer in time"});
}

void LiveAgent::abandon(CallId id, const Error& why) {
  CallInProgress* const call = calls_.find(id);
  if (call == nullptr) return;
  const Span span = call->span;
  const std::string method = call->method;
  calls_.finish(id, *call, why);
  code_.cancel(id, span, method);
  leave();
}

// ---- the way out --------------------------------------------------------------------------------

void LiveAgent::finish_turns(EvictReason reason) {
  if (store_.broken() || context_.phase() == AgentPhase::kMigrating) return;
  // An agent that evicts itself, or cannot start, may do so because of its work.
  const bool is_its_own = context_.wants_eviction() || context_.phase() != AgentPhase::kRunning;
  if (!is_its_own && is_on_purpose(reason))
    store_.guard([this] { store_.work().interrupt_on_purpose(); });
  store_.finish();
}

std::vector<OwnedEvent> LiveAgent::shut(EvictReason reason, const Error& why) {
  HEARTH_ASSERT(!entered() && !store_.loan().is_out(), "shut() while the agent is in use");
  const bool again = comes_back(reason) && !store_.broken() &&
                     context_.phase() != AgentPhase::kMigrating && !context_.wants_destruction();
  context_.enter(AgentPhase::kClosing);
  operations_.abandon();
  if (store_.broken()) store_.outbox().discard_all();
  std::vector<OwnedEvent> cut_off =
      calls_.cut_off_all(again, store_.broken() ? storage_error_for_clients() : why);
  code_.destroy();
  store_.outbox().discard_all();
  context_.extensions().release();
  store_.close_work();
  return cut_off;
}

}  // namespace hearth::runtime
