#pragma once
// hearth.state/1: the host's side.

#include "extensions/agent_context.hpp"

#include <hearth/ext/state.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::extensions {

// The state of an agent: one JSON text in its file, and a default that is not in the file.
//
// Promises  The disk comes first: memory and watchers never show a state that was not written to
//           the file. A rollback of the agent's own restores the state together with the rows.
// Threads   As AgentContext.
// Failure   StorageError, from all but set_default() and undone().
class StateExtension final : public AgentExtension {
 public:
  explicit StateExtension(AgentContext& agent) : agent_(agent) {}

  // The state, if there is one. Valid until the next change.
  std::optional<std::string_view> get();
  // `on_behalf`: see hearth/ext/state.h. kForbidden: that client may not write. kLimitExceeded: the
  // state is too large. kInvalidArgument: it is not JSON.
  Result<void> set(ConnectionId on_behalf, std::string_view json);
  Result<void> set_default(std::string_view json);
  // Removes the state, else as set(). Watchers get the default, or an empty text.
  Result<void> unset(ConnectionId on_behalf);

  // ---- for the host ----
  // As set(), for a client (0: the agent), after the checks.
  void store(ConnectionId source, std::string_view json);
  // All states that were stored after the write of this number were rolled back.
  void undone(std::uint64_t last_write);

 private:
  // Whether the agent's own code may change the state now, for this client or for itself.
  Result<void> may_change(ConnectionId on_behalf);

  AgentContext& agent_;
  bool loaded_ = false;
  std::optional<std::string> stored_;
  std::optional<std::string> default_;  // used while no state is stored
};

extern const hearth_state_v1 kStateTable;

}  // namespace hearth::extensions
