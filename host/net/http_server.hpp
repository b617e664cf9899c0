#pragma once
// Listens on one address and serves HTTP/1.1 and WebSocket on the given loops, over TCP or TLS.

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

// Accepts on its own thread, and gives the connections to the loops in turn, except to loops that
// are behind. A WebSocket moves to the loop that its UpgradePlan names.
//
// Bounded   NetOptions and client memory bound everything that a client controls.
// Failure   One connection too many, and one without a free descriptor, get 503. No client can end
//           the server or another client's connection.
// Threads   All members from any thread. The caller runs each loop on exactly one thread.
// Lifetime  start() once, stop() once, and destroy after `stopped` was called (asserted). Destroy
//           it before the loops. A server that was never started may be destroyed at once.
class HttpServer {
 public:
  // Binds and listens. The error has the address and the reason: in use, not allowed, not this
  // machine's, a name that does not resolve; or the fault in the certificate. It blocks on the
  // files of TLS. `loops` must not be empty.
  static Result<std::unique_ptr<HttpServer>> listen(NetOptions options,
                                                    std::span<const NetLoop> loops,
                                                    HttpHandler& handler,
                                                    const NetSupplies& supplies);

  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The real port, also if the options have 0; and "127.0.0.1:8787", "[::1]:8787".
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::string address() const;
  // Whether only this machine can connect.
  [[nodiscard]] bool is_on_loopback() const;

  // Begins to accept.
  void start();

  // Reads the files of TLS again, for new connections. Open connections do not change. Only with
  // TLS.
  //   Failure   As TlsContext::load(): then nothing has changed.
  [[nodiscard]] Result<void> reload_certificate();
  // The certificate for new connections; null without TLS.
  [[nodiscard]] std::shared_ptr<const TlsContext> tls() const;

  // Stops accepting, closes idle HTTP connections, lets running exchanges finish, and closes
  // WebSockets with 1001. Remaining connections are cut after `grace`. Up to 100 WebSockets are
  // closed at once. More are closed in steps over the first half of `grace`, so that not all
  // clients reconnect at once. When no connection and no handler of the server is left, it calls
  // `stopped` on one of the loops.
  void stop(std::chrono::milliseconds grace, std::function<void()> stopped);

  // Open connections of every kind.
  [[nodiscard]] std::size_t connections() const;

 private:
  class Door;
  explicit HttpServer(std::unique_ptr<Door> door);
  std::unique_ptr<Door> door_;
};

}  // namespace hearth::net
