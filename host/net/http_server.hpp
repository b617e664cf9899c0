#pragma once
// Listens on one address and serves HTTP/1.1 and WebSocket on the given loops, over TCP or TLS.

#include "base/error.hpp"
#include "net/acceptor.hpp"
#include "net/byte_stream.hpp"
#include "net/http.hpp"
#include "net/http_session.hpp"
#include "net/loop_share.hpp"
#include "net/net_loop.hpp"
#include "net/options.hpp"
#include "net/supplies.hpp"
#include "net/tcp_stream.hpp"
#include "net/tls_context.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

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
  [[nodiscard]] std::uint16_t port() const { return acceptor_->endpoint().port(); }
  [[nodiscard]] std::string address() const;
  // Whether only this machine can connect.
  [[nodiscard]] bool is_on_loopback() const {
    return acceptor_->endpoint().address().is_loopback();
  }

  // Begins to accept.
  void start();

  // Reads the files of TLS again, for new connections. Open connections do not change. Only with
  // TLS.
  //   Failure   As TlsContext::load(): then nothing has changed.
  [[nodiscard]] Result<void> reload_certificate();
  // The certificate for new connections; null without TLS.
  [[nodiscard]] std::shared_ptr<const TlsContext> tls() const { return acceptor_->tls(); }

  // Stops accepting, closes idle HTTP connections, lets running exchanges finish, and closes
  // WebSockets with 1001. Remaining connections are cut after `grace`. Up to 100 WebSockets are
  // closed at once. More are closed in steps over the first half of `grace`, so that not all
  // clients reconnect at once. When no connection and no handler of the server is left, it calls
  // `stopped` on one of the loops.
  void stop(std::chrono::milliseconds grace, std::function<void()> stopped);

  // Open connections of every kind.
  [[nodiscard]] std::size_t connections() const { return connections_.load(); }

 private:
  // A loop, and whether a connection was given to it that it has not taken yet.
  struct Place : LoopShare {
    using LoopShare::LoopShare;
    std::atomic<bool> is_given = false;
  };

  HttpServer(NetOptions options, std::span<const NetLoop> loops, HttpHandler& handler,
             const NetSupplies& supplies, std::unique_ptr<Acceptor> acceptor);
  Acceptor::Choice choose();
  bool find_place();
  void count_one();
  void admit(TcpSocket socket, Arrival arrival);
  void admit_secure(LooseSocket socket, Arrival arrival);
  Place& give();
  void taken(Place& place);
  void move_socket(LoopShare& from, std::shared_ptr<ByteStream> stream, std::string leftover,
                   HttpRequest request, UpgradePlan plan);
  void let_go();

  // `turn_` and `chosen_` are for the acceptor's thread, each share is for its loop's thread, the
  // counters are atomic, and the rest never changes after construction.
  const NetOptions options_;
  Logger& logger_;
  const HttpServices services_;
  std::vector<std::unique_ptr<Place>> shares_;
  std::function<void()> on_stopped_;
  std::atomic<std::size_t> connections_ = 0;
  std::atomic<std::size_t> holds_ = 1;
  std::atomic<std::size_t> loops_left_;
  std::atomic<bool> started_ = false;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> all_given_ = false;  // no loop had room: the next that has calls go_on()
  std::size_t turn_ = 0;
  Place* chosen_ = nullptr;                   // by the last choose()
  const std::unique_ptr<Acceptor> acceptor_;  // last: its thread uses the rest
};

}  // namespace hearth::net
