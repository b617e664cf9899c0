#pragma once
// Steps of operation(): it asks the ledger, waits, acts, and settles.

#include <hearth/detail/fiber_work.hpp>
#include <hearth/operation.hpp>
#include <hearth/operation_record.hpp>

#include <coroutine>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::detail {

inline const hearth_operations_v1& operation_table(const Activation& activation) {
  return need(activation.tables().operations, HEARTH_EXT_OPERATIONS);
}

// The kind as the class has listed it. In dispatch.hpp. Failure: Error(INVALID).
const OperationKind& listed_operation(const Activation& activation, std::string_view name);

// Calls that have joined it ask the ledger again.
void release_joined(Activation& activation, const std::string& id);

// A question to the ledger.
struct OperationRequest {
  std::string kind;
  std::string arguments;  // JSON
  std::string key;
  bool can_probe = false;
  std::uint64_t cost = 0;
};

// The ledger's decision.
struct OperationDecision {
  std::uint32_t decision = HEARTH_OPERATION_UNKNOWN;
  int attempt = 1;
  std::uint64_t operation = 0;
  std::string id;
  std::string result;
};

// Asks when awaited. An operation to run goes on when the ledger's row is durable.
// Lifetime  In the frame of operation(). If it is destroyed while it waits, it takes the operation
//           back: only an earlier attempt may have done anything.
class [[nodiscard]] BeginAwaiter final : public PendingOperation {
 public:
  // `id`: of an operation that was begun before; empty: the ledger finds it.
  BeginAwaiter(Activation& activation, const OperationRequest& request, const OperationKind& kind,
               std::string id)
      : activation_(activation), request_(request), kind_(kind) {
    decision_.id = std::move(id);
  }
  ~BeginAwaiter() override {
    if (!waiting_) return;
    activation_.forget(token_, host_id_);
    static_cast<void>(
        operation_table(activation_)
            .settle(activation_.host(), activation_.id(), decision_.operation,
                    decision_.attempt > 1 ? HEARTH_OUTCOME_CUT_OFF : HEARTH_OUTCOME_NOT_EXECUTED,
                    slice(std::string_view("it was cancelled before it began")), nullptr));
    release_joined(activation_, decision_.id);
  }
  BeginAwaiter(const BeginAwaiter&) = delete;
  BeginAwaiter& operator=(const BeginAwaiter&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiting) {
    context_ = activation_.context();
    ask();
    if (decision_.decision != HEARTH_OPERATION_RUN) {
      activation_.forget(token_, 0);  // no result comes
      return false;
    }
    waiting_ = waiting;
    return true;
  }
  OperationDecision await_resume() {
    waiting_ = nullptr;
    return std::move(decision_);
  }

  void on_result(const hearth_result& /*result*/) override { waiting_.resume(); }
  [[nodiscard]] const Context& context() const noexcept override { return context_; }

 private:
  void ask() {
    hearth_operation_start start = {};
    start.struct_size = sizeof start;
    start.effect = static_cast<std::uint32_t>(kind_.effect);
    if (FiberRoot* const fiber = find_fiber(activation_, context_.fiber))
      start.fiber = fiber->handle();
    if (kind_.effect == Effect::kKeyed)
      start.horizon_ms = static_cast<std::uint64_t>(kind_.horizon.count());
    start.can_probe = request_.can_probe ? 1 : 0;
    start.can_resume = kind_.resume != nullptr ? 1 : 0;
    start.acts_by_request = kind_.acts_by_request ? 1 : 0;
    start.key_header = slice(std::string_view(kind_.key_header));
    start.cost = request_.cost;
    start.kind = slice(std::string_view(request_.kind));
    start.arguments = slice(std::string_view(request_.arguments));
    start.key = slice(std::string_view(request_.key));
    start.id = slice(std::string_view(decision_.id));
    hearth_operation_begun begun = {};
    const hearth_status status = activation_.submit_with(*this, token_, [&](std::uint64_t token) {
      return operation_table(activation_)
          .begin(activation_.host(), activation_.id(), &start, token, &begun);
    });
    if (status == HEARTH_E_LIMIT)  // no room, or a limit of a day
      throw HostError(status, activation_.last_error(status, "begin an operation"), true);
    activation_.check(status, "begin an operation");
    host_id_ = begun.wait;
    decision_ = {begun.decision, static_cast<int>(begun.attempt), begun.operation,
                 std::string(view(begun.id)), std::string(view(begun.result))};
  }

