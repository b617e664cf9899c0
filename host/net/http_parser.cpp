#include "net/http_parser.hpp"

#include "net/http_text.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/error_code.hpp>

#include <string>
#include <utility>

namespace hearth::net {
namespace {

namespace http = boost::beast::http;

HttpResponse refusal_for(const boost::system::error_code& error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return error_response(431, "bad_request", "the request's head is too large");
  }
  if (error == http::error::body_limit) {
    return error_response(413, "limit_exceeded", "the request's body is too large");
  }
  if (error == http::error::bad_version) {
    return error_response(505, "bad_request", "only HTTP/1.0 and HTTP/1.1 are spoken");
  }
  return error_response(400, "bad_request", "the request is not valid HTTP");
}

// A client must not be able to speak with the host's voice.
bool only_a_host_may_send(std::string_view name) {
  return equal_ignoring_case(name, "x-agents-lifecycle-props") ||
         equal_ignoring_case(name, "x-cf-agents-subagent-url");
}

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

struct HttpParser::Parts {
  const NetOptions& options;
  http::request_parser<http::string_body> parser;
  HttpResponse refusal;
  bool head_reported = false;
};

HttpParser::HttpParser(const NetOptions& options) : parts_(new Parts{options, {}, {}, false}) {
  parts_->parser.header_limit(static_cast<std::uint32_t>(options.max_header));
  parts_->parser.body_limit(options.max_body);
}

HttpParser::~HttpParser() = default;

HttpParser::Step HttpParser::feed(std::string_view bytes, std::size_t& used) {
  auto& parser = parts_->parser;
  used = 0;
  while (!parser.is_done()) {
    if (parser.is_header_done() && !parts_->head_reported) break;
    if (used == bytes.size()) return Step::kMore;
    boost::system::error_code error;
    used += parser.put(boost::asio::buffer(bytes.substr(used)), error);
    if (error == http::error::need_more) return Step::kMore;
    if (error) {
      parts_->refusal = refusal_for(error);
      return Step::kRefused;
    }
  }
  if (parts_->head_reported) return Step::kDone;

  parts_->head_reported = true;
  const auto& head = parser.get();
  if (head.target().size() > parts_->options.max_target) {
    parts_->refusal = error_response(414, "bad_request", "the request's target is too long");
    return Step::kRefused;
  }
  // RFC 9112 3.2: exactly one Host, from 1.1 on.
  const auto hosts = head.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && head.version() >= 11)) {
    parts_->refusal = error_response(400, "bad_request", "a request has exactly one Host header");
    return Step::kRefused;
  }
  return Step::kHeadDone;
}

const HttpResponse& HttpParser::refusal() const {
  return parts_->refusal;
}

bool HttpParser::keep_alive() const {
  return parts_->parser.get().keep_alive();
}

bool HttpParser::expects_continue() const {
  const auto& head = parts_->parser.get();
  return head.version() >= 11 &&
         equal_ignoring_case(view(head[http::field::expect]), "100-continue");
}

bool HttpParser::is_http_1_0() const {
  return parts_->parser.get().version() < 11;
}

HttpRequest HttpParser::take() {
  auto& message = parts_->parser.get();
  HttpRequest request;
  request.method = view(message.method_string());
  request.target = view(message.target());
  for (const auto& field : message) {
    const std::string_view name = view(field.name_string());
    if (only_a_host_may_send(name)) continue;
    request.headers.push_back({std::string(name), std::string(view(field.value()))});
  }
  request.body = std::move(message.body());
  return request;
}

}  // namespace hearth::net
