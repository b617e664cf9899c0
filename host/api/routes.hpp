#pragma once
// The table of routes: one row for each method and path. The server dispatches requests by it, and
// makes the API document from it.

#include "api/object_lookup.hpp"
#include "net/http.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace hearth::api {

// The proof that a request needs.
enum class Access {
  kAnybody,        // none
  kUser,           // what the rules for clients ask for
  kObjectsOwner,   // the key of objects (HttpApiOptions::objects_token), or the administrators'
  kAdministrator,  // the token of the administrators (api/admin_api.hpp)
};

// A request that a row answers. The views point into the request's target, and live as long as the
// exchange.
struct RouteCall {
  std::shared_ptr<net::HttpExchange> exchange;
  std::vector<std::string_view> values;  // of the pattern's parameters, in order, not decoded
  std::string_view query;                // without the `?`
  std::string claims = {};  // of the client's token, a JSON object; empty: no claims are known
  // The {class} and {id} of a row below /objects with Access::kUser: there `served` is not null.
  ObjectAddress object = {};
  std::string_view actor = "administrator";  // of a row of administrators: AdminApi::actor_of()
};

// Bodies and parameters of a route, for the API document (api/openapi.hpp).
struct RouteShape {
  std::string_view query = {};   // names of parameters, with a space between them
  std::string_view body = {};    // a schema of openapi_schemas.hpp; empty: no body
  int status = 200;              // of success
  std::string_view answer = {};  // a schema; empty: the answer is not JSON, or is the agent's own
};

struct Route {
  // "GET" also answers HEAD. "*": each method that no other row of the pattern names.
  std::string_view method;
  // Segments are compared byte by byte. "{name}" takes one segment that is not empty. "{name...}"
  // takes all segments but those that follow it in the pattern. At the end of a pattern it takes
  // the rest of the path, empty or not. "{name...}" is an agent's name (storage/agent_key.hpp):
  // before further segments it takes an odd number, so a sub-agent's name may end with their words.
  std::string_view pattern;
  Access access = Access::kAdministrator;
  std::string_view summary;  // one sentence
  std::function<void(const RouteCall&)> answer;
  RouteShape shape = {};
};

// Rules
//   - The first row whose pattern fits the path decides the pattern. Put "/a/b" before "/a/{x}".
//   - Rows of one pattern have one Access.
//
// Threads   find() and all() from any thread, once the last row was added.
class Routes {
 public:
  struct Found {
    bool is_path = false;                    // some row has this path
    const Route* route = nullptr;            // null: no row of the path has the method
    Access access = Access::kAdministrator;  // of the path; valid only if is_path
    std::vector<std::string_view> values;
  };

  // The texts of the row outlive the table: string literals.
  void add(Route route);

  // `path`: without the query.
  [[nodiscard]] Found find(std::string_view method, std::string_view path) const;

  // 405 for a path that has rows, with the methods of the rows in `Allow`.
  [[nodiscard]] net::HttpResponse wrong_method(std::string_view path) const;

  [[nodiscard]] std::span<const Route> all() const { return rows_; }

 private:
  std::vector<Route> rows_;
};

}  // namespace hearth::api
