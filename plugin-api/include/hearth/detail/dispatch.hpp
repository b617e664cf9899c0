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
};

struct ClassTraits {
  std::uint32_t hooks;
  const MethodTable& (*methods)();
};

inline void dispatch_call(Activation& activation, const Context& context,
                          const hearth_event& event) {
  const std::string_view name = view(event.name);
  for (const Method& method : activation.traits().methods().methods) {
    if (method.name == name)
      return method.invoke(method, activation, activation.agent(), context, view(event.body));
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

// A class without the hook refuses the event: for a host only that means that the class recovers no
// fibers, and not that the hook has failed.
inline hearth_status dispatch_recovery(Activation& activation, const Context& outer,
                                       const hearth_event& event) {
  Context context = outer;
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

// How the SDK deals with one kind of event, beside what host and SDK agree on (event_rules.hpp).
struct EventHandler {
  std::uint32_t kind;
  std::uint32_t hook;   // the bit of the hook that it leads to; 0: none
  bool is_always_ours;  // looked at whether or not the class has the hook
  // The name of a hook whose failure reaches no caller, client or other event; null for the rest.
  const char* unheard;
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
    {HEARTH_EVENT_START,            kOnStart,           false, nullptr,               &begin_hook<hook_start>},
    {HEARTH_EVENT_CONNECTING,       kOnConnecting,      false, nullptr,               nullptr},
    {HEARTH_EVENT_CONNECT,          kOnConnect,         false, nullptr,               &begin_hook<hook_connect>},
    {HEARTH_EVENT_MESSAGE,          kOnMessage,         false, "on_message",          &begin_hook<hook_message>},
    {HEARTH_EVENT_CLOSE,            kOnClose,           false, "on_close",            &begin_hook<hook_close>},
    {HEARTH_EVENT_CALL,             0,                  true,  nullptr,               &begin_with<dispatch_call>},
    {HEARTH_EVENT_REQUEST,          kOnRequest,         true,  nullptr,               &begin_with<dispatch_request>},
    {HEARTH_EVENT_STATE_CHECK,      kValidateState,     false, nullptr,               nullptr},
    {HEARTH_EVENT_STATE_CHANGED,    kOnStateChanged,    false, "on_state_changed",    &begin_hook<hook_state_changed>},
    {HEARTH_EVENT_EVICT,            kOnEvict,           false, "on_evict",            &begin_hook<hook_evict>},
    {HEARTH_EVENT_FIBER_RECOVERED,  kOnFiberRecovered,  true,  nullptr,               &dispatch_recovery},
    {HEARTH_EVENT_SCHEDULE,         0,                  true,  nullptr,               &begin_with<dispatch_callback>},
    {HEARTH_EVENT_QUEUE_ITEM,       0,                  true,  nullptr,               &begin_with<dispatch_callback>},
    {HEARTH_EVENT_FIBER_SETTLED,    kOnFiberComplete,   true,  "on_fiber_complete",   &begin_with<dispatch_settled>},
    {HEARTH_EVENT_FIBERS_RECOVERED, kOnFibersRecovered, false, "on_fibers_recovered", &begin_with<dispatch_plan>},
    {HEARTH_EVENT_MIGRATE,          kOnMigrate,         false, nullptr,               &begin_hook<hook_migrate>},
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

  const Context context{event->call, event->connection, rule.is_on_behalf, handler.unheard,
                        0,           nullptr,           rule.is_retried};
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
