#pragma once
// One HTTP connection on the server's side: requests in, answers out, until it closes or becomes a
// WebSocket.

#include "base/logger.hpp"
#include "net/byte_stream.hpp"
#include "net/http.hpp"
#include "net/loop_share.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hearth::net {

// A connection as it was accepted.
struct Arrival {
  std::string peer;                                        // "127.0.0.1:50312"
  SocketTime since;                                        // when
  std::shared_ptr<const ClientAddress> address = nullptr;  // none: it has no limits
};

// What a session needs of the server around it.
//
// Lifetime  Outlives every session.
struct HttpServices {
  HttpHandler& handler;
  Logger& logger;
  // Takes the connection to the loop that the plan names and opens the WebSocket there. Bytes that
  // the client has sent after its handshake are `leftover`. From here on the connection is not the
  // session's: whoever takes it reports its end.
  std::function<void(LoopShare& from, std::shared_ptr<ByteStream> stream, std::string leftover,
                     HttpRequest request, UpgradePlan plan)>
      hand_over;
};

// Starts a session on a fresh connection. It is in `share.table` from then on, and reports its end
// to `share.connection_ended` unless it is handed over.
//
// Order     Requests are answered one after the other, however many the client sends ahead.
// Limits    NetOptions::handshake_timeout from `arrival.since` to the end of the first head. A
//           request or a byte too many of its address is answered 429.
// Threads   On the share's loop.
void start_http_session(LoopShare& share, std::shared_ptr<ByteStream> stream, Arrival arrival,
                        const HttpServices& services);

// Answers without reading a request, and closes; without an answer it only closes, in good order.
// In `share.table` for that time.
std::shared_ptr<Session> refuse_connection(LoopShare& share, std::shared_ptr<ByteStream> stream,
                                           const std::optional<HttpResponse>& answer);

}  // namespace hearth::net
