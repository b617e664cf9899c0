#pragma once
// A WebSocket that is closed when its client's proof of identity ends.

#include "net/web_socket.hpp"
#include "runtime/shard_loop.hpp"

#include <cstdint>
#include <memory>

namespace hearth::api {

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
