#include "net/http_answer.hpp"

#include <boost/asio/post.hpp>

#include <string>
#include <utility>

namespace hearth::net {
namespace {

class LoopExchange final : public HttpExchange {
 public:
  LoopExchange(std::shared_ptr<AnswerSink> sink, asio::io_context::executor_type executor,
               std::uint64_t number, HttpRequest request)
      : sink_(std::move(sink)),
        executor_(std::move(executor)),
        number_(number),
        request_(std::move(request)) {}

  ~LoopExchange() override {
    if (complete_) return;
    on_loop([sink = sink_, number = number_, request = std::move(request_)] {
      sink->abandon(number, request);
    });
  }

  [[nodiscard]] const HttpRequest& request() const override { return request_; }

  void respond(HttpResponse response) override {
    if (std::exchange(complete_, true)) return;
    on_loop([sink = sink_, number = number_, response = std::move(response)]() mutable {
      sink->respond(number, std::move(response));
    });
  }

  void start(HttpResponse response) override {
    if (complete_) return;
    on_loop([sink = sink_, number = number_, response = std::move(response)]() mutable {
      sink->start(number, std::move(response));
    });
  }

  void write(std::string part) override {
    if (complete_) return;
    on_loop(
        [sink = sink_, number = number_, part = std::move(part)] { sink->write(number, part); });
  }

  void finish() override {
    if (std::exchange(complete_, true)) return;
    on_loop([sink = sink_, number = number_] { sink->finish(number); });
  }

  void when_drained(std::function<void()> notice) override {
    on_loop([sink = sink_, number = number_, notice = std::move(notice)]() mutable {
      sink->when_drained(number, std::move(notice));
    });
  }

  void read_body(std::size_t bytes, BodyListener listener) override {
    on_loop([sink = sink_, number = number_, bytes, listener = std::move(listener)]() mutable {
      sink->read_body(number, bytes, std::move(listener));
    });
  }

  void on_abort(std::function<void()> notice) override {
    on_loop([sink = sink_, number = number_, notice = std::move(notice)]() mutable {
      sink->on_abort(number, std::move(notice));
    });
  }

 private:
  template <class Call>
  void on_loop(Call call) {
    if (executor_.running_in_this_thread()) {
      call();
    } else {
      asio::post(executor_, std::move(call));
    }
  }

  const std::shared_ptr<AnswerSink> sink_;
  const asio::io_context::executor_type executor_;
  const std::uint64_t number_;
  HttpRequest request_;
  bool complete_ = false;
};

}  // namespace

std::shared_ptr<HttpExchange> make_exchange(std::shared_ptr<AnswerSink> sink,
                                            asio::io_context::executor_type executor,
                                            std::uint64_t number, HttpRequest request) {
  return std::make_shared<LoopExchange>(std::move(sink), std::move(executor), number,
                                        std::move(request));
}

}  // namespace hearth::net
