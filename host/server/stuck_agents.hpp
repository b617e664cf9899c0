#pragma once
// The agents whose wait needs a person, or is older than it should be.

#include "api/admin_requests.hpp"
#include "json/json.hpp"
#include "runtime/runtime.hpp"
#include "server/agent_waits.hpp"
#include "storage/directory.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace hearth::server {

inline constexpr std::size_t kMostStuckLooks = 200;
inline constexpr std::string_view kEachClass = "*";

// Without a class ("") it looks only at agents whose shard or wake index hints at it
// (ShardAdmin::waiting()). So it does not find chats that wait for a client, and work that waits
// for code behind other work that is due earlier. With a class (its own name) it looks at each
// agent of the class, with kEachClass at each agent. In the order of class and name:
// {"agents":[why_json()...],"skipped":[{"class","agent","reason"}...],"next":"..." or null}
//
// Bounded    A page ends after `limit` agents, after kMostStuckLooks looks, or at `until`.
// Threads    One that may wait.
// Failure    kInvalidArgument: the cursor. kUnavailable: no shard answers.
[[nodiscard]] Result<Json> stuck_page(runtime::Runtime& runtime, storage::Directory& directory,
                                      const AgentWaits& waits, const api::AgentPageRequest& request,
                                      const std::string& agent_class,
                                      std::chrono::steady_clock::time_point until);

}  // namespace hearth::server
