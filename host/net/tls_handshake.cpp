#include "net/tls_handshake.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>

#include <utility>

namespace hearth::net {
namespace {

using How = EndedHandshake::How;

class TlsHandshake final : public Session, public std::enable_shared_from_this<TlsHandshake> {
 public:
  TlsHandshake(LoopShare& share, TcpSocket socket, std::shared_ptr<const TlsContext> context,
               std::function<void(EndedHandshake)> ended)
      : share_(share),
        socket_(std::move(socket)),
        held_(share.buffers.memory(), kHandshakeBytes),
        ended_(std::move(ended)) {
    prepare_socket(socket_);
    session_ = std::make_unique<TlsSession>(std::move(context), socket_.native_handle());
  }

  // Call it after the session is in the table.
  void run() {
    if (stopped_ != How::kDone) return end(stopped_);
    if (held_.refused()) return end(How::kMemory);
    wait(asio::socket_base::wait_read);
  }

  void on_sweep(SocketTime now) override {
    if (now - since_ >= share_.options.handshake_timeout) stop(How::kSilent);
  }
  void wind_down() override { stop(How::kCut); }
  void cut() override { stop(How::kCut); }

 private:
  void wait(asio::socket_base::wait_type what) {
    socket_.async_wait(what, [self = shared_from_this()](error_code) { self->go_on(); });
  }

  // A wait is pending in all states except the last.
  void stop(How how) {
    stopped_ = how;
    error_code ignored;
    socket_.cancel(ignored);
  }

  void go_on() {
    if (stopped_ != How::kDone) return end(stopped_);
    switch (session_->handshake()) {
      case TlsSession::Outcome::kReads: return wait(asio::socket_base::wait_read);
      case TlsSession::Outcome::kWrites: return wait(asio::socket_base::wait_write);
      case TlsSession::Outcome::kDone: return end(How::kDone);
      case TlsSession::Outcome::kPlainHttp: return end(How::kPlainHttp);
      case TlsSession::Outcome::kEnded:
      case TlsSession::Outcome::kFailed: return end(How::kFailed);
    }
  }

  void end(How how) {
    const std::shared_ptr<TlsHandshake> self = shared_from_this();
    held_.set(0);
    std::string reason = session_->failure();
    ended_({.how = how,
            .socket = std::move(socket_),
            .session = std::move(session_),
            .reason = std::move(reason)});
    share_.table.remove(*this);
  }

  LoopShare& share_;
  TcpSocket socket_;
  std::unique_ptr<TlsSession> session_;
  HeldBytes held_;
  const std::function<void(EndedHandshake)> ended_;
  const SocketTime since_ = std::chrono::steady_clock::now();
  How stopped_ = How::kDone;  // otherwise why it was stopped
};

}  // namespace

void start_tls_handshake(LoopShare& share, TcpSocket socket,
                         std::shared_ptr<const TlsContext> context,
                         std::function<void(EndedHandshake)> ended) {
  const auto handshake = std::make_shared<TlsHandshake>(share, std::move(socket),
                                                        std::move(context), std::move(ended));
  share.table.add(handshake);
  handshake->run();
}

}  // namespace hearth::net
