#pragma once
// A fiber that runs in this instance: its function, its end, and the data of an interrupted one.

#include <hearth/detail/activation.hpp>
#include <hearth/fiber.hpp>
#include <hearth/method.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace hearth::detail {

// The event of an interrupted fiber while its hook runs.
struct Recovery {
  RecoveredFiber fiber;
  bool continued = false;
  std::optional<FiberOutcome> outcome;  // of a fiber that is not continued
};

Recovery read_recovery(std::string_view name, std::string_view body);

// A wait for the end of a fiber.
class EndWaiter : public Waiter {
 public:
  // The fiber was cancelled: its work may go on, but this wait ends.
  virtual void cancelled(const FiberRecord& record) = 0;

 protected:
  ~EndWaiter() = default;
};

// A fiber that runs in this instance, without the parts that depend on its function.
class FiberRoot : public Root {
 public:
  FiberRoot(Activation& activation, const Context& context, FiberRow row)
      : Root(activation, context), fiber_(activation, std::move(row)) {}

  [[nodiscard]] FiberContext& fiber() noexcept { return fiber_; }
  [[nodiscard]] hearth_fiber handle() const noexcept { return fiber_.row_.handle; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  bool request_stop() { return !ended_ && fiber_.stop_.request_stop(); }
  // `waiter` is resumed when the fiber has ended; then the fiber is destroyed.
  void wait(EndWaiter* waiter) noexcept { waiter_ = waiter; }
  void cancelled(const FiberRecord& record) {
    record_ = record;
    if (waiter_) std::exchange(waiter_, nullptr)->cancelled(record);
  }
  // The key of its next child fiber of this name: the same in each run that begins with the same
  // checkpoint.
  std::string next_child_key(const std::string& name);
  // After its end, or a cancel: the record, if the host has taken it.
  [[nodiscard]] const std::optional<FiberRecord>& record() const noexcept { return record_; }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

  void answer() noexcept override;
  // No wait gets the failure, so it goes to the log.
  void report() noexcept;

 protected:
  // Moves the outcome out of the coroutine and frees that.
  virtual void collect() noexcept = 0;
  // The value as JSON, empty for none. After collect(), if that brought no error.
  [[nodiscard]] virtual std::string result() const = 0;
  // The function, for another attempt at the work; null: it is found by its name.
  [[nodiscard]] virtual std::unique_ptr<KeptWork> keep() = 0;
  // The work has ended: writes its record with this turn. The record stays open if the work ended
  // only because the agent is destroyed.
  void end() noexcept;
  void fail(std::exception_ptr error) noexcept { error_ = std::move(error); }

 private:
  static constexpr std::size_t kLongestKey = 256;

  [[nodiscard]] std::string why() const noexcept;
  // How settle() reports the failure: HEARTH_FIBER_ERROR, _FINAL_ERROR or _NEEDS_CODE.
  [[nodiscard]] std::uint32_t kind_of_failure() noexcept;
  [[nodiscard]] std::string outcome_of_failure() const noexcept;
  [[nodiscard]] bool goes_on_in_the_next_instance() noexcept;
  void settle() noexcept;  // in fiber_waits.cpp

  FiberContext fiber_;
  EndWaiter* waiter_ = nullptr;
  std::exception_ptr error_;
  std::optional<FiberRecord> record_;
  bool ended_ = false;
  bool settled_before_ = false;  // by a cancel, or not at all: the outcome is dropped
};

// The end of this agent, or of the server, is the cause.
bool is_closing(const std::exception_ptr& error) noexcept;

// The value of a fiber's function: a value, or a Task of one.
template <class Function>
struct FiberFunction {
  using Result = void;  // it is no function: see check_fiber_function()
};
template <class Function>
  requires(std::is_invocable_v<Function&, FiberContext&>)
struct FiberFunction<Function> {
  using Result = std::invoke_result_t<Function&, FiberContext&>;
};
// A class with no operator() of any kind. (A final class is not checked.)
struct AnyCall {
  void operator()();
};
template <class T>
struct WithAnyCall : T, AnyCall {};
template <class T>
inline constexpr bool kIsData = [] {
  if constexpr (std::is_class_v<T> && !std::is_final_v<T>)
    return requires { &WithAnyCall<T>::operator(); };
  else
    return false;
}();

template <class Function>
consteval bool check_fiber_function() {
  static_assert(std::is_invocable_v<Function&, FiberContext&>,
                "the function of a fiber takes hearth::FiberContext& (a reference): "
                "[this](hearth::FiberContext& fiber) { ... }");
  return std::is_invocable_v<Function&, FiberContext&>;
}
template <class Function>
using FiberResult = typename FiberFunction<Function>::Result;
template <class Function>
using FiberValue = TaskValue<FiberResult<Function>>;

// Whether it is a function to run, and not the input of a listed one.
template <class What>
inline constexpr bool kIsFiberWork =
    std::is_invocable_v<std::decay_t<What>&, FiberContext&> ||
    (!kMakesJson<std::decay_t<What>> && !kIsData<std::decay_t<What>>);

// The stored result. Null for a value that JSON cannot hold.
template <class Value>
inline constexpr bool kIsResult = kIsOptional<Value> || std::is_constructible_v<Json, const Value&>;
template <>
inline constexpr bool kIsResult<void> = true;

// The value that another run of the parent gets instead of the fiber's own value.
template <class Value>
inline constexpr bool kIsKept = kIsResult<Value> && kReadsJson<Value>;
template <>
inline constexpr bool kIsKept<void> = true;

// A fiber's function with everything that it needs, before its row exists.
class BoundFiber {
 public:
  BoundFiber() = default;
  virtual ~BoundFiber() = default;
  BoundFiber(const BoundFiber&) = delete;
  BoundFiber& operator=(const BoundFiber&) = delete;
  // Runs the work up to its first wait. If it has ended already, the caller forgets it. Once.
  virtual FiberRoot& begin(Activation& activation, Context context, FiberRow row) = 0;
};

// The function of a fiber that failed and has retries left. Not stored: in a new instance the hook
// decides.
template <class Function>
class KeptFunction final : public KeptWork {
 public:
  KeptFunction(const Context& context, Function function)
      : context_(context), function_(std::move(function)) {}
  void resume(Activation& activation, const RecoveredFiber& fiber) override;

