#pragma once
// Whether the agents above a sub-agent let a client through to it.

#include "base/close_codes.hpp"
#include "net/http.hpp"
#include "net/web_socket.hpp"
#include "runtime/shard.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::api {

// An agent that is asked, and about whom: right below it.
struct Gate {
  storage::AgentKey above;
  std::string segment;  // of its class
  storage::AgentKey child;
};

// A client is not let through.
struct GateRefusal {
  net::HttpResponse answer;  // to a request
  CloseCode close_code =
      kCloseInternalError;  // of a WebSocket: 4000 and the status (clients stop),
                            // 1013 for what may pass, else 1011
};

// What the agents see of the client's request.
struct GateRequest {
  std::string target;
  runtime::Headers headers;
  std::string claims;  // as runtime::RequestHead
};

// Asks one agent after the other, in the order given, up to the first that refuses. `decided` has
// nothing if none does. `request`: the client's, which all of them see.
//
// Threads   The loop of the shard, which all of them share; `decided` on it too, later. Not called
//           if the server stops meanwhile.
// Lifetime  Shard and loop outlive it.
void ask_gates(runtime::Shard& shard, runtime::ShardLoop& loop, std::vector<Gate> gates,
               GateRequest request, std::function<void(std::optional<GateRefusal>)> decided);

// A WebSocket for an agent below others: it is not read from until they have let it through, and
// then it is as one of open_agent_socket(). `is_withdrawn`: the rules of access have changed since
// the client was judged (ClassRegistry::access_generation()). Then the socket is closed with 1012
// instead, as the sockets that were connected at that time are.
//
// Threads, Lifetime  As open_agent_socket().
[[nodiscard]] std::shared_ptr<net::WebSocketListener> open_gated_socket(
    runtime::Shard& shard, runtime::ShardLoop& loop, const std::shared_ptr<net::WebSocket>& socket,
    std::vector<Gate> gates, std::string segment, runtime::ConnectRequest request,
    std::function<bool()> is_withdrawn);

}  // namespace hearth::api
