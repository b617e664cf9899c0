#pragma once
// One HTTP connection of the server: reads requests and sends answers, until the connection closes
// or becomes a WebSocket.

#include "base/logger.hpp"
#include "net/byte_stream.hpp"
#include "net/http.hpp"
#include "net/loop_share.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hearth::net {

// Data of a connection from when it was accepted.
struct Arrival {
  std::string peer;                                        // "127.0.0.1:50312"
  SocketTime since;                                        // when
  std::shared_ptr<const ClientAddress> address = nullptr;  // null: it has no limits
};

// What a session needs from its server.
//
// Lifetime  Outlives every session.
struct HttpServices {
  HttpHandler& handler;
  Logger& logger;
  // Moves the connection to the loop that the plan names, and opens the WebSocket there.
  // `leftover`: bytes that the client has sent after its handshake. From here on the session does
  // not own the connection: the WebSocket reports its end.
  std::function<void(LoopShare& from, std::shared_ptr<ByteStream> stream, std::string leftover,
                     HttpRequest request, UpgradePlan plan)>
      hand_over;
};

// Starts a session on a new connection. It is in `share.table` from then on, and reports its end to
// `share.connection_ended`, unless it is handed over.
//
// Order     Requests are answered one after the other, however many the client sends ahead.
// Limits    NetOptions::handshake_timeout from `arrival.since` to the end of the first head. If its
//           address has sent too many requests or bytes, the answer is 429.
// Threads   On the share's loop.
void start_http_session(LoopShare& share, std::shared_ptr<ByteStream> stream, Arrival arrival,
                        const HttpServices& services);

// Sends the answer without reading a request, and closes. Without an answer it only ends the
// connection in order. It is in `share.table` meanwhile.
std::shared_ptr<Session> refuse_connection(LoopShare& share, std::shared_ptr<ByteStream> stream,
                                           const std::optional<HttpResponse>& answer);

}  // namespace hearth::net
