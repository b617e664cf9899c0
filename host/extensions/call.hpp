#pragma once
// hearth.call/1: the host's side.

#include "durable/notices.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/agent_router.hpp"

#include <hearth/ext/call.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::extensions {

// A request of an agent's code. The views are borrowed for the call; nothing is checked yet.
struct CallRequest {
  std::uint32_t flags = 0;  // HEARTH_CALL_*
  std::string_view agent_class{};
  std::string_view name{};
  std::string_view method{};
  std::string_view arguments{};  // empty: []
  CallId call = 0;
  std::uint64_t timeout_ms = 0;
  std::uint64_t window = 0;
};

// The calls of one agent to others.
//
// Threads, Failure  As AgentContext. Errors are those of hearth/ext/call.h.
// Durable           The writes of notify() and remove() belong to the running turn.
class CallExtension {
 public:
  explicit CallExtension(AgentContext& agent) : agent_(agent) {}

  Result<OperationId> start(const CallRequest& request, std::uint64_t token);
  // The id of the notification.
  Result<std::string> notify(const CallRequest& request);
  Result<std::string> caller(CallId call);
  Result<void> remove(std::string_view id);

 private:
  // The event that the request is made for, with the trace for what follows.
  [[nodiscard]] CallOrigin event_of(const CallRequest& request);
  [[nodiscard]] Result<storage::AgentKey> callee(const CallRequest& request,
                                                 const CallOrigin& event);
  [[nodiscard]] AgentCall call_to(storage::AgentKey callee, const CallRequest& request,
                                  const CallOrigin& event);

  AgentContext& agent_;
};

// The call that delivers a notification of `caller`, or an alarm of it. An alarm's call comes from
// no agent.
[[nodiscard]] AgentCall call_of(const storage::AgentKey& caller, durable::NoticeDelivery delivery);
// The outcome of that call. Delivered: the callee's code has answered, with anything except BUSY.
[[nodiscard]] durable::NoticeOutcome notice_outcome(const Result<std::string>& outcome,
                                                    std::uint32_t flags);

extern const hearth_call_v1 kCallTable;

}  // namespace hearth::extensions
