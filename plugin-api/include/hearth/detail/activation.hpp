#pragma once
// One live agent as the SDK sees it: its host, its unfinished events, its pending operations.

#include <hearth/abi.h>
#include <hearth/detail/host_tables.hpp>
#include <hearth/json.hpp>
#include <hearth/task.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

class Agent;
struct OperationKind;
struct RecoveredFiber;

namespace detail {

// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): it is final
class Activation;
struct Recovery;  // see fiber.hpp
// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): it is final, see fiber_calls.hpp
class SettledAwaiter;
struct ClassTraits;  // what the compiler knows of an agent class: see class_of.hpp

// Which event the running code belongs to. Restored when a wait ends.
struct Context {
  std::uint64_t call = 0;         // 0: none, or a synchronous event
  std::uint64_t connection = 0;   // the client that the event came from
  bool on_behalf = false;         // a change of state counts as that client's
  bool unheard = false;           // nobody but the log hears of its failure
  std::uint64_t fiber = 0;        // the SDK's number of the fiber that runs; 0: none
  Recovery* recovery = nullptr;   // what on_fiber_recovered is about, while it runs
  bool plans = false;             // on_fibers_recovered runs
  bool retried = false;           // the host gives the event again if it fails
  std::string_view handler = {};  // the hook, or what was called by its name
  bool is_method = false;         // a method of the class, whose caller hears of limits
};

// An accepted event whose coroutine waits; or a fiber, which has a number of its own and no call.
class Root : public Finished {
 public:
  explicit Root(Activation& activation, Context context)
      : context_(context), activation_(activation) {}
  virtual ~Root() = default;
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  void on_finished() noexcept override;
  // Completes the event with what the coroutine gave (a fiber: ends it). Called once, after
  // on_finished, from no coroutine.
  virtual void answer() noexcept = 0;
  [[nodiscard]] const Context& context() const noexcept { return context_; }

 protected:
  [[nodiscard]] Activation& activation() noexcept { return activation_; }

 private:
  Context context_;
  Activation& activation_;
};

// A submitted operation that waits for its result. Implemented by awaiters, which live in coroutine
// frames.
class PendingOperation {
 public:
  // Stores the outcome and resumes the coroutine; `this` may be gone when it returns.
  virtual void on_result(const hearth_result& result) = 0;
  // A part of its answer; the outcome is yet to come. As on_result().
  virtual void on_part(const hearth_result& /*result*/) {}
  [[nodiscard]] virtual const Context& context() const noexcept = 0;
  virtual ~PendingOperation() = default;
};

// A coroutine that waits for something inside the agent. Implemented by awaiters, which live in its
// frame.
class Waiter {
 public:
  // Goes on; `this` may be gone when it returns.
  virtual void resume() = 0;

 protected:
  ~Waiter() = default;
};

// The work of a fiber that is to begin again.
class KeptWork {
 public:
  virtual ~KeptWork() = default;
  // Has the host go on with `fiber` and runs the work up to its first wait. Failure: HostError;
  // then it may be tried again.
  virtual void resume(Activation& activation, const RecoveredFiber& fiber) = 0;
};

// Threads   The agent's own: every member is [instance].
// Lifetime  From create to destroy. Owns the Agent and all suspended coroutines; these go first,
//           fibers before events and the newest first, while the Agent is still whole.
class Activation final : private TaskWatch {
 public:
  // Defined in agent_base.hpp, where Agent is complete.
  Activation(const ClassTraits& traits, const hearth_class& definition, const hearth_host* host,
             hearth_agent id, std::string_view name, std::string_view options);
  ~Activation();
  Activation(const Activation&) = delete;
  Activation& operator=(const Activation&) = delete;

