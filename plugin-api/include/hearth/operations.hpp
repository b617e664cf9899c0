#pragma once
// Operations: effects outside of the agent, in a ledger, so that no effect runs twice unnoticed.
//
//     static void methods(hearth::Methods<Shop>& m) {
//       m.fiber("order", &Shop::order);
//       m.operation("charge", {.effect = hearth::Effect::kKeyed,
//                              .same = "the order's fiber and the amount",
//                              .interrupted = "charges again with the same key",
//                              .upstream = "answers a known key with the first charge, for 24 h",
//                              .unknown = "the order waits for the bookkeeper"});
//     }
//     hearth::Task<hearth::Json> charge(hearth::OperationAttempt attempt, int cents);  // fetch()
//     hearth::Task<void> order(Order order, hearth::FiberContext&) {
//       const auto act = [this, cents = order.cents](hearth::OperationAttempt attempt) {
//         return charge(std::move(attempt), cents);
//       };
//       hearth::OperationCall call{.kind = "charge", .args = {{"cents", order.cents}}};
//       sql("INSERT INTO receipts VALUES (?)", co_await operation(std::move(call), act));
//     }
//
// Promises  The ledger's row is as durable as the class asks before the function is called. The
//           result, and the agent's writes up to its next wait, are one commit. An operation that
//           has completed gives its result again, without a call of the function. A call of one
//           that runs waits for that run.
// Same      In a fiber: equal kind and arguments, and as many equal ones completed before in its
//           work. So the second charge of 5 cents is another operation, and a run after a crash
//           finds its own. Operations before the last checkpoint count too. Two equal ones that run
//           at once are one.
//           With a key: the same kind and key, in the whole agent. Outside of a fiber a key is
//           required. A key with other arguments is a CONFLICT. The id, which the other system
//           sees, belongs to this agent alone, whatever keys other agents use.
// Again     After a crash, or an exception of the function, the kind's Effect decides when the work
//           reaches the operation again.
// Given up  An operation that the work does not reach again is unknown, or removed if it may be
//           repeated: in a fiber once the fiber is over or dead; outside of a fiber when the
//           horizon of a kKeyed one, or a day, has passed. If work reaches it after all, such as in
//           a revived fiber, a kProbe one is probed, and a kKeyed one runs within its horizon.
// Unknown   An unknown operation is not run again: operation() throws OperationUnknown until
//           resolve_operation() was called. The SDK calls on_operation_unknown(), and clients that
//           speak the protocol get a frame:
//             {"type":"cf_agent_operation_unknown","operation":"...","kind":"charge","text":"..."}
// Request   The function's request belongs to the operation if it says so:
//             hearth::FetchRequest request{.method = "POST", .url = ..., .op = attempt.id};
//           Then, before the request leaves, the ledger notes that it was dispatched, and the id is
//           sent as Idempotency-Key (.key_header of the kind). If nothing of the request has left,
//           the operation is NotExecuted, unless the agent sends something without .op after it
//           (what the function itself has sent without .op before it is ignored).
//           With .acts_by_request, an operation without that note was not executed.
//           An operation sends one request. A second one that could be a second effect is
//           FetchError(CONFLICT), and so is one that begins before the answer to the first was read
//           to its end or dropped.
// Answer    The first 1 MiB of the answer (limits.max_value) are stored as they arrive. After a
//           crash in the middle of the answer, a kind with .resume goes on from there: the first
//           fetch() of the next run gives the stored part, and then the rest. Another fetch() of
//           that run is a separate request. Without .resume, or when the fiber is over, the part
//           stays for partial_answer(), and the kind's Effect decides.
//           A function that throws although its request has not failed has refused the answer, as
//           with attempt.drop_answer(). The next run does not get it again: the kind's Effect
//           decides, as without .resume.
// Bounded   Arguments 64 KiB. A result larger than limits.max_value is not kept: the operation has
//           completed, and operation() throws Error(LIMIT), now and later. Rows are removed after
//           operations.keep of the class's file (30 days after they were settled), but not while
//           their fiber may run again. An operation that would exceed a daily limit
//           (operations.kinds) does not begin: HostError(LIMIT), and no row.
// Requires  No transaction() is open; not in on_migrate().

