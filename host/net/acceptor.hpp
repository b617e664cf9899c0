#pragma once
// Accepts connections on its own thread, and does the TLS handshakes there.

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "net/address_table.hpp"
#include "net/http_session.hpp"
#include "net/loop_share.hpp"
#include "net/tcp_stream.hpp"
#include "net/tls_handshake.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace hearth::net {

// Listens on one address. The owner chooses a loop for a connection when it is accepted, so a loop
// that hangs does not delay connections of other loops.
//
// TLS       Handshakes run on the acceptor's thread: they delay other handshakes, but no loop. A
//           client that speaks HTTP without TLS gets 400.
// Refusals  cause                                  without TLS        with TLS
//           too many connections                   503, then closed   closed at once
//           no free descriptor                     503, then closed   closed at once
//           too many connections of one address    429, then closed   closed at once
//           (With TLS an answer would take a handshake.)
// Bounded   At most kMostRefused refused connections stay open for their clients to read the
//           answer. For one more, the oldest is cut.
// Threads   All members from any thread, in the order of their lifetime. The owner's functions are
//           called on the acceptor's thread.
// Lifetime  listen(), start(), close(), and destroy after `closed` was called. An acceptor that was
//           never started may be destroyed at once. `closed` is the last call to the owner, which
//           must not destroy the acceptor inside it.
class Acceptor {
 public:
  // What to do with the next connection.
  struct Choice {
    enum class Kind { kAdmit, kRefuse, kWait } kind = Kind::kWait;  // kWait: until go_on()
    asio::io_context* loop = nullptr;                               // with kAdmit
  };
  struct Owner {
    std::function<Choice()> choose;
    // Called right after choose(), which has named the loop.
    std::function<void(TcpSocket, Arrival)> admit;
    // With TLS instead of admit(): the connection counts from here on. admit_secure() or give_up()
    // follows.
    std::function<void()> begin_handshake;
    std::function<void(LooseSocket, Arrival)> admit_secure;
    std::function<void()> give_up;
    std::function<void()> closed;
  };
  static constexpr std::size_t kMostRefused = 64;

  // Binds and listens. The error has the address and the reason, or the fault in the files of TLS.
  static Result<std::unique_ptr<Acceptor>> listen(const NetOptions& options,
                                                  const NetSupplies& supplies);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  [[nodiscard]] const asio::ip::tcp::endpoint& endpoint() const { return endpoint_; }

  void start(Owner owner);
  // Replaces the context for new connections. Only if the options have TLS.
  void use(std::shared_ptr<const TlsContext> context);
  // The context for new connections; null without TLS.
  [[nodiscard]] std::shared_ptr<const TlsContext> tls() const;
  // After choose() has returned kWait: calls choose() again. From any thread.
  void go_on();
  // Stops accepting, and cuts refused connections and handshakes. `closed` follows.
  void close();

 private:
  using Socket = asio::basic_socket_acceptor<asio::ip::tcp, asio::io_context::executor_type>;

  Acceptor(const NetOptions& options, const NetSupplies& supplies);
  Result<void> bind(const NetOptions& options);
  void wait();
  void accept_all();
  TcpSocket accept(asio::io_context& loop, error_code& error);
  void take(TcpSocket socket, const Choice& choice);
  void handshake_ended(EndedHandshake ended, Arrival arrival);
  void give_up_handshake(EndedHandshake ended);
  void refuse(TcpSocket socket, const HttpResponse& answer);
  void tell(TcpSocket socket, const std::optional<HttpResponse>& answer);
  void refuse_without_descriptor();
  void pause(error_code why);
  void end();

  asio::io_context loop_{1};
  const NetOptions options_;
  TurnEnd turn_end_;
  LoopShare share_;  // of refused connections and handshakes
  AddressTable addresses_;
  Socket acceptor_;
  NetTimer pause_;
  asio::ip::tcp::endpoint endpoint_;
  Owner owner_;
  mutable Mutex tls_mutex_;
  std::shared_ptr<const TlsContext> tls_ GUARDED_BY(tls_mutex_);  // shared with connections
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::array<std::weak_ptr<Session>, kMostRefused> refused_;
  std::size_t next_refused_ = 0;
  int spare_ = -1;        // a descriptor to close when no other is free
  bool waiting_ = false;  // for go_on()
  bool closing_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace hearth::net
