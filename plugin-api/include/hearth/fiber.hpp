#pragma once
// Fibers: work that survives an eviction, a crash and an update of the code.
//
//     spawn_fiber("import", [this](hearth::FiberContext& fiber) { return import_from(fiber, 0); });
//
//     hearth::Task<void> import_from(hearth::FiberContext& fiber, int page) {
//       for (; page < kPages; ++page) {
//         co_await fetch(page);
//         fiber.stash({{"page", page + 1}});           // from here on, this page is never fetched again
//       }
//     }
//     hearth::Task<void> on_fiber_recovered(const hearth::RecoveredFiber& fiber) override {
//       const int page = fiber.snapshot.is_null() ? 0 : fiber.snapshot.at("page").get<int>();
//       continue_fiber(fiber, [this, page](hearth::FiberContext& next) { return import_from(next, page); });
//       return {};
//     }
//
// Promises  The row is on disk before the work's first instruction, each checkpoint before stash() returns; the row goes
//           in the same transaction as the last writes of the work. While a fiber runs the agent is not idle.
//           What was written since the last wait is committed with a checkpoint: the rows of a step, the state and
//           the stash belong together, if stash() comes last.
// Ends      with the function: by a value, or by an exception, which reaches who waits in run_fiber() or the log.
//           Not by an eviction: that destroys its frames, and it is interrupted.
// Requires  No transaction() is open: stash() and the begin and end of a fiber commit what was written.
// Threads   The agent's own. Several fibers may run at once, and each has its own checkpoint.
// Lifetime  The function is kept as long as the fiber runs: a coroutine lambda may have captures here. Let them be
//           values, and `this`: the fiber may outlive the handler that began it.
// Client    Changes of state count as those of the client whose event began it; caller() may have left.

#include <hearth/detail/activation.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
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
}

// An interrupted fiber, as on_fiber_recovered() gets it.
struct RecoveredFiber {
  std::string id;
  std::string name;
  Json snapshot;  // the last checkpoint; null if there was none
  std::chrono::sys_time<std::chrono::milliseconds> created_at;
  int attempt = 1;  // counts from 1; a checkpoint begins it anew
};

// What a fiber's function gets.
// Lifetime  Until the function has ended, waits included.
class FiberContext {
 public:
  FiberContext(detail::Activation& activation, std::string_view name,
               const RecoveredFiber* replaces);
  FiberContext(const FiberContext&) = delete;
  FiberContext& operator=(const FiberContext&) = delete;

  // Names it in the table cf_agents_runs and in logs. A continuation has a new one.
  [[nodiscard]] const std::string& id() const noexcept { return id_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // The checkpoint that it began with: null, or what the fiber that it continues had stashed last.
  [[nodiscard]] const Json& snapshot() const noexcept { return snapshot_; }

  // Replaces the checkpoint, whole. On disk when it returns.
  // Failure   HostError: GONE once the fiber has ended, LIMIT.
  void stash(const Json& checkpoint) const;

  // Asked to stop by cancel_fiber(). A fiber that is never asked need not look.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_.get_token(); }

 private:
  friend class detail::FiberRoot;
  detail::Activation& activation_;
  hearth_fiber handle_ = 0;
  std::string id_;
  std::string name_;
  Json snapshot_;
  std::stop_source stop_;
};

inline FiberContext::FiberContext(detail::Activation& activation, std::string_view name,
                                  const RecoveredFiber* replaces)
    : activation_(activation), name_(name) {
  if (replaces) snapshot_ = replaces->snapshot;
  const auto& table = detail::need(activation.tables().fibers, HEARTH_EXT_FIBERS);
  hearth_bytes id = {nullptr, 0};
  activation.check(table.start(activation.host(), activation.id(), detail::slice(name),
                               replaces ? detail::slice(std::string_view(replaces->id))
                                        : hearth_bytes{nullptr, 0},
                               &handle_, &id),
                   "start fiber");
  id_ = detail::view(id);
}

inline void FiberContext::stash(const Json& checkpoint) const {
  std::string& text = activation_.answer_buffer();
  append_json(text, checkpoint);
  activation_.check(
      activation_.tables().fibers->stash(activation_.host(), activation_.id(), handle_,
                                         detail::slice(std::string_view(text))),
      "stash");
}

namespace detail {

// The event of an interrupted fiber while its hook runs.
struct Recovery {
  RecoveredFiber fiber;
  bool continued = false;
};

inline Recovery read_recovery(std::string_view name, std::string_view body) {
  // Not parse_json(): the host wraps a checkpoint, which may have used up all the depth that is allowed.
  const Json event = Json::parse(body.begin(), body.end());
  Recovery recovery;
  recovery.fiber.id = event.at("id").get<std::string>();
  recovery.fiber.name = name;
  recovery.fiber.snapshot = event.at("snapshot");
  recovery.fiber.created_at = std::chrono::sys_time<std::chrono::milliseconds>(
      std::chrono::milliseconds(event.at("created_at").get<std::int64_t>()));
  recovery.fiber.attempt = event.at("attempt").get<int>();
  return recovery;
}

// Completes the event, and keeps what the hook refers to.
class DeliverRecovered {
 public:
  explicit DeliverRecovered(std::unique_ptr<Recovery> recovery) : recovery_(std::move(recovery)) {}
  void operator()(Activation& activation, const Context& context) const {
    activation.complete(context.call, HEARTH_OK, {});
  }

