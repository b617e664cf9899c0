#include <hearth/detail/dispatch.hpp>

#include <algorithm>
#include <stdexcept>

namespace hearth::detail {
namespace {

constexpr unsigned kFirstRefusal = 400;  // ext/subagents.h

// Whether the class lists the name, but not for clients.
bool is_not_for_clients(const MethodTable& table, std::string_view name) {
  const auto has_name = [name](const auto& each) { return each.name == name; };
  return std::ranges::any_of(table.callbacks, has_name) ||
         std::ranges::any_of(table.fibers, has_name);
}

}  // namespace

void dispatch_call(Activation& activation, const Context& outer, const hearth_event& event) {
  const std::string_view name = view(event.name);
  Context context = outer;
  for (const Method& method : activation.traits().methods().methods) {
    if (method.name != name) continue;
    context.handler = method.name;
    context.is_method = true;
    try {
      method.invoke(method, activation, activation.agent(), context, view(event.body));
    } catch (...) {
      activation.complete_with_exception(context);
    }
    return;
  }
  const std::string method = "Method " + std::string(name);
  if (is_not_for_clients(activation.traits().methods(), name))
    activation.complete(context.call, HEARTH_E_FORBIDDEN, method + " is not callable");
  else
    activation.complete(context.call, HEARTH_E_NOT_FOUND, method + " does not exist");
}

void dispatch_request(Activation& activation, const Context& context, const hearth_event& event) {
  auto request =
      std::make_unique<Request>(activation, event.call, view(event.name), view(event.body),
                                (event.flags & HEARTH_REQUEST_UNREAD_BODY) != 0);
  const Request& borrowed = *request;
  drive(activation, context, activation.agent().on_request(borrowed),
        DeliverResponse(std::move(request)));
}

void DeliverAdmission::operator()(Activation& activation, const Context& context,
                                  const std::optional<Response>& refusal) const {
  if (!refusal) return activation.complete(context.call, HEARTH_OK, {});
  if (refusal->status() < kFirstRefusal)
    throw std::logic_error("on_sub_agent refuses with a status of 400 or more, not with " +
                           std::to_string(refusal->status()));
  set_head(activation, context.call, *refusal);
  activation.complete(context.call, HEARTH_OK, refusal->body());
}

void dispatch_sub_agent(Activation& activation, const Context& context, const hearth_event& event) {
  auto request = std::make_unique<Request>(activation, event.call, "GET", "");
  const Request& borrowed = *request;
  SubAgentName child{std::string(view(event.name)), std::string(view(event.body))};
  drive(activation, context, activation.agent().on_sub_agent(std::move(child), borrowed),
        DeliverAdmission{std::move(request)});
}

namespace {

std::string_view class_name(const Activation& activation) {
  return activation.definition().name;
}

// The callback that the class lists for schedules, or for the queue; null: `why` says what is wrong
// with the name.
const Callback* find_callback(const Activation& activation, std::string_view name, bool scheduled,
                              std::string& why) {
  const auto& callbacks = activation.traits().methods().callbacks;
  const auto found = std::find_if(callbacks.begin(), callbacks.end(),
                                  [&](const Callback& each) { return each.name == name; });
  if (found != callbacks.end() && (scheduled ? found->for_schedules : found->for_queue))
    return &*found;
  why = "Callback " + std::string(name) +
        (found == callbacks.end() ? " does not exist"
         : scheduled              ? " is for the queue"
                                  : " is for schedules");
  return nullptr;
}

}  // namespace

void dispatch_callback(Activation& activation, const Context& outer, const hearth_event& event) {
  Context context = outer;
  const bool scheduled = event.kind == HEARTH_EVENT_SCHEDULE;
  const std::string_view name = view(event.name);
  std::string why;
  const Callback* const callback = find_callback(activation, name, scheduled, why);
  if (callback == nullptr) return activation.complete(context.call, HEARTH_E_NOT_FOUND, why);
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

void need_callback(const Activation& activation, std::string_view name, bool scheduled) {
  std::string why;
  if (find_callback(activation, name, scheduled, why) == nullptr)
    throw Error(HEARTH_E_INVALID,
                why + ": the class " + std::string(class_name(activation)) +
                    " lists them with m.callback(\"...\", &Class::function)",
                true);
}

void need_method(const Activation& activation, std::string_view name) {
  for (const Method& method : activation.traits().methods().methods) {
    if (method.name == name) return;
  }
  throw Error(HEARTH_E_INVALID,
              "the class " + std::string(class_name(activation)) + " lists no method " +
                  std::string(name) + ": m.add(\"...\", &Class::function)",
              true);
}

bool resume_kept(Activation& activation, const Context& context, const RecoveredFiber& fiber) {
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

std::unique_ptr<BoundFiber> bind_named(Activation& activation, std::string_view name,
                                       const Json& input) {
  for (const NamedFiber& each : activation.traits().methods().fibers) {
    if (each.name == name) return each.bind(each, activation.agent(), input);
  }
  return nullptr;
}

std::unique_ptr<BoundFiber> bind_stored(Activation& activation, std::string_view name,
                                        const Json& input) {
  try {
    return bind_named(activation, name, input);
  } catch (const std::exception& error) {
    throw Unreadable(error.what());
  }
}

ShouldRetry should_retry_of(const Activation& activation, std::string_view name) {
  for (const NamedFiber& each : activation.traits().methods().fibers) {
    if (each.name == name) return each.should_retry;
  }
  return nullptr;
}

bool is_listed_fiber(const Activation& activation, std::string_view name) noexcept {
  return std::ranges::any_of(activation.traits().methods().fibers,
                             [name](const NamedFiber& each) { return each.name == name; });
}

bool continue_named(Activation& activation, const Context& context, const RecoveredFiber& fiber) {
  const auto bound = bind_stored(activation, fiber.name, fiber.input);
  if (!bound) return false;
  const Activation::Scope scope(activation, context);
  FiberRow row = resume_fiber(activation, fiber);
  leave_alone(activation, bound->begin(activation, fiber_context(activation), std::move(row)));
  return true;
}

void DeliverRecovered::operator()(Activation& activation, const Context& context) const {
  Recovery& recovery = *recovery_;
  // The hook may have cancelled it, or its work was begun elsewhere.
  const bool is_over = [&] {
    if (recovery.continued) return true;
    if (!recovery.fiber.record) return false;
    const auto record = find_record(activation, recovery.fiber.id, {});
    return !record || record->settled() || record->status == FiberStatus::kRunning;
  }();
  if (is_over) return activation.complete(context.call, HEARTH_OK, {});
  if (!recovery.outcome) {
    const bool goes_on = continue_named(activation, context, recovery.fiber);
    return activation.complete(context.call, goes_on ? HEARTH_OK : HEARTH_E_NOT_FOUND, {});
  }
  const FiberOutcome& outcome = *recovery.outcome;
  activation.complete(context.call, HEARTH_OK, outcome_text(outcome));
  // For a kept record the host delivers the outcome itself; and it may not have accepted this one.
  if (!recovery.fiber.record || !recovery.fiber.record->brief) return;
  if (const auto record = find_record(activation, recovery.fiber.id, {});
      record && !record->settled())
    return;
  FiberRecord settled = *recovery.fiber.record;
  settled.status = outcome.status;
  settled.result = outcome.result;
  if (!outcome.error.empty()) settled.error = outcome.error;
  if (!outcome.reason.empty()) settled.reason = outcome.reason;
  fiber_settled(activation, settled);
}

hearth_status dispatch_recovery(Activation& activation, const Context& outer,
                                const hearth_event& event) {
  Context context = outer;
  auto recovery = std::make_unique<Recovery>(read_recovery(view(event.name), view(event.body)));
  if (resume_kept(activation, context, recovery->fiber)) return HEARTH_OK;
  // A fiber whose lane is free begins. Nothing was interrupted that a hook could decide about.
  const bool has_hook = has_recovery_hook(activation);
  if (!has_hook || recovery->fiber.reason == "lane") {
    if (continue_named(activation, context, recovery->fiber)) {
      activation.complete(context.call, HEARTH_OK, {});
      return HEARTH_OK;
    }
    if (!has_hook) return HEARTH_E_NOT_FOUND;
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

void dispatch_plan(Activation& activation, const Context& outer, const hearth_event& event) {
  Context context = outer;
  context.plans = true;
  const Activation::Scope scope(activation, context);
  auto fibers =
      std::make_unique<const std::vector<InterruptedFiber>>(read_interrupted(view(event.body)));
  const auto& borrowed = *fibers;
  drive(activation, context, activation.agent().on_fibers_recovered(borrowed),
        DeliverPlan(std::move(fibers)));
}

void dispatch_settled(Activation& activation, const Context& context, const hearth_event& event) {
  auto fiber = std::make_unique<const FiberRecord>(read_fiber(parse_record(view(event.body))));
  const FiberRecord& borrowed = *fiber;
  fiber_settled(activation, borrowed);
  if ((activation.traits().hooks & kOnFiberComplete) == 0 || borrowed.brief)
    return activation.complete(context.call, HEARTH_E_UNSUPPORTED, {});
  drive(activation, context, activation.agent().on_fiber_complete(borrowed),
        DeliverSettled(std::move(fiber)));
}

void dispatch_operation_unknown(Activation& activation, const Context& context,
                                const hearth_event& event) {
  auto operation =
      std::make_unique<const OperationRecord>(read_operation(parse_record(view(event.body))));
  const OperationRecord& borrowed = *operation;
  drive(activation, context, activation.agent().on_operation_unknown(borrowed),
        DeliverUnknown{std::move(operation)});
}

Task<void> hook_message(Activation& activation, const hearth_event& event) {
  return activation.agent().on_message(
      Connection(activation, event.connection),
      Message(std::string(view(event.body)), event.flags == HEARTH_MESSAGE_BINARY));
}

Task<void> hook_close(Activation& activation, const hearth_event& event) {
  return activation.agent().on_close(Connection(activation, event.connection),
                                     event.flags & 0xffffU, std::string(view(event.name)),
                                     (event.flags & HEARTH_CLOSE_WAS_CLEAN) != 0);
}

Task<void> hook_state_changed(Activation& activation, const hearth_event& event) {
  const Connection client(activation, event.connection);
  return activation.agent().on_state_changed(
      parse_json(view(event.body)),
      event.connection == 0 ? std::nullopt : std::optional<Connection>(client));
}

Task<void> hook_migrate(Activation& activation, const hearth_event& event) {
  const Json body = parse_record(view(event.body));
  return activation.agent().on_migrate(body.at("from").get<unsigned>(),
                                       body.at("to").get<unsigned>());
}

hearth_status dispatch_synchronous(Activation& activation, const hearth_event& event) noexcept {
  const Activation::Entry entry(activation, Context{.connection = event.connection});
  try {
    if (event.kind == HEARTH_EVENT_CONNECTING) {
      Connecting client(activation, event.connection);
      activation.agent().on_connecting(client);
    } else {
      const Json state = parse_json(view(event.body));
      if (const auto check = activation.traits().check_state) check(state);
      activation.agent().validate_state(state, Connection(activation, event.connection));
    }
    return HEARTH_OK;
  } catch (...) {
    const Failure failure = current_failure();
    // validate_state throws to reject; a client is refused with Connecting::refuse().
    if (event.kind == HEARTH_EVENT_CONNECTING && failure.status == HEARTH_E_PLUGIN)
      activation.tell_error("on_connecting");
    activation.complete(0, failure.status, failure.text);  // the text of the returned status
    // UNSUPPORTED would mean that the class accepts it.
    return failure.status == HEARTH_E_UNSUPPORTED ? HEARTH_E_PLUGIN : failure.status;
  }
}

hearth_status on_event(void* instance, const hearth_event* event) noexcept {
  Activation& activation = *static_cast<Activation*>(instance);
  if (!is_event_kind(event->kind)) return HEARTH_E_UNSUPPORTED;
  const EventRule& rule = event_rule(event->kind);
  const EventHandler& handler = kEventHandlers[event->kind - 1];

  if (event->kind == HEARTH_EVENT_START || event->kind == HEARTH_EVENT_MIGRATE)
    activation.tell_begin();
  const bool wanted = (activation.traits().hooks & handler.hook) != 0;
  if (event->kind == HEARTH_EVENT_MIGRATE && !wanted) return HEARTH_E_UNSUPPORTED;  // no effect
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

void on_cancel(void* instance, std::uint64_t call) noexcept {
  Activation& activation = *static_cast<Activation*>(instance);
  const Activation::Entry entry(activation, Context());
  activation.cancel(call);
}

}  // namespace hearth::detail
