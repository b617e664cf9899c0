#pragma once
// Who waits for a fiber, and the end of one, which lets them go on.

#include <hearth/detail/fiber_work.hpp>
#include <hearth/fiber_options.hpp>

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

// Waits for a fiber that was just begun, or for its cancel. Lives in the frame of run_fiber();
// destroyed while the fiber runs (the caller was cancelled, or the fiber was) it leaves it alone.
class EndAwaiter final : public EndWaiter {
 public:
  EndAwaiter(Activation& activation, FiberRoot& fiber) noexcept
      : activation_(activation), fiber_(fiber), number_(fiber.context().fiber) {}
  ~EndAwaiter() {
    activation_.withdraw(*this);
    FiberRoot* const fiber = find_fiber(activation_, number_);
    if (fiber && fiber->ended() && !waiting_)
      activation_.fibers().erase(number_);  // it ended at once
    else if (fiber)
      fiber->wait(nullptr);
  }
  EndAwaiter(const EndAwaiter&) = delete;
  EndAwaiter& operator=(const EndAwaiter&) = delete;

  [[nodiscard]] bool await_ready() {
    if (const auto& record = fiber_.record(); record && record->status == FiberStatus::kAborted)
      cancelled_ = record;
    return fiber_.ended() || cancelled_;
  }
  void await_suspend(std::coroutine_handle<> waiting) noexcept {
    context_ = activation_.context();
    waiting_ = waiting;
    fiber_.wait(this);
  }
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

// Nothing changes `record` any more: whoever waits for it goes on, and its function is not needed.
inline void fiber_settled(Activation& activation, const FiberRecord& record) {
  activation.kept_work().erase(record.id);
  auto& waiters = activation.settled_waiters();
  const auto [first, last] = waiters.equal_range(record.id);
  for (auto each = first; each != last; ++each) each->second->settled(record);
  waiters.erase(first, last);
}

// By id or by key; the other is empty.
inline std::optional<FiberRecord> find_record(const Activation& activation, std::string_view id,
                                              std::string_view key) {
  hearth_bytes record = {nullptr, 0};
  const hearth_status status =
      fiber_table(activation)
          .inspect(activation.host(), activation.id(), slice(id), slice(key), &record);
  if (!found(activation, status, "inspect fiber")) return std::nullopt;
  return read_fiber(parse_record(view(record)));
}

// Records are about to be removed, and the host tells nobody of those any more: whoever waits for
// one that is settled gets it now, as the host still knows it. One look a fiber that is waited for.
inline void tell_waiters(Activation& activation) {
  auto& waiters = activation.settled_waiters();
  for (auto each = waiters.begin(); each != waiters.end();) {
    const std::string id = each->first;
    const auto next = waiters.upper_bound(id);
    if (const auto record = find_record(activation, id, {}); !record) {
      for (auto waiter = each; waiter != next; ++waiter) waiter->second->gone();
      waiters.erase(each, next);
    } else if (record->settled()) {
      fiber_settled(activation, *record);
    }
    each = next;
  }
}

inline bool SettledAwaiter::await_ready() {
  auto record = find_record(activation_, id_, {});
  if (!record) throw Error(HEARTH_E_NOT_FOUND, "no fiber has this id");
  record_ = std::move(*record);
  return record_.settled();
}

// With the turn of the work's last writes. A result that is no JSON, or too large for the host, is
// a failure of the work.
inline void FiberRoot::settle() noexcept {
  Activation& live = activation();
  const auto settle_as = [&](std::uint32_t status, const std::string& body, hearth_bytes& record) {
    return fiber_table(live).settle(live.host(), live.id(), fiber_.row_.handle, status,
                                    slice(std::string_view(body)), &record);
  };
  hearth_bytes record = {nullptr, 0};
  hearth_status status = HEARTH_OK;
  if (!error_) {
    try {
      status = settle_as(HEARTH_FIBER_COMPLETED, result(), record);
      if (status == HEARTH_E_INVALID || status == HEARTH_E_LIMIT)
        throw Error(status, live.last_error(status, "store the result"));
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  if (error_) status = settle_as(HEARTH_FIBER_ERROR, why(), record);
  settled_before_ = status == HEARTH_E_GONE;
  if (settled_before_) return;
  if (status < 0)
    return live.log(HEARTH_LOG_ERROR, live.last_error(status, "settle fiber " + fiber_.name()));
  record_ = read_fiber(parse_record(view(record)));
  if (record_->settled()) return fiber_settled(live, *record_);
  if (auto kept = keep()) live.kept_work()[record_->id] = std::move(kept);
}

inline hearth_fiber_filter to_fiber_filter(const FiberFilter& filter) {
  hearth_fiber_filter wanted = {};
  wanted.struct_size = sizeof wanted;
  for (const FiberStatus status : filter.statuses)
    wanted.statuses |= static_cast<std::uint32_t>(status);
  wanted.name = slice(std::string_view(filter.name));
  if (filter.before) wanted.before_ms = filter.before->time_since_epoch().count();
  wanted.after = slice(std::string_view(filter.after));
  wanted.limit = filter.limit;
  wanted.dead = filter.dead ? 1 : 0;
  return wanted;
}

// Completes the event, and keeps what the hook refers to.
class DeliverRecovered {
 public:
  explicit DeliverRecovered(std::unique_ptr<Recovery> recovery) : recovery_(std::move(recovery)) {}
  // What the hook has left alone goes on by its name, if there is one: see dispatch.hpp.
  void operator()(Activation& activation, const Context& context) const;

 private:
  std::unique_ptr<Recovery> recovery_;
};

// Completes the event, and keeps what the hook refers to.
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
    if (!plan.skip.empty()) tell_waiters(activation);  // of records that have gone with it
  }

 private:
  std::unique_ptr<const std::vector<InterruptedFiber>> fibers_;
};

}  // namespace hearth::detail
