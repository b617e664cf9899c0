#pragma once
// Waits of a coroutine for an operation of the host.

#include <hearth/abi.h>
#include <hearth/detail/activation.hpp>
#include <hearth/ext/drain.h>

#include <coroutine>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::detail {

// Submits when awaited; resumes with the final result.
// Lifetime  Lives in the frame of the coroutine. If it is destroyed while it waits (eviction,
//           cancelled call), it cancels the operation; a result that is on its way is dropped.
// Failure   await_resume throws HostError with the operation's status; CLOSING at once while the
//           agent is being evicted.
class OperationAwaiter : public PendingOperation {
 public:
  OperationAwaiter(Activation& activation, std::uint32_t operation, std::string_view name) noexcept
      : activation_(activation), name_(name), operation_(operation) {}
  ~OperationAwaiter() override {
    if (waiting_) activation_.forget(token_, host_id_);
  }
  OperationAwaiter(const OperationAwaiter&) = delete;
  OperationAwaiter& operator=(const OperationAwaiter&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }

  void on_result(const hearth_result& result) override;
  [[nodiscard]] const Context& context() const noexcept override { return context_; }

 protected:
  // False: the operation was refused, and finish() will throw the reason.
  bool submit(hearth_bytes request, std::coroutine_handle<> waiting);
  void finish();
  // finish() for an outcome that is no error to the caller. Gives true.
  bool forget() noexcept {
    waiting_ = nullptr;
    return true;
  }
  [[nodiscard]] hearth_status status() const noexcept { return status_; }

 private:
  Activation& activation_;
  std::coroutine_handle<> waiting_;
  Context context_;
  std::string_view name_;
  std::string error_;
  std::uint64_t token_ = 0;
  std::uint64_t host_id_ = 0;
  std::uint32_t operation_;
  hearth_status status_ = HEARTH_OK;
};

class [[nodiscard]] SleepAwaiter final : public OperationAwaiter {
 public:
  SleepAwaiter(Activation& activation, std::uint64_t milliseconds) noexcept
      : OperationAwaiter(activation, HEARTH_OP_SLEEP, "sleep") {
    request_.milliseconds = milliseconds;
  }
  bool await_suspend(std::coroutine_handle<> waiting) {
    return submit({&request_, sizeof request_}, waiting);
  }
  void await_resume() { finish(); }

 private:
  hearth_sleep_request request_;
};

// Waits until a client, or the client of a call, has taken most of what it was sent. False: the
// client has gone. `left`: that is known already.
class [[nodiscard]] DrainAwaiter final : public OperationAwaiter {
 public:
  // `id`: of the call, or for HEARTH_OP_DRAIN_CLIENT of the connection.
  DrainAwaiter(Activation& activation, std::uint64_t id, bool left,
               std::uint32_t operation = HEARTH_OP_DRAIN) noexcept
      : OperationAwaiter(activation, operation, "waiting for the client"), id_(id), left_(left) {}
  [[nodiscard]] bool await_ready() const noexcept { return left_; }
  bool await_suspend(std::coroutine_handle<> waiting) {
    return submit({&id_, sizeof id_}, waiting);
  }
  bool await_resume() {
    if (left_ || status() == HEARTH_E_GONE) return !forget();
    if (status() == HEARTH_E_UNSUPPORTED) return forget();  // an older server cannot wait
    finish();
    return true;
  }

 private:
  std::uint64_t id_;  // the only member of either request
  bool left_;
};

}  // namespace hearth::detail

namespace hearth {

// What waits for a client: `co_await` gives false if the client has gone.
using Drained = detail::DrainAwaiter;

}  // namespace hearth
