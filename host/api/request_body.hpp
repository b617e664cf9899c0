#pragma once
// The body of a client's request, for an agent that reads it as it arrives.

#include "net/http.hpp"
#include "runtime/event.hpp"
#include "runtime/shard_loop.hpp"

#include <memory>

namespace hearth::api {

// Reads the body of `exchange`, which must have an unread one. It does not keep the exchange: when
// the request is answered, the rest of the body does not come.
//
// Threads   The agent's shard, whose loop is `loop`.
[[nodiscard]] extensions::BodyReader body_reader(const std::shared_ptr<net::HttpExchange>& exchange,
                                                 runtime::ShardLoop& loop);

}  // namespace hearth::api
