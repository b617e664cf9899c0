#pragma once
// hearth.operations/1: the host's side, and what a class says of its kinds of operations.

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

// The actor of what administrators resolve.
inline constexpr std::string_view kAdministrator = "administrator";

// What an agent's code may ask of its ledger. Records are JSON: see hearth/ext/operations.h.
//
// Threads, Failure  As AgentContext. Errors are those of durable::Operations; besides
//                   kInvalidArgument and kClosing as AgentContext::work_refusal().
// Durable           With the turn. What begin() says is to be run begins once that is durable.
class OperationsExtension {
 public:
  explicit OperationsExtension(AgentContext& agent) : agent_(agent) {}

  struct Begun {
    durable::OperationBegun operation;
    OperationId wait = 0;  // kRun: gives `token` its result
  };
  // Besides, kForbidden and kLimitExceeded as AgentCalls::submit(); kInvalidArgument: the class
  // does not list the kind, or with another effect.
  Result<Begun> begin(const durable::OperationRequest& request, std::uint64_t token);
  Result<durable::OperationState> settle(std::uint64_t operation, durable::OperationOutcome outcome,
                                         std::string_view body);
  Result<std::string> inspect(std::string_view id);
  Result<std::string> list(const durable::OperationFilter& filter);
  Result<void> resolve(std::string_view id, durable::OperationOutcome outcome,
                       std::string_view result, std::string_view note, std::string_view actor);
  // The same by the agent's own code, with an entry in the audit log. Besides, kInvalidArgument for
  // the actor kAdministrator; kLimitExceeded as AgentContext::audit(): then nothing was resolved.
  Result<void> resolve_and_record(std::string_view id, durable::OperationOutcome outcome,
                                  std::string_view result, std::string_view note,
                                  std::string_view actor);

 private:
  AgentContext& agent_;
};

// The agent is about to be told of an unknown operation: its clients that speak the protocol are
// told too.
//   {"type":"cf_agent_operation_unknown","operation":"...","kind":"charge","text":"..."}
void tell_clients_of_unknown(Clients& clients, const DueWork& work);
// The frames with what a client that has just come has missed and still holds: of turns
// (ManagedFibers::standing_turns()), and of operations (Operations::standing_unknown()).
[[nodiscard]] std::vector<std::string> missed_frames(DurableWork& work);

// What is wrong with the kinds of a class, as the end of a sentence that begins with the class;
// empty: nothing. `kinds` may be null: the class has none.
[[nodiscard]] std::string problem_with_operations(const hearth_operation_kinds_v1* kinds);
// By their names; none if there is a problem.
using OperationKinds = std::map<std::string, durable::Effect, std::less<>>;
[[nodiscard]] OperationKinds operation_kinds(const hearth_operation_kinds_v1* kinds);
[[nodiscard]] std::optional<durable::Effect> effect_in(const OperationKinds& kinds,
                                                       std::string_view kind);

[[nodiscard]] const hearth_operations_v1& operations_extension() noexcept;

}  // namespace hearth::extensions
