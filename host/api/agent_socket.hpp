#pragma once
// One WebSocket of the agents protocol: frames from the network become events of the runtime, and
// what the agent sends becomes frames.

#include "base/close_codes.hpp"
#include "net/web_socket.hpp"
#include "runtime/shard.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

namespace hearth::api {

// Connects the client behind `socket` to an agent, and returns the listener of the socket. Text
// frames become calls, writes of the state, or messages (protocol/client_frame.hpp); binary frames
// are always messages.
//
// Promises
//  P1 Answers    Each call is answered by exactly one last frame, with any number of chunks before
//                it; a write of the state is answered only if it is refused.
//  P2 Texts      An error tells the caller the text that the agent gave.
//  P3 Twins      Sockets with the same client id are independent of each other.
//
// P1: a write is refused with "Connection is readonly", or with "State update rejected" and the
// fault of its JSON if it has one. P1 holds for each frame that JSON.parse of JavaScript takes. A
// frame beyond the bounds of Hearth (nesting, numbers past a double) is refused with an answer, and
// never reaches the agent.
//
// Threads    The loop of `shard`, which is also the socket's.
// Lifetime   `shard` outlives the socket's on_close(). The runtime holds the socket until it has
//            forgotten the connection; the socket holds the listener. The listener holds no counted
//            reference.
// Bounded    By the network's limits on a frame and on the bytes that wait to be sent: the network
//            closes a client that reads too slowly.
[[nodiscard]] std::shared_ptr<net::WebSocketListener> open_agent_socket(
    runtime::Shard& shard, const std::shared_ptr<net::WebSocket>& socket,
    const storage::AgentKey& key, std::string_view segment, runtime::ConnectRequest request);

// Closes a socket that was just accepted. `code` decides whether the client tries again.
[[nodiscard]] std::shared_ptr<net::WebSocketListener> refuse_socket(net::WebSocket& socket,
                                                                    CloseCode code,
                                                                    std::string_view reason);

// Closes the socket with 4401 at `ends_at` (Unix time in seconds) if it is still open then. Returns
// a listener that passes everything on to `listener`. `listener` may be null: then so is the
// result, and nothing is closed.
//
// Threads    The loop, which is the socket's.
// Lifetime   The loop outlives the listener that is returned.
[[nodiscard]] std::shared_ptr<net::WebSocketListener> close_when_expired(
    std::shared_ptr<net::WebSocketListener> listener, net::WebSocket& socket,
    runtime::ShardLoop& loop, std::int64_t ends_at);

}  // namespace hearth::api
