#pragma once
// co_await offload(fn): runs `fn` on a thread where it may block, and gives its value.

#include <hearth/operation.hpp>

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace hearth::detail {

// Owned by two: the pool's run() and the awaiter. The last one to release it frees it, because the
// agent may be destroyed while the work runs.
class Job {
 public:
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  virtual void run() noexcept = 0;
  void release() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  [[nodiscard]] std::uint64_t number() const noexcept {
    return reinterpret_cast<std::uintptr_t>(this);
  }
  [[nodiscard]] static Job* from(std::uint64_t number) noexcept {
    const auto address = static_cast<std::uintptr_t>(number);
    return reinterpret_cast<Job*>(address);  // NOLINT(performance-no-int-to-ptr)
  }

 protected:
  Job() = default;

 private:
  std::atomic<int> owners_{2};
};

template <class Function>
class FunctionJob final : public Job {
 public:
  using Value = std::invoke_result_t<Function&>;
  static constexpr bool kVoid = std::is_void_v<Value>;

  explicit FunctionJob(Function function) : function_(std::move(function)) {}

  void run() noexcept override {
    try {
      if constexpr (kVoid) {
        function_();
      } else {
        value_.emplace(function_());
      }
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  Value take() {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): it has run
    if constexpr (!kVoid) return std::move(*value_);
  }

 private:
  struct Nothing {};
  Function function_;
  std::optional<std::conditional_t<kVoid, Nothing, Value>> value_;
  std::exception_ptr error_;
};

template <class Function>
class [[nodiscard]] OffloadAwaiter final : public OperationAwaiter {
 public:
  OffloadAwaiter(Activation& activation, Function function)
      : OperationAwaiter(activation, HEARTH_OP_OFFLOAD, "offload"),
        job_(new FunctionJob<Function>(std::move(function))) {}
  ~OffloadAwaiter() override {
    if (!submitted_) job_->release();  // run() will not be called
    job_->release();
  }
  OffloadAwaiter(const OffloadAwaiter&) = delete;
  OffloadAwaiter& operator=(const OffloadAwaiter&) = delete;

  bool await_suspend(std::coroutine_handle<> waiting) {
    request_.job = job_->number();
    submitted_ = submit({&request_, sizeof request_}, waiting);
    return submitted_;
  }
  typename FunctionJob<Function>::Value await_resume() {
    finish();
    return job_->take();
  }

 private:
  FunctionJob<Function>* job_;
  hearth_offload_request request_ = {0};
  bool submitted_ = false;
};

// The plugin's side of hearth.offload/1, the same for every class.
hearth_status run_job(std::uint64_t number, std::uint32_t cancelled) noexcept;

inline constexpr hearth_offload_v1 kOffloadTable = {&run_job};

}  // namespace hearth::detail
