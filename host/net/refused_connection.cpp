#include "net/refused_connection.hpp"

#include "net/http_text.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace hearth::net {
namespace {

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

}  // namespace

std::shared_ptr<Session> refuse_connection(LoopShare& share, std::shared_ptr<ByteStream> stream,
                                           const std::optional<HttpResponse>& answer) {
  const auto refused = std::make_shared<RefusedConnection>(share, std::move(stream));
  share.table.add(refused);
  refused->run(answer);
  return refused;
}

}  // namespace hearth::net
