#include "api/edge_rules.hpp"

#include "base/name_template.hpp"

#include <algorithm>

namespace hearth::api {
namespace {

constexpr std::string_view kHeaderPrefix = "header:";

// As a browser writes a segment of a path, and with slashes encoded too: a value is one segment.
std::string path_segment(std::string_view text) {
  constexpr std::string_view kPlain = "-._~!$&'()*+,;=:@";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || kPlain.find(c) != std::string_view::npos;
    if (is_plain) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4U];
    encoded += kDigits[byte & 15U];
  }
  return encoded;
}

// What the path has beyond the rule's; nothing if it is not below it.
std::optional<std::string_view> rest_of(std::string_view rule, std::string_view path) {
  while (rule.ends_with('/')) rule.remove_suffix(1);
  if (!path.starts_with(rule)) return std::nullopt;
  const std::string_view rest = path.substr(rule.size());
  if (!rest.empty() && rest.front() != '/') return std::nullopt;
  return rest;
}

}  // namespace

const CorsRules& cors_of(const EdgeRules& server, const runtime::ClassSettings* settings) {
  return settings == nullptr || settings->cors.origins.empty() ? server.cors : settings->cors;
}

EffectiveAuth auth_of(const EdgeRules& server, const runtime::ClassSettings* settings) {
  const ProofKind servers = server.auth.type.value_or(ProofKind::kNone);
  if (settings == nullptr) return {servers, server.auth.name};
  const AuthRules& own = settings->auth;
  if (own.type) return {*own.type, own.name};
  return {servers, own.name.empty() ? server.auth.name : own.name};
}

const RouteRule* find_route(const EdgeRules& rules, std::string_view path) {
  const auto found = std::ranges::find_if(
      rules.routes, [path](const RouteRule& rule) { return rest_of(rule.path, path).has_value(); });
  return found == rules.routes.end() ? nullptr : &*found;
}

std::optional<std::string> claim_text(const Json& claims, std::string_view claim) {
  if (!claims.is_object()) return std::nullopt;
  const auto found = claims.find(claim);
  if (found == claims.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  return found->is_number_integer() ? std::optional(dump_json(*found)) : std::nullopt;
}

std::optional<std::string> routed_target(const RouteRule& rule, std::string_view target,
                                         const Json& claims, const net::HttpHeaders& headers) {
  const std::size_t path_end = std::min(target.find('?'), target.size());
  const auto rest = rest_of(rule.path, target.substr(0, path_end));
  const std::string tail = std::string(rest.value_or("")) + std::string(target.substr(path_end));
  if (rule.is_prefix) return "/agents" + tail;
  const auto name = expand_template(
      rule.name, [&claims, &headers](std::string_view of) -> std::optional<std::string> {
        if (!of.starts_with(kHeaderPrefix)) return claim_text(claims, of);
        const auto value = net::find_header(headers, of.substr(kHeaderPrefix.size()));
        return value ? std::optional<std::string>(*value) : std::nullopt;
      });
  if (!name) return std::nullopt;
  return "/agents/" + rule.agent_class + '/' + path_segment(*name) + tail;
}

}  // namespace hearth::api
