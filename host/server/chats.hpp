#pragma once
// The chat of an agent for administrators. For visits (runtime/agent_visit.hpp): an agent is a chat
// if its database has the table `chat_turns` of the library Hearth::chat, whose tables are read
// here without the library (plugin-api/chat/README.md, "Tables"), also of a cold agent.

#include "base/error.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/wait.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace hearth::server {

// {"state","turn","since_ms","waiting","messages","last_at_ms"}; null: it is no chat. `state`:
// "running", "stopping", "waiting" for its turn to begin, "asks" (an answer of a client is
// missing), "idle".
[[nodiscard]] Result<std::string> chat_summary(extensions::AgentContext& agent);

// Turns behind the turn `after` (empty: from the first), the newest first, as records of
// server/work_records.hpp; at most 100. None: it is no chat.
[[nodiscard]] Result<std::string> list_turns(extensions::AgentContext& agent,
                                             std::string_view after);
// One of them, with `fiber`: the record of the fiber that runs it, or null. kNotFound.
[[nodiscard]] Result<std::string> find_turn(extensions::AgentContext& agent, std::string_view id);
// Cancels the fiber of the turn. The chat's on_fiber_complete() then ends the turn. kNotFound: no
// fiber runs the turn.
[[nodiscard]] Result<void> cancel_turn(extensions::AgentContext& agent, std::string_view id,
                                       std::string_view why);

// The calls of tools for which a chat without a turn waits: an approval, or the answer of a client.
[[nodiscard]] std::vector<extensions::Wait> chat_waits(extensions::AgentContext& agent);

}  // namespace hearth::server
