#pragma once
// How many agents the clients of one address may make (net/http.hpp, ClientAddress).

#include "api/sub_agent_gate.hpp"
#include "net/http.hpp"
#include "runtime/runtime.hpp"
#include "storage/agent_key.hpp"

#include <string_view>
#include <vector>

namespace hearth::api {

// What too_many_response() and too_many_reason() name.
inline constexpr std::string_view kNewAgents = "new agents";

// Whether the agent would be made by a client whose address has made too many. Where nobody can
// tell, the agent itself finds out. `address`: null if none is limited.
//   Threads  The loop of `shard`.
[[nodiscard]] bool makes_too_many(runtime::Shard& shard, const net::ClientAddress* address,
                                  const storage::AgentKey& key);
// The same for a whole way. Each agent of it that does not exist counts before any is asked: an
// agent that is asked exists from then on.
[[nodiscard]] bool makes_too_many(runtime::Shard& shard, const net::ClientAddress* address,
                                  const std::vector<Gate>& way);

}  // namespace hearth::api
