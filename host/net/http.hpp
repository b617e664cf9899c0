#pragma once
// HTTP/1.1 for the layers above: plain values, and one exchange at a time.

#include "base/error.hpp"
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
// Whether the comma-separated list in the headers of that name has `token` (without case).
[[nodiscard]] bool header_has_token(const HttpHeaders& headers, std::string_view name,
                                    std::string_view token);

// A complete request, within the limits of NetOptions. Names and values are syntactically valid;
// nothing else was checked. Headers that only a host may set (x-agents-lifecycle-props,
// x-cf-agents-subagent-url) are removed.
struct HttpRequest {
  std::string method;  // as sent: "GET"
  std::string target;  // in origin form, or "*": with the query, percent-encoded
  HttpHeaders headers;
  std::string body;
  std::string peer;  // "127.0.0.1:50312"
  // The limits of the client's address; null: it has none.
  std::shared_ptr<const ClientAddress> address = nullptr;
  // The handler has asked to read the body as it arrives (HttpHandler::reads_body()): `body` is
  // empty, and HttpExchange::read_body() gives it.
  bool has_unread_body = false;
};

// The next bytes of a body that is read as it arrives, or its end.
struct BodyPart {
  std::string bytes = {};
  bool is_end = false;
  // Of an end: why the body is not complete. kNotFound (the client has left, or the request is
  // over), kTooLarge, kTimeout (too slow), kLimitExceeded (the client's address), kInvalidArgument.
  std::optional<Error> failure = {};
};
using BodyListener = std::function<void(BodyPart part)>;

struct HttpResponse {
  int status = 200;
  // Headers that only the server sets (is_host_owned_header() in base/http_token.hpp) are ignored
  // here. But `Connection: close` closes the connection after the response.
  HttpHeaders headers;
  std::string body;
};

// A response whose body is {"error":{"code":...,"message":...}}. Both must need no escaping in
// JSON.
[[nodiscard]] HttpResponse error_response(int status, std::string_view code,
                                          std::string_view message);

// 429 with a Retry-After, if the client's address, or all addresses together, have too many of
// `what`: "requests".
[[nodiscard]] HttpResponse too_many_response(std::string_view what);
// The close reason for a WebSocket in the same case, with 1013: its clients reconnect with growing
// delays.
[[nodiscard]] std::string too_many_reason(std::string_view what);

// 503 with a Retry-After, if client memory is above its limit.
[[nodiscard]] HttpResponse busy_response();

// One request, which its holder must answer: with respond(), or with start(), write() any number of
// times, and finish(). Late and repeated calls do nothing.
//
// Failure   If it is destroyed without an answer, it answers 500. If it is destroyed in the middle
//           of a streamed answer, it cuts the connection, so that the client sees that the answer
//           is incomplete. A response with an invalid status, header name or header value is
//           replaced by a 500.
// Bounded   The connection is cut, and the abort notice called, if more than NetOptions::send_queue
//           bytes of a streamed answer wait for the client, or if client memory is too small. A
//           part that is written once when_drained() has called may alone be larger.
// Threads   All members from any thread, one at a time. Calls from other threads are posted to the
//           connection's loop, so destroy the exchange before the loops.
class HttpExchange {
 public:
  HttpExchange() = default;
  virtual ~HttpExchange() = default;
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  [[nodiscard]] virtual const HttpRequest& request() const = 0;

  // The whole answer. For HEAD the body is not sent, but its length is.
  virtual void respond(HttpResponse response) = 0;

  // A streamed answer (`response.body` is its first part): chunked, or until the connection ends
  // for an HTTP/1.0 client. For HEAD only the head is sent.
  virtual void start(HttpResponse response) = 0;
  virtual void write(std::string part) = 0;
  virtual void finish() = 0;

  // Calls `notice` once on the connection's loop, when at most a quarter of NetOptions::send_queue
  // of a streamed answer waits for the client. Also if the client leaves, or no answer is streamed.
  virtual void when_drained(std::function<void()> notice) = 0;

  // For a request with `has_unread_body`: gives `bytes` more of credit. While the credit is
  // positive, the body is read from the client and passed to the listener, a few KiB at a time; the
  // last part may use more than there is. The first call has the listener, later calls none
  // (null). It is called on the connection's loop, never inside a call of this class, and gets one
  // end. If the client waits for "100 Continue", the first credit sends it. An answer that begins
  // before the body has ended closes the connection behind it. If none has begun, a body that is
  // too long, too slow or no HTTP is refused as that of any other request: respond() comes too
  // late.
  virtual void read_body(std::size_t bytes, BodyListener listener) = 0;

  // Calls `notice` once on the connection's loop if the client leaves before the answer is
  // complete; at once if it already has.
  virtual void on_abort(std::function<void()> notice) = 0;
};

// How to upgrade a connection. It moves to `loop`, and 101 is answered there.
struct UpgradePlan {
  // The answer instead of an upgrade. Clients in browsers retry such a refusal for ever: to make a
  // client stop, upgrade and close with a code.
  std::optional<HttpResponse> refusal;

  // Index into the loops that the server was given.
  std::size_t loop = 0;
  // Bytes of one message; 0: NetOptions::max_frame.
  std::size_t max_frame = 0;
  // Sent as Sec-WebSocket-Protocol if the client offered it, and left out otherwise.
  std::string subprotocol;
  // Called on that loop with the open socket; returns its listener. No message is read before it
  // returns. Without a listener the socket is closed with 1011. It is not called if the client has
  // left or the server stops meanwhile.
  std::function<std::shared_ptr<WebSocketListener>(std::shared_ptr<WebSocket>)> opened;
};

// Handles requests and upgrades. The layer above net implements it.
//
// Threads   Called on the loop of the connection, so several loops may call it at the same time.
// Lifetime  Outlives the server.
class HttpHandler {
 public:
  HttpHandler() = default;
  virtual ~HttpHandler() = default;
  HttpHandler(const HttpHandler&) = delete;
  HttpHandler& operator=(const HttpHandler&) = delete;

  // Whether on_request() gets the request when its head has arrived, to read the body itself. Asked
  // for a request with a body that is within its limit, as far as its length is known. Otherwise
  // on_request() gets the whole body.
  [[nodiscard]] virtual bool reads_body(const HttpRequest& /*head*/) const { return false; }
  // May answer inside the call or any time later. An exception is logged, and the answer is 500.
  virtual void on_request(std::shared_ptr<HttpExchange> exchange) = 0;
  // Called before the network itself answers a request: it is too long, too slow or one too many,
  // or the handler has failed. The handler adds the headers that it adds to all answers. `head` has
  // the head of the request, and may lack its body.
  virtual void on_refusal(const HttpRequest& /*head*/, HttpResponse& /*answer*/) const {}
  // Called for a well-formed WebSocket handshake. Must not wait: the client gives up after 4 s.
  virtual UpgradePlan on_upgrade(const HttpRequest& request) = 0;
};

}  // namespace hearth::net
