#pragma once
// Task<T>: the result of a handler that may wait.
//
//     hearth::Task<int> slow_add(int a, int b) {
//       co_await sleep(std::chrono::seconds(1));
//       co_return a + b;
//     }
//
// Lifetime  A task is lazy: it runs when it is awaited (or returned to the SDK), on the agent's own
//           thread, and up to its first wait in the same call. It owns its frame. Destroying it
//           destroys the frame with everything in it, innermost first: so an eviction ends work
//           that waits.
// Failure   The exception of a task comes out of the co_await. A task that is destroyed without
//           ever having been awaited is a mistake, also a task that the agent keeps as a member
//           until it leaves memory: the log says so, and a unit test on the mock host fails. The
//           compiler warns of a dropped task, but static_cast<void>(run_fiber(...)) silences it. So
//           this mistake is found only at run time.
// A task that need not wait is made from its value, without a frame: `return 5;`, `return {};` for
// Task<void>.
//
// Awaiting resumes the child in place and does not rely on tail calls. A million awaits of tasks
// that finish at once use no stack, optimised or not.

#include <hearth/detail/closure_check.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace hearth {

template <class T = void>
class Task;

namespace detail {

// Called when a task that no coroutine awaits has ended. The call is the last step of the task, and
// may destroy it.
class Finished {
 public:
  virtual void on_finished() noexcept = 0;

 protected:
  ~Finished() = default;
};

// Called for each task on its thread that is destroyed without ever having been awaited: its code
// has not run.
class TaskWatch {
 public:
  virtual void never_awaited() noexcept = 0;

 protected:
  ~TaskWatch() = default;
};
// The watch of the code that this thread runs; null where a task may be dropped (the event of its
// frame is cut off). Trivial, so it does not pin the library.
inline constinit thread_local TaskWatch* task_watch = nullptr;

class PromiseBase {
 public:
  // Resumes the awaiting coroutine. By a call, not a transfer: the nesting is as deep as the chain
  // of awaiting tasks.
  class FinalAwaiter {
   public:
    FinalAwaiter() noexcept {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> self) const noexcept {
      PromiseBase& promise = self.promise();
      if (promise.continuation_) {
        promise.continuation_.resume();  // may destroy this frame: touch nothing afterwards
      } else if (promise.finished_) {
        promise.finished_->on_finished();
      }
    }
    void await_resume() const noexcept {}
  };

  [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
  [[nodiscard]] FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { error_ = std::current_exception(); }

  void continue_with(std::coroutine_handle<> continuation) noexcept {
    continuation_ = continuation;
  }
  void tell(Finished* finished) noexcept { finished_ = finished; }
  void begin() noexcept { has_begun_ = true; }
  [[nodiscard]] bool has_begun() const noexcept { return has_begun_; }

 protected:
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::coroutine_handle<> continuation_;
  Finished* finished_ = nullptr;
  std::exception_ptr error_;
  bool has_begun_ = false;
};

template <class T>
class Promise : public PromiseBase {
 public:
  Task<T> get_return_object() noexcept;
  template <class Value>
    requires std::is_constructible_v<T, Value&&>
  void return_value(Value&& value) {
    value_.emplace(std::forward<Value>(value));
  }
  // For braces: co_return {{"count", 5}}.
  void return_value(T value)
    requires std::is_constructible_v<T, T&&>
  {
    value_.emplace(std::move(value));
  }
  T take() {
    rethrow();
    return std::move(*value_);  // NOLINT(bugprone-unchecked-optional-access): it has ended
  }

