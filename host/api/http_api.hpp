#pragma once
// All HTTP answers of the server: the table of routes, and the rules for all routes.

#include "api/admin_api.hpp"
#include "api/agents_endpoint.hpp"
#include "api/edge_rules.hpp"
#include "api/objects_endpoint.hpp"
#include "api/origin_rules.hpp"
#include "api/readiness.hpp"
#include "api/routes.hpp"
#include "base/logger.hpp"
#include "base/random.hpp"
#include "net/http.hpp"
#include "protocol/agent_address.hpp"
#include "runtime/runtime.hpp"
#include "telemetry/metrics.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hearth::api {

struct HttpApiOptions {
  // Bytes of an agent's name, as it stands in the URL. The network's limit on a target must leave
  // room for names that are too long: only a request that gets here can be told to stop retrying.
  std::size_t max_name_bytes = protocol::kDefaultMaxNameBytes;
  // Lets administrators in; null: nothing of theirs exists. Outlives the HttpApi.
  AdminApi* admin = nullptr;
  // The rows that the server answers itself, below /admin and /objects. What they call outlives the
  // HttpApi.
  std::vector<Route> rows = {};
  EdgeRules edge = {};
  // The key that /objects asks for; empty: none. A request with the key needs no other proof below
  // /objects, and may use the rows with Access::kObjectsOwner.
  std::string objects_token = {};
};

//  GET /                 a text that says what this server is
//  GET /healthz          200 {"status":"ok"} for as long as the loop answers
//  GET /readyz           200 {"status":"ready","storage","classes":[...]}, or 503
//                        {"status":"starting", "stopping" or "data_lost"}. storage: "ok", or "full"
//                        while no write is taken; classes as URLs spell them, in alphabetical order
//  GET /metrics          the metrics, in Prometheus' text format 0.0.4
//  GET /openapi.json     the table of routes; see openapi.hpp
//  /agents/...           agents, any method; see AgentsEndpoint
//  /objects/...          agents as durable objects; see ObjectsEndpoint
//  /admin/...            for administrators; see AdminApi
//  anything else         404 {"error":{"code","message"}}
//
// Origins    Requests that the OriginRules refuse get 403, upgrades too.
// CORS       Preflights of pages that the EdgeRules allow are answered here. Other answers to these
//            pages get the CORS headers, also answers of the network, but not those of /admin.
// Methods    A path of the table answers 405 to methods that it does not have.
// Errors     Below /objects they have the shape of object_answer.hpp.
// Admin      /admin and all paths below it are open to administrators only, whether the table has
//            the path or not.
//
// Threads    Called on any of the server's loops, concurrently.
// Lifetime   As AgentsEndpoint; the metrics outlive it.
// Secrets    The pages above, except agents, objects and /admin, contain no names of agents and no
//            data that a client has sent.
class HttpApi final : public net::HttpHandler {
 public:
  HttpApi(runtime::Runtime& runtime, const Readiness& readiness, const Metrics& metrics,
          Random& random, Logger& logger, HttpApiOptions options = {});

  // Refuses requests by these rules; without this call the server answers every page and every
  // Host. Call it before the first request.
  void serve_only(OriginRules origins) { origins_ = std::move(origins); }

  // All routes, including those of the parts.
  [[nodiscard]] const Routes& routes() const { return routes_; }

  [[nodiscard]] bool reads_body(const net::HttpRequest& head) const override;
  void on_request(std::shared_ptr<net::HttpExchange> exchange) override;
  void on_refusal(const net::HttpRequest& head, net::HttpResponse& answer) const override;
  net::UpgradePlan on_upgrade(const net::HttpRequest& request) override;

 private:
  void add_pages();
  // For a request that its origin does not exclude.
  void route(std::shared_ptr<net::HttpExchange> exchange, std::string_view path, bool is_admin);
  // What is known of a request that was let in. Of a path of objects for users: the object, and the
  // claims of the client's token if the class asks for one.
  struct Admitted {
    std::string claims = {};
    ObjectAddress object = {};
  };
  // Refuses a request that may not ask for this path. A path of objects for users whose class is
  // unknown is refused, because the class's rules for clients are not known.
  [[nodiscard]] std::variant<Admitted, net::HttpResponse> admit(const net::HttpRequest& request,
                                                                std::string_view path,
                                                                const Routes::Found& found) const;
  [[nodiscard]] net::HttpResponse front_page() const;
  [[nodiscard]] net::HttpResponse health() const;
  [[nodiscard]] net::HttpResponse readiness() const;
  [[nodiscard]] net::HttpResponse metrics() const;
  [[nodiscard]] net::HttpResponse openapi() const;

  runtime::Runtime& runtime_;
  const Readiness& readiness_;
  const Metrics& metrics_;
  AgentsEndpoint agents_;
  ObjectsEndpoint objects_;
  AdminApi* const admin_;
  const std::size_t max_name_bytes_;
  const std::string objects_token_;
  Routes routes_;
  mutable std::once_flag openapi_made_;  // at the first question: it takes milliseconds
  mutable std::string openapi_;
  OriginRules origins_;
};

}  // namespace hearth::api
