#pragma once
// The part of hearth::Agent that begins fibers, waits for them, and manages their records. What a
// fiber is: fiber.hpp.
//
//     const auto started = start_fiber("charge", order, {.key = order.id, .keep_record = true});
//     if (!started.accepted) log.info("order ", order.id, " was charged before");
//     const hearth::FiberRecord record = co_await wait_fiber(started.record.id);
//     co_return record.result_as<Receipt>();
//
// Record    Without keep_record it exists as long as the work, and its key is free again when the
//           work has ended. With it the record outlives the work, for callers that ask later. It is
//           removed after the class's fibers.keep_completed and fibers.keep_failed.
// Key       At most one fiber of an agent has a key: a second start gets the existing fiber. With
//           another name or input it is a CONFLICT.
// Bounded   The class's YAML: fibers.max_records. Input, metadata and result: limits.max_value
//           each.

#include <hearth/detail/activation.hpp>
#include <hearth/detail/fiber_start.hpp>
#include <hearth/fiber.hpp>
#include <hearth/fiber_options.hpp>
#include <hearth/fiber_record.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth {

struct StartedFiber {
  bool accepted = false;  // false: `record` existed before, and is not this call's work
  FiberRecord record;     // of a new one: pending, as it was accepted

  [[nodiscard]] const std::string& id() const noexcept { return record.id; }
};

// A fiber whose recovery was given up. revive_fiber() recovers it once more.
struct DeadFiber {
  std::string id;
  std::string name;
  Json snapshot;
  Time created_at;
  int attempts = 0;
  std::string last_error;
};

namespace detail {

// Its private names are ones that no agent class is likely to use.
template <class Self>
class FiberCalls {
 public:
  // Begins the fiber that methods() lists under `name`, with `input`, and runs it up to its first
  // wait; or finds the fiber that has the key. The value of its function, as JSON, is the result;
  // an exception is logged.
  // In the place of the input: a function of hearth::FiberContext&. fiber.hpp says how it continues
  // in another instance. Let it own what it uses. With retries it is called again, and its captures
  // are as the last call left them.
  // Failure   HostError: INVALID, CONFLICT (same key or id, but another name or input; same id, but
  //           another key; or policy kReject), LIMIT. Error(INVALID): no such name, or the input
  //           does not fit its function.
  template <class What>
  StartedFiber start_fiber(std::string_view name, What&& what, const FiberOptions& options = {}) {
    if constexpr (kIsFiberWork<What>) {
      return start_function(name, std::decay_t<What>(std::forward<What>(what)), options);
    } else {
      need_json<std::decay_t<What>>();
      return start_named(name, Json(std::forward<What>(what)), options);
    }
  }
  StartedFiber start_fiber(std::string_view name, const Json& input = nullptr,
                           const FiberOptions& options = {}) {
    return start_named(name, input, options);
  }

  // Begins a fiber as start_fiber() does, and waits for its value or exception, all its retries
  // included. cancel_fiber() ends the wait with its reason, whatever the work does. Only the wait
  // belongs to the caller: if the caller's event is cancelled (its client's deadline), the fiber
  // goes on.
  // Inside a fiber the new fiber belongs to the outer one. Its key is the same in each run that
  // begins with the same checkpoint. So after a crash, a completed fiber is not run again, and a
  // fiber that goes on keeps the input that it was begun with. It ends with the outer one if that
  // is cancelled.
  // Failure   As start_fiber(); GONE: the outer fiber is over.
  template <class Function>
    requires(kIsFiberWork<Function>)
  [[nodiscard]] auto run_fiber(std::string name, Function function, FiberOptions options)
      -> Task<FiberValue<Function>>;
  // (No default arguments: g++ 12 destroys them twice inside a co_await.)
  template <class Function>
    requires(kIsFiberWork<Function>)
  [[nodiscard]] auto run_fiber(std::string name, Function function) -> Task<FiberValue<Function>> {
    return run_fiber(std::move(name), std::move(function), FiberOptions());
  }
  // run_fiber<Report>("research", topic): the value as a Report, see read_json().
  template <class Value, class Input>
    requires(!kIsFiberWork<Input>)
  [[nodiscard]] Task<Value> run_fiber(std::string name, Input input, FiberOptions options);
  template <class Value, class Input>
    requires(!kIsFiberWork<Input>)
  [[nodiscard]] Task<Value> run_fiber(std::string name, Input input) {
    return run_fiber<Value>(std::move(name), std::move(input), FiberOptions());
  }
  template <class Value>
  [[nodiscard]] Task<Value> run_fiber(std::string name) {
    return run_fiber<Value>(std::move(name), Json(), FiberOptions());
  }

