#pragma once
// What a client must pass on its way to an agent: the agents above a sub-agent, and the limit on
// agents that the clients of one address may make (net/http.hpp, ClientAddress).

#include "base/close_codes.hpp"
#include "net/http.hpp"
#include "net/web_socket.hpp"
#include "runtime/shard.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::api {

// An agent that is asked, and the agent right below it that the client wants to pass to.
struct Gate {
  storage::AgentKey above;
  std::string segment;  // the class of `above`
  storage::AgentKey child;
};

// The refusal of a client.
struct GateRefusal {
  net::HttpResponse answer;  // to a request
  CloseCode close_code =
      kCloseInternalError;  // of a WebSocket: 4000 and the status (clients stop),
                            // 1013 if a retry may help, else 1011
};

// What the agents see of the client's request.
struct GateRequest {
  std::string target;
  runtime::Headers headers;
  std::string claims;  // as runtime::RequestHead
};

// Asks the agents in the order given, until one refuses. Then `decided` gets the refusal; it gets
// nothing if no agent refuses. `request`: the client's; all agents see it.
//
// Threads   The loop of the shard, which all of the agents share. `decided` runs on it too, later.
//           It is not called if the server stops meanwhile.
// Lifetime  Shard and loop outlive it.
void ask_gates(runtime::Shard& shard, runtime::ShardLoop& loop, std::vector<Gate> gates,
               GateRequest request, std::function<void(std::optional<GateRefusal>)> decided);

// A WebSocket for a sub-agent. It is not read until the agents above have let it through.
// Afterwards the socket behaves like a socket of open_agent_socket(). `is_withdrawn`: the rules of
// access have changed since the client was checked (ClassRegistry::access_generation()). Then the
// socket is closed with 1012, like the sockets that were connected at the change.
//
// Threads, Lifetime  As open_agent_socket().
[[nodiscard]] std::shared_ptr<net::WebSocketListener> open_gated_socket(
    runtime::Shard& shard, runtime::ShardLoop& loop, const std::shared_ptr<net::WebSocket>& socket,
    std::vector<Gate> gates, std::string segment, runtime::ConnectRequest request,
    std::function<bool()> is_withdrawn);

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
