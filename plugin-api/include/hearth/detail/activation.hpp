#pragma once
// One agent in memory as the SDK sees it: its host, its unfinished events, its pending operations.

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
struct Recovery;  // see fiber_work.hpp
// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): it is final, see fiber_waits.hpp
class SettledAwaiter;
struct ClassTraits;  // compile-time facts about an agent class: see dispatch.hpp

// The event that the running code belongs to. Restored when a wait ends.
struct Context {
  std::uint64_t call = 0;         // 0: none, or a synchronous event
  std::uint64_t connection = 0;   // the client that the event came from
  bool on_behalf = false;         // a change of state counts as that client's
  bool unheard = false;           // only the log gets its failure
  std::uint64_t fiber = 0;        // the SDK's number of the fiber that runs; 0: none
  Recovery* recovery = nullptr;   // the fiber of on_fiber_recovered, while that runs
  bool plans = false;             // on_fibers_recovered runs
  bool retried = false;           // the host delivers the event again if it fails
  std::string_view handler = {};  // the hook, or the name of the called function
  bool is_method = false;         // a method of the class: see Failure::of_host
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
  // Completes the event with the coroutine's outcome (a fiber: ends it). Called once, after
  // on_finished, outside of all coroutines.
  virtual void answer() noexcept = 0;
  [[nodiscard]] const Context& context() const noexcept { return context_; }
  // Events that came later have higher numbers. (Numbers of calls do not grow.)
  void came_as(std::uint64_t number) noexcept { number_ = number; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

 protected:
  [[nodiscard]] Activation& activation() noexcept { return activation_; }

 private:
  Context context_;
  std::uint64_t number_ = 0;
  Activation& activation_;
};

// A submitted operation that waits for its result. Implemented by awaiters, which live in the
// frames of coroutines.
class PendingOperation {
 public:
  // Stores the outcome and resumes the coroutine; `this` may be gone when it returns.
  virtual void on_result(const hearth_result& result) = 0;
  // A part of its answer; the outcome comes later. As on_result().
  virtual void on_part(const hearth_result& /*result*/) {}
  [[nodiscard]] virtual const Context& context() const noexcept = 0;
  virtual ~PendingOperation() = default;
};

// A coroutine that waits for something inside the agent. Implemented by awaiters, which live in its
// frame.
class Waiter {
 public:
  // Resumes the coroutine; `this` may be gone when it returns.
  virtual void resume() = 0;
  // Ends the wait early, if it can: see stop.hpp. Resumes nothing yet.
  virtual void stop() noexcept {}

 protected:
  ~Waiter() = default;
};

// The work of a fiber that will begin again.
class KeptWork {
 public:
  virtual ~KeptWork() = default;
  // Resumes `fiber` in the host and runs the work up to its first wait. Failure: HostError; then it
  // may be tried again.
  virtual void resume(Activation& activation, const RecoveredFiber& fiber) = 0;
};

// Threads   The agent's own: every member is [instance].
// Lifetime  From create to destroy. Owns the Agent and all suspended coroutines. The coroutines are
//           destroyed first, fibers before events and the newest first, while the Agent is intact.
class Activation final : private TaskWatch {
 public:
  // Defined in agent_base.cpp.
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
  [[nodiscard]] bool has_agent() const noexcept { return agent_ != nullptr; }  // it is constructed
  void adopt(std::unique_ptr<Agent> agent) noexcept;

  // ---- errors
  // Throws HostError with the host's text, or with `doing` if there is none.
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
  // Inside a catch block: calls the agent's on_error.
  void tell_error(std::string_view where) noexcept;
  // A buffer for the text of one answer at a time. Reused, so most answers allocate nothing.
  [[nodiscard]] std::string& answer_buffer();

  // ---- unfinished events
  void keep(std::unique_ptr<Root> root);
  // A number for work that belongs to no event; for an event, its call is the number.
  [[nodiscard]] std::uint64_t next_own_work() noexcept { return kOwnWork | ++last_own_work_; }
  void finished(Root& root) noexcept { finished_.push_back(&root); }
  void cancel(std::uint64_t call);
  // Answers and frees the events that have ended, and resumes coroutines whose wait is over. Called
  // last in each entry, when no coroutine runs.
  void reap() noexcept;
  [[nodiscard]] std::size_t unfinished() const noexcept { return roots_.size(); }
  // Its wait is over; it is resumed at the end of this entry, unless it is withdrawn before.
  void release(Waiter& waiter) { released_.push_back(&waiter); }
  void withdraw(const Waiter& waiter) noexcept { std::erase(released_, &waiter); }

  // ---- fibers: they belong to no event, so its end does not touch them. Each root is a FiberRoot
  [[nodiscard]] std::uint64_t next_fiber() noexcept { return ++last_fiber_; }
  [[nodiscard]] std::map<std::uint64_t, std::unique_ptr<Root>>& fibers() noexcept {
    return fibers_;
  }
  // Destroys this fiber's coroutine, at the end of this entry.
  void drop_fiber(std::uint64_t number) { dropped_.push_back(number); }
  // By fiber id: functions for another attempt that have no listed name; waits for a settled
  // record.
  [[nodiscard]] auto& kept_work() noexcept { return kept_work_; }
  [[nodiscard]] auto& settled_waiters() noexcept { return settled_waiters_; }
  // Waits for the end of a running operation, by its id.
  [[nodiscard]] auto& operation_waiters() noexcept { return operation_waiters_; }
  // The kinds of running operations, by id, until their run has made its first request.
  [[nodiscard]] auto& operation_kinds() noexcept { return operation_kinds_; }