  // In on_fiber_recovered: the fiber goes on, by the function that is listed under its name.
  // Failure   HostError(NOT_FOUND): it was continued already, or the hook has ended.
  void continue_fiber(const RecoveredFiber& fiber) {
    Activation& live = activation_of_self();
    const auto bound = need_named(live, fiber.name, fiber.input, true);
    leave_alone(live, bound->begin(live, fiber_context(live), resume_fiber(live, fiber)));
  }
  // The same with another function. The first fiber of the same name that is begun inside the hook
  // without a key also continues it; a listed one only with the same input.
  template <class Function>
  void continue_fiber(const RecoveredFiber& fiber, Function function) {
    if constexpr (check_fiber_function<Function>()) {
      Activation& live = activation_of_self();
      leave_alone(live, begin_fiber<false>(live, fiber_context(live), resume_fiber(live, fiber),
                                           std::move(function)));
    }
  }
  // In on_fiber_recovered, for a fiber that is not continued: its outcome. Applied when the hook
  // has ended. A fiber without a record is removed, since no caller can ask for its outcome.
  void settle_fiber(const RecoveredFiber& fiber, FiberOutcome outcome);

  // co_await it: the record, once it is settled; at once if it already is. cancel_fiber() also ends
  // the wait, at the end of the event that cancels, whatever the work does. delete_fibers() and
  // start_fiber() with policy kReplace end it with the settled record, which they may remove.
  // Failure   Error(NOT_FOUND). Error(GONE): the record was removed meanwhile in another way.
  [[nodiscard]] SettledAwaiter wait_fiber(std::string id) {
    return SettledAwaiter(activation_of_self(), std::move(id));
  }
  // The same, for at most this time: co_await wait_fiber(id, 30s). The fiber itself goes on.
  // Failure   Error(TIMEOUT)
  [[nodiscard]] Task<FiberRecord> wait_fiber(std::string id, TimeOption timeout) {
    return wait_settled(activation_of_self(), std::move(id), timeout);
  }

  [[nodiscard]] std::optional<FiberRecord> inspect_fiber(std::string_view id) {
    return find_record(activation_of_self(), id, {});
  }
  [[nodiscard]] std::optional<FiberRecord> inspect_fiber_by_key(std::string_view key) {
    return find_record(activation_of_self(), {}, key);
  }
  // Newest first.
  [[nodiscard]] std::vector<FiberRecord> list_fibers(const FiberFilter& filter = {});

  // Aborts it for good, with this turn, whatever its work does; the work is asked to stop, and its
  // waits that take a stop token (fetch(), Signal, StreamReader) end with Error(CANCELLED). The
  // fibers that it waits for (run_fiber) end with it, however deep: their coroutines are destroyed
  // at the end of this turn, and it begins no others (GONE). False: no fiber has this id, or it has
  // ended.
  bool cancel_fiber(std::string_view id, std::string_view reason = {});
  bool cancel_fiber_by_key(std::string_view key, std::string_view reason = {}) {
    const auto record = inspect_fiber_by_key(key);
    return record && cancel_fiber(record->id, reason);
  }

