#pragma once
// hearth.fibers/1: the host's side.

#include "durable/fibers.hpp"
#include "extensions/agent_context.hpp"

#include <hearth/ext/fibers.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::extensions {

// The agent's code changes its fibers through this class. Records are JSON, as hearth/ext/fibers.h
// has them.
//
// Threads, Failure  As AgentContext. Errors are those of durable::Fibers; also
//                   kInvalidArgument and kClosing as AgentContext::work_refusal().
// Durable           start(), resume() and stash() commit before they return; the others commit with
//                   the turn.
class FiberExtension {
 public:
  explicit FiberExtension(AgentContext& agent) : agent_(agent) {}

  Result<durable::Fibers::Started> start(const durable::FiberRequest& request);
  Result<std::uint64_t> resume(std::string_view id);
  Result<void> stash(std::uint64_t fiber, std::string_view json);
  // Gives the record after the change. `is_final`: no retry can end better than this kError.
  Result<std::string> settle(std::uint64_t fiber, durable::FiberStatus status,
                             std::string_view body, bool is_final = false);
  // With an outcome, as Fibers::settle().
  Result<std::string> settle(std::uint64_t fiber, std::string_view outcome_json);
  // The work cannot go on in this version of the code. Gives the record after the change.
  Result<std::string> wait_for_code(std::uint64_t fiber, std::string_view what);
  // Gives the record after the change.
  Result<std::string> cancel(std::string_view id, std::string_view key, std::string_view reason);
  Result<void> resolve(std::string_view id, std::string_view outcome,
                       durable::Decides who = durable::Decides::kAgent);

 private:
  Result<std::string> settled(Result<durable::FiberChange> change, std::string_view why);
  void report_inner(const durable::FiberChange& outer, std::string_view reason);

  AgentContext& agent_;
};

// Tells clients that speak the protocol the new states of turns (hearth/ext/fibers.h). The frames
// leave with the writes of the turn.
void tell_clients_of_turns(Clients& clients, DurableWork& work);
// The frames about turns for a client that has just connected (FiberTurns::standing()).
[[nodiscard]] std::vector<std::string> frames_of_standing_turns(DurableWork& work);

extern const hearth_fibers_v1 kFibersTable;

}  // namespace hearth::extensions
