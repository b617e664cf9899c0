#include "extensions/agent_context.hpp"

namespace hearth::extensions {

OpenSpan OutwardPorts::open_span(std::string_view cause, SpanKind kind) const {
  if (!record_spans()) return {};
  const Span above = read_span(cause);
  if (!above.is_recorded()) return {};
  return {spans->log(), spans->below(above), kind};
}

EgressPtr AgentContext::egress() const {
  return {EgressPtr(), &settings().egress};  // settings live as long as the agent
}

std::optional<Error> AgentContext::work_refusal() const {
  switch (phase()) {
    case AgentPhase::kClosing: return Error{Errc::kClosing, "the agent is being evicted"};
    case AgentPhase::kMigrating:
      return Error{Errc::kInvalidArgument, "not while the agent's data are migrated"};
    case AgentPhase::kStarting:
    case AgentPhase::kRunning: break;
  }
  // A commit would end the plugin's transaction, and a rollback would undo writes that are in
  // memory already.
  if (extensions_.in_transaction()) {
    return Error{Errc::kInvalidArgument, "not while a transaction of the agent's own is open"};
  }
  return std::nullopt;
}

}  // namespace hearth::extensions
