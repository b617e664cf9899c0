#include "net/http_server.hpp"

#include "base/assert.hpp"
#include "net/beast_web_socket.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace hearth::net {
namespace {

using tcp = asio::ip::tcp;

// The most WebSockets that stop() ends at once. Their clients reconnect at once, and more of them
// could overload the next server.
constexpr std::size_t kMostEndedTogether = 100;

// The interval if pings are off: no connection lives for a year.
constexpr std::chrono::hours kNever{24 * 365};

// Four sweeps in the shortest timeout, so that a deadline is late by at most a quarter.
std::chrono::milliseconds sweep_period(const NetOptions& options) {
  const auto shortest =
      std::min({options.handshake_timeout, options.http_idle_timeout, options.ping_interval,
                options.ping_timeout, options.close_timeout, options.rate_window});
  return std::clamp(shortest / 4, std::chrono::milliseconds(5), std::chrono::milliseconds(1000));
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(NetOptions options,
                                                       std::span<const NetLoop> loops,
                                                       HttpHandler& handler,
                                                       const NetSupplies& supplies) {
  HEARTH_ASSERT(!loops.empty(), "a server needs a loop");
  auto acceptor = Acceptor::listen(options, supplies);
  if (!acceptor) return acceptor.error();
  if (options.ping_interval.count() == 0) options.ping_interval = kNever;
  return std::unique_ptr<HttpServer>(
      new HttpServer(std::move(options), loops, handler, supplies, std::move(acceptor.value())));
}

HttpServer::HttpServer(NetOptions options, std::span<const NetLoop> loops, HttpHandler& handler,
                       const NetSupplies& supplies, std::unique_ptr<Acceptor> acceptor)
    : options_(std::move(options)),
      logger_(supplies.logger),
      services_{handler,
                [this](LoopShare& from, std::shared_ptr<ByteStream> stream, std::string leftover,
                       HttpRequest request, UpgradePlan plan) {
                  move_socket(from, std::move(stream), std::move(leftover), std::move(request),
                              std::move(plan));
                }},
      loops_left_(loops.size()),
      acceptor_(std::move(acceptor)) {
  for (const NetLoop& loop : loops) {
    shares_.push_back(
        std::make_unique<Place>(loop, options_, sweep_period(options_), supplies, [this] {
          connections_.fetch_sub(1);
          let_go();
        }));
  }
}

HttpServer::~HttpServer() {
  HEARTH_ASSERT(!started_ || stopped_, "an HttpServer was destroyed before it had stopped");
}

std::string HttpServer::address() const {
  const tcp::endpoint& endpoint = acceptor_->endpoint();
  const std::string host = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + host + "]:" + port : host + ":" + port;
}

void HttpServer::start() {
  HEARTH_ASSERT(!started_, "HttpServer::start() called twice");
  started_ = true;
  acceptor_->start(
      {.choose = [this] { return choose(); },
       .admit = [this](TcpSocket socket,
                       Arrival arrival) { admit(std::move(socket), std::move(arrival)); },
       .begin_handshake = [this] { count_one(); },
       .admit_secure =
           [this](LooseSocket socket, Arrival arrival) {
             admit_secure(std::move(socket), std::move(arrival));
           },
       .give_up =
           [this] {
             connections_.fetch_sub(1);
             let_go();
           },
       .closed = [this] { let_go(); }});
}

void HttpServer::stop(std::chrono::milliseconds grace, std::function<void()> stopped) {
  HEARTH_ASSERT(started_ && !on_stopped_, "HttpServer::stop() called before start(), or twice");
  on_stopped_ = std::move(stopped);
  const SocketTime deadline = std::chrono::steady_clock::now() + grace;
  const std::size_t at_once = connections_.load() <= kMostEndedTogether
                                  ? kMostEndedTogether
                                  : kMostEndedTogether / shares_.size();
  for (const auto& share : shares_) {
    asio::post(share->loop,
               [&share = *share, deadline, at_once] { share.table.stop(deadline, at_once); });
  }
  // Last: without connections the server may be destroyed as soon as the acceptor is closed.
  acceptor_->close();
}

Result<void> HttpServer::reload_certificate() {
  auto context = TlsContext::load(options_.tls);
  if (!context) return context.error();
  acceptor_->use(*std::move(context));
  return {};
}

// Chooses loops in turn, except loops that have not taken their last connection, because they are
// busy or hang. If all are, the next connection waits in the system's queue.
Acceptor::Choice HttpServer::choose() {
  using Kind = Acceptor::Choice::Kind;
  if (connections_.load() >= options_.max_connections) {
    logger_.write_limited(LogLevel::kWarn, "net.connection_limit", {},
                          {{"connections", options_.max_connections}});
    return {.kind = Kind::kRefuse};
  }
  all_given_.store(false);
  if (find_place()) return {.kind = Kind::kAdmit, .loop = &chosen_->loop};
  // From now on a loop that takes a connection calls go_on(). A second look finds a loop that has
  // taken one in between.
  all_given_.store(true);
  if (find_place()) return {.kind = Kind::kAdmit, .loop = &chosen_->loop};
  return {.kind = Kind::kWait};
}

bool HttpServer::find_place() {
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    chosen_ = shares_[(turn_ + i) % shares_.size()].get();
    if (!chosen_->is_given.load()) return true;
  }
  return false;
}

void HttpServer::count_one() {
  connections_.fetch_add(1);
  holds_.fetch_add(1);
}

void HttpServer::admit(TcpSocket socket, Arrival arrival) {
  count_one();
  Place& place = give();
  asio::post(place.loop, [this, &place, socket = std::move(socket),
                          arrival = std::move(arrival)]() mutable {
    taken(place);
    start_http_session(place, make_tcp_stream(std::move(socket), place.buffers, place.turn_end),
                       std::move(arrival), services_);
  });
}

// choose() ran before the handshake, and another loop may be free now. If none is free, the
// connection waits at the next loop.
void HttpServer::admit_secure(LooseSocket socket, Arrival arrival) {
  (void)find_place();
  Place& place = give();
  asio::post(place.loop, [this, &place, loose = std::move(socket),
                          arrival = std::move(arrival)]() mutable {
    taken(place);
    auto stream = adopt_stream(std::move(loose), {place.loop, place.turn_end}, place.buffers);
    if (stream == nullptr) return place.connection_ended();
    start_http_session(place, std::move(stream), std::move(arrival), services_);
  });
}

HttpServer::Place& HttpServer::give() {
  ++turn_;
  chosen_->is_given.store(true);
  return *chosen_;
}

void HttpServer::taken(Place& place) {
  place.is_given.store(false);
  if (all_given_.exchange(false)) acceptor_->go_on();
}

void HttpServer::move_socket(LoopShare& from, std::shared_ptr<ByteStream> stream,
                             std::string leftover, HttpRequest request, UpgradePlan plan) {
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
    auto arrived = adopt_stream(std::move(loose), {to.loop, to.turn_end}, to.buffers);
    if (arrived == nullptr) return to.connection_ended();
    arrived->preload(std::move(leftover));
    open_web_socket(to, std::move(arrived), request, plan);
  });
}

// The acceptor and each connection hold the server. The last release calls `stopped`.
void HttpServer::let_go() {
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

}  // namespace hearth::net
