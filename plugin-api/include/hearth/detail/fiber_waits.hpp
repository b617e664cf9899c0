#pragma once
// Waits for a fiber, and its end, which resumes them.

#include <hearth/detail/fiber_work.hpp>
#include <hearth/fiber_options.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::detail {

// Waits for the record of a fiber to be settled.
class [[nodiscard]] SettledAwaiter final : public Waiter {
 public:
  SettledAwaiter(Activation& activation, std::string id)
      : activation_(activation), id_(std::move(id)) {}
  ~SettledAwaiter() {
    std::erase_if(activation_.settled_waiters(),
                  [this](const auto& each) { return each.second == this; });
    activation_.withdraw(*this);
  }
  SettledAwaiter(const SettledAwaiter&) = delete;
  SettledAwaiter& operator=(const SettledAwaiter&) = delete;

  [[nodiscard]] bool await_ready();
  void await_suspend(std::coroutine_handle<> waiting) {
    context_ = activation_.context();
    waiting_ = waiting;
    activation_.settled_waiters().emplace(id_, this);
  }
  FiberRecord await_resume() {
    if (gone_) throw Error(HEARTH_E_GONE, "the record of this fiber was removed");
    return std::move(record_);
  }

  void settled(const FiberRecord& record) {
    record_ = record;
    activation_.release(*this);
  }
  void gone() {
    gone_ = true;
    activation_.release(*this);
  }
  void resume() override {
    const Activation::Scope scope(activation_, context_);
    waiting_.resume();  // may destroy this awaiter
  }

 private:
  Activation& activation_;
  std::string id_;
  Context context_;
  std::coroutine_handle<> waiting_;
  FiberRecord record_;
  bool gone_ = false;
};

// Failure   as SettledAwaiter; Error(TIMEOUT)
Task<FiberRecord> wait_settled(Activation& activation, std::string id,
                               std::chrono::milliseconds timeout);

// Waits for a fiber that was just begun, or for its cancel. Lives in the frame of run_fiber(). If
// it is destroyed while the fiber runs (the caller or the fiber was cancelled), the fiber goes on.
class EndAwaiter final : public EndWaiter {
 public:
  EndAwaiter(Activation& activation, FiberRoot& fiber) noexcept
      : activation_(activation), fiber_(fiber), number_(fiber.context().fiber) {}
  ~EndAwaiter();
  EndAwaiter(const EndAwaiter&) = delete;
  EndAwaiter& operator=(const EndAwaiter&) = delete;

  [[nodiscard]] bool await_ready();
  void await_suspend(std::coroutine_handle<> waiting) noexcept;
  void await_resume() const noexcept {}
  // After the wait: the record of a fiber that was cancelled, which may be gone. Else it has ended.
  [[nodiscard]] const std::optional<FiberRecord>& cancelled() const noexcept { return cancelled_; }

  void cancelled(const FiberRecord& record) override {
    cancelled_ = record;
    activation_.release(*this);
  }
  void resume() override {
    const Activation::Scope scope(activation_, context_);
    waiting_.resume();  // may destroy this awaiter
  }

 private:
  Activation& activation_;
  FiberRoot& fiber_;
  std::uint64_t number_;
  Context context_;
  std::coroutine_handle<> waiting_;
  std::optional<FiberRecord> cancelled_;
};

// `record` is final: resumes all waits for it, and drops its function.
void fiber_settled(Activation& activation, const FiberRecord& record);

// By id or by key; the other is empty.
std::optional<FiberRecord> find_record(const Activation& activation, std::string_view id,
                                       std::string_view key);

// Call before records are removed, since the host reports a removed record to no wait: resumes the
// waits for settled records with the host's current record. One look-up for each awaited fiber.
void tell_waiters(Activation& activation);

hearth_fiber_filter to_fiber_filter(const FiberFilter& filter);

// Completes the event, and keeps the objects that the hook refers to.
class DeliverRecovered {
 public:
  explicit DeliverRecovered(std::unique_ptr<Recovery> recovery) : recovery_(std::move(recovery)) {}
  // A fiber that the hook did not decide goes on by its name, if that is listed: see dispatch.hpp.
  void operator()(Activation& activation, const Context& context) const;

 private:
  std::unique_ptr<Recovery> recovery_;
};

// Completes the event, and keeps the objects that the hook refers to.
class DeliverSettled {
 public:
  explicit DeliverSettled(std::unique_ptr<const FiberRecord> fiber) : fiber_(std::move(fiber)) {}
  void operator()(Activation& activation, const Context& context) const {
    activation.complete(context.call, HEARTH_OK, {});
  }

 private:
  std::unique_ptr<const FiberRecord> fiber_;
};

// The same for on_fibers_recovered.
class DeliverPlan {
 public:
  explicit DeliverPlan(std::unique_ptr<const std::vector<InterruptedFiber>> fibers)
      : fibers_(std::move(fibers)) {}
  void operator()(Activation& activation, const Context& context, const RecoveryPlan& plan) const {
    const Json body = {{"order", plan.order}, {"parallel", plan.parallel}, {"skip", plan.skip}};
    activation.complete(context.call, HEARTH_OK, to_text(body));
    if (!plan.skip.empty()) tell_waiters(activation);  // of records that the plan has removed
  }

 private:
  std::unique_ptr<const std::vector<InterruptedFiber>> fibers_;
};

}  // namespace hearth::detail
