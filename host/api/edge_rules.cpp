#include "api/edge_rules.hpp"

#include "base/name_template.hpp"
#include "protocol/agent_address.hpp"
#include "protocol/object_address.hpp"
#include "protocol/request_query.hpp"

#include <algorithm>

namespace hearth::api {
namespace {

constexpr std::string_view kHeaderPrefix = "header:";

bool is_same_segment(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const bool is_encoded =
      std::ranges::find(a, '%') != a.end() || std::ranges::find(b, '%') != b.end();
  return is_encoded && protocol::percent_decode(a) == protocol::percent_decode(b);
}

// The rest of the path after the rule's path; absent if the path is not below it.
std::optional<std::string_view> rest_of(std::string_view rule, std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  while (true) {
    const std::string_view wanted = protocol::take_segment(rule);
    if (wanted.empty()) return path;
    if (!is_same_segment(protocol::take_segment(path), wanted)) return std::nullopt;
  }
}

}  // namespace

const CorsRules& cors_of(const EdgeRules& server, const EntryRules* own) {
  return own == nullptr || own->cors.origins.empty() ? server.cors : own->cors;
}

EffectiveAuth auth_of(const EdgeRules& server, const EntryRules* own) {
  const ProofKind servers = server.auth.type.value_or(ProofKind::kNone);
  const std::string_view servers_name = server.auth.name ? *server.auth.name : std::string_view();
  if (own == nullptr) return {servers, servers_name};
  const ProofKind type = own->auth.type.value_or(servers);
  if (own->auth.name) return {type, *own->auth.name};
  return {type, type == ProofKind::kJwt ? servers_name : std::string_view()};
}

bool is_at_or_below(std::string_view root, std::string_view path) {
  return rest_of(root, path).has_value();
}

const RouteRule* find_route(const EdgeRules& rules, std::string_view path) {
  const auto found = std::ranges::find_if(
      rules.routes, [path](const RouteRule& rule) { return is_at_or_below(rule.path, path); });
  return found == rules.routes.end() ? nullptr : &*found;
}

std::optional<std::string> claim_text(const Json& claims, std::string_view claim) {
  if (!claims.is_object()) return std::nullopt;
  const auto found = claims.find(claim);
  if (found == claims.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  return found->is_number_integer() ? std::optional(dump_json(*found)) : std::nullopt;
}

std::optional<std::string> name_of_claims(std::string_view rule, const Json& claims) {
  const auto name = expand_template(
      rule, [&claims](std::string_view claim) { return claim_text(claims, claim); });
  return name ? std::optional(protocol::object_name_of_text(*name)) : std::nullopt;
}

std::optional<std::string> routed_target(const RouteRule& rule, std::string_view target,
                                         const Json& claims, const net::HttpHeaders& headers) {
  const std::size_t path_end = std::min(target.find('?'), target.size());
  const auto rest = rest_of(rule.path, target.substr(0, path_end));
  const std::string tail = std::string(rest.value_or("")) + std::string(target.substr(path_end));
  const std::string agents = rule.agent_class.empty() ? "/agents" : "/agents/" + rule.agent_class;
  if (rule.is_prefix) return agents + tail;
  const auto name = expand_template(
      rule.name, [&claims, &headers](std::string_view of) -> std::optional<std::string> {
        if (!of.starts_with(kHeaderPrefix)) return claim_text(claims, of);
        const auto value = net::find_header(headers, of.substr(kHeaderPrefix.size()));
        return value ? std::optional<std::string>(*value) : std::nullopt;
      });
  if (!name) return std::nullopt;
  return agents + '/' + protocol::object_name_of_text(*name) + tail;
}

}  // namespace hearth::api
