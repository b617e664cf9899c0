#pragma once
// From the host's events to the hooks of an agent. The same code for every class.

#include <hearth/agent_base.hpp>
#include <hearth/event_rules.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::detail {

// Hooks that a class overrides, as bits.
enum Hook : std::uint32_t {
  kInitialState = 1U << 0,
  kOnStart = 1U << 1,
  kOnConnecting = 1U << 2,
  kOnConnect = 1U << 3,
  kOnMessage = 1U << 4,
  kOnClose = 1U << 5,
  kOnRequest = 1U << 6,
  kValidateState = 1U << 7,
  kOnStateChanged = 1U << 8,
  kOnEvict = 1U << 9,
  kOnFiberRecovered = 1U << 10,
  kOnFiberComplete = 1U << 11,
  kOnFibersRecovered = 1U << 12,
  kOnMigrate = 1U << 13,
  kOnSubAgent = 1U << 14,
  kOnOperationUnknown = 1U << 15,
};

struct ClassTraits {
  std::uint32_t hooks;
  const MethodTable& (*methods)();
};

inline void dispatch_call(Activation& activation, const Context& outer, const hearth_event& event) {
  const std::string_view name = view(event.name);
  Context context = outer;
  for (const Method& method : activation.traits().methods().methods) {
    if (method.name != name) continue;
    context.handler = method.name;
    try {
      method.invoke(method, activation, activation.agent(), context, view(event.body));
    } catch (...) {
      activation.complete_with_exception(context);
    }
    return;
  }
  activation.complete(context.call, HEARTH_E_NOT_FOUND,
                      "Method " + std::string(name) + " does not exist");
}

inline void dispatch_request(Activation& activation, const Context& context,
                             const hearth_event& event) {
  auto request =
      std::make_unique<Request>(activation, event.call, view(event.name), view(event.body));
  const Request& borrowed = *request;
  drive(activation, context, activation.agent().on_request(borrowed),
        DeliverResponse(std::move(request)));
}

// Owns the request for as long as the hook runs.
struct DeliverAdmission {
  std::unique_ptr<Request> request;
  void operator()(Activation& activation, const Context& context) const {
    activation.complete(context.call, HEARTH_OK, {});
  }
};

inline void dispatch_sub_agent(Activation& activation, const Context& context,
                               const hearth_event& event) {
  auto request = std::make_unique<Request>(activation, event.call, "GET", "");
  const Request& borrowed = *request;
  SubAgentName child{std::string(view(event.name)), std::string(view(event.body))};
  drive(activation, context, activation.agent().on_sub_agent(std::move(child), borrowed),
        DeliverAdmission{std::move(request)});
}

inline Delivery::Delivery() = default;
inline Delivery::~Delivery() = default;

// A run of a schedule, or an item of the queue.
inline void dispatch_callback(Activation& activation, const Context& outer,
                              const hearth_event& event) {
  Context context = outer;
  const bool scheduled = event.kind == HEARTH_EVENT_SCHEDULE;
  const std::string_view name = view(event.name);
  const auto& callbacks = activation.traits().methods().callbacks;
  const auto callback = std::find_if(callbacks.begin(), callbacks.end(),
                                     [&](const Callback& each) { return each.name == name; });
  if (callback == callbacks.end())
    return activation.complete(context.call, HEARTH_E_NOT_FOUND,
                               "Callback " + std::string(name) + " does not exist");
  if (!(scheduled ? callback->for_schedules : callback->for_queue))
    return activation.complete(
        context.call, HEARTH_E_NOT_FOUND,
        "Callback " + std::string(name) + (scheduled ? " is for the queue" : " is for schedules"));
  const Json body = parse_record(view(event.body));
  auto delivery = std::make_unique<Delivery>();
  delivery->payload = find_json(body, "payload");
  if (scheduled)
    delivery->schedule = std::make_unique<const ScheduleRun>(read_schedule_run(name, body));
  else
    delivery->item = std::make_unique<const QueueItem>(read_queue_run(name, body));
  context.handler = callback->name;
  try {
    callback->invoke(*callback, activation, activation.agent(), context, std::move(delivery));
  } catch (...) {
    activation.complete_with_exception(context);
  }
}

