#pragma once
// Fibers: work that survives an eviction, a crash and an update of the code.
//
//     spawn_fiber("import", [this](hearth::FiberContext& fiber) { return import_from(fiber, 0); });
//
//     hearth::Task<void> import_from(hearth::FiberContext& fiber, int page) {
//       for (; page < kPages; ++page) {
//         co_await fetch(page);
//         fiber.stash({{"page", page + 1}});           // from here on, this page is never fetched
//         again
//       }
//     }
//     hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {
//       const int page = fiber.snapshot.is_null() ? 0 : fiber.snapshot.at("page").get<int>();
//       continue_fiber(fiber, [this, page](hearth::FiberContext& next) { return import_from(next,
//       page); }); return {};
//     }
//
// Promises  The row is on disk before the work's first instruction, each checkpoint before stash()
//           returns; the row goes in the same transaction as the last writes of the work. While a
//           fiber runs the agent is not idle. What was written since the last wait is committed
//           with a checkpoint: the rows of a step, the state and the stash belong together, if
//           stash() comes last.
// Ends      with the function: by a value, or by an exception, which reaches who waits in
//           run_fiber() or the log. Not by an eviction: that destroys its frames, and it is
//           interrupted.
// Recovery  on_fiber_recovered() has a deadline, fibers.recovery_timeout of the class; a hook that
//           misses it has failed. Once it has begun the continuation the fiber is recovered and the
//           deadline is over: it may await run_fiber().
// Requires  No transaction() is open: stash() and the begin and end of a fiber commit what was
//           written.
// Threads   The agent's own. Several fibers may run at once, and each has its own checkpoint.
// Lifetime  The function is kept as long as the fiber runs: a coroutine lambda may have captures
//           here. Let them be values, and `this`: the fiber may outlive the handler that began it.
// Client    Changes of state count as those of the client whose event began it; caller() may have
//           left.