 private:
  Context context_;
  Function function_;
};

template <class Function, bool IsNamed>
class FiberWork final : public FiberRoot {
 public:
  using Value = FiberValue<Function>;
  static constexpr bool kVoid = std::is_void_v<Value>;

  FiberWork(Activation& activation, const Context& context, FiberRow row, Function function)
      : FiberRoot(activation, context, std::move(row)), function_(std::move(function)) {}

  // Runs the work up to its first wait or its end.
  void begin() noexcept {
    const Activation::Scope scope(activation(), context());
    try {
      if constexpr (kIsTask<FiberResult<Function>>) {
        task_.emplace(call_kept(function_, fiber()));
        task_->start();
        if (!task_->done()) return task_->tell(this);
      } else if constexpr (kVoid) {
        function_(fiber());
      } else {
        value_.emplace(function_(fiber()));
      }
    } catch (...) {
      fail(std::current_exception());
    }
    end();
  }
  // Call once, after the end.
  Value take() {
    rethrow();
    if constexpr (!kVoid) return std::move(*value_);
  }

 private:
  struct Nothing {};

  void collect() noexcept override {
    if (!task_) return;
    try {
      if constexpr (kVoid)
        task_->take();
      else
        value_.emplace(task_->take());
    } catch (...) {
      fail(std::current_exception());
    }
    task_.reset();
  }
  [[nodiscard]] std::string result() const override {
    std::string text;
    if constexpr (!kVoid) {
      // NOLINTNEXTLINE(bugprone-unchecked-optional-access): it has ended
      if constexpr (kIsResult<Value>) append_result(text, *value_);
    }
    return text;
  }
  [[nodiscard]] std::unique_ptr<KeptWork> keep() override {
    if constexpr (IsNamed)
      return nullptr;
    else
      return std::make_unique<KeptFunction<Function>>(context(), std::move(function_));
  }

