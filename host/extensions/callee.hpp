#pragma once
// Whom an agent may call: hearth.call/1.

#include "base/error.hpp"
#include "storage/agent_key.hpp"

#include <cstdint>
#include <string_view>

namespace hearth::extensions {

class AgentRouter;

// As a request has it: the views are borrowed, and nothing in it was checked.
struct CalleeName {
  std::uint32_t flags = 0;  // HEARTH_CALL_BELOW, HEARTH_CALL_ABOVE
  std::string_view agent_class{};
  std::string_view name{};
};

// Who asks.
struct CallingAgent {
  const storage::AgentKey& key;
  // The agent that has made the call which it handles; null: none is known.
  const storage::AgentKey* asked_by = nullptr;
  const AgentRouter* router = nullptr;  // null: this host has no other agents
};

// The agent that is named.
//
// A name with slashes is the way to an agent below others. Code may take names from clients, so a
// way must not lead past what a parent, or `auth`, lets in.
//
// Promises
//  P1 Own tree   A way leads to an agent below the caller's own root, or to `asked_by`; else
//                kForbidden.
//  P2 One place  All spellings of a way give one key, in which each class has its own name.
//                kNotFound: there is no such class on the way. kUnavailable: it is not loaded.
//                kInvalidArgument: an empty step, or a name that is not encoded as AgentKey has it.
// A name without slashes is that of a root; its class stays as it is named.
[[nodiscard]] Result<storage::AgentKey> callee_of(const CallingAgent& caller,
                                                  const CalleeName& named);

// Whether a call finds this agent or fails: of those below others a caller makes only its own.
[[nodiscard]] bool must_exist_already(const storage::AgentKey& caller,
                                      const storage::AgentKey& callee);

}  // namespace hearth::extensions
