#include "net/http_parser.hpp"

#include "base/authority.hpp"
#include "base/http_token.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
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

// Checks the bytes up to the first empty line, which ends a head or a trailer. `at_line_start`: the
// bytes before these have ended a line, so the first line may be empty. The parser would wait for
// the rest of a line that such a line feed ends.
bool has_bare_line_feed(std::string_view bytes, bool at_line_start) {
  if (at_line_start && bytes.starts_with("\r\n")) return false;
  bytes = bytes.substr(0, bytes.find("\r\n\r\n"));
  for (std::size_t at = bytes.find('\n'); at != std::string_view::npos;
       at = bytes.find('\n', at + 1)) {
    if (at == 0 || bytes[at - 1] != '\r') return true;
  }
  return false;
}

HttpResponse bare_line_feed() {
  return error_response(400, "bad_request", "a line does not end with CRLF");
}

// Whether the line of a chunk is complete and ends in a quoted value, whose end the parser would
// wait for. `rest`: from the line on, perhaps with the CRLF of the chunk before.
bool ends_in_quotes(std::string_view rest) {
  if (rest.starts_with("\r\n")) rest.remove_prefix(2);
  const std::size_t end = rest.find("\r\n");
  bool in_quotes = false;
  for (std::size_t at = 0; end != std::string_view::npos && at < end; ++at) {
    if (rest[at] == '"') in_quotes = !in_quotes;
    if (rest[at] == '\\' && in_quotes) ++at;
  }
  return in_quotes;
}

// Beast accepts every character in a quoted value of an extension.
void check_extensions(std::uint64_t /*size*/, boost::beast::string_view extensions,
                      boost::system::error_code& error) {
  error = {};
  if (!is_http_field_value({extensions.data(), extensions.size()}))
    error = http::error::bad_chunk_extension;
}

// RFC 9112 section 3.2.2: a target may be absolute. Then its authority counts, not Host.
struct SplitTarget {
  bool is_absolute = false;
  std::string_view authority;  // of an absolute target
  std::string_view rest;
};
SplitTarget split_target(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equal_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    return {true, target.substr(0, end), target.substr(end)};
  }
  return {false, {}, target};
}

// Percent-encodes bytes that are not ASCII, as RFC 3986 requires of clients.
std::string ascii_target(std::string_view target) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  text.reserve(target.size());
  for (const char c : target) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text.push_back(c);
    } else {
      text.append({'%', kDigits[byte >> 4U], kDigits[byte & 0xFU]});
    }
  }
  return text;
}

// A client must not set headers that only a host sets.
bool only_a_host_may_send(std::string_view name) {
  return equal_ignoring_case(name, "x-agents-lifecycle-props") ||
         equal_ignoring_case(name, "x-cf-agents-subagent-url");
}

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

// The length of a body must be unambiguous: a proxy that reads another length would treat the rest
// of one request as the next request (RFC 9112 section 11.2). So there is one way to say "chunked",
// and every ambiguous request is refused. Without "chunked" at its end a body has no length (RFC
// 9112 section 6.3); codings below it are not understood.
std::optional<HttpResponse> framing_fault(const http::request<http::string_body>& head) {
  constexpr std::string_view kOnly = "the only supported Transfer-Encoding is 'chunked'";
  const auto codings = head.count(http::field::transfer_encoding);
  if (codings == 0) return std::nullopt;
  if (head.version() < 11)
    return error_response(400, "bad_request", "HTTP/1.0 has no Transfer-Encoding");
  if (head.count(http::field::content_length) != 0) {
    return error_response(400, "bad_request",
                          "a request has a Transfer-Encoding or a Content-Length, not both");
  }
  if (codings == 1 && equal_ignoring_case(view(head[http::field::transfer_encoding]), "chunked"))
    return std::nullopt;
  std::string list;
  for (const auto& field : head) {
    if (field.name() == http::field::transfer_encoding)
      list += (list.empty() ? "" : ",") + std::string(view(field.value()));
  }
  const std::size_t last = list.rfind(',') + 1;  // 0: there is only one
  const HttpHeaders before{{"codings", list.substr(0, last)}};
  const bool is_chunked = header_has_token({{"codings", list.substr(last)}}, "codings", "chunked");
  const bool is_once =
      list.find_first_not_of(", \t") < last && !header_has_token(before, "codings", "chunked");
  if (is_chunked && is_once) return error_response(501, "unsupported", kOnly);
  return error_response(400, "bad_request", kOnly);
}

HttpRequest describe_head(const http::request<http::string_body>& message, HttpHeaders headers) {
  HttpRequest request;
  request.method = view(message.method_string());
  const std::string_view target = split_target(view(message.target())).rest;
  request.target = ascii_target(target);
  // "http://host" and "http://host?query" mean the root.
  if (!target.starts_with('/') && target != "*") request.target.insert(0, "/");
  request.headers = std::move(headers);
  return request;
}

}  // namespace

struct HttpParser::Parts {
  http::request_parser<http::string_body> parser{};
  std::function<void(std::uint64_t, boost::beast::string_view, boost::system::error_code&)>
      extensions_check = check_extensions;  // Beast refers to it
};

