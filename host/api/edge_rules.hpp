#pragma once
// What an operator asks of clients, for a whole server: who may connect, which pages may read
// answers, which paths lead to agents. A class may say otherwise in its settings.

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
  // Null: nobody has a proof that is good. Outlives whoever uses the rules.
  auth::Authenticator* authenticator = nullptr;
};

// What holds for a class; null: for what is of no class.
[[nodiscard]] const CorsRules& cors_of(const EdgeRules& server, const EntryRules* own);
struct EffectiveAuth {
  ProofKind type = ProofKind::kNone;
  std::string_view name;  // a template; empty: any. Points into the rules
};
[[nodiscard]] EffectiveAuth auth_of(const EdgeRules& server, const EntryRules* own);

// Whether a path (without a query) is `root`, or below it, however it is spelled: segments are
// compared decoded, as names of objects are, and empty ones count for nothing. So //old and /%6Fld
// are /old. An encoded slash ends no segment.
[[nodiscard]] bool is_at_or_below(std::string_view root, std::string_view path);

// The rule of a path (without a query): the first whose path it is, or is below. Null: none.
[[nodiscard]] const RouteRule* find_route(const EdgeRules& rules, std::string_view path);

// A claim as a name: a text, or a whole number. Nothing if it is absent or of another kind.
[[nodiscard]] std::optional<std::string> claim_text(const Json& claims, std::string_view claim);

// The agent's name that a template of claims gives, as it stands in URLs
// (protocol/object_address.hpp). Nothing as expand_template().
[[nodiscard]] std::optional<std::string> name_of_claims(std::string_view rule, const Json& claims);

// The target that a route stands for: /agents/{class}/{name} and what follows in the request's
// target. The name is spelled as by name_of_claims(). Nothing if that has none, or a header is not
// there. `rule` is of an agent or a prefix.
[[nodiscard]] std::optional<std::string> routed_target(const RouteRule& rule,
                                                       std::string_view target, const Json& claims,
                                                       const net::HttpHeaders& headers);

}  // namespace hearth::api