inline void warn_if_unknown(Activation& activation, std::string_view callback) {
  for (const Callback& each : activation.traits().methods().callbacks) {
    if (each.name == callback) return;
  }
  activation.warn_once("the class " + std::string(activation.definition().name) +
                       " has no callback " + std::string(callback) + " (yet)");
}

inline bool has_recovery_hook(const Activation& activation) noexcept {
  return (activation.traits().hooks & kOnFiberRecovered) != 0;
}

// This instance has the function: its work has failed here, or it was asked for here while it had
// to wait. Then there is nothing for a hook to decide. False if it has not.
inline bool resume_kept(Activation& activation, const Context& context,
                        const RecoveredFiber& fiber) {
  auto kept = activation.kept_work().extract(fiber.id);
  if (kept.empty()) return false;
  try {
    kept.mapped()->resume(activation, fiber);
  } catch (...) {
    activation.kept_work().insert(std::move(kept));
    throw;
  }
  activation.complete(context.call, HEARTH_OK, {});
  return true;
}

inline std::unique_ptr<BoundFiber> bind_named(Activation& activation, std::string_view name,
                                              const Json& input) {
  for (const NamedFiber& each : activation.traits().methods().fibers) {
    if (each.name == name) return each.bind(each, activation.agent(), input);
  }
  return nullptr;
}

// Calls the function that is listed under its name. False: none is.
inline bool continue_named(Activation& activation, const Context& context,
                           const RecoveredFiber& fiber) {
  const auto bound = bind_named(activation, fiber.name, fiber.input);
  if (!bound) return false;
  const Activation::Scope scope(activation, context);
  FiberRow row = resume_fiber(activation, fiber);
  leave_alone(activation, bound->begin(activation, fiber_context(activation), std::move(row)));
  return true;
}

// This version has nothing to go on with: the host keeps the fiber for one that has. What
// hearth.fibers/1 has begun it would offer again and again for this, so that one goes, with a
// warning.
inline hearth_status unknown_fiber(const RecoveredFiber& fiber) noexcept {
  return fiber.record ? HEARTH_E_NOT_FOUND : HEARTH_E_UNSUPPORTED;
}

inline void DeliverRecovered::operator()(Activation& activation, const Context& context) const {
  Recovery& recovery = *recovery_;
  // The hook may have cancelled it, or somebody has begun to do its work.
  const bool is_over = [&] {
    if (recovery.continued) return true;
    if (!recovery.fiber.record) return false;
    const auto record = find_record(activation, recovery.fiber.id, {});
    return !record || record->settled() || record->status == FiberStatus::kRunning;
  }();
  if (is_over) return activation.complete(context.call, HEARTH_OK, {});
  if (!recovery.outcome) {
    const bool goes_on = continue_named(activation, context, recovery.fiber);
    return activation.complete(context.call, goes_on ? HEARTH_OK : unknown_fiber(recovery.fiber),
                               {});
  }
  const FiberOutcome& outcome = *recovery.outcome;
  activation.complete(context.call, HEARTH_OK, outcome_text(outcome));
  // The host tells of the records that it keeps; and it may not have accepted the outcome.
  if (!recovery.fiber.record || !recovery.fiber.record->brief) return;
  if (const auto record = find_record(activation, recovery.fiber.id, {});
      record && !record->settled())
    return;
  FiberRecord settled = *recovery.fiber.record;
  settled.status = outcome.status;
  settled.result = outcome.result;
  if (!outcome.error.empty()) settled.error = outcome.error;
  fiber_settled(activation, settled);
}

