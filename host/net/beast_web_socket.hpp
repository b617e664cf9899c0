#pragma once
// Opens a WebSocket over a stream. The only interface to Beast's WebSocket.

#include "net/byte_stream.hpp"
#include "net/http.hpp"
#include "net/loop_share.hpp"

#include <memory>

namespace hearth::net {

// Answers the handshake `request` with 101, passes the open socket to `plan.opened` and starts to
// read. upgrade_fault() has accepted the request. From then on the connection is in `share.table`,
// and it reports its end to `share.connection_ended`.
//
// Failure   If Beast refuses the handshake, the answer is 400 and the connection is closed;
//           `plan.opened` is not called.
// Threads   On the share's loop.
// Limits    Each of these ends the connection:
//             1009   a message over UpgradePlan::max_frame, before or after it is unpacked
//             1013   more messages than the address may send
//             1007   text that is not UTF-8, or a compressed message that is not deflate data
//             1002   broken frames
//           Messages are compressed if NetOptions::compression and the client allow it
//           (deflate_terms.hpp).
void open_web_socket(LoopShare& share, std::shared_ptr<ByteStream> stream,
                     const HttpRequest& request, const UpgradePlan& plan);

}  // namespace hearth::net
