#pragma once
// /admin: what an administrator asks a running server.

#include "api/admin_actions.hpp"
#include "api/routes.hpp"
#include "base/logger.hpp"
#include "net/http.hpp"
#include "telemetry/metrics.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::api {

// The rows of the table of routes that begin with /admin; add_routes() has a summary of each. The
// bodies:
//
//  /admin/plugins                       {"plugins":[...],"refused":[...]}: the files that are
//                                       served, and those that are not
//  /admin/plugins/reload                {"files":[...]}; body: nothing, or {"class":"..."}
//  /admin/generations                   {"generations":[...]}: all versions that are loaded
//  /admin/classes                       {"classes":[...]}
//  /admin/classes/{class}/methods       {"class","methods":[...]}, as GET /agents/{class}
//  /admin/quarantine                    {"quarantined":[...]}: classes that are not served because
//                                       they crashed the server too often
//  /admin/quarantine/release            {"released":"...","files":[...]}; body: {"class":"..."}
//  /admin/agents?class=&after=&limit=   {"class","agents":[...],"next":"..." or null}: a page;
//                                       `next` is the `after` of the next one
//  GET /admin/agents/{class}/{name}     one agent; the name as lists print it, with the slashes of
//                                       a sub-agent's path
//  /admin/agents/{class}/{name}/evict   {"evicted":true or false,"state":"..."}
//  DELETE ...                           {"destroyed":true}: all data of the agent are deleted
//  /admin/operations                    {"operations":[...],"skipped":[...],"next":"..." or null}:
//    ?class=&agent=&kind=&state=        a page of the operations that OperationQuery describes.
//    &begun_before_ms=&limit=&after=    `state`: words with commas between them. `skipped`: agents
//                                       that could not be read now
//  .../operations/{class}/{name}/{id}   one of them, with its arguments and result
//  POST .../{id}/resolve                the record after the change. Body: {"outcome":"completed"
//                                       or "not_executed","result":...,"note":"..."}
//
// A name is the part of the agent's own URL, percent-encoded as it is there; `after` is such a
// name, encoded once more. HEAD is answered like GET. Errors are {"error":{"code","message"}}.
//
// Promises
//  P1 Closed      Every path returns 401 without the token, whether the path exists or not.
//  P2 Browsers    A page of another origin (Origin, Sec-Fetch-Site) gets 403 even with the token,
//                 and no answer has a header that would let such a page read it.
//  P3 Bounded     A page of agents has at most kMaxPage; a body longer than kMaxBody (of a
//                 resolution kMaxResolution) is rejected before it is parsed.
//  P4 Logged      Each request for a change is logged (admin.reload, admin.release, admin.evict,
//                 admin.destroy, admin.resolve), and the token never is.
//
// P1: the token is `Authorization: Bearer TOKEN` or `X-Api-Key: TOKEN`. The time that the
// comparison takes does not depend on its text.
//
// Threads    As net::HttpHandler: any loop, concurrently.
// Lifetime   The actions, the logger and the metrics outlive it, and it outlives the server's
//            connections.
class AdminApi {
 public:
  static constexpr std::size_t kMaxPage = 1000;
  static constexpr std::size_t kDefaultPage = 100;
  static constexpr std::size_t kMaxBody = std::size_t{4} << 10;
  static constexpr std::size_t kMaxResolution = std::size_t{64} << 10;

  // `token`: not empty.
  AdminApi(AdminActions& actions, std::string token, Logger& logger, Metrics& metrics);

  // Whether a path (without a query) is /admin or below it, in any spelling. All such paths are for
  // administrators, whether they exist or not.
  [[nodiscard]] static bool is_ours(std::string_view path);

  static constexpr std::string_view kKeys =
      "send the token of this server's administrators: Authorization: Bearer TOKEN";

  // The refusal of a request without the administrators' token (P1, P2); absent: the request has
  // it. `keys`: the message for a request without the right token.
  [[nodiscard]] std::optional<net::HttpResponse> refusal(const net::HttpRequest& request,
                                                         std::string_view keys = kKeys);

  // The rows call this object: it outlives the table's last use.
  void add_routes(Routes& routes);

  // Answers an administrator 404: no row has this path.
  static void refuse_unknown(net::HttpExchange& exchange);

 private:
  using Exchange = std::shared_ptr<net::HttpExchange>;

  void list_plugins(const RouteCall& call);
  void list_generations(const RouteCall& call);
  void list_quarantined(const RouteCall& call);
  void list_classes(const RouteCall& call);
  void reload(const RouteCall& call);
  void release(const RouteCall& call);
  void list_methods(const RouteCall& call);
  void list_agents(const RouteCall& call);
  void list_audit(const RouteCall& call);
  void show_agent(const RouteCall& call);
  void evict_agent(const RouteCall& call);
  void destroy_agent(const RouteCall& call);
  void list_operations(const RouteCall& call);
  void show_operation(const RouteCall& call);
  void resolve_operation(const RouteCall& call);
  void log(std::string_view event, const Exchange& exchange, const AgentName& name);

  AdminActions& actions_;
  const std::string token_;
  Logger& logger_;
  Counter& refusals_;
};

}  // namespace hearth::api