  Function function_;
  std::optional<Task<Value>> task_;  // destroyed before the function, which may be its closure
  std::optional<std::conditional_t<kVoid, Nothing, Value>> value_;
};

// Runs the work up to its first wait. If it has ended already, the caller forgets it.
template <bool IsNamed, class Function>
FiberWork<Function, IsNamed>& begin_fiber(Activation& activation, Context context, FiberRow row,
                                          Function function) {
  using Work = FiberWork<Function, IsNamed>;
  context.fiber = activation.next_fiber();
  auto work = std::make_unique<Work>(activation, context, std::move(row), std::move(function));
  Work& fiber = *work;
  activation.fibers()[context.fiber] = std::move(work);
  fiber.begin();
  return fiber;
}

template <class Function>
class BoundFunction final : public BoundFiber {
 public:
  explicit BoundFunction(Function function) : function_(std::move(function)) {}
  FiberRoot& begin(Activation& activation, Context context, FiberRow row) override {
    return begin_fiber<true>(activation, context, std::move(row), std::move(function_));
  }

 private:
  Function function_;
};

template <class T, class Pointer, class Result, class... Parameters>
struct FiberBinder {
  static constexpr std::size_t kCount = sizeof...(Parameters);
  // (FiberContext&) (input, FiberContext&)
  static constexpr bool kFits = []() {
    if constexpr (kCount == 1 || kCount == 2)
      return std::is_same_v<std::tuple_element_t<kCount - 1, std::tuple<Parameters...>>,
                            FiberContext&>;
    else
      return false;
  }();
  // A coroutine keeps its parameters, but not the objects that they refer to.
  static constexpr bool kSafe =
      !kIsTask<Result> || kCount != 2 ||
      !std::is_reference_v<std::tuple_element_t<0, std::tuple<Parameters...>>>;

  static std::unique_ptr<BoundFiber> bind(const NamedFiber& named, Agent& agent,
                                          const Json& input) {
    Pointer pointer;
    std::memcpy(&pointer, named.pointer.data(), sizeof pointer);
    T* const object = &static_cast<T&>(agent);
    if constexpr (kCount == 1) {
      static_cast<void>(input);
      return make(
          [object, pointer](FiberContext& fiber) -> Result { return (object->*pointer)(fiber); });
    } else {
      using Input = std::remove_cvref_t<std::tuple_element_t<0, std::tuple<Parameters...>>>;
      return make([object, pointer, value = hearth::read_json<Input>(input, "input")](
                      FiberContext& fiber) -> Result { return (object->*pointer)(value, fiber); });
    }
  }

 private:
  template <class Function>
  static std::unique_ptr<BoundFiber> make(Function function) {
    return std::make_unique<BoundFunction<Function>>(std::move(function));
  }
};

template <class T, class Pointer, class Result, class... Parameters>
NamedFiber make_named_fiber(const char* name, Pointer pointer) {
  using Binder = FiberBinder<T, Pointer, Result, Parameters...>;
  static_assert(Binder::kFits,
                "a fiber's function takes its input, if it has one, and then "
                "hearth::FiberContext& (a reference)");
  static_assert(Binder::kSafe, "a fiber's function that returns a Task takes its input by value");
  static_assert(kIsResult<TaskValue<Result>>,
                "the result of a fiber becomes JSON: list its members with HEARTH_FIELDS(a, b)");
  static_assert(sizeof pointer <= NamedFiber::kPointerBytes);
  if constexpr (Binder::kFits) {
    NamedFiber named = {name, &Binder::bind, {}};
    std::memcpy(named.pointer.data(), &pointer, sizeof pointer);
    return named;
  } else {
    return {};
  }
}

FiberRoot* find_fiber(Activation& activation, std::uint64_t number) noexcept;

// The context of a fiber that is begun now, taken over from the event that runs.
Context fiber_context(const Activation& activation) noexcept;

// For a fiber that no caller waits for.
void leave_alone(Activation& activation, FiberRoot& fiber);

FiberContext& running_fiber(Activation& activation);

// If its work runs in this instance, asks it to stop, and ends the waits for it.
void stop_cancelled(Activation& activation, const FiberRecord& record);
// The fibers that ended with it (`inner`: their ids): their work is destroyed too.
void stop_inner(Activation& activation, const FiberRecord& outer, const Json& inner);

}  // namespace hearth::detail
