#pragma once
// The plugin's code of a live agent: its instance, and the one way into it.

#include "base/error.hpp"
#include "extensions/trace.hpp"
#include "runtime/agent_class.hpp"
#include "runtime/calls_in_progress.hpp"
#include "runtime/code_on_stack.hpp"
#include "runtime/loan.hpp"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace hearth::runtime {

struct OperationNews;

// Promises
//  P1 One at a time  The instance is never entered while it is on the stack, nor while another
//                    thread has its database.
//  P2 Marked         The instance knows for which durable work it runs, so that a record of a crash
//                    names that work.
//
// The caller ends the turn of an event, a result or a cancellation (LiveAgent).
//
// Threads    The agent's shard.
// Lifetime   The parts outlive it. destroy() comes before destruction.
class AgentCode {
 public:
  struct Parts {
    std::shared_ptr<const AgentClass> agent_class;  // its code stays mapped
    extensions::SpanSource& spans;
    const CallsInProgress& calls;
    const Loan& loan;
  };
  explicit AgentCode(Parts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] const AgentClass& agent_class() const { return *parts_.agent_class; }
  [[nodiscard]] const std::shared_ptr<const AgentClass>& shared_class() const {
    return parts_.agent_class;
  }

  // Makes the instance, under this span.
  Result<void> make(extensions::AgentContext& host, std::string_view name, std::string_view options,
                    const extensions::Span& span);
  void destroy();
  [[nodiscard]] bool is_made() const { return instance_ != nullptr; }

  // Each is one entry. `span`: for an event without a call.
  Result<void> handle(const AgentEvent& event, const extensions::Span& span = {});
  void cancel(CallId id, const extensions::Span& span, std::string_view method);
  void hear(const OperationNews& news);
  void hear_post(std::uint64_t token);

  // The code that runs says for which work. From now on an entry that names none works for none.
  void works_for(WorkMark work);
  // The work that the event of this call delivers: this agent's own, or another agent's
  // notification.
  [[nodiscard]] WorkMark work_of(CallId call) const;

  [[nodiscard]] CodeOnStack& on_stack() { return on_stack_; }
  [[nodiscard]] const CodeOnStack& on_stack() const { return on_stack_; }

 private:
  // An empty `span`: the first of a trace.
  [[nodiscard]] CodeOnStack::Entry enter(CallId call = 0, const extensions::Span& span = {},
                                         std::string_view method = {});
  void mark(std::optional<WorkMark> work);

  const Parts parts_;
  CodeOnStack on_stack_;
  std::unique_ptr<AgentInstance> instance_;
};

}  // namespace hearth::runtime
