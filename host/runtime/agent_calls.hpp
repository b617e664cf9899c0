#pragma once
// The calls of a live agent: what its code, its clients and its turns do with them.

#include "base/logger.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/call_order.hpp"
#include "extensions/wait.hpp"
#include "runtime/agent_clients.hpp"
#include "runtime/agent_operations.hpp"
#include "runtime/calls_in_progress.hpp"
#include "runtime/code_on_stack.hpp"
#include "runtime/outbox.hpp"
#include "runtime/shard_metrics.hpp"

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::runtime {

struct ShardServices;

// The result of an internal event. The slot acts on it once no plugin code is on the stack.
struct Completion {
  EventKind kind{};
  ConnectionId connection = 0;
  SteadyTime began;  // if its kind is_timed
  std::optional<Error> error;
  CallId call = 0;
  extensions::Span span = {};
};

[[nodiscard]] Error storage_error_for_clients();

// Promises
//  P1 Answer once  Each sink that an event brings is finished exactly once, or dropped with its
//                  caller.
//  P2 Once         The answer to a call with a key is stored in the commit of its turn, and a later
//                  call with the same key and contents gets it.
//
// P2: A call that may have had effects without an answer is not run again, unless its method is
// idempotent. Answers of read-only methods are not stored: such a call runs again.
//
// Threads    The shard's.
// Lifetime   The parts outlive it. cut_off_all() comes before destruction if calls are in progress.
class AgentCalls final : public CallsInProgress, public extensions::CallPort {
 public:
  struct Parts {
    extensions::AgentContext& agent;
    const AgentClass& agent_class;
    const ShardServices& services;
    AgentClients& clients;
    Outbox& outbox;
    AgentOperations& operations;
    const CodeOnStack& code;
    ClassMetrics& figures;
    // The answer of a call is on its way; the call ends when this returns.
    std::function<void(const CallInProgress& call, const Result<std::string_view>& outcome)> ended;
    std::function<void(CallId call)> timed_out;
  };
  explicit AgentCalls(const Parts& parts);

  // ---- events of the slot ----
  // The call is valid until its end.
  std::pair<CallId, CallInProgress&> begin(EventKind kind, const extensions::Span& span);
  // An event from outside begins at `now`, under `span`: takes its freight, and completes its
  // content.
  void begin(Event& incoming, const extensions::Span& span, SteadyTime now);
  // Answers a call that came with a key from the stored answer. False: the call may run. The turn
  // ends with a call that was answered.
  bool answer_again(Event& incoming);
  // The code has taken an event, whose call may be over by now, or has refused it.
  void entered(const AgentEvent& event, const Result<void>& accepted);
  // `accepted`, with the text that the code has given for its error.
  [[nodiscard]] Result<void> explained(const Result<void>& accepted);
  // The instance exists: its code may submit operations.
  void instance_is_made() { has_instance_ = true; }

  // ---- what goes out ----
  void finish(CallId id, CallInProgress& call, const Result<std::string_view>& outcome);
  // The recorded span of an event of this kind ends. `method` is empty where there is none, and
  // `error` if the event has not failed.
  void end_span(extensions::OpenSpan& span, EventKind kind, std::string_view method,
                std::string_view error) const;
  // The client leaves, and can still be found: answers to it are dropped.
  void forget_connection(ConnectionId id);
  // The instance ends: answers every call with `why`. With `again`, those whose caller still waits
  // and that may be repeated are not answered but returned.
  [[nodiscard]] std::vector<OwnedEvent> cut_off_all(bool again, const Error& why);
  // Those in progress that neither the state of the agent nor the rows of its fibers say.
  void add_waits(std::vector<extensions::Wait>& to);
  // Internal completions since the last call, in order.
  std::vector<Completion> take_completions() { return std::exchange(completions_, {}); }
  [[nodiscard]] bool has_completions() const { return !completions_.empty(); }

  // Like Logger::write_limited(), with the fields that agent_line() adds for this event. `id` 0:
  // for the span of the code that runs.
  void write_line(LogLevel level, std::string_view event,
                  std::initializer_list<std::string_view> kind, CallId id,
                  std::initializer_list<LogField> own) const;

  // ---- extensions::CallPort ----
  Result<void> complete(CallId id, const Result<std::string_view>& outcome) override;
  Result<void> emit(CallId id, std::string_view part) override;
  Result<OperationId> submit(std::uint32_t operation, std::string_view request,
                             std::uint64_t token) override;
  Result<OperationId> submit(std::uint32_t operation,
                             std::unique_ptr<extensions::RemoteOperation> remote,
                             std::uint64_t token) override;
  Result<void> cancel(OperationId operation) override {
    return parts_.operations.cancel(operation);
  }
  Result<void> credit(OperationId operation, std::uint64_t bytes) override {
    return parts_.operations.credit(operation, bytes);
  }
  extensions::CallOrigin origin(CallId id) override;
  [[nodiscard]] std::string trace() const override { return parts_.code.span().text(); }
  [[nodiscard]] extensions::Span span() const override { return parts_.code.span(); }
  [[nodiscard]] extensions::LineOrigin current() const override;
  [[nodiscard]] bool left_readonly(ConnectionId client) const override;
  Result<extensions::RequestView> request(CallId id) override;
  void body_came(CallId id) override;

 private:
  [[nodiscard]] bool can_answer(const CallInProgress& call) const;
  [[nodiscard]] extensions::CallOrder call_order() const;
  [[nodiscard]] Result<void> may_submit() const;
  [[nodiscard]] SubmittedOperation submitted(std::uint32_t operation, std::uint64_t token) const;
  void arm(CallId id, CallInProgress& call, std::chrono::milliseconds timeout);
  void end_span(CallInProgress& call, std::string_view error) const;

  const Parts parts_;
  bool has_instance_ = false;
  std::string refusal_text_;  // of create or of a synchronous event, for the error that it returns
  std::vector<Completion> completions_;
  // Read-only clients for which code has run, and may go on behind their end. Emptied when a client
  // leaves and nothing is in progress.
  static constexpr std::size_t kMostReadonly = 4096;
  std::set<ConnectionId> readonly_;
};

}  // namespace hearth::runtime