  // ---- operations
  // Failure   The host's status: CLOSING while the agent is being evicted. No result comes then.
  hearth_status submit(std::uint32_t operation, hearth_bytes request, PendingOperation& pending,
                       std::uint64_t& token, std::uint64_t& host_id);
  // `begin(token)` submits it: a function of an extension.
  template <class Begin>
  hearth_status submit_with(PendingOperation& pending, std::uint64_t& token, const Begin& begin) {
    const auto place = pending_.emplace_hint(pending_.end(), ++last_token_, &pending);
    const hearth_status status = begin(last_token_);
    if (status < 0) pending_.erase(place);
    token = last_token_;
    return status;
  }
  // The awaiter is destroyed before its result has come.
  void forget(std::uint64_t token, std::uint64_t host_id) noexcept {
    if (pending_.erase(token) != 0) static_cast<void>(host()->cancel(host(), id_, host_id));
  }
  void on_result(const hearth_result& result);

  // A call of the host: sets the context for as long as it lives, then reaps.
  class Entry {
   public:
    Entry(Activation& activation, Context context) : activation_(activation), outer_(task_watch) {
      task_watch = &activation;
      activation_.context_ = context;
      activation_.told_ = {0, context.call};  // what the host takes for granted
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
    TaskWatch* outer_;  // in a test, of the agent that has called this one
  };

  // The agent is being created or destroyed: reports a Task that its code drops.
  class Watch {
   public:
    explicit Watch(Activation& activation) : outer_(task_watch) { task_watch = &activation; }
    ~Watch() { task_watch = outer_; }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    TaskWatch* outer_;
  };

  // Runs code of another context inside an entry, for as long as it lives: a fiber that begins, or
  // one that waits for it.
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

  // The instance has its first event: from now on a crash counts for no fiber, unless the host gets
  // another works_for().
  void tell_begin() noexcept { tell_work(Work()); }

  // Logs the same warning only once. Bounded: kMostWarnings different ones.
  void warn_once(const std::string& text);

 private:
  // The work that runs, for the host's record of a crash: a fiber's, or that of an event.
  struct Work {
    std::uint64_t fiber = 0;  // the SDK's number
    std::uint64_t call = 0;
    friend bool operator==(const Work&, const Work&) = default;
  };

  void never_awaited() noexcept override;
  void drop_fibers() noexcept;
  // Tells the host, if it has another value in this call.
  void works_for(const Context& context) noexcept {
    const Work work = {context.fiber, context.call};
    if (work != told_) tell_work(work);
  }
  void tell_work(const Work& work) noexcept;

  static constexpr std::uint64_t kOwnWork = std::uint64_t{1} << 63;  // no host counts that far
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
  std::map<std::uint64_t, std::unique_ptr<Root>> roots_;  // by call
  std::uint64_t last_root_ = 0;
  std::uint64_t last_own_work_ = 0;
  std::uint64_t last_fiber_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Root>> fibers_;  // by number
  std::map<std::string, std::unique_ptr<KeptWork>, std::less<>> kept_work_;
  std::multimap<std::string, SettledAwaiter*, std::less<>> settled_waiters_;
  std::multimap<std::string, Waiter*, std::less<>> operation_waiters_;
  std::map<std::string, const OperationKind*, std::less<>> operation_kinds_;
  std::vector<Root*> finished_;
  std::vector<Waiter*> released_;
  std::vector<std::uint64_t> dropped_;
  std::set<std::string, std::less<>> warned_;
};

inline void Root::on_finished() noexcept {
  activation_.finished(*this);
}

// The activation whose Agent is being constructed on this thread. Trivial, so it does not pin the
// library.
inline constinit thread_local Activation* constructing = nullptr;

// A coroutine and a function for its value. `deliver` may own objects that the coroutine refers to.
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

// Runs `task` for the event `context` and delivers its outcome: at once if it does not wait.
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

// Work that outlives its event, and that no caller waits for. A failure goes to the log.
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

// Completes an event that has no answer.
struct DeliverNothing {
  void operator()(Activation& activation, const Context& context) const {
    activation.complete(context.call, HEARTH_OK, {});
  }
};

// Inside a catch block: the failure as the caller gets it.
struct Failure {
  hearth_status status = HEARTH_E_PLUGIN;
  std::string text = "Unknown error occurred";
  std::string sql = {};  // of a SqlError
  // LIMIT or CONFLICT of a function of the host: the caller of a method gets it. 0: none.
  hearth_status of_host = 0;
  bool is_final = false;  // see Error::is_final()
};

Failure current_failure() noexcept;

// Sends a part of the answer to a call. False: the reader has gone.
bool emit_part(Activation& activation, std::uint64_t call, std::string_view part,
               std::string_view doing);

}  // namespace detail

}  // namespace hearth
