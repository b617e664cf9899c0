#include "api/request_body.hpp"

#include "base/credit.hpp"

#include <string>
#include <utility>

namespace hearth::api {
namespace {

class BodyRead final : public extensions::RemoteOperation {
 public:
  BodyRead(std::weak_ptr<net::HttpExchange> exchange, runtime::ShardLoop& loop,
           std::uint64_t window)
      : exchange_(std::move(exchange)),
        loop_(loop),
        window_(window),
        self_(std::make_shared<BodyRead*>(this)) {}
  ~BodyRead() override { *self_ = nullptr; }

  void start(extensions::RemoteListener& listener) override {
    listener_ = &listener;
    ask(window_, [&loop = loop_, self = self_](net::BodyPart part) {
      loop.post([self, part = std::move(part)] {
        if (*self != nullptr) (*self)->tell(part);
      });
    });
  }
  void credit(std::uint64_t bytes) override {
    if (listener_ == nullptr) {
      raise_credit(window_, bytes);
    } else {
      ask(bytes, nullptr);
    }
  }

 private:
  void ask(std::uint64_t bytes, net::BodyListener listener) {
    if (const auto exchange = exchange_.lock()) {
      exchange->read_body(bytes, std::move(listener));
    } else if (listener) {
      listener({.is_end = true, .failure = Error{Errc::kNotFound, "the request is over"}});
    }
  }
  void tell(const net::BodyPart& part) {
    if (!part.is_end) return listener_->part(part.bytes, 0);
    Result<std::string> outcome = std::string();
    if (part.failure) outcome = *part.failure;
    listener_->end(std::move(outcome), 0);
  }

  const std::weak_ptr<net::HttpExchange> exchange_;
  runtime::ShardLoop& loop_;
  std::uint64_t window_;
  extensions::RemoteListener* listener_ = nullptr;
  const std::shared_ptr<BodyRead*> self_;  // parts on their way reach it; null after destruction
};

}  // namespace

extensions::BodyReader body_reader(const std::shared_ptr<net::HttpExchange>& exchange,
                                   runtime::ShardLoop& loop) {
  return [exchange = std::weak_ptr(exchange), &loop](std::uint64_t window) {
    return std::make_unique<BodyRead>(exchange, loop, window);
  };
}

}  // namespace hearth::api