  Activation& activation_;
  const OperationRequest& request_;
  const OperationKind& kind_;
  OperationDecision decision_;
  Context context_;
  std::coroutine_handle<> waiting_;
  std::uint64_t token_ = 0;
  std::uint64_t host_id_ = 0;
};

// Waits until an operation that runs in this instance has ended, in whatever way.
// Lifetime  In the frame of operation().
class [[nodiscard]] JoinAwaiter final : public Waiter {
 public:
  JoinAwaiter(Activation& activation, std::string id)
      : activation_(activation), id_(std::move(id)) {}
  ~JoinAwaiter() {
    std::erase_if(activation_.operation_waiters(),
                  [this](const auto& each) { return each.second == this; });
    activation_.withdraw(*this);
  }
  JoinAwaiter(const JoinAwaiter&) = delete;
  JoinAwaiter& operator=(const JoinAwaiter&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    context_ = activation_.context();
    waiting_ = waiting;
    activation_.operation_waiters().emplace(id_, this);
  }
  void await_resume() const noexcept {}
  void resume() override {
    const Activation::Scope scope(activation_, context_);
    waiting_.resume();  // may destroy this awaiter
  }

 private:
  Activation& activation_;
  std::string id_;
  Context context_;
  std::coroutine_handle<> waiting_;
};

// An operation that runs, or is probed. If it is destroyed without an outcome (its caller was
// cancelled), it was cut off.
class OperationRun {
 public:
  // `kind`: of a run; null: a probe.
  OperationRun(Activation& activation, const OperationDecision& decision, const OperationKind* kind)
      : activation_(activation), id_(decision.id), operation_(decision.operation) {
    if (kind != nullptr) activation_.operation_kinds()[id_] = kind;
  }
  ~OperationRun() {
    activation_.operation_kinds().erase(id_);
    if (operation_ != 0) static_cast<void>(tell(HEARTH_OUTCOME_CUT_OFF, "it was cancelled"));
  }
  OperationRun(const OperationRun&) = delete;
  OperationRun& operator=(const OperationRun&) = delete;

  // Settles it, and returns its new state.
  OperationState settle(std::uint32_t outcome, std::string_view body) {
    activation_.check(tell(outcome, body), "settle an operation");
    return state_;
  }
  // Inside a catch block: settles it after a failure.
  OperationState fail(std::uint32_t outcome) {
    // The agent's own end has ended it: the next instance decides.
    if (is_closing(std::current_exception())) {
      operation_ = 0;
      return OperationState::kInterrupted;
    }
    // What the run has not asked for, it has not refused.
    if (outcome == HEARTH_OUTCOME_FAILED && activation_.operation_kinds().contains(id_))
      outcome = HEARTH_OUTCOME_CUT_OFF;
    return settle(outcome, current_failure().text);
  }

 private:
  hearth_status tell(std::uint32_t outcome, std::string_view body) {
    std::uint32_t state = HEARTH_OPERATION_IS_INTERRUPTED;
    const hearth_status status =
        operation_table(activation_)
            .settle(activation_.host(), activation_.id(), operation_, outcome, slice(body), &state);
    if (status == HEARTH_E_INVALID)
      return status;  // it runs on: the end of this object cuts it off
    operation_ = 0;
    state_ = static_cast<OperationState>(state);
    release_joined(activation_, id_);
    return status;
  }

  Activation& activation_;
  std::string id_;
  std::uint64_t operation_;
  OperationState state_ = OperationState::kInterrupted;
};

}  // namespace hearth::detail
