#include "api/agent_response.hpp"

#include "api/http_errors.hpp"
#include "base/http_token.hpp"

#include <atomic>
#include <functional>
#include <string>
#include <utility>

namespace hearth::api {
namespace {

class AgentResponse final : public runtime::CallSink {
 public:
  AgentResponse(std::shared_ptr<net::HttpExchange> exchange, storage::AgentKey agent,
                Logger& logger)
      : exchange_(std::move(exchange)), agent_(std::move(agent)), logger_(logger) {}

  void begun(runtime::CallId call, const extensions::Span& span, bool shows_failures) override {
    call_ = call;
    text_.begun(span, shows_failures);
  }

  [[nodiscard]] bool abandoned() const override {
    return client_left_ != nullptr && client_left_->load();
  }

  void part(const runtime::ResponseHead& head, std::string_view body) override {
    if (std::exchange(streaming_, true)) {
      exchange_->write(std::string(body));
    } else {
      exchange_->start(response(head, body));
      // Only a stream has further parts that need not be made.
      client_left_ = std::make_shared<std::atomic<bool>>(false);
      exchange_->on_abort([client_left = client_left_] { client_left->store(true); });
    }
  }

  void when_drained(std::function<void()> notice) override {
    if (!streaming_ || exchange_ == nullptr) return notice();
    exchange_->when_drained(std::move(notice));
  }

  void finish(const runtime::ResponseHead& head, const Result<std::string_view>& outcome) override {
    // The exchange ends with this call: if a streamed answer has failed, that cuts the connection.
    const std::shared_ptr<net::HttpExchange> exchange = std::move(exchange_);
    if (outcome.has_error()) {
      fail(*exchange, outcome.error());
    } else if (!streaming_) {
      exchange->respond(response(head, *outcome));
    } else {
      if (!outcome->empty()) exchange->write(std::string(*outcome));
      exchange->finish();
    }
  }

 private:
  [[nodiscard]] net::HttpResponse response(const runtime::ResponseHead& head,
                                           std::string_view body) const {
    net::HttpResponse response;
    response.status = static_cast<int>(head.status);
    response.headers.reserve(head.headers.size() + 1);
    for (const auto& [name, value] : head.headers) {
      // A page of an agent may not come between browsers and the rest of the server.
      if (equal_ignoring_case(name, "Service-Worker-Allowed")) continue;
      response.headers.push_back({name, value});
    }
    text_.add_trace(response.headers);
    response.body = body;
    return response;
  }

  void fail(net::HttpExchange& exchange, const Error& error) const {
    // The runtime has logged failures of the code.
    if (streaming_ && error.code != Errc::kPlugin) {
      const std::string trace = text_.span().text();
      logger_.write_limited(LogLevel::kWarn, "http.agent_failed",
                            {agent_.agent_class, to_string(error.code)},
                            {{"class", agent_.agent_class},
                             {"agent", agent_.name},
                             {"code", to_string(error.code)},
                             {"error", error.message},
                             {"call", call_},
                             {"method", exchange.request().method},
                             {"trace", trace}});
    }
    if (streaming_) return;
    net::HttpResponse answer =
        error_answer(http_status(error.code), to_string(error.code), text_.of(error));
    text_.add_trace(answer.headers);
    exchange.respond(std::move(answer));
  }

  std::shared_ptr<net::HttpExchange> exchange_;
  const storage::AgentKey agent_;
  Logger& logger_;
  runtime::CallId call_ = 0;  // the call that it answers
  FailureText text_;
  // For a stream. Shared with the notice, which comes on the client's loop, maybe after this object
  // has gone.
  std::shared_ptr<std::atomic<bool>> client_left_;
  bool streaming_ = false;
};

}  // namespace

std::unique_ptr<runtime::CallSink> make_agent_response(std::shared_ptr<net::HttpExchange> exchange,
                                                       storage::AgentKey agent, Logger& logger) {
  return std::make_unique<AgentResponse>(std::move(exchange), std::move(agent), logger);
}

}  // namespace hearth::api
