#pragma once
// A limit for the time that a task takes; Agent::with_timeout() is the way to it.

#include <hearth/operation.hpp>
#include <hearth/task.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <utility>

namespace hearth::detail {

// Runs a task to its end, or until the time is over.
template <class T>
class TimeoutAwaiter final : public OperationAwaiter, public Finished {
 public:
  TimeoutAwaiter(Activation& activation, Task<T>& task, std::chrono::milliseconds time) noexcept
      : OperationAwaiter(activation, HEARTH_OP_SLEEP, "the timeout"), task_(task) {
    request_.milliseconds = time.count() > 0 ? static_cast<std::uint64_t>(time.count()) : 0;
  }

  bool await_suspend(std::coroutine_handle<> waiting) {
    task_.start();
    if (task_.done()) return false;
    task_.tell(this);
    handle_ = waiting;
    return submit({&request_, sizeof request_}, waiting);
  }
  // Whether the task has ended.
  bool await_resume() {
    if (task_.done()) return true;
    finish();
    return false;
  }
  void on_finished() noexcept override { handle_.resume(); }

 private:
  Task<T>& task_;
  hearth_sleep_request request_ = {};
  std::coroutine_handle<> handle_;
};

template <class T>
Task<T> with_timeout(Activation& activation, Task<T> task, std::chrono::milliseconds time) {
  std::optional<Task<T>> running(std::move(task));
  TimeoutAwaiter<T> waiting(activation, *running, time);
  const bool has_ended = co_await waiting;
  if (!has_ended) {
    running.reset();
    throw Error(HEARTH_E_TIMEOUT, "it has taken longer than its timeout");
  }
  co_return running->take();
}

}  // namespace hearth::detail
