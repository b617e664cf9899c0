#pragma once
// The agents that an agent may call: hearth.call/1.

#include "base/error.hpp"
#include "storage/agent_key.hpp"

#include <cstdint>
#include <string_view>

namespace hearth::extensions {

class AgentRouter;

// The callee as a request names it. The views are borrowed; nothing is checked yet.
struct CalleeName {
  std::uint32_t flags = 0;  // HEARTH_CALL_BELOW, HEARTH_CALL_ABOVE
  std::string_view agent_class{};
  std::string_view name{};
};

// The caller.
struct CallingAgent {
  const storage::AgentKey& key;
  // The agent whose call the caller handles now; null: it is unknown.
  const storage::AgentKey* asked_by = nullptr;
  const AgentRouter* router = nullptr;  // null: this host has no other agents
};

// The agent that `named` means.
//
// A name with slashes is a path to a sub-agent. A caller may have got the path from a client, so
// the path must not bypass the checks of a parent agent or of `auth`.
//
// Promises
//  P1 Own tree   A path leads to an agent below the caller's own root, or to `asked_by`; else the
//                result is kForbidden.
//  P2 One place  All spellings of a path give one key, in which each class has its name in the
//                code.
//
// P2: kNotFound: a class on the path does not exist. kUnavailable: it is not loaded.
// kInvalidArgument: an empty step, or a name that is not encoded as AgentKey encodes it.
//
// A name without slashes is the name of a root, and its class is not changed.
[[nodiscard]] Result<storage::AgentKey> callee_of(const CallingAgent& caller,
                                                  const CalleeName& named);

// Whether a call fails if this agent does not exist. A call makes only roots, the caller's own
// direct sub-agents and the caller itself.
[[nodiscard]] bool must_exist_already(const storage::AgentKey& caller,
                                      const storage::AgentKey& callee);

}  // namespace hearth::extensions