#include <hearth/detail/activation.hpp>
#include <hearth/fiber_record.hpp>
#include <hearth/method.hpp>

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace hearth {

namespace detail {

class FiberRoot;

// A fiber that the host has just begun, or that goes on.
struct FiberRow {
  hearth_fiber handle = 0;
  std::string id;
  std::string name;
  Json snapshot;
  bool managed = false;
};

}  // namespace detail

// An interrupted fiber, as on_fiber_recovered() gets it.
struct RecoveredFiber {
  std::string id;
  std::string name;
  Json snapshot;  // the last checkpoint; null if there was none
  Time created_at;
  int attempt = 1;  // counts from 1; a checkpoint that is not the same begins it anew
  std::optional<FiberRecord> managed;  // the record, if it has one: see managed_fiber.hpp
  std::string reason = "interrupted";  // or "retry": its work failed, and begins again
};

// What a fiber's function gets.
// Lifetime  Until the function has ended, waits included.
class FiberContext {
 public:
  FiberContext(detail::Activation& activation, detail::FiberRow row)
      : activation_(activation), row_(std::move(row)) {}
  FiberContext(const FiberContext&) = delete;
  FiberContext& operator=(const FiberContext&) = delete;

  // Names it in the table cf_agents_runs and in logs. A continuation has a new one, unless it is
  // managed.
  [[nodiscard]] const std::string& id() const noexcept { return row_.id; }
  [[nodiscard]] const std::string& name() const noexcept { return row_.name; }
  // The checkpoint that it began with: null, or what the fiber that it continues had stashed last.
  [[nodiscard]] const Json& snapshot() const noexcept { return row_.snapshot; }

  // Replaces the checkpoint, whole. On disk when it returns.
  // Failure   HostError: GONE once the fiber has ended or was cancelled, LIMIT.
  void stash(const Json& checkpoint) const;

  // Asked to stop by cancel_fiber(). A fiber that is never asked need not look.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_.get_token(); }

 private:
  friend class detail::FiberRoot;
  detail::Activation& activation_;
  detail::FiberRow row_;
  std::stop_source stop_;
};

inline void FiberContext::stash(const Json& checkpoint) const {
  std::string& text = activation_.answer_buffer();
  append_json(text, checkpoint);
  activation_.check(
      activation_.tables().fibers->stash(activation_.host(), activation_.id(), row_.handle,
                                         detail::slice(std::string_view(text))),
      "stash");
}

namespace detail {

// The event of an interrupted fiber while its hook runs.
struct Recovery {
  RecoveredFiber fiber;
  bool continued = false;
  std::optional<FiberOutcome> outcome;  // of a managed one that is not continued
};

inline Recovery read_recovery(std::string_view name, std::string_view body) {
  const Json event = parse_record(body);
  Recovery recovery;
  recovery.fiber.id = event.at("id").get<std::string>();
  recovery.fiber.name = name;
  recovery.fiber.snapshot = event.at("snapshot");
  recovery.fiber.created_at = read_time(event.at("created_at"));
  recovery.fiber.attempt = event.at("attempt").get<int>();
  if (const auto managed = event.find("managed"); managed != event.end())
    recovery.fiber.managed = read_fiber(*managed);
  if (auto reason = find_text(event, "reason")) recovery.fiber.reason = std::move(*reason);
  return recovery;
}

// Completes the event, and keeps what the hook refers to.
class DeliverRecovered {
 public:
  explicit DeliverRecovered(std::unique_ptr<Recovery> recovery) : recovery_(std::move(recovery)) {}
  void operator()(Activation& activation, const Context& context) const {
    std::string settled;
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): just looked at
    if (recovery_->outcome && !recovery_->continued) settled = outcome_text(*recovery_->outcome);
    activation.complete(context.call, HEARTH_OK, settled);
  }

 private:
  std::unique_ptr<Recovery> recovery_;
};

// A fiber that runs in this instance, without what depends on its function.
class FiberRoot : public Root {
 public:
  FiberRoot(Activation& activation, const Context& context, FiberRow row)
      : Root(activation, context), fiber_(activation, std::move(row)) {}

  [[nodiscard]] FiberContext& fiber() noexcept { return fiber_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  bool request_stop() { return !ended_ && fiber_.stop_.request_stop(); }
  // `waiter` is resumed when the fiber has ended; then the fiber goes.
  void wait(Waiter* waiter) noexcept { waiter_ = waiter; }

  void answer() noexcept override {
    end();
    if (waiter_)
      waiter_->resume();
    else
      report();
  }
  // Nobody waits: a failure goes to the log.
  void report() noexcept {
    if (!error_ || settled_before_) return;
    try {
      std::rethrow_exception(error_);
    } catch (...) {
      const Failure failure = current_failure();
      activation().log(HEARTH_LOG_ERROR,
                       "fiber " + fiber_.name() + " failed: " + failure.text +
                           (failure.sql.empty() ? std::string() : " in SQL: " + failure.sql));
    }
  }

 protected:
  // Takes the outcome out of the coroutine and frees it.
  virtual void collect() noexcept = 0;
  // The value as JSON, empty for none. After collect(), if that brought no error.
  [[nodiscard]] virtual std::string result() const = 0;
  // The function, for another attempt at the work.
  [[nodiscard]] virtual std::unique_ptr<KeptWork> keep() = 0;
  // The work has ended: the row goes with this turn. It stays if only the agent's own end has ended
  // the work.
  void end() noexcept {
    ended_ = true;
    collect();
    if (error_ && is_closing(error_)) return;
    if (fiber_.row_.managed) return settle();
    const auto& table = *activation().tables().fibers;
    const hearth_status status =
        error_ ? table.fail(activation().host(), activation().id(), fiber_.row_.handle,
                            slice(std::string_view(why())))
               : table.finish(activation().host(), activation().id(), fiber_.row_.handle);
    if (status < 0)
      activation().log(HEARTH_LOG_ERROR,
                       activation().last_error(status, "finish fiber " + fiber_.name()));
  }
  void fail(std::exception_ptr error) noexcept { error_ = std::move(error); }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  [[nodiscard]] std::string why() const noexcept {
    try {
      std::rethrow_exception(error_);
    } catch (...) {
      return current_failure().text;
    }
  }
  static bool is_closing(const std::exception_ptr& error) noexcept {
    try {
      std::rethrow_exception(error);
    } catch (const HostError& host) {
      return host.code() == HEARTH_E_CLOSING;
    } catch (...) {
      return false;
    }
  }

  void settle() noexcept;  // the end of a managed one, in managed_fiber.hpp

  FiberContext fiber_;
  Waiter* waiter_ = nullptr;
  std::exception_ptr error_;
  bool ended_ = false;
  bool settled_before_ = false;  // by a cancel: nobody asks what the work came to
};

// What a fiber's function gives: a value, or a Task of one.
template <class Function>
using FiberResult = std::invoke_result_t<Function&, FiberContext&>;
template <class Function>
using FiberValue = TaskValue<FiberResult<Function>>;

// What is kept as the result of a managed fiber. Of a value that JSON cannot hold: null.
template <class Value>
inline constexpr bool kIsResult = kIsOptional<Value> || std::is_constructible_v<Json, const Value&>;
template <>
inline constexpr bool kIsResult<void> = true;

// The function of a managed fiber that failed and has retries left. Not stored: a new instance asks
// the hook.
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

template <class Function>
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
        task_.emplace(function_(fiber()));
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
  // Once, after the end.
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
    return std::make_unique<KeptFunction<Function>>(context(), std::move(function_));
  }

  Function function_;
  std::optional<Task<Value>> task_;  // destroyed before the function, which may be its closure
  std::optional<std::conditional_t<kVoid, Nothing, Value>> value_;
};

inline FiberRoot* find_fiber(Activation& activation, std::uint64_t number) noexcept {
  const auto found = activation.fibers().find(number);
  return found == activation.fibers().end() ? nullptr
                                            : static_cast<FiberRoot*>(found->second.get());
}

