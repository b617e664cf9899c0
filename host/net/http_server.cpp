#include "net/http_server.hpp"

#include "base/assert.hpp"
#include "net/beast_web_socket.hpp"
#include "net/http_session.hpp"
#include "net/loop_share.hpp"
#include "net/tcp_stream.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

namespace hearth::net {
namespace {

using tcp = asio::ip::tcp;
using Acceptor = asio::basic_socket_acceptor<tcp, asio::io_context::executor_type>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>,
                                         asio::io_context::executor_type>;

// Long enough for descriptors to come free, short enough that nobody notices.
constexpr std::chrono::milliseconds kAcceptPause{100};
// Connections past the limit that are told so with a 503; more of them are just closed.
constexpr std::size_t kMostRefused = 64;
// WebSockets that stop() ends in one moment. Their clients connect again at once, and with more of them that
// would be a wave for whoever serves next.
constexpr std::size_t kMostEndedTogether = 100;

// Four looks at the shortest time-out keep every deadline within a quarter of its length.
std::chrono::milliseconds sweep_period(const NetOptions& options) {
  const auto shortest =
      std::min({options.handshake_timeout, options.keep_alive_timeout, options.ping_interval,
                options.ping_timeout, options.close_timeout, options.write_timeout});
  return std::clamp(shortest / 4, std::chrono::milliseconds(5), std::chrono::milliseconds(1000));
}

Result<Acceptor> bind_and_listen(asio::io_context& loop, const NetOptions& options) {
  const std::string wanted = options.host + ":" + std::to_string(options.port);
  error_code error;
  tcp::resolver resolver(loop);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    return Error{Errc::kInvalidArgument, "cannot listen on " + wanted + ": " + error.message()};
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  Acceptor acceptor(loop.get_executor());
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6() && endpoint.address().is_unspecified()) {
    acceptor.set_option(asio::ip::v6_only(false), error);  // "::" means both families
  }
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return Error{Errc::kUnavailable, "cannot listen on " + wanted + ": " + error.message()};
  }
  return acceptor;
}

}  // namespace

// Fields by thread: `acceptor_`, `pause_`, `next_loop_` and `closing_` belong to the first loop; each
// share to its own; the counters are atomic; the rest never changes after construction.
class HttpServer::Door {
 public:
  Door(NetOptions options, std::span<asio::io_context* const> loops, HttpHandler& handler,
       Logger& logger, Acceptor acceptor)
      : options_(std::move(options)),
        logger_(logger),
        services_{handler, logger,
                  [this](LoopShare& from, std::shared_ptr<ByteStream> stream, std::string leftover,
                         HttpRequest request, UpgradePlan plan) {
                    move_socket(from, std::move(stream), std::move(leftover), std::move(request),
                                std::move(plan));
                  }},
        acceptor_(std::move(acceptor)),
        pause_(acceptor_.get_executor()),
        endpoint_(acceptor_.local_endpoint()),
        loops_left_(loops.size()) {
    for (asio::io_context* loop : loops) {
      shares_.push_back(std::make_unique<LoopShare>(*loop, shares_.size(), options_,
                                                    sweep_period(options_), [this] {
                                                      connections_.fetch_sub(1);
                                                      let_go();
                                                    }));
    }
  }

  ~Door() {
    HEARTH_ASSERT(!started_ || stopped_, "an HttpServer was destroyed before it had stopped");
  }

  void start() {
    HEARTH_ASSERT(!started_, "HttpServer::start() called twice");
    started_ = true;
    asio::post(acceptor_.get_executor(), [this] { accept(); });
  }

  void stop(std::chrono::milliseconds grace, std::function<void()> stopped) {
    HEARTH_ASSERT(started_ && !on_stopped_, "HttpServer::stop() called before start(), or twice");
    on_stopped_ = std::move(stopped);
    const SteadyTime deadline = std::chrono::steady_clock::now() + grace;
    const std::size_t at_once = connections_.load() <= kMostEndedTogether
                                    ? kMostEndedTogether
                                    : kMostEndedTogether / shares_.size();
    for (const auto& share : shares_) {
      asio::post(share->loop,
                 [&share = *share, deadline, at_once] { share.table.stop(deadline, at_once); });
    }
    // Last, since without connections the server may be gone as soon as the acceptor lets go of it.
    asio::post(acceptor_.get_executor(), [this] { close_acceptor(); });
  }