 private:
  std::unique_ptr<Recovery> recovery_;
};

// Who waits for a fiber's end.
class FiberWaiter {
 public:
  // The fiber has ended, and goes when this returns.
  virtual void resume() = 0;

 protected:
  ~FiberWaiter() = default;
};

// A fiber that runs in this instance, without what depends on its function.
class FiberRoot : public Root {
 public:
  FiberRoot(Activation& activation, const Context& context, std::string_view name,
            const RecoveredFiber* replaces)
      : Root(activation, context), fiber_(activation, name, replaces) {}

  [[nodiscard]] FiberContext& fiber() noexcept { return fiber_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  bool request_stop() { return !ended_ && fiber_.stop_.request_stop(); }
  void wait(FiberWaiter* waiter) noexcept { waiter_ = waiter; }

  void answer() noexcept override {
    end();
    if (waiter_)
      waiter_->resume();
    else
      report();
  }
  // Nobody waits: a failure goes to the log.
  void report() noexcept {
    if (!error_) return;
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
  // The work has ended: the row goes with this turn. It stays if only the agent's own end has ended the work.
  void end() noexcept {
    ended_ = true;
    collect();
    if (error_ && is_closing(error_)) return;
    const auto& table = *activation().tables().fibers;
    const hearth_status status =
        table.finish(activation().host(), activation().id(), fiber_.handle_);
    if (status < 0)
      activation().log(HEARTH_LOG_ERROR,
                       activation().last_error(status, "finish fiber " + fiber_.name()));
  }
  void fail(std::exception_ptr error) noexcept { error_ = std::move(error); }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static bool is_closing(const std::exception_ptr& error) noexcept {
    try {
      std::rethrow_exception(error);
    } catch (const HostError& host) {
      return host.code() == HEARTH_E_CLOSING;
    } catch (...) {
      return false;
    }
  }

  FiberContext fiber_;
  FiberWaiter* waiter_ = nullptr;
  std::exception_ptr error_;
  bool ended_ = false;
};

// What a fiber's function gives: a value, or a Task of one.
template <class Function>
using FiberResult = std::invoke_result_t<Function&, FiberContext&>;
template <class Function>
using FiberValue = TaskValue<FiberResult<Function>>;

template <class Function>
class FiberWork final : public FiberRoot {
 public:
  using Value = FiberValue<Function>;
  static constexpr bool kVoid = std::is_void_v<Value>;

  FiberWork(Activation& activation, const Context& context, std::string_view name,
            const RecoveredFiber* replaces, Function function)
      : FiberRoot(activation, context, name, replaces), function_(std::move(function)) {}

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

  Function function_;
  std::optional<Task<Value>> task_;  // destroyed before the function, which may be its closure
  std::optional<std::conditional_t<kVoid, Nothing, Value>> value_;
};

inline FiberRoot* find_fiber(Activation& activation, std::uint64_t number) noexcept {
  const auto found = activation.fibers().find(number);
  return found == activation.fibers().end() ? nullptr
                                            : static_cast<FiberRoot*>(found->second.get());
}

// The interrupted fiber that one called `name` continues if it is begun now: that of the hook that runs, once.
inline const RecoveredFiber* continued_by(const Activation& activation, std::string_view name) {
  const Recovery* const recovery = activation.context().recovery;
  const bool continues = recovery && !recovery->continued && recovery->fiber.name == name;
  return continues ? &recovery->fiber : nullptr;
}

// The row, then the work up to its first wait. If it has ended already, whoever called forgets it.
template <class Function>
FiberWork<Function>& begin_fiber(Activation& activation, std::string_view name,
                                 const RecoveredFiber* replaces, Function function) {
  Context context = activation.context();
  Recovery* const recovery = std::exchange(context.recovery, nullptr);
  context.call = 0;
  context.unheard = nullptr;
  context.fiber = activation.next_fiber();
  auto work = std::make_unique<FiberWork<Function>>(activation, context, name, replaces,
                                                    std::move(function));
  if (recovery && replaces && recovery->fiber.id == replaces->id) recovery->continued = true;
  FiberWork<Function>& fiber = *work;
  activation.fibers()[context.fiber] = std::move(work);
  fiber.begin();
  return fiber;
}

template <class Function>
std::string spawn(Activation& activation, std::string_view name, const RecoveredFiber* replaces,
                  Function function) {
  auto& fiber = begin_fiber(activation, name, replaces, std::move(function));
  std::string id = fiber.fiber().id();
  if (fiber.ended()) {
    fiber.report();
    activation.fibers().erase(fiber.context().fiber);
  }
  return id;
}

// Waits for a fiber that was just begun. Lives in the frame of run_fiber(); destroyed while it waits (the caller was
// cancelled) it leaves the fiber alone.
template <class Work>
class FiberAwaiter final : public FiberWaiter {
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
