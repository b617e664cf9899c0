#pragma once
// hearth.operations/1: the host's side, and the operations that a class lists.

#include "durable/operations.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/durable_work.hpp"

#include <hearth/ext/operations.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::extensions {

// The actor of operations that an administrator resolves.
inline constexpr std::string_view kAdministrator = "administrator";

// The agent's code changes its ledger through this class. Records are JSON: see
// hearth/ext/operations.h.
//
// Threads, Failure  As AgentContext. Errors are those of durable::Operations; also kInvalidArgument
//                   and kClosing as AgentContext::work_refusal().
// Durable           With the turn. An operation that begin() allows to run begins when that is
//                   durable.
class OperationsExtension {
 public:
  explicit OperationsExtension(AgentContext& agent) : agent_(agent) {}

  struct Begun {
    durable::OperationBegun operation;
    OperationId wait = 0;  // for kRun: the operation that gives `token` its result
  };
  // Also kForbidden and kLimitExceeded as CallPort::submit(); kInvalidArgument: the class does
  // not list the kind, or lists it with another effect.
  Result<Begun> begin(const durable::OperationRequest& request, std::uint64_t token);
  Result<durable::OperationState> settle(std::uint64_t operation, durable::OperationOutcome outcome,
                                         std::string_view body);
  Result<void> resolve(std::string_view id, durable::OperationOutcome outcome,
                       std::string_view result, std::string_view note, std::string_view actor);
  // As resolve(), by the agent's own code, with an entry in the audit log. Also kInvalidArgument
  // for the actor kAdministrator; kLimitExceeded as AgentContext::audit(): then the operation is
  // not resolved.
  Result<void> resolve_and_record(std::string_view id, durable::OperationOutcome outcome,
                                  std::string_view result, std::string_view note,
                                  std::string_view actor);

 private:
  AgentContext& agent_;
};

// The agent is about to be told of an unknown operation. Tells its clients that speak the protocol:
//   {"type":"cf_agent_operation_unknown","operation":"...","kind":"charge","text":"..."}
void tell_clients_of_unknown(Clients& clients, const DueWork& work);
// The frames for a client that has just connected: about turns (FiberTurns::standing())
// and about operations (UnknownOperations::standing()). They have the news that still hold.
[[nodiscard]] std::vector<std::string> missed_frames(DurableWork& work);

// The fault of a class's kinds, as the end of a sentence that begins with the class; empty: there
// is no fault. `kinds` may be null: the class has none.
[[nodiscard]] std::string problem_with_operations(const hearth_operation_kinds_v1* kinds);
// By their names; empty if there is a fault.
using OperationKinds = std::map<std::string, durable::Effect, std::less<>>;
[[nodiscard]] OperationKinds operation_kinds(const hearth_operation_kinds_v1* kinds);
[[nodiscard]] std::optional<durable::Effect> effect_in(const OperationKinds& kinds,
                                                       std::string_view kind);

extern const hearth_operations_v1 kOperationsTable;

}  // namespace hearth::extensions