 private:
  std::optional<T> value_;
};

template <>
class Promise<void> : public PromiseBase {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() const { rethrow(); }
};

// The promise of a coroutine that is a lambda.
template <class T, class Closure>
class ClosurePromise final : public Promise<T> {
 public:
  ClosurePromise() { refuse_dying_lambda<Closure>(); }
};

// Owns the frame of a coroutine; the part of Task that does not depend on how a value is kept.
template <class T>
class Frame {
 public:
  Frame() noexcept = default;
  explicit Frame(std::coroutine_handle<Promise<T>> handle) noexcept : handle_(handle) {}
  Frame(Frame&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Frame& operator=(Frame&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Frame() { reset(); }

  void reset() noexcept {
    const auto handle = std::exchange(handle_, nullptr);
    if (!handle) return;
    // An exception may be thrown after a task is made and before its co_await.
    if (task_watch && !handle.promise().has_begun() && std::uncaught_exceptions() == 0)
      task_watch->never_awaited();
    handle.destroy();
  }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  [[nodiscard]] bool done() const noexcept { return !handle_ || handle_.done(); }
  void begin() const {
    handle_.promise().begin();
    handle_.resume();
  }
  [[nodiscard]] Promise<T>& promise() const noexcept { return handle_.promise(); }

 private:
  std::coroutine_handle<Promise<T>> handle_;
};

// Runs a child until it waits or ends. The awaiting coroutine goes on at once if it ended.
template <class T>
class TaskAwaiter {
 public:
  explicit TaskAwaiter(Task<T>& task) noexcept : task_(task) {}
  [[nodiscard]] bool await_ready() const noexcept { return task_.done(); }
  bool await_suspend(std::coroutine_handle<> awaiting) {
    task_.start();
    if (task_.done()) return false;
    task_.frame_.promise().continue_with(awaiting);
    return true;
  }
  T await_resume() { return task_.take(); }

 private:
  Task<T>& task_;
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
  static_assert(!std::is_reference_v<T>, "a Task gives a value: return a pointer or a copy");

 public:
  using promise_type = detail::Promise<T>;  // NOLINT(readability-identifier-naming)

  // A task that already has its value. No frame is made.
  template <class Value>
    requires(std::is_constructible_v<T, Value &&> &&
             !std::is_same_v<std::remove_cvref_t<Value>, Task> &&
             !std::is_same_v<std::remove_cvref_t<Value>, detail::Frame<T>>)
  // NOLINTNEXTLINE(google-explicit-constructor): so that `return 5;` makes one
  Task(Value&& value) : value_(std::in_place, std::forward<Value>(value)) {}
  explicit Task(detail::Frame<T> frame) noexcept : frame_(std::move(frame)) {}

  detail::TaskAwaiter<T> operator co_await() && noexcept { return detail::TaskAwaiter<T>(*this); }

  // For the SDK and for tests of awaitables: runs it to its first wait; says whether it has ended;
  // gives its value, or its exception.
  void start() {
    if (frame_ && !frame_.done()) frame_.begin();
  }
  [[nodiscard]] bool done() const noexcept { return frame_.done(); }
  T take() {
    if (frame_) return frame_.promise().take();
    if (!value_) throw std::logic_error("a task was awaited twice, or after a move");
    return std::move(*value_);
  }
  void tell(detail::Finished* finished) noexcept { frame_.promise().tell(finished); }

 private:
  friend class detail::TaskAwaiter<T>;
  detail::Frame<T> frame_;
  std::optional<T> value_;
};

template <>
class [[nodiscard]] Task<void> {
 public:
  using promise_type = detail::Promise<void>;  // NOLINT(readability-identifier-naming)

  Task() noexcept {}  // has ended
  explicit Task(detail::Frame<void> frame) noexcept : frame_(std::move(frame)) {}

  detail::TaskAwaiter<void> operator co_await() && noexcept {
    return detail::TaskAwaiter<void>(*this);
  }

  void start() {
    if (frame_ && !frame_.done()) frame_.begin();
  }
  [[nodiscard]] bool done() const noexcept { return frame_.done(); }
  void take() const {
    if (frame_) frame_.promise().take();
  }
  void tell(detail::Finished* finished) noexcept { frame_.promise().tell(finished); }

 private:
  friend class detail::TaskAwaiter<void>;
  detail::Frame<void> frame_;
};

template <class T>
inline constexpr bool kIsTask = false;
template <class T>
inline constexpr bool kIsTask<Task<T>> = true;

namespace detail {

template <class T>
struct TaskTraits {
  using Value = T;
};
template <class T>
struct TaskTraits<Task<T>> {
  using Value = T;
};

}  // namespace detail

// The result of awaiting a T: T itself if it is no Task.
template <class T>
using TaskValue = typename detail::TaskTraits<T>::Value;

namespace detail {

template <class T>
Task<T> Promise<T>::get_return_object() noexcept {
  return Task<T>(Frame<T>(std::coroutine_handle<Promise>::from_promise(*this)));
}

inline Task<void> Promise<void>::get_return_object() noexcept {
  return Task<void>(Frame<void>(std::coroutine_handle<Promise>::from_promise(*this)));
}

}  // namespace detail

}  // namespace hearth

// The traits of a lambda: its parameters, with itself before them.
template <class T, class Closure, class... Parameters>
  requires hearth::detail::kIsLambda<std::remove_const_t<Closure>>
struct std::coroutine_traits<hearth::Task<T>, Closure&, Parameters...> {
  // NOLINTNEXTLINE(readability-identifier-naming): the language's name
  using promise_type = hearth::detail::ClosurePromise<T, std::remove_const_t<Closure>>;
};
