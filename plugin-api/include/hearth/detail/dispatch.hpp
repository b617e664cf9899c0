#pragma once
// From the host's events to the hooks of an agent. The same code for every class.

#include <hearth/agent_base.hpp>

#include <algorithm>
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
};

struct ClassTraits {
  std::uint32_t hooks;
  const MethodTable& (*methods)();
};

inline void dispatch_call(Activation& activation, const Context& context, std::string_view name,
                          std::string_view arguments) {
  for (const Method& method : activation.traits().methods().methods) {
    if (method.name == name)
      return method.invoke(method, activation, activation.agent(), context, arguments);
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

inline Delivery::Delivery() = default;
inline Delivery::~Delivery() = default;

// A run of a schedule, or an item of the queue.
inline void dispatch_callback(Activation& activation, const Context& context,
                              const hearth_event& event) {
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
  callback->invoke(*callback, activation, activation.agent(), context, std::move(delivery));
}

inline void warn_if_unknown(Activation& activation, std::string_view callback) {
  for (const Callback& each : activation.traits().methods().callbacks) {
    if (each.name == callback) return;
  }
  activation.warn_once("the class " + std::string(activation.definition().name) +
                       " has no callback " + std::string(callback) + " (yet)");
}

// The work failed in this instance, which still has the function. False if it has not.
inline bool resume_kept(Activation& activation, const Context& context,
                        const RecoveredFiber& fiber) {
  auto kept = activation.kept_work().extract(fiber.id);
  if (kept.empty()) return false;
  if (fiber.reason != "retry") return false;
  try {
    kept.mapped()->resume(activation, fiber);
  } catch (...) {
    activation.kept_work().insert(std::move(kept));
    throw;
  }
  activation.complete(context.call, HEARTH_OK, {});
  return true;
}

// A class without the hook refuses the event: for a host only that means that the class recovers no fibers, and not that
// the hook has failed.
inline hearth_status dispatch_recovery(Activation& activation, Context context,
                                       const hearth_event& event) {
  auto recovery = std::make_unique<Recovery>(read_recovery(view(event.name), view(event.body)));
  if (resume_kept(activation, context, recovery->fiber)) return HEARTH_OK;
  if ((activation.traits().hooks & kOnFiberRecovered) == 0) return HEARTH_E_UNSUPPORTED;
  context.recovery = recovery.get();
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
  if ((activation.traits().hooks & kOnFiberComplete) == 0)
    return activation.complete(context.call, HEARTH_E_UNSUPPORTED, {});
  drive(activation, context, activation.agent().on_fiber_complete(borrowed),
        DeliverSettled(std::move(fiber)));
}

inline void dispatch_migration(Activation& activation, const Context& context,
                               const hearth_event& event) {
  const Json body = parse_record(view(event.body));
  drive(
      activation, context,
      activation.agent().on_migrate(body.at("from").get<unsigned>(), body.at("to").get<unsigned>()),
      DeliverNothing());
}

// An asynchronous event whose hook is overridden. Exceptions before the first wait come out of here.
inline void dispatch(Activation& activation, const Context& context, const hearth_event& event) {
  Agent& agent = activation.agent();
  const Connection client(activation, event.connection);
  switch (event.kind) {
    case HEARTH_EVENT_MIGRATE: return dispatch_migration(activation, context, event);
    case HEARTH_EVENT_START: return drive(activation, context, agent.on_start(), DeliverNothing());
    case HEARTH_EVENT_CONNECT:
      return drive(activation, context, agent.on_connect(client), DeliverNothing());
    case HEARTH_EVENT_MESSAGE:
      return drive(activation, context,
                   agent.on_message(client, Message(std::string(view(event.body)),
                                                    event.flags == HEARTH_MESSAGE_BINARY)),
                   DeliverNothing());
    case HEARTH_EVENT_CLOSE:
      return drive(activation, context,
                   agent.on_close(client, event.flags & 0xffffU, std::string(view(event.name)),
                                  (event.flags & HEARTH_CLOSE_WAS_CLEAN) != 0),
                   DeliverNothing());
    case HEARTH_EVENT_STATE_CHANGED:
      return drive(activation, context,
                   agent.on_state_changed(
                       parse_json(view(event.body)),
                       event.connection == 0 ? std::nullopt : std::optional<Connection>(client)),
                   DeliverNothing());
    case HEARTH_EVENT_EVICT:
      return drive(activation, context, agent.on_evict(static_cast<EvictReason>(event.flags)),
                   DeliverNothing());
    case HEARTH_EVENT_FIBERS_RECOVERED: return dispatch_plan(activation, context, event);
    case HEARTH_EVENT_FIBER_SETTLED: return dispatch_settled(activation, context, event);
    case HEARTH_EVENT_SCHEDULE:
    case HEARTH_EVENT_QUEUE_ITEM: return dispatch_callback(activation, context, event);
    default: return;
  }
}

// The hook that an event kind leads to; 0 for those that have none.
inline std::uint32_t hook_of(std::uint32_t kind) noexcept {
  switch (kind) {
    case HEARTH_EVENT_START: return kOnStart;
    case HEARTH_EVENT_CONNECTING: return kOnConnecting;
    case HEARTH_EVENT_CONNECT: return kOnConnect;
    case HEARTH_EVENT_MESSAGE: return kOnMessage;
    case HEARTH_EVENT_CLOSE: return kOnClose;
    case HEARTH_EVENT_REQUEST: return kOnRequest;
    case HEARTH_EVENT_STATE_CHECK: return kValidateState;
    case HEARTH_EVENT_STATE_CHANGED: return kOnStateChanged;
    case HEARTH_EVENT_EVICT: return kOnEvict;
    case HEARTH_EVENT_FIBER_RECOVERED: return kOnFiberRecovered;
    case HEARTH_EVENT_FIBERS_RECOVERED: return kOnFibersRecovered;
    case HEARTH_EVENT_MIGRATE: return kOnMigrate;
    case HEARTH_EVENT_FIBER_SETTLED: return kOnFiberComplete;
    default: return 0;
  }
}

// Events that the SDK looks at whether or not the class has a hook for them.
inline bool always_wanted(std::uint32_t kind) noexcept {
  switch (kind) {
    case HEARTH_EVENT_CALL:
    case HEARTH_EVENT_REQUEST:
    case HEARTH_EVENT_FIBER_RECOVERED:
    case HEARTH_EVENT_FIBER_SETTLED:
    case HEARTH_EVENT_SCHEDULE:
    case HEARTH_EVENT_QUEUE_ITEM: return true;
    default: return false;
  }
}

// The name of a hook whose failure reaches no caller, client or other event; null for the rest.
inline const char* unheard_hook(std::uint32_t kind) noexcept {
  switch (kind) {
    case HEARTH_EVENT_MESSAGE: return "on_message";
    case HEARTH_EVENT_CLOSE: return "on_close";
    case HEARTH_EVENT_STATE_CHANGED: return "on_state_changed";
    case HEARTH_EVENT_EVICT: return "on_evict";
    case HEARTH_EVENT_FIBER_SETTLED: return "on_fiber_complete";
    case HEARTH_EVENT_FIBERS_RECOVERED: return "on_fibers_recovered";
    default: return nullptr;
  }
}

// Events that the host gives again if they fail.
inline bool is_retried(std::uint32_t kind) noexcept {
  switch (kind) {
    case HEARTH_EVENT_FIBER_RECOVERED:
    case HEARTH_EVENT_FIBER_SETTLED:
    case HEARTH_EVENT_SCHEDULE:
    case HEARTH_EVENT_QUEUE_ITEM: return true;
    default: return false;
  }
}

// CONNECTING and STATE_CHECK: over when this returns.
inline hearth_status dispatch_synchronous(Activation& activation,
                                          const hearth_event& event) noexcept {
  const Activation::Entry entry(activation, Context{0, event.connection, false, nullptr});
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
    activation.complete(0, failure.status, failure.text);  // the text of what is returned
    // UNSUPPORTED would mean that the class has no objection.
    return failure.status == HEARTH_E_UNSUPPORTED ? HEARTH_E_PLUGIN : failure.status;
  }
}

// hearth_class.on_event, for every class.
inline hearth_status on_event(void* instance, const hearth_event* event) noexcept {
  Activation& activation = *static_cast<Activation*>(instance);
  const std::uint32_t kind = event->kind;
  if (kind < HEARTH_EVENT_START || kind > HEARTH_EVENT_MIGRATE) return HEARTH_E_UNSUPPORTED;

  const bool wanted = (activation.traits().hooks & hook_of(kind)) != 0;
  if (kind == HEARTH_EVENT_MIGRATE && !wanted) return HEARTH_E_UNSUPPORTED;  // it changes nothing
  if (event->call == 0) return wanted ? dispatch_synchronous(activation, *event) : HEARTH_OK;
  if (!wanted && !always_wanted(kind)) {
    activation.complete(event->call, HEARTH_OK, {});
    return HEARTH_OK;
  }

  const Context context{event->call,
                        event->connection,
                        kind == HEARTH_EVENT_CALL || kind == HEARTH_EVENT_MESSAGE,
                        unheard_hook(kind),
                        0,
                        nullptr,
                        is_retried(kind)};
  const Activation::Entry entry(activation, context);
  try {
    if (kind == HEARTH_EVENT_CALL) {
      dispatch_call(activation, context, view(event->name), view(event->body));
    } else if (kind == HEARTH_EVENT_REQUEST) {
      dispatch_request(activation, context, *event);
    } else if (kind == HEARTH_EVENT_FIBER_RECOVERED) {
      return dispatch_recovery(activation, context, *event);
    } else {
      dispatch(activation, context, *event);
    }
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