// A class without the hook that does not list the name refuses the event: for a host that means
// that this version does not know the fiber, and not that the hook has failed.
inline hearth_status dispatch_recovery(Activation& activation, const Context& outer,
                                       const hearth_event& event) {
  Context context = outer;
  auto recovery = std::make_unique<Recovery>(read_recovery(view(event.name), view(event.body)));
  if (resume_kept(activation, context, recovery->fiber)) return HEARTH_OK;
  if (!has_recovery_hook(activation)) {
    if (!continue_named(activation, context, recovery->fiber))
      return unknown_fiber(recovery->fiber);
    activation.complete(context.call, HEARTH_OK, {});
    return HEARTH_OK;
  }
  context.recovery = recovery.get();
  if (activation.tables().operations != nullptr)
    recovery->fiber.ops = find_recovered_operations(activation, recovery->fiber.id);
  const RecoveredFiber& fiber = recovery->fiber;
  const Activation::Scope scope(activation, context);
  drive(activation, context, activation.agent().on_fiber_recovered(fiber),
        DeliverRecovered(std::move(recovery)));
  return HEARTH_OK;
}

inline void dispatch_plan(Activation& activation, const Context& context,
                          const hearth_event& event) {
  auto fibers =
      std::make_unique<const std::vector<InterruptedFiber>>(read_interrupted(view(event.body)));
  const auto& borrowed = *fibers;
  drive(activation, context, activation.agent().on_fibers_recovered(borrowed),
        DeliverPlan(std::move(fibers)));
}

inline void dispatch_settled(Activation& activation, const Context& context,
                             const hearth_event& event) {
  auto fiber = std::make_unique<const FiberRecord>(read_fiber(parse_record(view(event.body))));
  const FiberRecord& borrowed = *fiber;
  fiber_settled(activation, borrowed);
  if ((activation.traits().hooks & kOnFiberComplete) == 0 || borrowed.brief)
    return activation.complete(context.call, HEARTH_E_UNSUPPORTED, {});
  drive(activation, context, activation.agent().on_fiber_complete(borrowed),
        DeliverSettled(std::move(fiber)));
}

inline const OperationKind& listed_operation(const Activation& activation, std::string_view name) {
  for (const NamedOperation& each : activation.traits().methods().operations) {
    if (each.name == name) return each.kind;
  }
  throw Error(HEARTH_E_INVALID, "the class " + std::string(activation.definition().name) +
                                    " lists no operation " + std::string(name) +
                                    ": m.operation(\"...\", {...})");
}

// Owns the record for as long as the hook runs.
struct DeliverUnknown {
  std::unique_ptr<const OperationRecord> operation;
  void operator()(Activation& activation, const Context& context) const {
    activation.complete(context.call, HEARTH_OK, {});
  }
};

inline void dispatch_operation_unknown(Activation& activation, const Context& context,
                                       const hearth_event& event) {
  auto operation =
      std::make_unique<const OperationRecord>(read_operation(parse_record(view(event.body))));
  const OperationRecord& borrowed = *operation;
  drive(activation, context, activation.agent().on_operation_unknown(borrowed),
        DeliverUnknown{std::move(operation)});
}

// How the SDK deals with one kind of event, beside what host and SDK agree on (event_rules.hpp).
struct EventHandler {
  std::uint32_t kind;
  std::uint32_t hook;     // the bit of the hook that it leads to; 0: none
  bool is_always_ours;    // looked at whether or not the class has the hook
  std::string_view name;  // of that hook, or of the kind
  bool is_unheard;        // its failure reaches no caller, client or other event
  // Begins an asynchronous event. Exceptions before the first wait come out of here. Null:
  // synchronous.
  hearth_status (*begin)(Activation&, const Context&, const hearth_event&);
};

// A hook that takes nothing of the event but what `Start` reads, and answers nothing.
template <auto Start>
hearth_status begin_hook(Activation& activation, const Context& context,
                         const hearth_event& event) {
  drive(activation, context, Start(activation, event), DeliverNothing());
  return HEARTH_OK;
}
template <auto Begin>
hearth_status begin_with(Activation& activation, const Context& context,
                         const hearth_event& event) {
  Begin(activation, context, event);
  return HEARTH_OK;
}

