#include "net/outbound_target.hpp"

#include "base/http_token.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>

#include <curl/curl.h>

namespace hearth::net {
namespace {

using CurlUrl = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

constexpr std::size_t kMostUrlBytes = 16384;  // as many servers do, also this one (NetOptions)

Error bad_request(std::string why) {
  return {Errc::kInvalidArgument, std::move(why)};
}

std::optional<std::string> url_part(const CurlUrl& url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK) return std::nullopt;
  std::string copy(text);
  curl_free(text);
  return copy;
}

std::string usual_host(std::string host) {
  if (host.ends_with('.')) host.pop_back();
  std::ranges::transform(host, host.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const std::optional<IpAddress> address = parse_ip_host(host);
  return address ? to_text(*address) : host;
}

Result<OutboundTarget> target_of(const CurlUrl& url) {
  const std::optional<std::string> scheme = url_part(url, CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return bad_request("the URL is not http or https");
  const std::optional<std::string> host = url_part(url, CURLUPART_HOST);
  if (!host || url_part(url, CURLUPART_ZONEID)) return bad_request("the URL's host is not valid");
  // libcurl's treatment of other letters depends on the process's locale.
  if (std::ranges::any_of(*host, [](char c) { return static_cast<unsigned char>(c) > 0x7F; }))
    return bad_request("the URL's host is not in ASCII: international names are in punycode");
  OutboundTarget target{.url = {}, .host = usual_host(*host), .is_https = scheme == "https"};
  if (target.host.empty()) return bad_request("the URL has no host");
  // No name has an empty label, and parsers would read "a.." as different hosts.
  if (target.host.starts_with('.') || target.host.ends_with('.') ||
      target.host.find("..") != std::string::npos)
    return bad_request("the URL's host is not valid");
  const bool is_v6 = target.host.find(':') != std::string::npos;
  const std::string in_url = is_v6 ? "[" + target.host + "]" : target.host;
  const std::string port = url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT).value_or("");
  std::from_chars(port.data(), port.data() + port.size(), target.port);
  if (target.port == 0) return bad_request("the URL's port is not valid");
  if (curl_url_set(url.get(), CURLUPART_HOST, in_url.c_str(), 0) != CURLUE_OK)
    return bad_request("the URL's host is not valid");
  curl_url_set(url.get(), CURLUPART_FRAGMENT, nullptr, 0);
  target.url = url_part(url, CURLUPART_URL).value_or("");
  if (target.url.empty()) return bad_request("the URL is not valid");
  return target;
}

Result<OutboundTarget> parse_with(CurlUrl url, std::string_view text, unsigned flags) {
  const bool has_control = std::ranges::any_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  if (has_control || text.size() > kMostUrlBytes) return bad_request("the URL is not valid");
  const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, std::string(text).c_str(), flags);
  if (code == CURLUE_USER_NOT_ALLOWED) return bad_request("the URL has a user or a password");
  if (code == CURLUE_UNSUPPORTED_SCHEME) return bad_request("the URL is not http or https");
  if (code != CURLUE_OK) return bad_request("the URL is not valid");
  return target_of(url);
}

bool is_one_of(const HttpHeader& header, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(
      names, [&header](std::string_view name) { return equal_ignoring_case(header.name, name); });
}

Result<void> check_header(const HttpHeader& header) {
  if (!is_http_token(header.name)) return bad_request("a header's name is not valid");
  if (is_host_owned_request_header(header.name))
    return bad_request("the header " + header.name + " is set by the host");
  if (!is_http_field_value(header.value))
    return bad_request("the value of the header " + header.name + " is not valid");
  return {};
}

void drop_headers(HttpHeaders& headers, std::initializer_list<std::string_view> names) {
  std::erase_if(headers, [names](const HttpHeader& header) { return is_one_of(header, names); });
}

void keep_headers(HttpHeaders& headers, std::initializer_list<std::string_view> names) {
  std::erase_if(headers, [names](const HttpHeader& header) { return !is_one_of(header, names); });
}

}  // namespace

bool OutboundTarget::has_origin_of(const OutboundTarget& other) const {
  return host == other.host && port == other.port && is_https == other.is_https;
}

Result<OutboundTarget> parse_target(std::string_view url) {
  return parse_with(CurlUrl(curl_url(), &curl_url_cleanup), url, CURLU_DISALLOW_USER);
}

Result<OutboundTarget> resolve_location(const OutboundTarget& from, std::string_view location) {
  CurlUrl url(curl_url(), &curl_url_cleanup);
  curl_url_set(url.get(), CURLUPART_URL, from.url.c_str(), 0);
  return parse_with(std::move(url), location, CURLU_DISALLOW_USER | CURLU_URLENCODE);
}

Result<OutboundTarget> parse_proxy(std::string_view url) {
  Result<OutboundTarget> proxy = parse_with(CurlUrl(curl_url(), &curl_url_cleanup), url, 0);
  if (!proxy || proxy->is_https)
    return bad_request("the proxy is not \"http://[user:password@]host:port\"");
  return proxy;
}

Result<void> check_words(const OutboundRequest& request) {
  if (!is_http_token(request.method) || is_forbidden_http_method(request.method))
    return bad_request("the method is not valid");
  if (request.method == "HEAD" && !request.body.empty()) return bad_request("HEAD has no body");
  for (const HttpHeaders* headers : {&request.headers, &request.secret_headers}) {
    for (const HttpHeader& header : *headers) {
      if (Result<void> checked = check_header(header); !checked) return checked;
    }
  }
  return {};
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

Result<void> follow_redirect(OutboundRequest& request, int status, bool same_origin) {
  const bool becomes_get = (status == 303 && request.method != "HEAD") ||
                           ((status == 301 || status == 302) && request.method == "POST");
  if (becomes_get) {
    request.method = "GET";
    request.body.clear();
    drop_headers(request.headers,
                 {"content-type", "content-encoding", "content-language", "content-location"});
  }
  if (same_origin) return {};
  if (!request.body.empty())
    return Error{Errc::kForbidden, "the host redirects the request's body to another origin"};
  request.secret_headers.clear();
  keep_headers(request.headers, {"accept", "accept-language", "range", "user-agent"});
  return {};
}

}  // namespace hearth::net