  [[nodiscard]] const tcp::endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] std::size_t connections() const { return connections_.load(); }

 private:
  void accept() {
    if (closing_) return let_go();
    LoopShare& share = *shares_[next_loop_++ % shares_.size()];
    acceptor_.async_accept(share.loop, [this, &share](error_code error, TcpSocket socket) {
      if (closing_) return let_go();
      if (error) return pause_accepting(error);
      admit(share, std::move(socket));
      accept();
    });
  }

  // Without a pause an exhausted process would spin: the connection stays in the system's queue, and
  // accept() would fail again at once.
  void pause_accepting(error_code error) {
    logger_.write(LogLevel::kWarn, "net.accept_failed", {{"reason", error.message()}});
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](error_code) { accept(); });
  }

  void admit(LoopShare& share, TcpSocket socket) {
    const std::size_t before = connections_.load();
    if (before >= options_.max_connections + kMostRefused) return;  // closed by its destructor
    if (before == options_.max_connections) {
      logger_.write(LogLevel::kWarn, "net.connection_limit", {{"connections", before}});
    }
    connections_.fetch_add(1);
    holds_.fetch_add(1);
    asio::post(share.loop, [this, &share, before, socket = std::move(socket)]() mutable {
      std::string peer = peer_of(socket);
      auto stream = make_tcp_stream(std::move(socket), share.buffers);
      if (before >= options_.max_connections) {
        refuse_connection(share, std::move(stream));
      } else {
        start_http_session(share, std::move(stream), std::move(peer), services_);
      }
    });
  }

  void move_socket(LoopShare& from, std::shared_ptr<ByteStream> stream, std::string leftover,
                   HttpRequest request, UpgradePlan plan) {
    HEARTH_ASSERT(plan.loop < shares_.size(), "an UpgradePlan names a loop that does not exist");
    LoopShare& to = *shares_[plan.loop];
    if (&to == &from) {
      stream->preload(std::move(leftover));
      open_web_socket(to, std::move(stream), request, plan);
      return;
    }
    std::optional<LooseSocket> loose = stream->release();
    if (!loose) return from.connection_ended();
    asio::post(to.loop, [&to, loose = std::move(*loose), leftover = std::move(leftover),
                         request = std::move(request), plan = std::move(plan)]() mutable {
      auto arrived = adopt_tcp_stream(loose, to.loop, to.buffers);
      if (arrived == nullptr) return to.connection_ended();
      arrived->preload(std::move(leftover));
      open_web_socket(to, std::move(arrived), request, plan);
    });
  }

  // Exactly one of an accept, a pause or the post of start() is pending while the server accepts; its
  // handler sees closing_ and lets go.
  void close_acceptor() {
    closing_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

  // The acceptor and each connection hold the server; the last to let go starts the end.
  void let_go() {
    if (holds_.fetch_sub(1) != 1) return;
    for (const auto& share : shares_) {
      asio::post(share->loop, [this, &share = *share] {
        share.table.when_quiet([this] {
          if (loops_left_.fetch_sub(1) != 1) return;
          stopped_ = true;
          const std::function<void()> on_stopped = std::move(on_stopped_);
          on_stopped();  // may destroy this
        });
      });
    }
  }

  const NetOptions options_;
  Logger& logger_;
  const HttpServices services_;
  Acceptor acceptor_;
  Timer pause_;
  const tcp::endpoint endpoint_;
  std::vector<std::unique_ptr<LoopShare>> shares_;
  std::function<void()> on_stopped_;
  std::atomic<std::size_t> connections_ = 0;
  std::atomic<std::size_t> holds_ = 1;
  std::atomic<std::size_t> loops_left_;
  std::atomic<bool> started_ = false;
  std::atomic<bool> stopped_ = false;
  std::size_t next_loop_ = 0;
  bool closing_ = false;
};

Result<std::unique_ptr<HttpServer>> HttpServer::listen(NetOptions options,
                                                       std::span<asio::io_context* const> loops,
                                                       HttpHandler& handler, Logger& logger) {
  HEARTH_ASSERT(!loops.empty(), "a server needs a loop");
  Result<Acceptor> acceptor = bind_and_listen(*loops.front(), options);
  if (!acceptor) return acceptor.error();
  auto door = std::make_unique<Door>(std::move(options), loops, handler, logger,
                                     std::move(acceptor.value()));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(door)));
}

HttpServer::HttpServer(std::unique_ptr<Door> door) : door_(std::move(door)) {}

HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const {
  return door_->endpoint().port();
}

std::string HttpServer::address() const {
  const tcp::endpoint& endpoint = door_->endpoint();
  const std::string host = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + host + "]:" + port : host + ":" + port;
}

void HttpServer::start() {
  door_->start();
}

void HttpServer::stop(std::chrono::milliseconds grace, std::function<void()> stopped) {
  door_->stop(grace, std::move(stopped));
}

std::size_t HttpServer::connections() const {
  return door_->connections();
}

}  // namespace hearth::net
