#pragma once
// A connection that gets an answer at most.

#include "net/byte_stream.hpp"
#include "net/http.hpp"
#include "net/loop_share.hpp"

#include <memory>
#include <optional>

namespace hearth::net {

// Sends the answer without reading a request, and closes. Without an answer it only ends the
// connection in order. It is in `share.table` meanwhile.
//
// Threads   On the share's loop.
std::shared_ptr<Session> refuse_connection(LoopShare& share, std::shared_ptr<ByteStream> stream,
                                           const std::optional<HttpResponse>& answer);

}  // namespace hearth::net
