#include "net/acceptor.hpp"

#include "base/assert.hpp"
#include "net/http_text.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include <pthread.h>

namespace hearth::net {
namespace {

using asio::ip::tcp;

// Long enough for descriptors to become free, short enough that clients do not notice.
constexpr std::chrono::milliseconds kAcceptPause{100};
// How long the client of a refused connection may take to read the answer.
constexpr std::chrono::milliseconds kRefusalLingers{1'000};

NetOptions options_of_refused(NetOptions options) {
  options.close_timeout = std::min(options.close_timeout, kRefusalLingers);
  return options;
}

HttpResponse too_many_connections() {
  HttpResponse response =
      error_response(503, "unavailable", "the server has reached its limit of connections");
  response.headers.push_back({"Retry-After", "1"});
  return response;
}

HttpResponse tls_wanted() {
  return error_response(400, "bad_request", "this port speaks TLS: use https:// or wss://");
}

int open_spare() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

// Gives `socket` the descriptor that a system call has returned. Asio's own calls make sockets
// without close-on-exec: a process that a library starts would keep the port, and connections that
// their clients should see closed.
template <class Socket>
void adopt(Socket& socket, const tcp& protocol, int descriptor, error_code& error) {
  if (descriptor < 0) {
    error = error_code(errno, asio::error::get_system_category());
    return;
  }
  socket.assign(protocol, descriptor, error);
  if (error) ::close(descriptor);
}

// A connection that gets an answer at most.
class RefusedConnection final : public Session,
                                public std::enable_shared_from_this<RefusedConnection> {
 public:
  RefusedConnection(LoopShare& share, std::shared_ptr<ByteStream> stream)
      : share_(share), stream_(std::move(stream)) {}

  void run(const std::optional<HttpResponse>& answer) {
    deadline_ = std::chrono::steady_clock::now() + share_.options.close_timeout;
    if (answer) {
      std::string text;
      (void)append_head(text, *answer,
                        {BodyFraming::kLength, answer->body.size(), false, share_.date.now()});
      stream_->append(text.append(answer->body));
    }
    stream_->finish(Linger::kBriefly, [self = shared_from_this()] {
      self->share_.table.remove(*self);
      self->share_.connection_ended();
    });
  }

  void on_sweep(SocketTime now) override {
    if (now >= deadline_) cut();
  }
  void wind_down() override {}
  void cut() override { stream_->abort(); }

 private:
  LoopShare& share_;
  const std::shared_ptr<ByteStream> stream_;
  SocketTime deadline_;
};

// Sends the answer without reading a request, and closes. Without an answer it only ends the
// connection in order. It is in `share.table` meanwhile.
std::shared_ptr<Session> refuse_connection(LoopShare& share, std::shared_ptr<ByteStream> stream,
                                           const std::optional<HttpResponse>& answer) {
  const auto refused = std::make_shared<RefusedConnection>(share, std::move(stream));
  share.table.add(refused);
  refused->run(answer);
  return refused;
}

}  // namespace

Result<std::unique_ptr<Acceptor>> Acceptor::listen(const NetOptions& options,
                                                   const NetSupplies& supplies) {
  std::unique_ptr<Acceptor> acceptor(new Acceptor(options, supplies));
  if (options.tls.is_used()) {
    auto context = TlsContext::load(options.tls);
    if (!context) return context.error();
    acceptor->use(*std::move(context));
  }
  if (auto bound = acceptor->bind(options); !bound) return bound.error();
  return acceptor;
}

Acceptor::Acceptor(const NetOptions& options, const NetSupplies& supplies)
    : options_(options_of_refused(options)),
      turn_end_([this](std::function<void()> task) { asio::post(loop_, std::move(task)); }),
      share_({loop_, turn_end_}, options_, options_.close_timeout / 4, supplies, [] {}),
      addresses_(std::make_shared<const AddressPolicy>(options.per_address, supplies.metrics,
                                                       supplies.logger),
                 std::make_shared<AddressUse>(std::make_shared<const AddressPolicy>(
                     options.in_total, supplies.metrics, supplies.logger))),
      acceptor_(loop_.get_executor()),
      pause_(loop_.get_executor()),
      spare_(open_spare()) {}

Acceptor::~Acceptor() {
  if (thread_.joinable()) thread_.join();
  if (spare_ >= 0) ::close(spare_);
}

Result<void> Acceptor::bind(const NetOptions& options) {
  const std::string wanted = options.host + ":" + std::to_string(options.port);
  error_code error;
  tcp::resolver resolver(loop_);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    return Error{Errc::kInvalidArgument, "cannot listen on " + wanted + ": " + error.message()};
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  const tcp protocol = endpoint.protocol();
  adopt(acceptor_, protocol,
        ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol()), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6() && endpoint.address().is_unspecified()) {
    acceptor_.set_option(asio::ip::v6_only(false), error);  // "::" means both families
  }
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (!error) acceptor_.non_blocking(true, error);
  if (error) {
    return Error{Errc::kUnavailable, "cannot listen on " + wanted + ": " + error.message()};
  }
  endpoint_ = acceptor_.local_endpoint();
  return {};
}

void Acceptor::start(Owner owner) {
  HEARTH_ASSERT(!thread_.joinable(), "an acceptor was started twice");
  owner_ = std::move(owner);
  work_.emplace(loop_.get_executor());
  asio::post(loop_, [this] { wait(); });
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "hearth-accept");
    loop_.run();
  });
}