inline Task<void> hook_start(Activation& activation, const hearth_event&) {
  return activation.agent().on_start();
}
inline Task<void> hook_connect(Activation& activation, const hearth_event& event) {
  return activation.agent().on_connect(Connection(activation, event.connection));
}
inline Task<void> hook_message(Activation& activation, const hearth_event& event) {
  return activation.agent().on_message(
      Connection(activation, event.connection),
      Message(std::string(view(event.body)), event.flags == HEARTH_MESSAGE_BINARY));
}
inline Task<void> hook_close(Activation& activation, const hearth_event& event) {
  return activation.agent().on_close(Connection(activation, event.connection),
                                     event.flags & 0xffffU, std::string(view(event.name)),
                                     (event.flags & HEARTH_CLOSE_WAS_CLEAN) != 0);
}
inline Task<void> hook_state_changed(Activation& activation, const hearth_event& event) {
  const Connection client(activation, event.connection);
  return activation.agent().on_state_changed(
      parse_json(view(event.body)),
      event.connection == 0 ? std::nullopt : std::optional<Connection>(client));
}
inline Task<void> hook_evict(Activation& activation, const hearth_event& event) {
  return activation.agent().on_evict(static_cast<EvictReason>(event.flags));
}
inline Task<void> hook_migrate(Activation& activation, const hearth_event& event) {
  const Json body = parse_record(view(event.body));
  return activation.agent().on_migrate(body.at("from").get<unsigned>(),
                                       body.at("to").get<unsigned>());
}

// By kind, as kEventRules.
// clang-format off
inline constexpr EventHandler kEventHandlers[] = {
    {HEARTH_EVENT_START,            kOnStart,           false, "on_start",             false, &begin_hook<hook_start>},
    {HEARTH_EVENT_CONNECTING,       kOnConnecting,      false, "on_connecting",        false, nullptr},
    {HEARTH_EVENT_CONNECT,          kOnConnect,         false, "on_connect",           false, &begin_hook<hook_connect>},
    {HEARTH_EVENT_MESSAGE,          kOnMessage,         false, "on_message",           true,  &begin_hook<hook_message>},
    {HEARTH_EVENT_CLOSE,            kOnClose,           false, "on_close",             true,  &begin_hook<hook_close>},
    {HEARTH_EVENT_CALL,             0,                  true,  "call",                 false, &begin_with<dispatch_call>},
    {HEARTH_EVENT_REQUEST,          kOnRequest,         true,  "on_request",           false, &begin_with<dispatch_request>},
    {HEARTH_EVENT_STATE_CHECK,      kValidateState,     false, "validate_state",       false, nullptr},
    {HEARTH_EVENT_STATE_CHANGED,    kOnStateChanged,    false, "on_state_changed",     true,  &begin_hook<hook_state_changed>},
    {HEARTH_EVENT_EVICT,            kOnEvict,           false, "on_evict",             true,  &begin_hook<hook_evict>},
    {HEARTH_EVENT_FIBER_RECOVERED,  kOnFiberRecovered,  true,  "on_fiber_recovered",   false, &dispatch_recovery},
    {HEARTH_EVENT_SCHEDULE,         0,                  true,  "schedule",             false, &begin_with<dispatch_callback>},
    {HEARTH_EVENT_QUEUE_ITEM,       0,                  true,  "queue",                false, &begin_with<dispatch_callback>},
    {HEARTH_EVENT_FIBER_SETTLED,    kOnFiberComplete,   true,  "on_fiber_complete",    true,  &begin_with<dispatch_settled>},
    {HEARTH_EVENT_FIBERS_RECOVERED, kOnFibersRecovered, false, "on_fibers_recovered",  true,  &begin_with<dispatch_plan>},
    {HEARTH_EVENT_MIGRATE,          kOnMigrate,         false, "on_migrate",           false, &begin_hook<hook_migrate>},
    {HEARTH_EVENT_SUB_AGENT,        kOnSubAgent,        false, "on_sub_agent",         false, &begin_with<dispatch_sub_agent>},
    {HEARTH_EVENT_OPERATION_UNKNOWN, kOnOperationUnknown, false, "on_operation_unknown", true, &begin_with<dispatch_operation_unknown>},
};
// clang-format on
static_assert(
    [] {
      for (std::size_t place = 0; place < kEventKinds; ++place) {
        const EventHandler& handler = kEventHandlers[place];
        if (handler.kind != kEventRules[place].kind) return false;
        if ((handler.begin != nullptr) != kEventRules[place].has_call) return false;
      }
      return sizeof(kEventHandlers) / sizeof(kEventHandlers[0]) == kEventKinds;
    }(),
    "a row for each kind, in their order");

