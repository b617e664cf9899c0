#pragma once
// What is asked of clients: values that an operator sets, for a server or for one class.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth {

// What proves who a client is.
enum class ProofKind : std::uint8_t { kNone, kToken, kJwt };

struct AuthRules {
  // Nothing: what holds for the server. Of a server: nobody is asked.
  std::optional<ProofKind> type;
  // A template (base/name_template.hpp) of claims: the agent's name must be what it gives. Empty:
  // any name. Nothing: of a class whose clients have claims, the server's; else any.
  std::optional<std::string> name;

  friend bool operator==(const AuthRules&, const AuthRules&) = default;
};

// Which pages may read answers (the CORS protocol of https://fetch.spec.whatwg.org). None without
// origins: then, for a class, what holds for the server.
struct CorsRules {
  std::vector<std::string> origins;  // "https://app.example", "null" or "*"
  std::vector<std::string> methods{"GET", "HEAD", "POST", "OPTIONS"};
  std::vector<std::string> headers{"*"};  // "*": those that a page asks for
  bool credentials = false;               // cookies; not with the origin "*"
  // For how long a browser keeps the answer to a preflight.
  std::chrono::milliseconds max_age = std::chrono::hours(24);
};

// What a class asks of clients before an agent of it hears of them. No agent sees it.
struct EntryRules {
  AuthRules auth;
  CorsRules cors;
  // Whether everybody may read the class's methods, not administrators alone.
  bool list_methods = false;
};

// A path that is not /agents/... and what it leads to. Exactly one of the three is set.
struct RouteRule {
  std::string path;         // "/api/agents": itself and what is below it
  bool is_prefix = false;   // the path stands for /agents
  std::string agent_class;  // as URLs spell it: the path is the agent of this class and ...
  std::string name;         // ... of this name: a template of claims and of `header:NAME`
  int status = 0;           // the path is refused with it
};

}  // namespace hearth
