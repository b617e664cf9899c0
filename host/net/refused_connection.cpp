// A connection too many: it gets a 503 and is closed.

#include "net/http_session.hpp"
#include "net/http_text.hpp"

#include <string>
#include <utility>

namespace hearth::net {
namespace {

class RefusedConnection final : public Session,
                                public std::enable_shared_from_this<RefusedConnection> {
 public:
  RefusedConnection(LoopShare& share, std::shared_ptr<ByteStream> stream)
      : share_(share), stream_(std::move(stream)) {}

  void run() {
    deadline_ = std::chrono::steady_clock::now() + share_.options.close_timeout;
    std::string text;
    HttpResponse response =
        error_response(503, "unavailable", "the server has as many connections as it may have");
    response.headers.push_back({"Retry-After", "1"});
    (void)append_head(text, response,
                      {BodyFraming::kLength, response.body.size(), false, share_.date.now()});
    stream_->append(text.append(response.body));
    stream_->finish(Linger::kUntilPeerEnds, [self = shared_from_this()] {
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

}  // namespace

std::shared_ptr<Session> refuse_connection(LoopShare& share, std::shared_ptr<ByteStream> stream) {
  const auto refused = std::make_shared<RefusedConnection>(share, std::move(stream));
  share.table.add(refused);
  refused->run();
  return refused;
}

}  // namespace hearth::net
