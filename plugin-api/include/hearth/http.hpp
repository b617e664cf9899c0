#pragma once
// HTTP requests to an agent, and their answers.

#include <hearth/detail/activation.hpp>
#include <hearth/json.hpp>
#include <hearth/url.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

// Lifetime  Until on_request has ended, waits included.
class Request {
 public:
  Request(detail::Activation& activation, std::uint64_t call, std::string_view method,
          std::string_view body)
      : activation_(activation), call_(call), method_(method), body_(body) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  [[nodiscard]] const std::string& method() const noexcept { return method_; }
  [[nodiscard]] const std::string& body() const noexcept { return body_; }
  // Failure   Error(INVALID), which the client gets as 400.
  [[nodiscard]] Json json() const { return parse_json(body_); }

  // As sent: "/agents/counter/a/sub?x=1"; without the query; a value of the query, decoded.
  [[nodiscard]] std::string target() const {
    hearth_bytes target = {nullptr, 0};
    activation_.check(table().target(activation_.host(), activation_.id(), call_, &target),
                      "request target");
    return std::string(detail::view(target));
  }
  [[nodiscard]] std::string path() const { return std::string(url_path(target())); }
  [[nodiscard]] std::optional<std::string> query(std::string_view name) const {
    return url_query(target(), name);
  }

  // A header, its name in any case.
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const {
    hearth_bytes value = {nullptr, 0};
    const hearth_status status =
        table().header(activation_.host(), activation_.id(), call_, detail::slice(name), &value);
    if (status == HEARTH_E_NOT_FOUND) return std::nullopt;
    activation_.check(status, "request header");
    return std::string(detail::view(value));
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> headers() const {
    std::vector<std::pair<std::string, std::string>> all;
    for (std::uint32_t index = 0;; ++index) {
      hearth_bytes name = {nullptr, 0};
      hearth_bytes value = {nullptr, 0};
      const hearth_status status =
          table().header_at(activation_.host(), activation_.id(), call_, index, &name, &value);
      if (status == HEARTH_E_NOT_FOUND) return all;
      activation_.check(status, "request headers");
      all.emplace_back(detail::view(name), detail::view(value));
    }
  }

 private:
  [[nodiscard]] const hearth_http_v1& table() const {
    return detail::need(activation_.tables().http, HEARTH_EXT_HTTP);
  }

  detail::Activation& activation_;
  std::uint64_t call_;
  std::string method_;
  std::string body_;
};

// What on_request returns. The server adds Content-Length and Date.
class Response {
 public:
  explicit Response(unsigned status = 200, std::string body = {})
      : status_(status), body_(std::move(body)) {}

  [[nodiscard]] static Response json(const Json& value, unsigned status = 200) {
    Response response(status, to_text(value));
    response.add_header("Content-Type", "application/json");
    return response;
  }
  [[nodiscard]] static Response text(std::string text, unsigned status = 200) {
    Response response(status, std::move(text));
    response.add_header("Content-Type", "text/plain; charset=utf-8");
    return response;
  }

  Response& add_header(std::string name, std::string value) {
    headers_.emplace_back(std::move(name), std::move(value));
    return *this;
  }

  [[nodiscard]] unsigned status() const noexcept { return status_; }
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& headers() const noexcept {
    return headers_;
  }
  [[nodiscard]] const std::string& body() const noexcept { return body_; }

 private:
  unsigned status_;
  std::string body_;
  std::vector<std::pair<std::string, std::string>> headers_;
};

namespace detail {

// Owns the request for as long as the handler runs, and answers it.
class DeliverResponse {
 public:
  explicit DeliverResponse(std::unique_ptr<Request> request) : request_(std::move(request)) {}

  void operator()(Activation& activation, const Context& context, const Response& response) const {
    const hearth_http_v1& table = need(activation.tables().http, HEARTH_EXT_HTTP);
    const hearth_host* const host = activation.host();
    activation.check(table.set_status(host, activation.id(), context.call, response.status()),
                     "response status");
    for (const auto& [name, value] : response.headers()) {
      activation.check(
          table.add_header(host, activation.id(), context.call, slice(name), slice(value)),
          "response header " + name);
    }
    activation.complete(context.call, HEARTH_OK, response.body());
  }

 private:
  std::unique_ptr<Request> request_;
};

}  // namespace detail

}  // namespace hearth
