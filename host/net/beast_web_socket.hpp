#pragma once
// Opens a WebSocket over a stream. The only door to Beast's WebSocket.

#include "net/byte_stream.hpp"
#include "net/http.hpp"
#include "net/loop_share.hpp"

#include <memory>

namespace hearth::net {

// Answers the handshake `request` (upgrade_fault() found nothing wrong with it) with 101, hands the
// open socket to `plan.opened` and starts to read. The connection is in `share.table` from then on
// and reports its end to `share.connection_ended`.
//
// Failure   A handshake that is not right after all is answered 400 and the connection is closed;
//           `plan.opened` is not called.
// Threads   On the share's loop.
// Limits    Messages over UpgradePlan::max_frame end it with 1009, more of them than its address
//           may send with 1013, text that is not UTF-8 with 1007, broken frames with 1002.
//           Messages are compressed if NetOptions::compression and the client want it
//           (deflate_terms.hpp). Then max_frame holds for a message before it is unpacked and for
//           what it unpacks to; one that is not deflate data ends the connection with 1007.
void open_web_socket(LoopShare& share, std::shared_ptr<ByteStream> stream,
                     const HttpRequest& request, const UpgradePlan& plan);

}  // namespace hearth::net
