#include "runtime/agent_calls.hpp"

#include "base/escape.hpp"
#include "extensions/call_answers.hpp"
#include "extensions/call_rules.hpp"
#include "runtime/keyed_calls.hpp"
#include "runtime/shard_services.hpp"

#include <algorithm>

namespace hearth::runtime {
namespace {

using extensions::CallAnswers;
using std::chrono::milliseconds;

EventOutcome outcome_of(const Result<std::string_view>& outcome) {
  if (outcome) return EventOutcome::kOk;
  return outcome.error().code == Errc::kTimeout ? EventOutcome::kTimeout : EventOutcome::kError;
}

Error gone(std::string_view what) {
  return Error{Errc::kNotFound, "no such " + std::string(what)};
}

// The answer to a call that must not run, and its status.
struct Told {
  ResponseHead head;
  Result<std::string> outcome;
};

Told told(CallAnswers::Known known) {
  switch (known.verdict) {
    case CallAnswers::Verdict::kEnded:
      return {{200, {{std::string(kReplayedHeader), "true"}}}, std::move(known.outcome)};
    case CallAnswers::Verdict::kAnother: return {{422, {}}, key_of_another_call()};
    case CallAnswers::Verdict::kFull:
      return {{429, {}},
              Error{Errc::kLimitExceeded,
                    "too many calls with a key have begun and not ended; try later"}};
    default:
      return {{409, {}},
              Error{Errc::kConflict, "a call with this key was cut off, and may have had effects"}};
  }
}

}  // namespace

Error storage_error_for_clients() {
  return Error{Errc::kInternal,
               "the agent's storage failed; do not count on any of this being saved"};
}

AgentCalls::AgentCalls(const Parts& parts)
    : CallsInProgress(parts.services.loop, parts.services.client_memory,
                      parts.services.limits.max_waiting, parts.services.limits.max_waiting_bytes),
      parts_(parts) {}

// ---- events of the slot -------------------------------------------------------------------------

extensions::CallOrder AgentCalls::call_order() const {
  return {.serial = parts_.agent.settings().serial_calls,
          .exclusive = parts_.agent_class.exclusive_methods()};
}

std::pair<CallId, CallInProgress&> AgentCalls::begin(EventKind kind, const extensions::Span& span) {
  const auto begun = CallsInProgress::begin(kind, span);
  if (extensions::SpanLog* const log = parts_.services.spans.log()) {
    const auto its_kind =
        answers_client(kind) ? extensions::SpanKind::kServer : extensions::SpanKind::kInternal;
    begun.second.traced = extensions::OpenSpan(log, span, its_kind);
  }
  return begun;
}

void AgentCalls::begin(Event& incoming, const extensions::Span& span, SteadyTime now) {
  const auto [id, call] = begin(incoming.kind, span);
  call.retry_key = std::move(incoming.retry_key);
  call.connection = incoming.connection;
  if (call.connection != 0 && rule_of(call.kind).is_on_behalf) {
    const Connection* const client = parts_.clients.connection(call.connection);
    if (client != nullptr && client->readonly() && readonly_.size() < kMostReadonly)
      readonly_.insert(call.connection);
  }
  call.sink = std::move(incoming.sink);
  call.request = std::move(incoming.request);
  call.interruptions = incoming.interruptions;
  call.origin = incoming.origin;
  call.began = now;
  const milliseconds own = parts_.agent.settings().call_timeout;
  const milliseconds usual = own.count() > 0 ? own : parts_.services.limits.call_timeout;
  const Interruptions& earlier = call.interruptions;
  call.timeout = earlier.timeout.count() > 0 ? earlier.timeout : usual;
  milliseconds time = usual;
  if (earlier.has_due()) {
    const SteadyTime current = parts_.services.loop.clock().steady_now();
    // 0 would mean no limit.
    time = std::max(std::chrono::ceil<milliseconds>(earlier.due - current), milliseconds(1));
  }
  call.due = call.began + time;
  if (rule_of(call.kind).runs_method) {
    call.method = cut_text(incoming.name, extensions::kMaxShownMethod);
    if (call_order().runs_alone(call.kind, incoming.name)) run_alone(call);
  }
  const bool shows_failures =
      parts_.agent.settings().show_failures || parts_.services.limits.show_failures;
  if (call.sink) call.sink->begun(id, call.span, shows_failures);
  incoming.call = id;
  incoming.deadline_ms = static_cast<std::uint64_t>(time.count());
}

bool AgentCalls::answer_again(Event& incoming) {
  std::optional<extensions::CallKey>& key = incoming.retry_key;
  if (!key) return false;
  auto& answers = parts_.agent.of<CallAnswers>();
  try {
    CallAnswers::Known known = answers.look(*key);
    // A second run does no harm. Nothing is stored, so reads fill no store.
    if (known.verdict != CallAnswers::Verdict::kAnother &&
        parts_.agent_class.is_read_only(incoming.name)) {
      key.reset();
      return false;
    }
    const bool may_run = known.verdict == CallAnswers::Verdict::kNew ||
                         (known.verdict == CallAnswers::Verdict::kCutOff &&
                          parts_.agent_class.is_idempotent(incoming.name));
    if (may_run) {
      answers.note_begun(*key);  // before any effect of its first turn can leave
      return false;
    }
    Told answer = told(std::move(known));
    if (incoming.sink)
      parts_.outbox.push(FinishEffect{std::move(incoming.sink), incoming.connection,
                                      std::move(answer.head), std::move(answer.outcome)});
  } catch (const StorageError& failure) {  // agent boundary
    parts_.agent.storage_failed(failure.what());
    if (incoming.sink)
      incoming.sink->finish({}, Error{Errc::kInternal, "the agent's storage failed"});
  }
  return true;
}

void AgentCalls::entered(const AgentEvent& event, const Result<void>& accepted) {
  const CallId id = event.call;
  CallInProgress* const call = find(id);
  if (call == nullptr) return;  // most events are over by now
  if (accepted.has_error() && accepted.error().code == Errc::kUnsupported &&
      rule_of(event.kind).may_ignore)
    return finish(id, *call, std::string_view());
  if (accepted.has_error()) {
    const bool is_told_below = answers_client(event.kind) && accepted.error().code == Errc::kPlugin;
    if (!is_told_below) {
      write_line(LogLevel::kInfo, "agent.event_refused",
                 {parts_.agent_class.name(), to_string(accepted.error().code)}, id,
                 {{"event_kind", to_string(event.kind)}, {"error", accepted.error().message}});
    }
    return finish(id, *call, accepted.error());
  }
  // Only an event that suspended needs a timer. (The time of `work` differs from the event's if the
  // instance has just continued a fiber that it recovers.)
  arm(id, *call, call->work ? call->work->timeout : milliseconds(event.deadline_ms));
  keep_if_interruptible(*call, event, parts_.agent_class.is_idempotent(event.name));
}

Result<void> AgentCalls::explained(const Result<void>& accepted) {
  std::string text = std::exchange(refusal_text_, {});
  if (!accepted.has_error() || text.empty()) return accepted;
  return Error{accepted.error().code, std::move(text)};
}

void AgentCalls::arm(CallId id, CallInProgress& call, milliseconds timeout) {
  arm_deadline(call, timeout, [this, id] { parts_.timed_out(id); });
}

// ---- what goes out ------------------------------------------------------------------------------

bool AgentCalls::can_answer(const CallInProgress& call) const {
  return call.connection == 0 || parts_.clients.connection(call.connection) != nullptr;
}

Result<void> AgentCalls::complete(CallId id, const Result<std::string_view>& outcome) {
  if (id == 0 && outcome.has_error()) {
    refusal_text_ = cut_text(outcome.error().message, extensions::kMaxErrorBytes);
    return {};
  }
  CallInProgress* const call = find(id);
  if (call == nullptr) return gone("call: it was completed, cancelled or timed out");
  // Durable work ends by writing rows. A rollback would undo them, while memory says that the work
  // is done.
  if (call->work && parts_.agent.in_transaction()) {
    return Error{Errc::kInvalidArgument, "not while a transaction of the agent's own is open"};
  }
  const extensions::Answer answer =
      extensions::judge_answer(call->kind, outcome, parts_.services.limits.max_answer_bytes);
  finish(id, *call, answer.outcome);
  return answer.returned;
}

void AgentCalls::finish(CallId id, CallInProgress& call, const Result<std::string_view>& outcome) {
  if (call.retry_key) parts_.agent.of<CallAnswers>().note_ended(*call.retry_key, outcome);
  if (call.sink && parts_.outbox.open()) {
    if (can_answer(call)) call.sink->finish(call.head, outcome);
  } else if (call.sink) {
    parts_.outbox.push(
        FinishEffect{std::move(call.sink), call.connection, std::move(call.head),
                     outcome ? Result<std::string>(std::string(*outcome)) : outcome.error()});
  }
  parts_.figures.event_ended(call.kind, outcome_of(outcome));
  end_span(call, outcome.has_error() ? to_string(outcome.error().code) : "");
  std::optional<Error> error;
  if (outcome.has_error()) error = outcome.error();
  // An error with another code is the author's answer to the client, and is not logged.
  if (error && answers_client(call.kind) && error->code == Errc::kPlugin)
    write_line(LogLevel::kWarn, "agent.call_failed", {parts_.agent_class.name()}, id,
               {{"event_kind", to_string(call.kind)}, {"error", error->message}});
  parts_.ended(call, outcome);
  completions_.push_back(
      Completion{call.kind, call.connection, call.began, std::move(error), id, call.span});
  end(id, call);
}

void AgentCalls::end_span(CallInProgress& call, std::string_view error) const {
  extensions::OpenSpan span = std::move(call.traced);
  if (!span.is_open()) return;
  if (call.work && !call.work->name.empty()) span.set("hearth.work", call.work->name);
  if (call.kind == EventKind::kRequest) {
    span.set("http.request.method", call.method);
    if (error.empty())
      span.set("http.response.status_code", static_cast<std::int64_t>(call.head.status));
  }
  end_span(span, call.kind, call.method, error);
}

void AgentCalls::end_span(extensions::OpenSpan& span, EventKind kind, std::string_view method,
                          std::string_view error) const {
  if (!span.is_open()) return;
  const std::string agent_class(parts_.agent_class.name());
  span.name(agent_class + '.' + std::string(method.empty() ? to_string(kind) : method));
  span.set("hearth.agent.class", agent_class);
  span.set("hearth.agent.name", parts_.agent.key().name);
  span.set("hearth.event", std::string(to_string(kind)));
  span.fail(error);
  span.end();
}

Result<void> AgentCalls::emit(CallId id, std::string_view part) {
  CallInProgress* const call = find(id);
  if (call == nullptr) return gone("call");
  if (Result<void> taken =
          extensions::check_part(call->kind, part, parts_.services.limits.max_answer_bytes);
      taken.has_error())
    return taken;
  if (!call->sink || !can_answer(*call) || call->sink->abandoned())
    return gone("caller: the client has left");
  call->part_sent = true;
  forbid_another_try(*call);
  if (call->deadline != 0 && !call->interruptions.reads_no_parts) arm(id, *call, call->timeout);
  if (parts_.outbox.open()) {
    call->sink->part(call->head, part);
  } else {
    parts_.outbox.push(PartEffect{call->sink, call->connection, call->head, std::string(part)});
  }
  return {};
}

void AgentCalls::forget_connection(ConnectionId id) {
  const Connection* const client = parts_.clients.connection(id);
  const bool is_readonly = client != nullptr && client->readonly();
  if (empty() && parts_.operations.empty()) readonly_.clear();
  for_each([this, id, is_readonly](CallId /*id*/, CallInProgress& call) {
    if (call.connection != id) return;
    call.is_readonly = is_readonly;
    call.sink.reset();
    if (call.kind == EventKind::kCall) forbid_another_try(call);
  });
}

// With more of them than it remembers, each that has no call in progress counts as one.
bool AgentCalls::left_readonly(ConnectionId client) const {
  if (client == 0) return false;
  std::optional<bool> known;
  for_each([&](CallId /*id*/, const CallInProgress& call) {
    if (call.connection == client) known = call.is_readonly;
  });
  if (known) return *known;
  return readonly_.size() == kMostReadonly || readonly_.contains(client);
}

std::vector<OwnedEvent> AgentCalls::cut_off_all(bool again, const Error& why) {
  for_each([&](CallId /*id*/, CallInProgress& call) {
    parts_.figures.event_ended(call.kind, EventOutcome::kEvicted);
    end_span(call, "evicted");
    disarm_deadline(call);
    const Connection* const client = parts_.clients.connection(call.connection);
    const bool can_read = call.connection == 0 || (client != nullptr && !client->closing);
    const bool is_waited_for = (call.kind != EventKind::kCall || call.sink != nullptr) && can_read;
    if (again && is_waited_for && interrupt(call)) return;
    forbid_another_try(call);
    if (call.sink && can_answer(call)) call.sink->finish(call.head, why);
    call.sink.reset();
  });
  return take_interrupted();
}

void AgentCalls::add_waits(std::vector<extensions::Wait>& to) {
  for_each([&](CallId /*id*/, const CallInProgress& call) {
    switch (call.kind) {  // the state of the agent, and the rows of its fibers, say these
      case EventKind::kStart:
      case EventKind::kMigrate:
      case EventKind::kEvict:
      case EventKind::kFiberRecovered: return;
      default: break;
    }
    extensions::Wait wait{
        .kind = extensions::WaitKind::kCall,
        .subject = call.method.empty() ? std::string(to_string(call.kind)) : call.method};
    if (call.began != SteadyTime{})
      wait.since_ms = unix_millis_of(call.began, parts_.services.loop.clock());
    to.push_back(std::move(wait));
  });
}

void AgentCalls::write_line(LogLevel level, std::string_view event,
                            std::initializer_list<std::string_view> kind, CallId id,
                            std::initializer_list<LogField> own) const {
  if (!parts_.services.logger.enabled(level)) return;
  const CallInProgress* const call = find(id);
  const std::string trace = (call != nullptr ? call->span : parts_.code.span()).text();
  extensions::LineOrigin whose = current();
  if (call != nullptr) {
    whose.call = id;
    whose.method = call->method;
  }
  whose.trace = trace;
  parts_.services.logger.write_limited(level, event, kind, extensions::agent_line(whose, own));
}

// ---- operations ---------------------------------------------------------------------------------

Result<void> AgentCalls::may_submit() const {
  if (parts_.agent.phase() == extensions::AgentPhase::kClosing)
    return Error{Errc::kClosing, "the agent is being evicted"};
  if (!has_instance_)
    return Error{Errc::kForbidden, "operations begin after create, in START or later"};
  if (parts_.operations.size() >= parts_.services.limits.max_operations)
    return Error{Errc::kLimitExceeded, "too many operations in flight"};
  return {};
}

SubmittedOperation AgentCalls::submitted(std::uint32_t operation, std::uint64_t token) const {
  const CodeOnStack& code = parts_.code;
  return {operation,   token,       code.call(),          code.method(),
          code.span(), code.work(), code.cause_to_carry()};
}

Result<OperationId> AgentCalls::submit(std::uint32_t operation, std::string_view request,
                                       std::uint64_t token) {
  if (const auto may = may_submit(); may.has_error()) return may.error();
  const auto read = extensions::read_operation(operation, request, parts_.agent_class.runs_jobs());
  if (read.has_error()) return read.error();
  AgentOperations& operations = parts_.operations;
  const SubmittedOperation own = submitted(operation, token);
  switch (read->kind) {
    case extensions::OperationKind::kSleep:
      return operations.sleep(own, milliseconds(read->number));
    case extensions::OperationKind::kOffload:
      // A migration may wait for a job, and commits nothing before it has ended.
      return operations.run_offloaded(own, read->number,
                                      parts_.agent.phase() == extensions::AgentPhase::kMigrating);
    case extensions::OperationKind::kDrainClient:
      if (parts_.clients.connection(read->number) == nullptr) return gone("client");
      return operations.drain(own, nullptr, read->number);
    case extensions::OperationKind::kDrain: break;
  }
  if (read->number == 0) return operations.drain_turn(own);
  const CallInProgress* const call = find(read->number);
  if (call == nullptr || !call->sink) return gone("call");
  return operations.drain(own, call->sink, call->connection);
}

Result<OperationId> AgentCalls::submit(std::uint32_t operation,
                                       std::unique_ptr<extensions::RemoteOperation> remote,
                                       std::uint64_t token) {
  if (const auto may = may_submit(); may.has_error()) return may.error();
  if (parts_.agent.phase() == extensions::AgentPhase::kMigrating)
    return Error{Errc::kForbidden, "nothing leaves an agent while its data are migrated"};
  return parts_.operations.start(submitted(operation, token), std::move(remote));
}

// ---- what the code asks -------------------------------------------------------------------------

extensions::LineOrigin AgentCalls::current() const {
  return {.agent_class = parts_.agent_class.name(),
          .agent = parts_.agent.key().name,
          .call = parts_.code.call(),
          .method = parts_.code.method()};
}

extensions::CallOrigin AgentCalls::origin(CallId id) {
  const CallInProgress* const call = find(id);
  extensions::CallOrigin known;
  if (call == nullptr) {
    if (id != 0 && id == parts_.code.call()) known.trace = trace();
    return known;
  }
  known.trace = call->span.text();
  known.method = call->method;
  known.origin = call->origin;
  known.is_in_progress = true;
  known.holds_calls = rule_of(call->kind).runs_method && call_order().holds_calls();
  known.runs_alone = call->runs_alone;
  if (call->timeout.count() > 0) known.due = call->due;
  return known;
}

Result<extensions::RequestView> AgentCalls::request(CallId id) {
  CallInProgress* const call = find(id);
  if (call == nullptr || !call->request) return gone("request");
  return extensions::RequestView{call->request->target, &call->request->headers,
                                 call->part_sent ? nullptr : &call->head, call->request->claims,
                                 &call->request->body};
}

void AgentCalls::body_came(CallId id) {
  CallInProgress* const call = find(id);
  if (call != nullptr && call->deadline != 0) arm(id, *call, call->timeout);
}

}  // namespace hearth::runtime
