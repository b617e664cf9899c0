#pragma once
// Delivers the durable work of a live agent: what begins now, as an event or a notification, and
// what becomes of it.

#include "extensions/agent_context.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/trace.hpp"
#include "runtime/agent_calls.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace hearth::runtime {

class AgentStore;

// Threads   The agent's shard.
// Lifetime  The parts outlive it.
// Failure   When storage fails, the agent breaks (AgentStore), and nothing begins.
class WorkDelivery {
 public:
  struct Parts {
    extensions::AgentContext& agent;
    ShardServices& services;
    AgentStore& store;
    AgentClients& clients;
    AgentOperations& operations;
    AgentCalls& calls;
    CodeOnStack& code;
  };
  explicit WorkDelivery(const Parts& parts);

  // An event of due work. Its call has begun.
  struct Begun {
    // The event has its own copies: the call may be over, and gone, while the instance still reads
    // them. Valid as long as this is, and stays where it is.
    [[nodiscard]] AgentEvent event() const;

    EventKind kind{};
    CallId call = 0;
    std::string name;
    std::string body;
    std::chrono::milliseconds timeout{};
  };
  struct Next {
    bool has_begun = false;
    std::optional<Begun> event{};  // to be delivered now; else a notification is on its way
  };
  // Claims one thing that is due, and commits that. A recovery begins only with `may_recover`, a
  // notification to another agent only with `may_notify`. The agent's own work and notifications
  // take turns.
  [[nodiscard]] Next begin(bool may_recover, bool may_notify);

  // The event of a call has ended; nothing happens if it delivers no work.
  void ended(const CallInProgress& call, const Result<std::string_view>& outcome);
  void notice_ended(const OperationNews& news);
  // The agent has started: reports the fibers that an earlier instance left.
  void report_left_over();
  // The fiber goes on in this instance; the hook that has continued it has no time limit.
  void continued(std::string_view fiber);
  // The span of the run of this fiber; none: it is not recorded.
  [[nodiscard]] extensions::Span span_of_run(durable::FiberHandle fiber);

 private:
  [[nodiscard]] std::optional<Begun> begin_event(bool may_recover);
  bool send_notice(bool may_notify);
  [[nodiscard]] extensions::Span span_of_left_over(std::string_view fiber);

  const Parts parts_;
  extensions::DurableWork& work_;  // of the store
  bool notice_comes_first_ = false;
};

}  // namespace hearth::runtime
