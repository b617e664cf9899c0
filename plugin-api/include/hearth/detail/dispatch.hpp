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
  // Throws for a state that is no T::State; null: the class has no such type.
  void (*check_state)(const Json&);
};

void dispatch_call(Activation& activation, const Context& outer, const hearth_event& event);

void dispatch_request(Activation& activation, const Context& context, const hearth_event& event);

// Owns the request for as long as the hook runs.
struct DeliverAdmission {
  std::unique_ptr<Request> request;
  // Failure   logic_error: the host would take the refusal for a permission.
  void operator()(Activation& activation, const Context& context,
                  const std::optional<Response>& refusal) const;
};

void dispatch_sub_agent(Activation& activation, const Context& context, const hearth_event& event);

inline Delivery::Delivery() = default;
inline Delivery::~Delivery() = default;

// A run of a schedule, or an item of the queue.
void dispatch_callback(Activation& activation, const Context& outer, const hearth_event& event);

inline bool has_recovery_hook(const Activation& activation) noexcept {
  return (activation.traits().hooks & kOnFiberRecovered) != 0;
}

// True if this instance has the function: its work has failed here, or it was begun here while it
// had to wait. Then no hook decides.
bool resume_kept(Activation& activation, const Context& context, const RecoveredFiber& fiber);

// Calls the function that is listed under its name. False: none is listed.
bool continue_named(Activation& activation, const Context& context, const RecoveredFiber& fiber);

// A class without the hook that does not list the name refuses the event. For a host that means
// that this version does not know the fiber, not that the hook has failed.
hearth_status dispatch_recovery(Activation& activation, const Context& outer,
                                const hearth_event& event);

void dispatch_plan(Activation& activation, const Context& context, const hearth_event& event);

void dispatch_settled(Activation& activation, const Context& context, const hearth_event& event);

inline const OperationKind& listed_operation(const Activation& activation, std::string_view name) {
  for (const NamedOperation& each : activation.traits().methods().operations) {
    if (each.name == name) return each.kind;
  }
  throw Error(HEARTH_E_INVALID,
              "the class " + std::string(activation.definition().name) + " lists no operation " +
                  std::string(name) + ": m.operation(\"...\", {...})",
              true);
}

// Owns the record for as long as the hook runs.
struct DeliverUnknown {
  std::unique_ptr<const OperationRecord> operation;
  void operator()(Activation& activation, const Context& context) const {
    activation.complete(context.call, HEARTH_OK, {});
  }
};

void dispatch_operation_unknown(Activation& activation, const Context& context,
                                const hearth_event& event);

// The SDK's rules for one kind of event, beside those that it shares with the host
// (event_rules.hpp).
struct EventHandler {
  std::uint32_t kind;
  std::uint32_t hook;     // the bit of the hook that it leads to; 0: none
  bool is_always_ours;    // handled whether or not the class has the hook
  std::string_view name;  // of that hook, or of the kind
  bool is_unheard;        // its failure reaches no caller, client or other event
  // Begins an asynchronous event. Throws the exceptions before the first wait. Null: synchronous.
  hearth_status (*begin)(Activation&, const Context&, const hearth_event&);
};

// A hook that takes only what `Start` reads from the event, and has no answer.
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
Task<void> hook_message(Activation& activation, const hearth_event& event);
Task<void> hook_close(Activation& activation, const hearth_event& event);
Task<void> hook_state_changed(Activation& activation, const hearth_event& event);
inline Task<void> hook_evict(Activation& activation, const hearth_event& event) {
  return activation.agent().on_evict(static_cast<EvictReason>(event.flags));
}
Task<void> hook_migrate(Activation& activation, const hearth_event& event);

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
hearth_status dispatch_synchronous(Activation& activation, const hearth_event& event) noexcept;

// hearth_class.on_event, for every class.
hearth_status on_event(void* instance, const hearth_event* event) noexcept;

void on_cancel(void* instance, std::uint64_t call) noexcept;

inline void on_result(void* instance, const hearth_result* result) noexcept {
  static_cast<Activation*>(instance)->on_result(*result);
}

inline void destroy(void* instance) noexcept {
  delete static_cast<Activation*>(instance);
}

}  // namespace hearth::detail