#include <hearth/callback.hpp>
#include <hearth/detail/operation_run.hpp>
#include <hearth/fetch.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth {

// The operation to run.
struct OperationCall {
  std::string kind;  // as listed with m.operation()
  Json args = nullptr;
  std::string key = {};    // names it, instead of its arguments and its place in the fiber
  std::uint64_t cost = 0;  // in your own unit, such as cents: cost_per_day adds it up
};

// Given to the function of an operation, and to its probe.
struct OperationAttempt {
  std::string id;   // the same in each attempt; the key for the other system
  int attempt = 1;  // of a probe 0
  // The SDK's, for the members: valid as long as the function or the probe runs.
  detail::Activation* activation = nullptr;

  // A file that belongs to the operation alone, the same in each attempt and in its probe: use it
  // for an effect that leaves its result there. It is removed with the operation's row.
  // Failure   HostError: NOT_FOUND once the operation has ended, BUSY
  [[nodiscard]] std::string path() const;
  // The stored answer is of no use: the next fetch(), of this run or a later one, sends the request
  // itself, if the kind's Effect allows another one.
  // Failure   HostError: NOT_FOUND once the operation has ended
  void drop_answer() const;
  // It has cost so much, in place of OperationCall::cost, which is reserved until then: for a cost
  // that only the run shows, such as tokens. Written with the running turn.
  // Failure   HostError: NOT_FOUND once the operation has ended, INVALID (above 10^15)
  void set_cost(std::uint64_t cost) const;
  // For the span of the operation, if the server sends traces to a collector: its name in place of
  // the kind, and attributes, an object of texts, numbers and booleans. No secrets, no contents.
  // Failure   HostError: INVALID
  void describe(std::string_view name, const Json& attributes) const;
};

// The result of a probe.
class Probed {
 public:
  static Probed completed(Json result = nullptr) {
    return {HEARTH_OUTCOME_COMPLETED, std::move(result)};
  }
  // And it cannot be executed later either: the operation is run again.
  static Probed not_executed() { return {HEARTH_OUTCOME_NOT_EXECUTED, nullptr}; }
  // The other system cannot tell.
  static Probed unknown() { return {HEARTH_OUTCOME_UNKNOWN, nullptr}; }

  [[nodiscard]] std::uint32_t outcome() const noexcept { return outcome_; }
  [[nodiscard]] const Json& result() const noexcept { return result_; }

 private:
  Probed(std::uint32_t outcome, Json result) : outcome_(outcome), result_(std::move(result)) {}
  std::uint32_t outcome_;
  Json result_;
};

// Thrown by the function of an operation that has certainly not been executed: it was refused, or
// has never left. It may be run again; Final: a retry would be refused too.
class NotExecuted : public Error {
 public:
  explicit NotExecuted(const std::string& text, hearth_status code = HEARTH_E_PLUGIN)
      : Error(code, text) {}
};

// It is unknown whether an operation was executed. Its text is for models and people. No retry is
// made of it: a person has to find out.
class OperationUnknown : public Error {
 public:
  explicit OperationUnknown(const std::string& id)
      : Error(HEARTH_E_CONFLICT, detail::unknown_text(id), true), id_(id) {}
  [[nodiscard]] const std::string& id() const noexcept { return id_; }

 private:
  std::string id_;
};

