#pragma once
// The limit on agents that the clients of one address may make (net/http.hpp, ClientAddress).

#include "api/sub_agent_gate.hpp"
#include "net/http.hpp"
#include "runtime/runtime.hpp"
#include "storage/agent_key.hpp"

#include <string_view>
#include <vector>

namespace hearth::api {

// The noun for too_many_response() and too_many_reason().
inline constexpr std::string_view kNewAgents = "new agents";

// If the agent does not exist, counts it for the client's address. True: the address has made too
// many. False if the directory of agents cannot be read: then the runtime reports that. `address`:
// null if no address is limited.
//   Threads  The loop of `shard`.
[[nodiscard]] bool makes_too_many(runtime::Shard& shard, const net::ClientAddress* address,
                                  const storage::AgentKey& key);
// The same for an agent and those on the way to it. The agents that do not exist are counted before
// the first one is asked, because an agent that is asked exists from then on.
[[nodiscard]] bool makes_too_many(runtime::Shard& shard, const net::ClientAddress* address,
                                  const std::vector<Gate>& way, const storage::AgentKey& key);

}  // namespace hearth::api