// The interrupted fiber that one called `name` continues if it is begun now: that of the hook that
// runs, once. A managed one goes on under its own id, which only continue_fiber() can mean.
inline const RecoveredFiber* continued_by(const Activation& activation, std::string_view name) {
  const Recovery* const recovery = activation.context().recovery;
  const bool continues =
      recovery && !recovery->continued && !recovery->fiber.managed && recovery->fiber.name == name;
  return continues ? &recovery->fiber : nullptr;
}

FiberRow resume_managed(Activation& activation, const RecoveredFiber& fiber);  // managed_fiber.hpp

// Has the host begin a fiber, or go on with the one that it continues.
inline FiberRow open_fiber(Activation& activation, std::string_view name,
                           const RecoveredFiber* replaces) {
  FiberRow row;
  if (replaces && replaces->managed) {
    row = resume_managed(activation, *replaces);
  } else {
    const auto& table = need(activation.tables().fibers, HEARTH_EXT_FIBERS);
    const hearth_bytes old =
        replaces ? slice(std::string_view(replaces->id)) : hearth_bytes{nullptr, 0};
    hearth_bytes id = {nullptr, 0};
    activation.check(
        table.start(activation.host(), activation.id(), slice(name), old, &row.handle, &id),
        "start fiber");
    row.id = view(id);
    row.name = name;
    if (replaces) row.snapshot = replaces->snapshot;
  }
  Recovery* const recovery = activation.context().recovery;
  if (recovery && replaces && recovery->fiber.id == replaces->id) recovery->continued = true;
  return row;
}

// What a fiber that is begun now takes over from the event that runs.
inline Context fiber_context(const Activation& activation) noexcept {
  Context context = activation.context();
  context.call = 0;
  context.unheard = nullptr;
  context.recovery = nullptr;
  return context;
}

// The work up to its first wait. If it has ended already, whoever called forgets it.
template <class Function>
FiberWork<Function>& begin_fiber(Activation& activation, Context context, FiberRow row,
                                 Function function) {
  context.fiber = activation.next_fiber();
  auto work = std::make_unique<FiberWork<Function>>(activation, context, std::move(row),
                                                    std::move(function));
  FiberWork<Function>& fiber = *work;
  activation.fibers()[context.fiber] = std::move(work);
  fiber.begin();
  return fiber;
}

// The same for a fiber that nobody waits for.
template <class Function>
void begin_detached(Activation& activation, const Context& context, FiberRow row,
                    Function function) {
  auto& fiber = begin_fiber(activation, context, std::move(row), std::move(function));
  if (!fiber.ended()) return;
  fiber.report();
  activation.fibers().erase(fiber.context().fiber);
}

template <class Function>
std::string spawn(Activation& activation, std::string_view name, const RecoveredFiber* replaces,
                  Function function) {
  FiberRow row = open_fiber(activation, name, replaces);
  std::string id = row.id;
  begin_detached(activation, fiber_context(activation), std::move(row), std::move(function));
  return id;
}

template <class Function>
void KeptFunction<Function>::resume(Activation& activation, const RecoveredFiber& fiber) {
  FiberRow row = resume_managed(activation, fiber);
  begin_detached(activation, context_, std::move(row), std::move(function_));
}

// Waits for a fiber that was just begun. Lives in the frame of run_fiber(); destroyed while it
// waits (the caller was cancelled) it leaves the fiber alone.
template <class Work>
class FiberAwaiter final : public Waiter {
 public:
  FiberAwaiter(Activation& activation, Work& fiber) noexcept
      : activation_(activation), fiber_(fiber), number_(fiber.context().fiber) {}
  ~FiberAwaiter() {
    if (!waiting_)
      activation_.fibers().erase(number_);  // it ended at once
    else if (FiberRoot* const fiber = find_fiber(activation_, number_))
      fiber->wait(nullptr);
  }
  FiberAwaiter(const FiberAwaiter&) = delete;
  FiberAwaiter& operator=(const FiberAwaiter&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return fiber_.ended(); }
  void await_suspend(std::coroutine_handle<> waiting) noexcept {
    context_ = activation_.context();
    waiting_ = waiting;
    fiber_.wait(this);
  }
  typename Work::Value await_resume() { return fiber_.take(); }

  void resume() override {
    const Activation::Scope scope(activation_, context_);
    waiting_.resume();  // may destroy this awaiter
  }

 private:
  Activation& activation_;
  Work& fiber_;
  std::uint64_t number_;
  Context context_;
  std::coroutine_handle<> waiting_;
};

inline FiberContext& running_fiber(Activation& activation) {
  FiberRoot* const fiber = find_fiber(activation, activation.context().fiber);
  if (!fiber) throw Error(HEARTH_E_PLUGIN, "stash() was called outside a fiber");
  return fiber->fiber();
}

inline bool request_stop(Activation& activation, std::string_view id) {
  for (const auto& [number, root] : activation.fibers()) {
    auto& fiber = static_cast<FiberRoot&>(*root);
    if (fiber.fiber().id() == id) return fiber.request_stop();
  }
  return false;
}

}  // namespace detail

}  // namespace hearth