namespace detail {

struct NoProbe {};

template <class Function>
using OperationResult = std::invoke_result_t<Function&, OperationAttempt>;
template <class Function>
using OperationValue = TaskValue<OperationResult<Function>>;

// The stored result.
template <class Value>
Value kept_result(const std::string& result) {
  if constexpr (!std::is_void_v<Value>) {
    if (result.empty())
      throw Error(HEARTH_E_LIMIT, "the operation has completed, and its result was not kept");
    return read_stored<Value>(parse_json(result), "result");
  }
}

template <class Value>
void settle_value(OperationRun& run, const Value& value) {
  std::string text;
  append_result(text, value);
  run.settle(HEARTH_OUTCOME_COMPLETED, text);
}

// Inside a catch block: settles the operation of a function that throws, and throws.
[[noreturn]] inline void settle_failure(OperationRun& run, const std::string& id) {
  try {
    throw;
  } catch (const NotExecuted&) {
    run.fail(HEARTH_OUTCOME_NOT_EXECUTED);
    throw;
  } catch (const Final&) {
    run.fail(HEARTH_OUTCOME_NOT_EXECUTED);
    throw;
  } catch (...) {
    if (run.fail(HEARTH_OUTCOME_FAILED) == OperationState::kUnknown) throw OperationUnknown(id);
    throw;
  }
}

template <class Function>
auto act(Activation& activation, OperationDecision decision, const OperationKind& kind,
         Function& function) -> Task<OperationValue<Function>> {
  using Value = OperationValue<Function>;
  OperationRun run(activation, decision, &kind);
  OperationAttempt attempt = {decision.id, decision.attempt, &activation};
  if constexpr (std::is_void_v<Value>) {
    try {
      if constexpr (kIsTask<OperationResult<Function>>)
        co_await call_kept(function, std::move(attempt));
      else
        function(std::move(attempt));
    } catch (...) {
      settle_failure(run, decision.id);
    }
    run.settle(HEARTH_OUTCOME_COMPLETED, "null");
  } else {
    std::optional<Value> value;
    try {
      if constexpr (kIsTask<OperationResult<Function>>)
        value.emplace(co_await call_kept(function, std::move(attempt)));
      else
        value.emplace(function(std::move(attempt)));
    } catch (...) {
      settle_failure(run, decision.id);
    }
    settle_value(run, *value);  // NOLINT(bugprone-unchecked-optional-access): it has ended
    co_return std::move(*value);
  }
}

template <class Probe>
Task<void> ask_other_side(Activation& activation, OperationDecision decision, Probe& probe) {
  OperationRun run(activation, decision, nullptr);
  OperationAttempt attempt = {decision.id, 0, &activation};
  std::optional<Probed> found;
  try {
    if constexpr (kIsTask<std::invoke_result_t<Probe&, OperationAttempt>>)
      found.emplace(co_await call_kept(probe, std::move(attempt)));
    else
      found.emplace(probe(std::move(attempt)));
  } catch (...) {
    run.fail(HEARTH_OUTCOME_CUT_OFF);  // it is asked again when the work reaches it again
    throw;
  }
  // NOLINTBEGIN(bugprone-unchecked-optional-access): it has ended
  const bool has_result = found->outcome() == HEARTH_OUTCOME_COMPLETED;
  run.settle(found->outcome(), has_result ? to_text(found->result()) : "the other side was asked");
  // NOLINTEND(bugprone-unchecked-optional-access)
}

template <class Function, class Probe>
auto run_operation(Activation& activation, OperationCall call, Function function, Probe probe)
    -> Task<OperationValue<Function>> {
  constexpr bool kCanProbe = !std::is_same_v<Probe, NoProbe>;
  using Value = OperationValue<Function>;
  const OperationKind& kind = listed_operation(activation, call.kind);
  const OperationRequest request = {std::move(call.kind), to_text(call.args), std::move(call.key),
                                    kCanProbe, call.cost};
  std::string id;
  for (;;) {
    BeginAwaiter begin(activation, request, kind, id);
    OperationDecision decision = co_await begin;
    id = decision.id;
    if (decision.decision == HEARTH_OPERATION_COMPLETED)
      co_return kept_result<Value>(decision.result);
    if (decision.decision == HEARTH_OPERATION_RUN)
      co_return co_await act(activation, std::move(decision), kind, function);
    if (decision.decision == HEARTH_OPERATION_JOIN) {
      JoinAwaiter join(activation, id);
      co_await join;
      continue;
    }
    if constexpr (kCanProbe) {
      if (decision.decision == HEARTH_OPERATION_PROBE) {
        co_await ask_other_side(activation, std::move(decision), probe);
        continue;
      }
    }
    throw OperationUnknown(id);
  }
}

std::vector<OperationRecord> list_ledger(const Activation& activation,
                                         const OperationFilter& filter);

// At most a thousand operations.
RecoveredOperations find_recovered_operations(const Activation& activation, std::string_view fiber);

// The part of hearth::Agent that has operations. Its private names are ones that no agent class is
// likely to use.
template <class Self>
class OperationCalls {
 public:
  // co_await it. `function` takes an OperationAttempt and gives a value that JSON can hold, or a
  // Task of one; it is kept until it has ended. It may use fetch() and any other way to other
  // systems, with attempt.id as the key.
  // Failure   OperationUnknown; the exception of `function`; Error(INVALID): no such kind;
  //           HostError: INVALID (neither fiber nor key), CONFLICT (the key has other arguments),
  //           LIMIT.
  template <class Function>
  [[nodiscard]] auto operation(OperationCall call, Function function)
      -> Task<OperationValue<Function>> {
    return run_operation(activation_of_ledger(), std::move(call), std::move(function), NoProbe());
  }
  // `probe` takes an OperationAttempt and says whether the operation was executed: it gives a
  // Probed, or a Task of one. If it throws, it is called again when the work reaches this again.
  // A request whose sender was killed or has given up may still arrive. So a probe that finds
  // nothing sleeps for as long as the other system may need for it, and looks once more before it
  // says not_executed(). plugin-api/README.md has an example.
  template <class Function, class Probe>
  [[nodiscard]] auto operation(OperationCall call, Function function, Probe probe)
      -> Task<OperationValue<Function>> {
    return run_operation(activation_of_ledger(), std::move(call), std::move(function),
                         std::move(probe));
  }

