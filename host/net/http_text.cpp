#include "net/http_text.hpp"

#include "base/http_token.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace hearth::net {
namespace {

constexpr std::string_view kCorsPrefix = "Access-Control-";

template <class Number>
void append_number(std::string& out, Number number, int base = 10) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
  out.append(digits.data(), end);
}

std::size_t count_headers(const HttpHeaders& headers, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(
      headers, [name](const HttpHeader& one) { return equal_ignoring_case(one.name, name); }));
}

bool is_valid_header(const HttpHeader& header) {
  return is_http_token(header.name) && is_http_field_value(header.value);
}

// 16 bytes in base64: 22 characters and "==".
bool is_web_socket_key(std::string_view key) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return key.size() == 24 && key.ends_with("==") &&
         key.substr(0, 22).find_first_not_of(kAlphabet) == std::string_view::npos;
}

}  // namespace

std::optional<std::string_view> find_header(const HttpHeaders& headers, std::string_view name) {
  for (const HttpHeader& header : headers) {
    if (equal_ignoring_case(header.name, name)) return header.value;
  }
  return std::nullopt;
}

bool header_has_token(const HttpHeaders& headers, std::string_view name, std::string_view token) {
  for (const HttpHeader& header : headers) {
    if (!equal_ignoring_case(header.name, name)) continue;
    std::string_view rest = header.value;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      if (equal_ignoring_case(trimmed(rest.substr(0, comma)), token)) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return false;
}

HttpResponse error_response(int status, std::string_view code, std::string_view message) {
  HttpResponse response;
  response.status = status;
  response.headers.push_back({"Content-Type", "application/json"});
  response.body.append(R"({"error":{"code":")").append(code);
  response.body.append(R"(","message":")").append(message).append(R"("}})");
  return response;
}

std::string too_many_reason(std::string_view what) {
  return "too many " + std::string(what) + ": try again later";
}

HttpResponse too_many_response(std::string_view what) {
  HttpResponse response = error_response(429, "limit_exceeded", too_many_reason(what));
  response.headers.push_back({"Retry-After", std::to_string(AddressUse::kSpan.count())});
  return response;
}

HttpResponse busy_response() {
  HttpResponse response = error_response(
      503, "unavailable", "the server has no more memory for clients: try again later");
  response.headers.push_back({"Retry-After", "1"});
  return response;
}

std::string_view reason_phrase(int status) {
  static constexpr std::pair<int, std::string_view> kPhrases[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {206, "Partial Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {422, "Unprocessable Content"},
      {425, "Too Early"},
      {426, "Upgrade Required"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
      {507, "Insufficient Storage"},
  };
  for (const auto& [known, phrase] : kPhrases) {
    if (known == status) return phrase;
  }
  return {};
}

HttpResponse replacement_for(const HttpResponse& invalid) {
  HttpResponse response = error_response(500, "internal", "the response was not valid");
  for (const HttpHeader& header : invalid.headers) {
    const std::string_view name = header.name;
    const bool is_kept = equal_ignoring_case(name, "Vary") ||
                         equal_ignoring_case(name.substr(0, kCorsPrefix.size()), kCorsPrefix);
    if (is_kept && is_valid_header(header)) response.headers.push_back(header);
  }
  return response;
}

bool append_head(std::string& out, const HttpResponse& response, const ResponseHead& head) {
  // 1xx would announce another response, and 101 another protocol.
  if (response.status < 200 || response.status > 599) return false;
  for (const HttpHeader& header : response.headers) {
    if (!is_valid_header(header)) return false;
  }

  out.append("HTTP/1.1 ");
  append_number(out, response.status);
  out.append(" ").append(reason_phrase(response.status)).append("\r\n");
  for (const HttpHeader& header : response.headers) {
    if (is_host_owned_header(header.name)) continue;
    out.append(header.name).append(": ").append(header.value).append("\r\n");
  }
  out.append("Server: ").append(kServerName).append("\r\n");
  if (!head.date.empty()) out.append("Date: ").append(head.date).append("\r\n");
  if (head.framing == BodyFraming::kLength) {
    out.append("Content-Length: ");
    append_number(out, head.length);
    out.append("\r\n");
  } else if (head.framing == BodyFraming::kChunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  }
  out.append(head.keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n");
  return true;
}

void append_chunk(std::string& out, std::string_view part) {
  if (part.empty()) return;
  append_number(out, part.size(), 16);
  out.append("\r\n").append(part).append("\r\n");
}

std::optional<HttpResponse> upgrade_fault(const HttpRequest& request) {
  const HttpHeaders& headers = request.headers;
  if (request.method != "GET") {
    return error_response(400, "bad_request", "a WebSocket handshake is a GET request");
  }
  if (!header_has_token(headers, "Connection", "upgrade")) {
    return error_response(400, "bad_request", "the header 'Connection: upgrade' is missing");
  }
  if (find_header(headers, "Transfer-Encoding") ||
      find_header(headers, "Content-Length").value_or("0") != "0") {
    return error_response(400, "bad_request", "a WebSocket handshake has no body");
  }
  if (find_header(headers, "Sec-WebSocket-Version") != "13") {
    HttpResponse response = error_response(
        426, "bad_request", "only version 13 of the WebSocket protocol is supported");
    response.headers.push_back({"Sec-WebSocket-Version", "13"});
    return response;
  }
  // RFC 6455 11.3.1: there is exactly one key.
  const auto key = find_header(headers, "Sec-WebSocket-Key");
  if (count_headers(headers, "Sec-WebSocket-Key") != 1 || !key || !is_web_socket_key(*key)) {
    return error_response(400, "bad_request", "the header 'Sec-WebSocket-Key' is not valid");
  }
  return std::nullopt;
}

}  // namespace hearth::net
