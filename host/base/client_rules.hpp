#pragma once
// Rules for clients: values that an operator sets, for the server or for one class.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth {

// How a client proves its identity. kObjectsKey: with the key of objects, which only a class can
// ask for.
enum class ProofKind : std::uint8_t { kNone, kToken, kJwt, kObjectsKey };

struct AuthRules {
  // Nothing: a class has the server's; a server asks for no proof.
  std::optional<ProofKind> type;
  // A template (base/name_template.hpp) of claims: the agent's name must be its result. Empty: any
  // name. Nothing: a class with type kJwt has the server's template; otherwise any name.
  std::optional<std::string> name;

  friend bool operator==(const AuthRules&, const AuthRules&) = default;
};

// Which pages may read answers (the CORS protocol of https://fetch.spec.whatwg.org). Without
// origins, a class has the server's rules, and a server lets no page read answers.
struct CorsRules {
  std::vector<std::string> origins;  // "https://app.example", "null" or "*"
  std::vector<std::string> methods{"GET", "HEAD", "POST", "OPTIONS"};
  std::vector<std::string> headers{"*"};  // "*": the ones that a page asks for
  bool credentials = false;               // cookies; not with the origin "*"
  // How long a browser keeps the answer to a preflight.
  std::chrono::milliseconds max_age = std::chrono::hours(24);
};

// The server checks these rules before an agent of the class sees a client. Agents do not see them.
struct EntryRules {
  AuthRules auth;
  CorsRules cors;
  // Whether every client may read the class's methods. Otherwise only administrators may.
  bool list_methods = false;
};

// A path that is not /agents/..., and its target: a prefix, one agent, or a status.
struct RouteRule {
  std::string path;         // "/api/agents": this path and all paths below it
  bool is_prefix = false;   // the path stands for /agents, or for /agents/{agent_class}
  std::string agent_class;  // as URLs spell it: the path stands for an agent of this class ...
  std::string name;         // ... with this name: a template of claims and of `header:NAME`
  int status = 0;           // the path is refused with this status
};

}  // namespace hearth
