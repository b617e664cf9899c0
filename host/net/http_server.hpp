#pragma once
// The door: listens on one address and serves HTTP/1.1 and WebSocket on the loops it is given, over
// TCP or TLS.

#include "base/error.hpp"
#include "net/http.hpp"
#include "net/net_loop.hpp"
#include "net/options.hpp"
#include "net/supplies.hpp"
#include "net/tls_context.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace hearth::net {

namespace asio = boost::asio;

// Accepts on a thread of its own and deals the connections out to the loops in turn, leaving out
// those that are behind; a WebSocket moves to the loop that its UpgradePlan names.
//
// Bounded   By NetOptions and the account of client memory, in every dimension that a client
//           controls.
// Failure   A connection too many, and one for which there is no descriptor, are answered 503;
//           nothing that a client does ends the server or another client's connection.
// Threads   All members from any thread. Each loop is run by exactly one thread, by someone else.
// Lifetime  start() once, stop() once, and destroy after `stopped` was called, which must be before
//           the loops are destroyed (asserted). A server that was never started may just be
//           destroyed.
class HttpServer {
 public:
  // Binds and listens. The error says which address and why: in use, not allowed, not this
  // machine's, a name that does not resolve; or what is wrong with the certificate (it blocks on
  // its files). `loops` must not be empty.
  static Result<std::unique_ptr<HttpServer>> listen(NetOptions options,
                                                    std::span<const NetLoop> loops,
                                                    HttpHandler& handler,
                                                    const NetSupplies& supplies);

  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The real port, when the options said 0; and "127.0.0.1:8787", "[::1]:8787".
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::string address() const;
  // Whether only this machine can connect.
  [[nodiscard]] bool is_on_loopback() const;

  // Begins to accept.
  void start();

  // Reads the files of TLS again. Connections that begin later use what is in them, those that are
  // open go on as they began. Only with TLS.
  //   Failure   What TlsContext::load() says: then nothing has changed.
  [[nodiscard]] Result<void> reload_certificate();
  // The certificate that connections begin with now; none without TLS.
  [[nodiscard]] std::shared_ptr<const TlsContext> tls() const;

  // Ends everything: accepts no more, closes idle HTTP connections, lets running exchanges finish,
  // closes WebSockets with 1001; what is left after `grace` is cut. Up to 100 WebSockets are closed
  // at once, more of them bit by bit over the first half of `grace`, so that their clients do not
  // all connect elsewhere in one moment. Then, on one of the loops, calls `stopped`; no connection
  // and no handler of the server is left at that moment.
  void stop(std::chrono::milliseconds grace, std::function<void()> stopped);

  // Open connections of every kind.
  [[nodiscard]] std::size_t connections() const;

 private:
  class Door;
  explicit HttpServer(std::unique_ptr<Door> door);
  std::unique_ptr<Door> door_;
};

}  // namespace hearth::net
