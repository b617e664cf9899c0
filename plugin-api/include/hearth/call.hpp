#pragma once
// Calls of other agents, of this class or another one, anywhere on the server.
//
//     const int count = co_await agent("counter", "a").call<int>("increment", 5);
//     agent("mailer", "outbox").notify("send", mail);      // one way, durable, not awaited
//     co_await sub_agent("chat", "monday").call<void>("post", prompt);
//     auto tokens = agent("model", "a").stream("tokens", prompt);
//     while (auto token = co_await tokens.next<std::string>()) out.send(*token);
//
// A call and a stream are in memory only. An eviction of this agent ends them, and a fiber that
// goes on in the next instance makes the call again only if its code does. notify() survives: it is
// written with this turn and then delivered at least once, in order for each callee. The callee
// sees the same id each time (caller_agent()).
//
// A call leaves only when this agent's earlier writes are as durable as its class asks.

#include <hearth/ext/call.h>
#include <hearth/fields.hpp>
#include <hearth/method.hpp>
#include <hearth/option.hpp>
#include <hearth/parts.hpp>
#include <hearth/time.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth {

// A call of another agent has failed: the callee's answer, or a reason of the host
// (hearth/ext/call.h lists them). If it leaves a handler, the caller gets its text.
class CallError : public HostError {
 public:
  CallError(hearth_status code, const std::string& text, bool began = false)
      : HostError(code, text), began_(began) {}

  // The callee's code may have begun it. False: nothing has run, so it is safe to try again.
  [[nodiscard]] bool began() const noexcept { return began_; }

 private:
  bool began_;
};

struct CallOptions {
  // Until the answer, or its next part; 0: the remaining time of the event that is handled.
  TimeOption timeout = std::chrono::milliseconds(0);
  // NOT_FOUND if the agent has stored nothing and is not in memory; it is not created.
  bool must_exist = false;
};

// The agent that made the call that is being handled.
struct AgentCaller {
  std::string class_name;                   // "ChatRoom"
  std::string name;                         // of a sub-agent its path, for agent() here
  std::optional<std::string> notification;  // its id, if it is one: the same in each delivery
};

// A notification that is not delivered.
struct Notification {
  std::string id;
  std::string class_name;
  std::string name;
  std::string method;
  Json arguments;
  bool dead = false;  // given up
  int attempts = 0;   // begun so far
  std::optional<std::string> last_error;
};

namespace detail {

template <class... Arguments>
std::string call_arguments(const Arguments&... arguments) {
  std::string text = "[";
  ((append_result(text, arguments), text += ','), ...);
  if constexpr (sizeof...(Arguments) > 0) text.pop_back();
  return text + "]";
}

// Which agent to call, and how.
struct Callee {
  std::string agent_class;
  std::string name;
  CallOptions options;
  std::uint32_t flags = 0;  // HEARTH_CALL_BELOW, HEARTH_CALL_ABOVE
};

inline const hearth_call_v1& call_table(const Activation& activation) {
  return need(activation.tables().call, HEARTH_EXT_CALL);
}

// The texts are borrowed. In a fiber, or in work that outlives its event, the call has no event.
hearth_call_request call_request(const Activation& activation, const Callee& callee,
                                 std::string_view method, std::string_view arguments);

hearth_status start_call(const Activation& activation, const Callee& callee,
                         std::string_view method, std::string_view arguments, std::uint64_t token,
                         std::uint64_t* id);

template <class T>
T call_result(std::string_view body) {
  if constexpr (!std::is_void_v<T>)
    return hearth::read_json<T>(body.empty() ? Json() : parse_json(body), "the answer");
}

// `co_await` submits the call. It leaves after the commit of the turn.
// Lifetime  Lives in the frame of the coroutine. Destroyed while it waits, it drops the answer.
class CallOperation : public PendingOperation {
 public:
  CallOperation(Activation& activation, Callee callee, std::string_view method,
                std::string arguments);
  ~CallOperation() override {
    if (waiting_) activation_.forget(token_, host_id_);
  }
  CallOperation(const CallOperation&) = delete;
  CallOperation& operator=(const CallOperation&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiting);
  // For a streaming method whose result alone is wanted.
  void on_part(const hearth_result& result) override {
    const hearth_host* const host = activation_.host();
    static_cast<void>(host->credit(host, activation_.id(), host_id_, result.body.len));
  }
  void on_result(const hearth_result& result) override;
  [[nodiscard]] const Context& context() const noexcept override { return context_; }