void Acceptor::go_on() {
  asio::post(loop_, [this] {
    if (std::exchange(waiting_, false)) accept_all();
  });
}

void Acceptor::use(std::shared_ptr<const TlsContext> context) {
  const MutexLock lock(tls_mutex_);
  tls_ = std::move(context);
}

std::shared_ptr<const TlsContext> Acceptor::tls() const {
  const MutexLock lock(tls_mutex_);
  return tls_;
}

// While the acceptor is open, exactly one of these is pending: a wait, a pause, the post of
// start(), or waiting_. Its handler sees closing_ and ends.
void Acceptor::close() {
  asio::post(loop_, [this] {
    closing_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    if (std::exchange(waiting_, false)) end();
  });
}

void Acceptor::end() {
  share_.table.for_each([](Session& session) { session.cut(); });
  share_.table.when_quiet([this] {
    work_.reset();
    owner_.closed();
  });
}

void Acceptor::wait() {
  if (closing_) return end();
  acceptor_.async_wait(Socket::wait_read, [this](error_code) { accept_all(); });
}

// Accepts all waiting connections: a burst needs only one wait.
void Acceptor::accept_all() {
  if (spare_ < 0) spare_ = open_spare();
  for (std::size_t taken = 0; !closing_; ++taken) {
    // Refused connections and close() need this loop too.
    if (taken == kMostRefused) return asio::post(loop_, [this] { accept_all(); });
    const Choice choice = owner_.choose();
    if (choice.kind == Choice::Kind::kWait) {
      waiting_ = true;
      return;
    }
    const bool goes_on = choice.kind == Choice::Kind::kAdmit && !options_.tls.is_used();
    error_code error;
    TcpSocket socket = accept(goes_on ? *choice.loop : loop_, error);
    if (error == asio::error::would_block || error == asio::error::try_again) break;
    if (error == asio::error::no_descriptors) {
      refuse_without_descriptor();
      return pause(error);
    }
    // The client has already left. The next wait or accept reports any other error.
    if (error == asio::error::connection_aborted) continue;
    if (error) return pause(error);
    take(std::move(socket), choice);
  }
  wait();
}

TcpSocket Acceptor::accept(asio::io_context& loop, error_code& error) {
  TcpSocket socket(loop.get_executor());
  int descriptor = -1;
  do {
    descriptor = ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
  } while (descriptor < 0 && (errno == EINTR || errno == EPROTO));  // EPROTO: it is gone already
  adopt(socket, endpoint_.protocol(), descriptor, error);
  return socket;
}

