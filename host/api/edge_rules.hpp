#pragma once
// The operator's rules for a whole server: which clients may connect, which pages may read answers,
// which paths lead to agents. The settings of a class may override them.

#include "auth/authenticator.hpp"
#include "base/client_rules.hpp"
#include "json/json.hpp"
#include "net/http.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::api {

struct EdgeRules {
  AuthRules auth;
  CorsRules cors;
  std::vector<RouteRule> routes;
  // Null: every proof is rejected. Outlives the rules and their users.
  auth::Authenticator* authenticator = nullptr;
  // The proof that ProofKind::kObjectsKey asks for; empty: every one is rejected.
  std::string objects_key;
};

// The rules for a class. `own`: its own rules; null: the answer belongs to no class.
[[nodiscard]] const CorsRules& cors_of(const EdgeRules& server, const EntryRules* own);
struct EffectiveAuth {
  ProofKind type = ProofKind::kNone;
  std::string_view name;  // a template; empty: any. Points into the rules
};
[[nodiscard]] EffectiveAuth auth_of(const EdgeRules& server, const EntryRules* own);

// The path of a request's target, without the query.
[[nodiscard]] inline std::string_view path_of(std::string_view target) {
  return target.substr(0, target.find('?'));
}

// Whether a path (without a query) is `root`, or below it, in any spelling. Segments are compared
// decoded, as names of objects are, and empty segments are skipped: //old and /%6Fld are /old. An
// encoded slash ends no segment.
[[nodiscard]] bool is_at_or_below(std::string_view root, std::string_view path);

// The first rule whose path is this path (without a query), or an ancestor of it. Null: none.
[[nodiscard]] const RouteRule* find_route(const EdgeRules& rules, std::string_view path);

// A claim as a name: a text, or a whole number. Absent if the claim is absent or of another kind.
[[nodiscard]] std::optional<std::string> claim_text(const Json& claims, std::string_view claim);

// The agent's name that a template of claims gives, as it stands in URLs
// (protocol/object_address.hpp). Absent where expand_template() gives nothing.
[[nodiscard]] std::optional<std::string> name_of_claims(std::string_view rule, const Json& claims);

// The target that a route leads to: /agents/{class}/{name}, and the rest of the request's target.
// The name is spelled as by name_of_claims(). Absent if there is no name, or a header is missing.
// `rule` leads to an agent, or is a prefix.
[[nodiscard]] std::optional<std::string> routed_target(const RouteRule& rule,
                                                       std::string_view target, const Json& claims,
                                                       const net::HttpHeaders& headers);

}  // namespace hearth::api
