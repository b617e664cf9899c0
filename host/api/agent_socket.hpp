#pragma once
// One WebSocket of the agents protocol: frames from the network become events of the runtime, and
// what the agent sends becomes frames.

#include "base/close_codes.hpp"
#include "net/web_socket.hpp"
#include "runtime/shard.hpp"

#include <memory>
#include <string_view>

namespace hearth::api {

// Lets the client behind `socket` in to an agent, and returns who listens to it from now on. Text
// frames become calls, writes of the state, or messages (protocol/client_frame.hpp); binary frames
// are messages always.
//
// Promises
//  P1 Answers    Each call is answered by exactly one last frame, with any number of chunks before
//                it. A write of the state is answered only if it is refused: "Connection is
//                readonly", or "State update rejected", with what is wrong with it if that is its
//                JSON. Both hold for all that JavaScript's JSON.parse takes: what Hearth has bounds
//                for (nesting, numbers past a double) is refused with an answer, and never reaches
//                the agent.
//  P2 Texts      An error tells the caller the text that the agent gave it.
//  P3 Twins      Sockets with the same client id have nothing to do with each other.
//
// Threads    The loop of `shard`, which is also the socket's.
// Lifetime   `shard` outlives the socket's on_close(). The runtime holds the socket until it has
//            forgotten the connection; the socket holds the listener, and the listener nothing that
//            is counted.
// Bounded    By the network's limits on a frame and on what waits to be sent: a client that reads
//            too slowly is closed there.
[[nodiscard]] std::shared_ptr<net::WebSocketListener> open_agent_socket(
    runtime::Shard& shard, const std::shared_ptr<net::WebSocket>& socket,
    const storage::AgentKey& key, std::string_view segment, runtime::ConnectRequest request);

// Tells a client that has just been accepted why it cannot stay. `code` decides whether it tries
// again.
[[nodiscard]] std::shared_ptr<net::WebSocketListener> refuse_socket(net::WebSocket& socket,
                                                                    CloseCode code,
                                                                    std::string_view reason);

}  // namespace hearth::api