void Acceptor::take(TcpSocket socket, const Choice& choice) {
  if (choice.kind == Choice::Kind::kRefuse) {
    share_.drops.add(DropReason::kConnections);
    return refuse(std::move(socket), too_many_connections());
  }
  const SocketTime now = std::chrono::steady_clock::now();
  AddressTable::Admission admission = addresses_.admit(address_of(socket), now);
  if (!admission.is_admitted) return refuse(std::move(socket), too_many_response("connections"));
  Arrival arrival{.peer = peer_of(socket), .since = now, .address = std::move(admission.address)};
  if (!options_.tls.is_used()) return owner_.admit(std::move(socket), std::move(arrival));
  owner_.begin_handshake();
  start_tls_handshake(share_, std::move(socket), tls(),
                      [this, arrival = std::move(arrival)](EndedHandshake ended) {
                        handshake_ended(std::move(ended), arrival);
                      });
}

void Acceptor::handshake_ended(EndedHandshake ended, Arrival arrival) {
  if (ended.how != EndedHandshake::How::kDone) return give_up_handshake(std::move(ended));
  std::optional<LooseSocket> loose = loosen(ended.socket);
  if (!loose) return owner_.give_up();
  loose->tls = std::move(ended.session);
  owner_.admit_secure(*std::move(loose), std::move(arrival));
}

void Acceptor::give_up_handshake(EndedHandshake ended) {
  using How = EndedHandshake::How;
  switch (ended.how) {
    case How::kPlainHttp:
      share_.drops.add(DropReason::kHandshake);
      tell(std::move(ended.socket), tls_wanted());
      break;
    case How::kFailed:
      share_.drops.add(DropReason::kHandshake);
      share_.logger.write_limited(LogLevel::kInfo, "net.handshake_failed", {},
                                  {{"reason", ended.reason}});
      tell(std::move(ended.socket), std::nullopt);
      break;
    case How::kSilent: share_.note_drop(DropReason::kSilent); break;
    case How::kMemory: share_.note_drop(DropReason::kMemory); break;
    case How::kCut:
    case How::kDone: break;
  }
  owner_.give_up();
}

// Without a pause a process without descriptors would spin: the connection stays in the system's
// queue, and accept() fails again at once.
void Acceptor::pause(error_code why) {
  if (closing_) return end();
  share_.logger.write_limited(LogLevel::kWarn, "net.accept_failed", {},
                              {{"reason", why.message()}});
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this](error_code) { wait(); });
}

void Acceptor::refuse(TcpSocket socket, const HttpResponse& answer) {
  if (!options_.tls.is_used()) tell(std::move(socket), answer);
}

// Keeps the connection open so that the client can read the answer, or the alert of TLS. The socket
// may belong to another loop.
void Acceptor::tell(TcpSocket socket, const std::optional<HttpResponse>& answer) {
  std::optional<LooseSocket> loose = loosen(socket);
  if (!loose) return;
  auto stream = adopt_stream(*std::move(loose), {loop_, turn_end_}, share_.buffers);
  if (stream == nullptr) return;
  std::weak_ptr<Session>& place = refused_[next_refused_++ % kMostRefused];
  if (const auto oldest = place.lock()) oldest->cut();
  place = refuse_connection(share_, std::move(stream), answer);
}

// For each waiting connection: closes the spare descriptor, accepts, answers, and closes at once.
void Acceptor::refuse_without_descriptor() {
  for (std::size_t i = 0; i < kMostRefused && spare_ >= 0; ++i) {
    ::close(std::exchange(spare_, -1));
    error_code error;
    TcpSocket socket = accept(loop_, error);
    if (!error) {
      share_.drops.add(DropReason::kConnections);
      const auto answer =
          options_.tls.is_used() ? std::nullopt : std::optional(too_many_connections());
      refuse_connection(share_, make_tcp_stream(std::move(socket), share_.buffers, turn_end_),
                        answer)
          ->cut();
    }
    spare_ = open_spare();
    if (error) return;
  }
}

}  // namespace hearth::net