HttpParser::HttpParser(const NetOptions& options)
    : options_(options), parts_(std::make_unique<Parts>()) {
  parts_->parser.header_limit(static_cast<std::uint32_t>(options.max_header));
  parts_->parser.body_limit(options.max_body);
  parts_->parser.on_chunk_header(parts_->extensions_check);
}

HttpParser::~HttpParser() = default;

HttpParser::Step HttpParser::feed(std::string_view bytes, std::size_t& used) {
  auto& parser = parts_->parser;
  used = 0;
  if (!parser.is_header_done() && has_bare_line_feed(bytes, at_line_start_)) {
    return refuse(bare_line_feed());
  }
  while (!parser.is_done()) {
    if (parser.is_header_done() && !head_reported_) break;
    if (used == bytes.size()) return Step::kMore;
    boost::system::error_code error;
    used += parser.put(boost::asio::buffer(bytes.substr(used)), error);
    if (used > 0) at_line_start_ = bytes[used - 1] == '\n';
    if (error == http::error::need_more) return judge_rest(bytes.substr(used));
    // If the Content-Length is too long, the head is complete.
    if (error == http::error::body_limit && !head_reported_ && check_head() == Step::kRefused) {
      return Step::kRefused;
    }
    if (error) return refuse(refusal_for(error));
  }
  if (head_reported_) return Step::kDone;
  return check_head();
}

HttpParser::Step HttpParser::judge_rest(std::string_view rest) {
  if (!head_reported_) return Step::kMore;  // Beast limits the head
  if (has_bare_line_feed(rest, false)) return refuse(bare_line_feed());
  if (ends_in_quotes(rest)) return refuse(refusal_for(http::error::bad_chunk));
  if (rest.size() <= options_.max_header) return Step::kMore;
  return refuse(error_response(400, "bad_request", "a chunk's line or the trailer is too long"));
}

HttpParser::Step HttpParser::check_head() {
  head_reported_ = true;
  const auto& head = parts_->parser.get();
  if (head.target().size() > options_.max_target) {
    return refuse(error_response(414, "bad_request", "the request's target is too long"));
  }
  const auto fields = static_cast<std::size_t>(std::distance(head.begin(), head.end()));
  if (fields > options_.max_fields) {
    return refuse(error_response(431, "bad_request", "the request has too many header fields"));
  }
  // RFC 9112 3.2: exactly one Host, from 1.1 on.
  const auto hosts = head.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && head.version() >= 11)) {
    return refuse(error_response(400, "bad_request", "a request has exactly one Host header"));
  }
  const SplitTarget target = split_target(view(head.target()));
  const std::string_view host =
      target.is_absolute ? target.authority : view(head[http::field::host]);
  if ((hosts != 0 || target.is_absolute) && !parse_authority(host)) {
    return refuse(error_response(400, "bad_request", "the request's host is not valid"));
  }
  if (head.method() == http::verb::connect || head.method() == http::verb::trace) {
    HttpResponse refusal =
        error_response(405, "method_not_allowed", "CONNECT and TRACE are not served");
    refusal.headers.push_back({"Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"});
    return refuse(std::move(refusal));
  }
  if (!target.is_absolute && !target.rest.starts_with('/') && target.rest != "*") {
    return refuse(error_response(400, "bad_request", "the request's target is not valid"));
  }
  if (auto fault = framing_fault(head)) return refuse(*std::move(fault));
  for (const auto& field : head) {
    const std::string_view name = view(field.name_string());
    if (only_a_host_may_send(name)) continue;
    const bool is_host = field.name() == http::field::host;
    headers_.push_back({std::string(name), std::string(is_host ? host : view(field.value()))});
  }
  // RFC 9112 section 9.3. Beast looks at one of several fields.
  keep_alive_ = !header_has_token(headers_, "Connection", "close") &&
                (head.version() >= 11 || header_has_token(headers_, "Connection", "keep-alive"));
  expects_continue_ =
      head.version() >= 11 && equal_ignoring_case(view(head[http::field::expect]), "100-continue");
  return Step::kHeadDone;
}

HttpParser::Step HttpParser::refuse(HttpResponse answer) {
  refusal_ = std::move(answer);
  return Step::kRefused;
}

bool HttpParser::is_http_1_0() const {
  return parts_->parser.get().version() < 11;
}

bool HttpParser::has_body() const {
  return !parts_->parser.is_done();
}

// Beast has reserved the declared length. A copy lets that go.
std::string HttpParser::take_body() {
  std::string& body = parts_->parser.get().body();
  std::string taken(body);
  std::string().swap(body);
  return taken;
}

std::size_t HttpParser::body_size() const {
  return parts_->parser.get().body().size();
}

std::optional<HttpRequest> HttpParser::head() const {
  if (headers_.empty()) return std::nullopt;
  return describe_head(parts_->parser.get(), headers_);
}

HttpRequest HttpParser::take() {
  auto& message = parts_->parser.get();
  HttpRequest request = describe_head(message, std::move(headers_));
  request.body = std::move(message.body());
  return request;
}

}  // namespace hearth::net