 protected:
  const std::string& finish();

 private:
  Activation& activation_;
  Callee callee_;
  std::string method_;
  std::string text_;  // the arguments; then the answer
  Context context_;
  std::coroutine_handle<> waiting_;
  std::uint64_t token_ = 0;
  std::uint64_t host_id_ = 0;
  hearth_status status_ = HEARTH_OK;
  bool began_ = false;
};

template <class T>
class [[nodiscard]] CallAwaiter final : public CallOperation {
 public:
  using CallOperation::CallOperation;
  T await_resume() { return call_result<T>(finish()); }
};

}  // namespace detail

// The answer of a streaming method, part by part. At most 256 KiB of it wait here: the callee's
// `co_await out.drained()` waits for this reader.
// Lifetime  If it is destroyed before the end, the rest is dropped. At most one coroutine waits at
//           a time.
class CallStream {
 public:
  explicit CallStream(std::unique_ptr<detail::PartsOperation> parts) : parts_(std::move(parts)) {}

  template <class T>
  class [[nodiscard]] Next {
   public:
    explicit Next(CallStream& stream) : stream_(stream), next_(stream.parts_->next()) {}
    [[nodiscard]] bool await_ready() const noexcept { return next_.await_ready(); }
    void await_suspend(std::coroutine_handle<> waiting) { next_.await_suspend(waiting); }
    std::optional<T> await_resume() {
      const detail::Part part = next_.await_resume();
      if (!part.is_end()) return detail::call_result<T>(part.body);
      stream_.ended(part);
      return std::nullopt;
    }

   private:
    CallStream& stream_;
    detail::PartsOperation::Next next_;
  };
  // The next part; nothing at the end.
  // Failure  CallError
  template <class T = Json>
  [[nodiscard]] Next<T> next() {
    return Next<T>(*this);
  }
  // The value that the method returned. Call it after the end.
  template <class T = Json>
  [[nodiscard]] T result() const {
    return detail::call_result<T>(result_);
  }

 private:
  void ended(const detail::Part& end) {
    if (end.status < 0) throw CallError(end.status, end.body, (end.flags & HEARTH_CALL_BEGAN) != 0);
    result_ = end.body;
  }

  std::unique_ptr<detail::PartsOperation> parts_;
  std::string result_;
};

// Another agent, as Agent::agent() gives it: nothing happens until something is called. It may be
// copied, and outlives the handler, but not the agent.
class AgentRef {
 public:
  AgentRef(detail::Activation& activation, detail::Callee callee)
      : activation_(activation), callee_(std::move(callee)) {}

  // co_await gives the result as a T: void, Json, or any type that read_json() takes. Arguments are
  // anything that Json can be made from.
  // Failure  CallError; Error(INVALID) if the result is no T.
  template <class T = Json, class... Arguments>
  [[nodiscard]] detail::CallAwaiter<T> call(std::string_view method,
                                            const Arguments&... arguments) {
    return {activation_, callee_, method, detail::call_arguments(arguments...)};
  }

  // A streaming method. The call leaves with this turn.
  // Failure  HostError: LIMIT, INVALID
  template <class... Arguments>
  [[nodiscard]] CallStream stream(std::string_view method, const Arguments&... arguments) {
    const std::string text = detail::call_arguments(arguments...);
    return CallStream(std::make_unique<detail::PartsOperation>(
        activation_, "call", [&](std::uint64_t token, std::uint64_t* id) {
          return detail::start_call(activation_, callee_, method, text, token, id);
        }));
  }

  // Writes a notification with this turn, and gives its id. CallOptions are ignored.
  // Failure  Error(INVALID): the callee has the class of this agent, which lists no such method.
  //          HostError: LIMIT, INVALID, CONFLICT (inside a transaction())
  template <class... Arguments>
  std::string notify(std::string_view method, const Arguments&... arguments) {
    return notify_with(method, detail::call_arguments(arguments...));
  }

 private:
  std::string notify_with(std::string_view method, const std::string& arguments);

  detail::Activation& activation_;
  detail::Callee callee_;
};

namespace detail {

std::optional<AgentCaller> find_caller(const Activation& activation);

std::vector<Notification> list_notifications(const Activation& activation, std::string_view after);

}  // namespace detail

}  // namespace hearth