// CONNECTING and STATE_CHECK: over when this returns.
inline hearth_status dispatch_synchronous(Activation& activation,
                                          const hearth_event& event) noexcept {
  const Activation::Entry entry(activation, Context{.connection = event.connection});
  try {
    if (event.kind == HEARTH_EVENT_CONNECTING) {
      Connecting client(activation, event.connection);
      activation.agent().on_connecting(client);
    } else {
      activation.agent().validate_state(parse_json(view(event.body)),
                                        Connection(activation, event.connection));
    }
    return HEARTH_OK;
  } catch (...) {
    const Failure failure = current_failure();
    // validate_state throws to reject; a client is refused with Connecting::refuse().
    if (event.kind == HEARTH_EVENT_CONNECTING && failure.status == HEARTH_E_PLUGIN)
      activation.tell_error("on_connecting");
    activation.complete(0, failure.status, failure.text);  // the text of what is returned
    // UNSUPPORTED would mean that the class has no objection.
    return failure.status == HEARTH_E_UNSUPPORTED ? HEARTH_E_PLUGIN : failure.status;
  }
}

// hearth_class.on_event, for every class.
inline hearth_status on_event(void* instance, const hearth_event* event) noexcept {
  Activation& activation = *static_cast<Activation*>(instance);
  if (!is_event_kind(event->kind)) return HEARTH_E_UNSUPPORTED;
  const EventRule& rule = event_rule(event->kind);
  const EventHandler& handler = kEventHandlers[event->kind - 1];

  const bool wanted = (activation.traits().hooks & handler.hook) != 0;
  if (event->kind == HEARTH_EVENT_MIGRATE && !wanted)
    return HEARTH_E_UNSUPPORTED;  // it changes nothing
  if (event->call == 0) return wanted ? dispatch_synchronous(activation, *event) : HEARTH_OK;
  if (!rule.has_call || (!wanted && !handler.is_always_ours)) {
    activation.complete(event->call, HEARTH_OK, {});
    return HEARTH_OK;
  }

  const Context context{.call = event->call,
                        .connection = event->connection,
                        .on_behalf = rule.is_on_behalf,
                        .unheard = handler.is_unheard,
                        .retried = rule.is_retried,
                        .handler = handler.name};
  const Activation::Entry entry(activation, context);
  try {
    return handler.begin(activation, context, *event);
  } catch (...) {
    activation.complete_with_exception(context);
  }
  return HEARTH_OK;
}

inline void on_cancel(void* instance, std::uint64_t call) noexcept {
  Activation& activation = *static_cast<Activation*>(instance);
  const Activation::Entry entry(activation, Context());
  activation.cancel(call);
}

inline void on_result(void* instance, const hearth_result* result) noexcept {
  static_cast<Activation*>(instance)->on_result(*result);
}

inline void destroy(void* instance) noexcept {
  delete static_cast<Activation*>(instance);
}

}  // namespace hearth::detail