  [[nodiscard]] std::optional<OperationRecord> inspect_operation(std::string_view id) {
    const Activation& live = activation_of_ledger();
    hearth_bytes record = {nullptr, 0};
    const hearth_status status =
        operation_table(live).inspect(live.host(), live.id(), slice(id), &record);
    if (!found(live, status, "inspect operation")) return std::nullopt;
    return read_operation(parse_record(view(record)));
  }
  // Oldest first.
  [[nodiscard]] std::vector<OperationRecord> list_operations(const OperationFilter& filter = {}) {
    return list_ledger(activation_of_ledger(), filter);
  }
  // The stored part of the answer to its request, if it is not settled; nullopt: nothing is stored.
  [[nodiscard]] std::optional<PartialAnswer> partial_answer(std::string_view id) {
    std::optional<StoredAnswer> stored = find_stored_answer(activation_of_ledger(), id);
    if (!stored) return std::nullopt;
    return std::move(stored->answer);
  }
  // The operations of a fiber's work.
  [[nodiscard]] RecoveredOperations operations_of(std::string_view fiber) {
    return find_recovered_operations(activation_of_ledger(), fiber);
  }
  // Settles an unknown or interrupted operation after a check: it was executed, with this result;
  // or it was not, and runs when the work reaches it again. `note` and `actor` stay in the record.
  // False: no operation has this id.
  // Failure   HostError: CONFLICT (it runs, or is settled); INVALID (the actor is "administrator").
  bool resolve_operation(std::string_view id, const Probed& outcome, std::string_view note,
                         std::string_view actor = "agent") {
    const Activation& live = activation_of_ledger();
    const std::string result = to_text(outcome.result());
    const hearth_status status =
        operation_table(live).resolve(live.host(), live.id(), slice(id), outcome.outcome(),
                                      slice(std::string_view(result)), slice(note), slice(actor));
    return found(live, status, "resolve operation");
  }

 private:
  friend Self;
  OperationCalls() = default;
  [[nodiscard]] Activation& activation_of_ledger() {
    return static_cast<Self*>(this)->activation();
  }
};

}  // namespace detail

}  // namespace hearth