  // As settle_fiber(), later, for a fiber that is interrupted or dead. False: no such fiber.
  bool resolve_fiber(std::string_view id, const FiberOutcome& outcome) {
    const std::string text = outcome_text(outcome);
    Activation& live = activation_of_self();
    const hearth_status status =
        fiber_table(live).resolve(live.host(), live.id(), slice(id), slice(std::string_view(text)));
    return found(live, status, "resolve fiber");
  }
  // Recovers a dead or interrupted fiber once more. False: no such fiber.
  bool revive_fiber(std::string_view id) {
    const Activation& live = activation_of_self();
    return found(live, fiber_table(live).revive(live.host(), live.id(), slice(id)), "revive fiber");
  }
  // Fibers whose recovery was given up, newest first.
  [[nodiscard]] std::vector<DeadFiber> list_dead_fibers();
  // Removes settled records, those settled longest ago first; interrupted ones only if `statuses`
  // names them. Returns how many.
  std::uint64_t delete_fibers(const FiberFilter& filter = {});

 private:
  friend Self;
  FiberCalls() = default;
  [[nodiscard]] Activation& activation_of_self() { return static_cast<Self*>(this)->activation(); }

  StartedFiber start_named(std::string_view name, const Json& input, const FiberOptions& options) {
    Activation& live = activation_of_self();
    const auto bound = need_named(live, name, input);
    OpenedFiber opened = open_fiber(live, name, input, options, {}, true);
    if (opened.row.handle != 0)
      leave_alone(live, bound->begin(live, fiber_context(live), std::move(opened.row)));
    return {opened.is_new, std::move(opened.record)};
  }
  template <class Function>
  StartedFiber start_function(std::string_view name, Function function,
                              const FiberOptions& options) {
    if constexpr (check_fiber_function<Function>()) {
      static_assert(
          kIsResult<FiberValue<Function>>,
          "the result of a fiber becomes JSON: list its members with HEARTH_FIELDS(a, b)");
      Activation& live = activation_of_self();
      OpenedFiber opened = open_fiber(live, name, options.input, options);
      if (opened.row.handle != 0)
        leave_alone(live, begin_fiber<false>(live, fiber_context(live), std::move(opened.row),
                                             std::move(function)));
      else
        keep_for_later(live, opened, {}, std::move(function));
      return {opened.is_new, std::move(opened.record)};
    } else {
      return {};
    }
  }
};

template <class Self>
template <class Function>
  requires(kIsFiberWork<Function>)
auto FiberCalls<Self>::run_fiber(std::string name, Function function, FiberOptions options)
    -> Task<FiberValue<Function>> {
  static_assert(check_fiber_function<Function>());
  using Value = FiberValue<Function>;
  static_assert(kIsKept<Value>,
                "what run_fiber() gives is kept as JSON and read back: give what JSON can hold, or "
                "list its members with HEARTH_FIELDS(a, b)");
  Activation& live = activation_of_self();
  Json input = std::move(options.input);
  const ChildFiber child = child_options(live, name, std::move(input), std::move(options));
  OpenedFiber opened = open_fiber(live, name, child.input, child.options, child.parent);
  const std::string id = opened.row.id;
  if (opened.row.handle != 0) {
    auto& fiber =
        begin_fiber<false>(live, fiber_context(live), std::move(opened.row), std::move(function));
    EndAwaiter waiting(live, fiber);
    co_await waiting;
    if (waiting.cancelled()) co_return value_of<Value>(*waiting.cancelled());
    if (!fiber.record() || fiber.record()->settled()) co_return fiber.take();
  } else if (opened.record.settled()) {
    co_return value_of<Value>(opened.record);
  } else {
    keep_for_later(live, opened, child.parent, std::move(function));
  }
  SettledAwaiter waiting(live, id);
  const FiberRecord record = co_await waiting;
  co_return value_of<Value>(record);
}

template <class Self>
template <class Value, class Input>
  requires(!kIsFiberWork<Input>)
Task<Value> FiberCalls<Self>::run_fiber(std::string name, Input input, FiberOptions options) {
  static_assert(kIsKept<Value>, "run_fiber<T>(name, input): T is read from JSON");
  need_json<Input>();
  Activation& live = activation_of_self();
  Json json(input);
  const ChildFiber child = child_options(live, name, std::move(json), std::move(options));
  const auto bound = need_named(live, name, child.input, child.is_stored);
  OpenedFiber opened = open_fiber(live, name, child.input, child.options, child.parent, true);
  const std::string id = opened.row.id;
  if (opened.row.handle != 0) {
    FiberRoot& fiber = bound->begin(live, fiber_context(live), std::move(opened.row));
    EndAwaiter waiting(live, fiber);
    co_await waiting;
    if (waiting.cancelled()) co_return value_of<Value>(*waiting.cancelled());
    if (!fiber.record()) fiber.rethrow();
    if (fiber.record() && fiber.record()->settled()) {
      fiber.rethrow();
      co_return value_of<Value>(*fiber.record());
    }
  } else if (opened.record.settled()) {
    co_return value_of<Value>(opened.record);
  }
  SettledAwaiter waiting(live, id);
  const FiberRecord record = co_await waiting;
  co_return value_of<Value>(record);
}

template <class Self>
std::vector<FiberRecord> FiberCalls<Self>::list_fibers(const FiberFilter& filter) {
  const hearth_fiber_filter wanted = to_fiber_filter(filter);
  hearth_bytes records = {nullptr, 0};
  Activation& live = activation_of_self();
  live.check(fiber_table(live).list(live.host(), live.id(), &wanted, &records), "list fibers");
  std::vector<FiberRecord> all;
  for (const Json& record : parse_record(view(records))) all.push_back(read_fiber(record));
  return all;
}

template <class Self>
bool FiberCalls<Self>::cancel_fiber(std::string_view id, std::string_view reason) {
  Activation& live = activation_of_self();
  hearth_bytes record = {nullptr, 0};
  const hearth_status status = fiber_table(live).cancel(live.host(), live.id(), slice(id),
                                                        {nullptr, 0}, slice(reason), &record);
  if (!found(live, status, "cancel fiber")) return false;
  const Json answer = parse_record(view(record));
  const FiberRecord cancelled = read_fiber(answer);
  stop_cancelled(live, cancelled);
  fiber_settled(live, cancelled);
  stop_inner(live, cancelled, find_json(answer, "inner"));
  return true;
}

template <class Self>
void FiberCalls<Self>::settle_fiber(const RecoveredFiber& fiber, FiberOutcome outcome) {
  Recovery* const recovery = activation_of_self().context().recovery;
  if (!recovery || recovery->fiber.id != fiber.id)
    throw Error(HEARTH_E_INVALID, "settle_fiber() is for the fiber of on_fiber_recovered");
  recovery->outcome = std::move(outcome);
}

DeadFiber read_dead_fiber(const Json& record);

template <class Self>
std::vector<DeadFiber> FiberCalls<Self>::list_dead_fibers() {
  const Activation& live = activation_of_self();
  std::vector<DeadFiber> all;
  hearth_fiber_filter dead = to_fiber_filter(FiberFilter{.limit = 100, .dead = true});
  for (std::string after;;) {  // an empty page is the last
    dead.after = slice(std::string_view(after));
    hearth_bytes records = {nullptr, 0};
    live.check(fiber_table(live).list(live.host(), live.id(), &dead, &records), "list dead fibers");
    const Json page = parse_record(view(records));
    if (page.empty()) return all;
    for (const Json& record : page) all.push_back(read_dead_fiber(record));
    after = all.back().id;
  }
}

template <class Self>
std::uint64_t FiberCalls<Self>::delete_fibers(const FiberFilter& filter) {
  const hearth_fiber_filter wanted = to_fiber_filter(filter);
  std::uint64_t removed = 0;
  Activation& live = activation_of_self();
  tell_waiters(live);
  live.check(fiber_table(live).remove(live.host(), live.id(), &wanted, &removed), "delete fibers");
  return removed;
}

template <class Function>
void KeptFunction<Function>::resume(Activation& activation, const RecoveredFiber& fiber) {
  FiberRow row = resume_fiber(activation, fiber);  // if it is refused, the function stays
  leave_alone(activation,
              begin_fiber<false>(activation, context_, std::move(row), std::move(function_)));
}

}  // namespace detail

}  // namespace hearth
