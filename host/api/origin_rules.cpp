#include "api/origin_rules.hpp"

#include "api/cors.hpp"
#include "api/http_errors.hpp"
#include "base/escape.hpp"
#include "base/http_token.hpp"

#include <algorithm>
#include <utility>

namespace hearth::api {
namespace {

bool names(const std::vector<std::string>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

net::HttpResponse forbidden(const std::string& what, std::string_view value,
                            std::string_view setting) {
  return error_answer(403, "forbidden",
                      what + " " + quote_text(value) +
                          " is not served here: the server's setting " + std::string(setting) +
                          " can allow it");
}

}  // namespace

OriginRules::OriginRules(bool on_loopback, const std::vector<std::string>& allowed_origins,
                         const std::vector<std::string>& allowed_hosts)
    : any_origin_(names(allowed_origins, "*")),
      any_host_(names(allowed_hosts, "*")),
      null_origin_(names(allowed_origins, "null")),
      is_loopback_(on_loopback) {
  for (const std::string& text : allowed_origins) {
    auto origin = parse_origin(text);
    if (!origin) continue;
    origin->authority = without_default_port(std::move(origin->authority), origin->scheme);
    origins_.push_back(*std::move(origin));
  }
  for (const std::string& text : allowed_hosts) {
    if (auto host = parse_authority(text)) hosts_.push_back(*std::move(host));
  }
}

std::optional<net::HttpResponse> OriginRules::refusal(const net::HttpHeaders& headers,
                                                      const CorsRules& cors) const {
  const auto host_text = net::find_header(headers, "Host");
  const std::optional<Authority> host = host_text ? parse_authority(*host_text) : std::nullopt;
  // HTTP/1.0 has no Host, and browsers do not speak it.
  if (host_text && !any_host_ && !(host && serves_host(*host))) {
    return forbidden("the host", *host_text, "allowed_hosts");
  }
  if (any_origin_ || names(cors.origins, "*")) return std::nullopt;
  if (!net::find_header(headers, "Origin") &&
      net::find_header(headers, "Sec-Fetch-Site") == "cross-site") {
    return forbidden("a page from", "another site", "allowed_origins");
  }
  for (const net::HttpHeader& header : headers) {
    if (!equal_ignoring_case(header.name, "Origin") || serves_origin(header.value, host) ||
        allows_origin(cors, header.value)) {
      continue;
    }
    return forbidden("a page from", header.value, "allowed_origins");
  }
  return std::nullopt;
}

bool OriginRules::serves_host(const Authority& host) const {
  if (is_loopback_host(host.host)) return true;
  if (!is_loopback_ && hosts_.empty()) return true;
  return std::ranges::any_of(hosts_, [&host](const Authority& allowed) {
    return allowed.host == host.host && (allowed.port.empty() || allowed.port == host.port);
  });
}

bool OriginRules::serves_origin(std::string_view text, const std::optional<Authority>& host) const {
  if (text == "null") return null_origin_;
  auto origin = parse_origin(text);
  if (!origin) return false;
  if (is_loopback_ && is_loopback_host(origin->authority.host)) return true;
  origin->authority = without_default_port(std::move(origin->authority), origin->scheme);
  if (host && without_default_port(*host, origin->scheme) == origin->authority) return true;
  return std::ranges::find(origins_, *origin) != origins_.end();
}

}  // namespace hearth::api