  // ---- facts
  [[nodiscard]] const ClassTraits& traits() const noexcept { return traits_; }
  [[nodiscard]] const hearth_class& definition() const noexcept { return definition_; }
  [[nodiscard]] hearth_agent id() const noexcept { return id_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& options() const noexcept { return options_; }
  [[nodiscard]] const hearth_host* host() const noexcept { return tables_->host; }
  [[nodiscard]] const HostTables& tables() const noexcept { return *tables_; }
  [[nodiscard]] const Context& context() const noexcept { return context_; }
  [[nodiscard]] Agent& agent() noexcept { return *agent_; }
  void adopt(std::unique_ptr<Agent> agent) noexcept;

  // ---- errors
  // Throws HostError with the host's words, or with `doing` where it has none.
  [[noreturn]] void fail(hearth_status status, std::string_view doing) const {
    throw HostError(status, last_error(status, doing));
  }
  void check(hearth_status status, std::string_view doing) const {
    if (status < 0) fail(status, doing);
  }
  [[nodiscard]] std::string last_error(hearth_status status, std::string_view doing) const;
  void log(int level, std::string_view text) const noexcept {
    if (tables_->log) tables_->log->write(host(), id_, level, slice(text));
  }

  // ---- answers
  void complete(std::uint64_t call, hearth_status status, std::string_view body) const noexcept;
  // Inside a catch block: completes the event with the exception's code and text.
  void complete_with_exception(const Context& context) noexcept;
  // Inside a catch block: tells the agent's on_error.
  void tell_error(std::string_view where) noexcept;
  // A buffer for the text of one answer at a time, kept so that most answers allocate nothing.
  [[nodiscard]] std::string& answer_buffer();

  // ---- unfinished events
  void keep(std::unique_ptr<Root> root);
  // The number of work that belongs to no event, where an event has its call.
  [[nodiscard]] std::uint64_t next_own_work() noexcept { return kOwnWork | ++last_own_work_; }
  void finished(Root& root) noexcept { finished_.push_back(&root); }
  void cancel(std::uint64_t call);
  // Answers and frees the events that have ended, and lets those go on whose wait is over. Called
  // last in each entry, when no coroutine runs.
  void reap() noexcept;
  [[nodiscard]] std::size_t unfinished() const noexcept { return roots_.size(); }
  // Its wait is over; it goes on at the end of this entry, unless it is withdrawn before.
  void release(Waiter& waiter) { released_.push_back(&waiter); }
  void withdraw(const Waiter& waiter) noexcept { std::erase(released_, &waiter); }

  // ---- fibers: they belong to no event, so its end does not touch them. Each root is a FiberRoot
  [[nodiscard]] std::uint64_t next_fiber() noexcept { return ++last_fiber_; }
  [[nodiscard]] std::map<std::uint64_t, std::unique_ptr<Root>>& fibers() noexcept {
    return fibers_;
  }
  // By id: functions for another attempt that no name finds, and who waits for a settled record.
  [[nodiscard]] auto& kept_work() noexcept { return kept_work_; }
  [[nodiscard]] auto& settled_waiters() noexcept { return settled_waiters_; }
  // Who waits for the end of an operation that runs, by its id.
  [[nodiscard]] auto& operation_waiters() noexcept { return operation_waiters_; }
  // By their ids the kinds of those that run, until this run has made its first request.
  [[nodiscard]] auto& operation_kinds() noexcept { return operation_kinds_; }

  // ---- operations
  // Failure   The host's status: CLOSING while the agent is being evicted. Then no result will
  //           come.
  hearth_status submit(std::uint32_t operation, hearth_bytes request, PendingOperation& pending,
                       std::uint64_t& token, std::uint64_t& host_id);
  // `begin(token)` is what submits it: a function of an extension.
  template <class Begin>
  hearth_status submit_with(PendingOperation& pending, std::uint64_t& token, const Begin& begin) {
    const auto place = pending_.emplace_hint(pending_.end(), ++last_token_, &pending);
    const hearth_status status = begin(last_token_);
    if (status < 0) pending_.erase(place);
    token = last_token_;
    return status;
  }
  // The awaiter goes away before its result came.
  void forget(std::uint64_t token, std::uint64_t host_id) noexcept {
    if (pending_.erase(token) != 0) static_cast<void>(host()->cancel(host(), id_, host_id));
  }
  void on_result(const hearth_result& result);

  // The host has called in: sets the context for as long as it lives, then reaps.
  class Entry {
   public:
    Entry(Activation& activation, Context context) : activation_(activation), outer_(task_watch) {
      task_watch = &activation;
      activation_.context_ = context;
      activation_.told_ = Work();
      activation_.works_for(context);
    }
    ~Entry() {
      activation_.context_ = Context();
      activation_.reap();
      task_watch = outer_;
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    Activation& activation_;
    TaskWatch* outer_;  // of an agent of a test that calls another one's
  };

  // The agent is being made, or goes: a Task that its code drops is told.
  class Watch {
   public:
    explicit Watch(Activation& activation) : outer_(task_watch) { task_watch = &activation; }
    ~Watch() { task_watch = outer_; }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    TaskWatch* outer_;
  };

  // Code of another context runs for as long as it lives, inside an entry: a fiber that begins, one
  // that waits for it.
  class Scope {
   public:
    Scope(Activation& activation, Context context)
        : activation_(activation), outer_(activation.context_) {
      activation_.context_ = context;
      activation_.works_for(context);
    }
    ~Scope() {
      activation_.context_ = outer_;
      activation_.works_for(outer_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Activation& activation_;
    Context outer_;
  };

  // ---- the last state seen, text and parsed
  struct StateCache {
    std::string text;
    Json value;
  };
  [[nodiscard]] StateCache& state_cache() noexcept { return state_; }

  // The instance has its first event: from now on a crash is no fiber's doing, unless the host is
  // told that it is.
  void tell_begin() noexcept { tell_work(Work()); }

  // A warning that would say the same each time. Bounded: kMostWarnings different ones.
  void warn_once(const std::string& text);

 private:
  // Whose work runs, as the host needs it for the record of a crash: that of a fiber, or of the
  // hook on_fiber_recovered or on_fibers_recovered of this event. Neither: what the host takes for
  // granted in a call.
  struct Work {
    std::uint64_t fiber = 0;  // the SDK's number
    std::uint64_t recovery = 0;
    friend bool operator==(const Work&, const Work&) = default;
  };

  void never_awaited() noexcept override;
  // Tells the host, if it has been told otherwise in this call. The recovery of a context may be
  // gone: it is not looked at.
  void works_for(const Context& context) noexcept {
    const bool recovers = context.recovery != nullptr || context.plans;
    const Work work = {context.fiber, recovers ? context.call : 0};
    if (work != told_) tell_work(work);
  }
  void tell_work(const Work& work) noexcept;

  static constexpr std::uint64_t kOwnWork = std::uint64_t{1} << 63;  // no host counts so far
  static constexpr std::size_t kMostWarnings = 100;
  static constexpr std::size_t kKeptAnswer =
      65'536;  // a larger buffer is not kept for a live but idle agent

  const ClassTraits& traits_;
  const hearth_class& definition_;
  const HostTables* tables_ = nullptr;
  std::unique_ptr<HostTables> own_tables_;
  hearth_agent id_;
  std::string name_;
  std::string options_;
  std::unique_ptr<Agent> agent_;
  Context context_;
  Work told_;
  std::string answer_;
  StateCache state_;
  std::uint64_t last_token_ = 0;
  std::map<std::uint64_t, PendingOperation*> pending_;
  std::map<std::uint64_t, std::unique_ptr<Root>> roots_;  // by call, which grow
  std::uint64_t last_own_work_ = 0;
  std::uint64_t last_fiber_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Root>> fibers_;  // by number
  std::map<std::string, std::unique_ptr<KeptWork>, std::less<>> kept_work_;
  std::multimap<std::string, SettledAwaiter*, std::less<>> settled_waiters_;
  std::multimap<std::string, Waiter*, std::less<>> operation_waiters_;
  std::map<std::string, const OperationKind*, std::less<>> operation_kinds_;
  std::vector<Root*> finished_;
  std::vector<Waiter*> released_;
  std::set<std::string, std::less<>> warned_;
};

inline void Root::on_finished() noexcept {
  activation_.finished(*this);
}

// The activation whose Agent is being constructed on this thread. Trivial, so it does not pin the
// library.
inline constinit thread_local Activation* constructing = nullptr;

// A coroutine and what to do with its value. `deliver` may own what the coroutine refers to.
template <class T, class Deliver>
class TaskRoot final : public Root {
 public:
  TaskRoot(Activation& activation, Context context, Task<T> task, Deliver deliver)
      : Root(activation, context), deliver_(std::move(deliver)), task_(std::move(task)) {
    task_.tell(this);
  }
  void answer() noexcept override { settle(activation(), context(), task_, deliver_); }

  static void settle(Activation& activation, const Context& context, Task<T>& task,
                     Deliver& deliver) noexcept {
    try {
      if constexpr (std::is_void_v<T>) {
        task.take();
        deliver(activation, context);
      } else {
        deliver(activation, context, task.take());
      }
    } catch (...) {
      activation.complete_with_exception(context);
    }
  }

 private:
  Deliver deliver_;
  Task<T> task_;  // destroyed before deliver_
};

// Runs `task` for the event `context` and has its outcome delivered: at once if it does not wait.
template <class T, class Deliver>
void drive(Activation& activation, const Context& context, Task<T> task, Deliver deliver) {
  task.start();
  if (task.done()) {
    TaskRoot<T, Deliver>::settle(activation, context, task, deliver);
  } else {
    activation.keep(std::make_unique<TaskRoot<T, Deliver>>(activation, context, std::move(task),
                                                           std::move(deliver)));
  }
}

// Work that an event has left behind, and nobody waits for. A failure goes to the log.
class OwnWork final : public Root {
 public:
  OwnWork(Activation& activation, Context context, Task<void> task, const char* name)
      : Root(activation, context), task_(std::move(task)), name_(name) {
    task_.tell(this);
  }
  void answer() noexcept override;

 private:
  Task<void> task_;
  const char* name_;
};

// Completes an event that answers nothing.
struct DeliverNothing {
  void operator()(Activation& activation, const Context& context) const {
    activation.complete(context.call, HEARTH_OK, {});
  }
};

// Inside a catch block: what to tell the caller.
struct Failure {
  hearth_status status = HEARTH_E_PLUGIN;
  std::string text = "Unknown error occurred";
  std::string sql = {};   // of a SqlError
  bool is_limit = false;  // the host has refused something that is past a limit of the agent
};

Failure current_failure() noexcept;

// Sends a part of the answer to a call. False: nobody listens any more.
bool emit_part(Activation& activation, std::uint64_t call, std::string_view part,
               std::string_view doing);

}  // namespace detail

}  // namespace hearth
