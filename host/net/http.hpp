#pragma once
// HTTP/1.1 as the layers above see it: plain values, and one exchange at a time.

#include "net/address_limits.hpp"
#include "net/web_socket.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::net {

struct HttpHeader {
  std::string name;
  std::string value;
};
using HttpHeaders = std::vector<HttpHeader>;

// Header names are compared without case, as RFC 9110 says. The first match, or nothing.
[[nodiscard]] std::optional<std::string_view> find_header(const HttpHeaders& headers,
                                                          std::string_view name);
// Whether the comma-separated list in the headers of that name holds `token` (without case).
[[nodiscard]] bool header_has_token(const HttpHeaders& headers, std::string_view name,
                                    std::string_view token);

// A request whose head and body have arrived whole, within the limits of NetOptions. Names and
// values are syntactically valid; nothing else was looked at. Headers that only a host may set
// (x-agents-lifecycle-props, x-cf-agents-subagent-url) are removed.
struct HttpRequest {
  std::string method;  // as sent: "GET"
  std::string target;  // in origin form, or "*": with the query, percent-encoded
  HttpHeaders headers;
  std::string body;
  std::string peer;  // "127.0.0.1:50312"
  // What the limits of its address count; none: it has no limits.
  std::shared_ptr<const ClientAddress> address = nullptr;
};

struct HttpResponse {
  int status = 200;
  // Headers that are the server's alone (is_host_owned_header() in base/http_token.hpp) are ignored
  // here, except that `Connection: close` closes after the response.
  HttpHeaders headers;
  std::string body;
};

// A response whose body is {"error":{"code":...,"message":...}}. Both must need no escaping in
// JSON.
[[nodiscard]] HttpResponse error_response(int status, std::string_view code,
                                          std::string_view message);

// 429 with a Retry-After. `what`: "requests". The client's address has too many, or all together.
[[nodiscard]] HttpResponse too_many_response(std::string_view what);
// What a WebSocket is told instead, with 1013: its clients come back later and later.
[[nodiscard]] std::string too_many_reason(std::string_view what);

// 503 with a Retry-After, for a client that would have to be given memory that is not there.
[[nodiscard]] HttpResponse busy_response();

// One request and the duty to answer it: either respond(), or start(), write() any number of times,
// finish(). Calls that come too late or twice do nothing.
//
// Failure   Dropped without an answer it answers 500; dropped in the middle of a streamed answer it
//           cuts the connection, so that the client sees that something is missing. A response with
//           an invalid status, header name or header value is replaced by a 500.
// Bounded   When more than NetOptions::send_queue bytes of a streamed answer wait for the client,
//           or an answer does not fit into the memory for clients, the connection is cut and the
//           abort notice given.
// Threads   All members from any thread, one at a time. Off the connection's loop they post to it,
//           so the exchange must be gone before the loops are destroyed.
class HttpExchange {
 public:
  HttpExchange() = default;
  virtual ~HttpExchange() = default;
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  [[nodiscard]] virtual const HttpRequest& request() const = 0;

  // The whole answer. For HEAD the body is not sent, but its length is.
  virtual void respond(HttpResponse response) = 0;

  // A streamed answer (`response.body` is its first part): chunked, or to the end of the connection
  // for an HTTP/1.0 client. For HEAD nothing but the head is sent.
  virtual void start(HttpResponse response) = 0;
  virtual void write(std::string part) = 0;
  virtual void finish() = 0;

  // Called once on the connection's loop when no more than a quarter of NetOptions::send_queue of a
  // streamed answer waits for the client; or when it goes away, or no answer is streamed.
  virtual void when_drained(std::function<void()> notice) = 0;

  // Called once on the connection's loop if the client goes away before the answer is complete; at
  // once if it already has.
  virtual void on_abort(std::function<void()> notice) = 0;
};

// Where an upgrade goes. The connection moves to that loop and is answered 101 there.
struct UpgradePlan {
  // Answered instead of upgrading. Browsers' clients retry such a refusal for ever: to make a
  // client stop, upgrade and close with a code.
  std::optional<HttpResponse> refusal;

  // Index into the loops that the server was given.
  std::size_t loop = 0;
  // Bytes of one message; 0: NetOptions::max_frame.
  std::size_t max_frame = 0;
  // Sent as Sec-WebSocket-Protocol if the client offered it, and left out otherwise.
  std::string subprotocol;
  // Called on that loop with the open socket; returns who listens to it. Nothing is read before it
  // returns. Without a listener the socket is closed with 1011. Not called if the client is gone or
  // the server stops meanwhile.
  std::function<std::shared_ptr<WebSocketListener>(std::shared_ptr<WebSocket>)> opened;
};

// What a server does with what arrives. Implemented above net.
//
// Threads   Called on the loop that the connection was accepted on: any of them, so concurrently.
// Lifetime  Outlives the server.
class HttpHandler {
 public:
  HttpHandler() = default;
  virtual ~HttpHandler() = default;
  HttpHandler(const HttpHandler&) = delete;
  HttpHandler& operator=(const HttpHandler&) = delete;

  // May answer inside the call or any time later. An exception is logged and answered with 500.
  virtual void on_request(std::shared_ptr<HttpExchange> exchange) = 0;
  // The network answers a request by itself whose head it has read: it is too long, too slow or one
  // too many, or the handler has failed. Adds to the answer what the handler adds to all of them;
  // `head` may have no body.
  virtual void on_refusal(const HttpRequest& /*head*/, HttpResponse& /*answer*/) const {}
  // A well-formed WebSocket handshake. Must not wait on anything: the client gives up after 4 s.
  virtual UpgradePlan on_upgrade(const HttpRequest& request) = 0;
};

}  // namespace hearth::net
