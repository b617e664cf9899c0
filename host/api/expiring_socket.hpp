#pragma once
// A WebSocket whose client's proof of identity ends at some moment.

#include "net/web_socket.hpp"
#include "runtime/shard_loop.hpp"

#include <cstdint>
#include <memory>

namespace hearth::api {

// Closes the socket with 4401 at `ends_at` (Unix time in seconds), unless it is gone before. All
// that comes from it goes to `listener`, which may be null: then there is nobody to listen.
//
// Threads    The loop, which is the socket's.
// Lifetime   The loop outlives the listener that is returned.
[[nodiscard]] std::shared_ptr<net::WebSocketListener> close_when_expired(
    std::shared_ptr<net::WebSocketListener> listener, net::WebSocket& socket,
    runtime::ShardLoop& loop, std::int64_t ends_at);

}  // namespace hearth::api
