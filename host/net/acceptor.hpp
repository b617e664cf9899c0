#pragma once
// Takes connections from the system, on a thread of its own, and begins TLS there.

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "net/address_table.hpp"
#include "net/http_session.hpp"
#include "net/loop_share.hpp"
#include "net/tcp_stream.hpp"
#include "net/tls_handshake.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
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

// Listens on one address. A loop that stands still takes nothing from the others: the connections
// are theirs from the moment they are accepted, and which loop gets one is decided then.
//
// TLS       Handshakes run on the acceptor's thread: what they cost holds up other handshakes, and
//           no loop. A client that speaks HTTP without TLS is answered 400.
// Promises  A connection too many is told so: 503, and closed. So is one that finds no descriptor
//           left. One too many of its address is told 429. With TLS such a connection is closed at
//           once: telling it would take a handshake.
// Bounded   At most kMostRefused connections that were refused linger, so that their clients can
//           read why; for one more the oldest of them is cut.
// Threads   All members from any thread, in the order of their lifetime. The owner's functions are
//           called on the acceptor's thread.
// Lifetime  listen(), start(), close(), and destroy after `closed` was called. One that was never
//           started may just be destroyed. `closed` is the last call to the owner, who must not
//           destroy the acceptor within.
class Acceptor {
 public:
  // What becomes of the connection that comes next.
  struct Choice {
    enum class Kind { kAdmit, kRefuse, kWait } kind = Kind::kWait;  // kWait: until go_on()
    asio::io_context* loop = nullptr;                               // with kAdmit
  };
  struct Owner {
    std::function<Choice()> choose;
    // Right after choose(), which has named the loop.
    std::function<void(TcpSocket, Arrival)> admit;
    // With TLS instead: a connection counts from here on, and later one of the two is called.
    std::function<void()> begin_handshake;
    std::function<void(LooseSocket, Arrival)> admit_secure;
    std::function<void()> give_up;
    std::function<void()> closed;
  };
  static constexpr std::size_t kMostRefused = 64;

  // Binds and listens. The error says which address, and why; or what is wrong with the files of
  // TLS.
  static Result<std::unique_ptr<Acceptor>> listen(const NetOptions& options,
                                                  const NetSupplies& supplies);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  [[nodiscard]] const asio::ip::tcp::endpoint& endpoint() const { return endpoint_; }

  void start(Owner owner);
  // For the connections that come from now on. Only if the options have TLS.
  void use(std::shared_ptr<const TlsContext> context);
  // The one that connections begin with; none without TLS.
  [[nodiscard]] std::shared_ptr<const TlsContext> tls() const;
  // After choose() has said kWait: it is time to ask again. From any thread.
  void go_on();
  // Accepts no more, and cuts who lingers. `closed` follows.
  void close();

 private:
  using Socket = asio::basic_socket_acceptor<asio::ip::tcp, asio::io_context::executor_type>;
  using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                           asio::wait_traits<std::chrono::steady_clock>,
                                           asio::io_context::executor_type>;

  Acceptor(const NetOptions& options, const NetSupplies& supplies);
  Result<void> bind(const NetOptions& options);
  void wait();
  void accept_all();
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
  LoopShare share_;  // of the connections that are refused
  AddressTable addresses_;
  Socket acceptor_;
  Timer pause_;
  asio::ip::tcp::endpoint endpoint_;
  Owner owner_;
  mutable Mutex tls_mutex_;
  std::shared_ptr<const TlsContext> tls_ GUARDED_BY(tls_mutex_);  // shared with connections
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::array<std::weak_ptr<Session>, kMostRefused> refused_;
  std::size_t next_refused_ = 0;
  int spare_ = -1;        // a descriptor to give up when there is none left
  bool waiting_ = false;  // for go_on()
  bool closing_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace hearth::net
