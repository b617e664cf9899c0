#include "api/cors.hpp"

#include "base/authority.hpp"
#include "base/http_token.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::api {
namespace {

// Bytes of all header names that a page asks for: more than any page needs.
constexpr std::size_t kMaxRequestedBytes = 2048;

bool has_word(const std::vector<std::string>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& each : list) {
    if (!text.empty()) text += ", ";
    text += each;
  }
  return text;
}

std::optional<WebOrigin> plain_origin(std::string_view text) {
  auto origin = parse_origin(text);
  if (origin)
    origin->authority = without_default_port(std::move(origin->authority), origin->scheme);
  return origin;
}

// Whether each origin gets the same headers.
bool is_same_for_all(const CorsRules& rules) {
  return has_word(rules.origins, "*") && !rules.credentials;
}

net::HttpHeaders origin_headers(const CorsRules& rules, const net::HttpRequest& request) {
  net::HttpHeaders headers;
  if (is_same_for_all(rules)) {
    headers.push_back({"Access-Control-Allow-Origin", "*"});
    return headers;
  }
  headers.push_back({"Vary", "Origin"});
  const auto origin = net::find_header(request.headers, "Origin");
  if (!origin || !allows_origin(rules, *origin)) return headers;
  headers.push_back({"Access-Control-Allow-Origin", std::string(*origin)});
  if (rules.credentials) headers.push_back({"Access-Control-Allow-Credentials", "true"});
  return headers;
}

// What every answer has. A page reads no other headers than those and the exposed ones.
net::HttpHeaders answer_headers(const CorsRules& rules, const net::HttpRequest& request) {
  net::HttpHeaders headers = origin_headers(rules, request);
  if (net::find_header(headers, "Access-Control-Allow-Origin"))
    headers.push_back(
        {"Access-Control-Expose-Headers", "Retry-After, Idempotency-Replayed, traceresponse"});
  return headers;
}

void replace_headers(const net::HttpHeaders& headers, net::HttpResponse& response) {
  std::erase_if(response.headers, [](const net::HttpHeader& header) {
    return equal_ignoring_case(header.name, "Access-Control-Allow-Origin") ||
           equal_ignoring_case(header.name, "Access-Control-Allow-Credentials");
  });
  response.headers.insert(response.headers.end(), headers.begin(), headers.end());
}

class CorsExchange final : public net::HttpExchange {
 public:
  CorsExchange(std::shared_ptr<net::HttpExchange> inner, net::HttpHeaders headers)
      : inner_(std::move(inner)), headers_(std::move(headers)) {}

  [[nodiscard]] const net::HttpRequest& request() const override { return inner_->request(); }
  void respond(net::HttpResponse response) override {
    inner_->respond(with_headers(std::move(response)));
  }
  void start(net::HttpResponse response) override {
    inner_->start(with_headers(std::move(response)));
  }
  void write(std::string part) override { inner_->write(std::move(part)); }
  void finish() override { inner_->finish(); }
  void when_drained(std::function<void()> notice) override {
    inner_->when_drained(std::move(notice));
  }
  void read_body(std::size_t bytes, net::BodyListener listener) override {
    inner_->read_body(bytes, std::move(listener));
  }
  void on_abort(std::function<void()> notice) override { inner_->on_abort(std::move(notice)); }

 private:
  [[nodiscard]] net::HttpResponse with_headers(net::HttpResponse response) const {
    replace_headers(headers_, response);
    return response;
  }

  const std::shared_ptr<net::HttpExchange> inner_;
  const net::HttpHeaders headers_;
};

}  // namespace

bool allows_origin(const CorsRules& rules, std::string_view origin) {
  if (has_word(rules.origins, "*")) return true;
  if (origin == "null") return has_word(rules.origins, "null");
  const auto asked = plain_origin(origin);
  return asked && std::ranges::any_of(rules.origins, [&asked](const std::string& each) {
           return plain_origin(each) == asked;
         });
}

std::optional<net::HttpResponse> preflight_answer(const CorsRules& rules,
                                                  const net::HttpRequest& request) {
  const auto origin = net::find_header(request.headers, "Origin");
  if (request.method != "OPTIONS" || !origin || !allows_origin(rules, *origin) ||
      !net::find_header(request.headers, "Access-Control-Request-Method")) {
    return std::nullopt;
  }
  net::HttpResponse response;
  response.status = 204;
  response.headers = origin_headers(rules, request);
  response.headers.push_back({"Access-Control-Allow-Methods", joined(rules.methods)});
  // The protocol's "*" leaves Authorization out, and has no meaning with credentials.
  const bool echoes = has_word(rules.headers, "*");
  const auto asked = net::find_header(request.headers, "Access-Control-Request-Headers");
  if (!echoes && !rules.headers.empty())
    response.headers.push_back({"Access-Control-Allow-Headers", joined(rules.headers)});
  if (echoes && asked && asked->size() <= kMaxRequestedBytes)
    response.headers.push_back({"Access-Control-Allow-Headers", std::string(*asked)});
  if (echoes) response.headers.push_back({"Vary", "Access-Control-Request-Headers"});
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(rules.max_age).count();
  response.headers.push_back({"Access-Control-Max-Age", std::to_string(seconds)});
  return response;
}

void add_cors(const CorsRules& rules, const net::HttpRequest& request, net::HttpResponse& answer) {
  replace_headers(answer_headers(rules, request), answer);
}

std::shared_ptr<net::HttpExchange> with_cors(std::shared_ptr<net::HttpExchange> exchange,
                                             const CorsRules& rules) {
  net::HttpHeaders headers = answer_headers(rules, exchange->request());
  return std::make_shared<CorsExchange>(std::move(exchange), std::move(headers));
}

}  // namespace hearth::api
