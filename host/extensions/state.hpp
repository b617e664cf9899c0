#pragma once
// hearth.state/1 and /2: the host's side.

#include "extensions/agent_context.hpp"

#include <hearth/ext/state_2.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::extensions {

// The state of an agent: one JSON text, which is in its file, and a default that is not.
//
// Promises  The disk first: memory and watchers never show a state that the file has not taken. A
//           rollback of the agent's own takes the state back with the rows.
// Threads   As AgentContext.  Failure  StorageError, from all but set_default() and undone().
class StateExtension final : public AgentExtension {
 public:
  explicit StateExtension(AgentContext& agent) : agent_(agent) {}

  // The state, if there is one. Valid until the next change.
  std::optional<std::string_view> get();
  // `on_behalf`: see hearth/ext/state.h. kForbidden: that client may not write. kLimitExceeded,
  // kInvalidArgument: it is too large, or no JSON.
  Result<void> set(ConnectionId on_behalf, std::string_view json);
  Result<void> set_default(std::string_view json);
  // As set(), of none. Watchers get the default, or an empty text.
  Result<void> unset(ConnectionId on_behalf);

  // ---- for the host ----
  // As set(), by a client (0: the agent) and checked.
  void store(ConnectionId source, std::string_view json);
  // All that was stored after the write of this number was rolled back.
  void undone(std::uint64_t last_write);

 private:
  // Whether the agent's own code may change it now, for this client or for itself.
  Result<void> may_change(ConnectionId on_behalf);

  AgentContext& agent_;
  bool loaded_ = false;
  std::optional<std::string> stored_;
  std::optional<std::string> default_;  // shown while none is stored
};

[[nodiscard]] const hearth_state_v1& state_extension() noexcept;
[[nodiscard]] const hearth_state_v2& state_2_extension() noexcept;

}  // namespace hearth::extensions
