#include "api/object_answer.hpp"

#include "api/http_errors.hpp"
#include "json/json.hpp"
#include "protocol/object_address.hpp"

#include <utility>

namespace hearth::api {
namespace {

net::HttpResponse object_response(int status, std::string body) {
  net::HttpResponse response;
  response.status = status;
  response.headers.push_back({"Content-Type", "application/json"});
  // The answer may be different a moment later.
  response.headers.push_back({"Cache-Control", "no-store"});
  response.body = std::move(body);
  return response;
}

std::string_view object_code(Errc code) {
  switch (code) {
    case Errc::kUnsupported: return "not_found";
    case Errc::kTimeout: return "call_timeout";
    case Errc::kFinal:
    case Errc::kUnreadable:
    case Errc::kPlugin: return "method_error";
    case Errc::kTooLarge: return "limit_exceeded";  // as for a body over the limit of all bodies
    case Errc::kUnavailable:
    case Errc::kClosing:
    case Errc::kCancelled: return "sandbox_unavailable";
    default: return to_string(code);
  }
}

bool is_worth_another_try(int status) {
  return status == 429 || status == 503;
}

net::HttpResponse failure_response(int status, std::string_view code, std::string_view text,
                                   bool is_retryable) {
  net::HttpResponse response =
      object_response(status, protocol::object_failure(code, text, is_retryable));
  if (is_retryable) response.headers.push_back({"Retry-After", "1"});
  return response;
}

class ObjectAnswer final : public runtime::CallSink {
 public:
  ObjectAnswer(std::shared_ptr<net::HttpExchange> exchange, const runtime::ClassRegistry& classes,
               ObjectCallee callee)
      : exchange_(std::move(exchange)), classes_(classes), callee_(std::move(callee)) {}
  ~ObjectAnswer() override {
    if (exchange_ != nullptr)
      exchange_->respond(object_error(500, "internal", "the call was not answered"));
  }

  void begun(runtime::CallId /*call*/, const extensions::Span& span, bool shows_failures) override {
    text_.begun(span, shows_failures);
  }
  void part(const runtime::ResponseHead& /*head*/, std::string_view /*body*/) override {}

  void finish(const runtime::ResponseHead& head, const Result<std::string_view>& outcome) override {
    net::HttpResponse response =
        outcome.has_error() ? failure(head, outcome.error()) : object_result(*outcome);
    for (const auto& [name, value] : head.headers) response.headers.push_back({name, value});
    text_.add_trace(response.headers);
    std::exchange(exchange_, nullptr)->respond(std::move(response));
  }

 private:
  [[nodiscard]] net::HttpResponse failure(const runtime::ResponseHead& head,
                                          const Error& error) const {
    if (callee_.has_key && head.status == 422)
      return object_error(422, "idempotency_key_reused", error.message);
    if (callee_.has_key && head.status == 429) return object_error(error);  // it did not run
    if (callee_.has_key && head.status == 423)
      return object_error(409, "call_in_progress", error.message);
    if (callee_.has_key && head.status == 409)
      return object_error(409, "call_interrupted", error.message);
    if (error.code == Errc::kNotFound) {
      const auto served = classes_.find(callee_.segment);
      if (served != nullptr && lacks_method(served->agent_class->methods(), callee_.method))
        return object_error(404, "invalid_method", "the class has no such method");
    }
    if (error.code == Errc::kPlugin)
      return object_error(http_status(error.code), object_code(error.code), text_.of(error));
    return call_error(error);
  }

  std::shared_ptr<net::HttpExchange> exchange_;
  const runtime::ClassRegistry& classes_;
  const ObjectCallee callee_;
  FailureText text_;
};

}  // namespace

net::HttpResponse object_result(std::string_view json, int status) {
  return object_response(status, protocol::object_success(json));
}

net::HttpResponse object_data(std::string_view json, int status) {
  return object_response(status, protocol::object_data(json));
}

net::HttpResponse object_page(std::string_view data, std::string_view next) {
  std::string body = protocol::object_data(data);
  body.pop_back();
  return object_response(200, body.append(R"(,"next":)").append(next).append("}"));
}

net::HttpResponse object_error(int status, std::string_view code, std::string_view text) {
  return failure_response(status, code, text, is_worth_another_try(status));
}

net::HttpResponse object_error(const Error& error) {
  return object_error(http_status(error.code), object_code(error.code), FailureText().of(error));
}

// The retryable errors here are those that extensions::CallAnswers does not store.
net::HttpResponse call_error(const Error& error) {
  if (error.code != Errc::kLimitExceeded) return object_error(error);
  return failure_response(http_status(error.code), object_code(error.code), error.message, false);
}

net::HttpResponse object_refusal(const Error& error) {
  if (error.code != Errc::kNotFound) return object_error(error);
  return object_error(404, "object_not_found", error.message);
}

net::HttpResponse no_such_class() {
  return object_error(404, "class_not_found", "there are no objects of such a class");
}

net::HttpResponse as_object_error(net::HttpResponse response) {
  const auto body = parse_json(response.body);
  if (!body || !body->is_object() || !body->contains("error")) return response;
  const Json& error = (*body)["error"];
  if (!error.is_object()) return response;
  const bool is_retryable = is_worth_another_try(response.status);
  response.body = protocol::object_failure(text_member(error, "code"),
                                           text_member(error, "message"), is_retryable);
  return response;
}

bool lacks_method(std::string_view methods, std::string_view name) {
  const auto listed = parse_json(methods);
  if (!listed || !listed->is_array() || listed->empty()) return false;
  for (const Json& method : *listed) {
    if (text_member(method, "name") == name) return false;
  }
  return true;
}

std::unique_ptr<runtime::CallSink> make_object_answer(std::shared_ptr<net::HttpExchange> exchange,
                                                      const runtime::ClassRegistry& classes,
                                                      ObjectCallee callee) {
  return std::make_unique<ObjectAnswer>(std::move(exchange), classes, std::move(callee));
}

}  // namespace hearth::api
