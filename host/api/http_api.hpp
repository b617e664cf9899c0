#pragma once
// Everything that the server answers: the table of routes, and what holds for all of them.

#include "api/admin_api.hpp"
#include "api/agents_endpoint.hpp"
#include "api/definitions_endpoint.hpp"
#include "api/edge_rules.hpp"
#include "api/object_alarms.hpp"
#include "api/objects_admin.hpp"
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
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hearth::api {

struct HttpApiOptions {
  // Bytes of an agent's name, as it stands in the URL. The network's limit on a target must leave
  // room for names that are too long: only who gets here can be told to stop trying.
  std::size_t max_name_bytes = protocol::kDefaultMaxNameBytes;
  // Answers /admin and all below it; null: nothing is there. Outlives the HttpApi.
  AdminApi* admin = nullptr;
  EdgeRules edge = {};
  // Answers /objects beside calls; null: nothing is there. Outlives the HttpApi.
  ObjectActions* objects = nullptr;
  // The key that /objects asks for; empty: none. A request with it needs no other proof there, and
  // may do what the rows for Access::kObjectsOwner do.
  std::string objects_token = {};
  // Answers /objects/definitions; null: nothing is there. Outlives the HttpApi.
  DefinitionActions* definitions = nullptr;
};

//  GET /                 what this is, as text
//  GET /healthz          200 {"status":"ok"} for as long as the loop answers
//  GET /readyz           200 {"status":"ready","classes":[...]}, or 503 {"status":"starting" or
//                        "stopping"}; classes as they are spelled in URLs, in alphabetical order
//  GET /metrics          the metrics, in Prometheus' text format 0.0.4
//  GET /openapi.json     all that is in the table of routes; see openapi.hpp
//  /agents/...           agents, any method; see AgentsEndpoint
//  /objects/...          agents as durable objects; see ObjectsEndpoint
//  /admin/...            for administrators; see AdminApi
//  anything else         404 {"error":{"code","message"}}
//
// Requests that the OriginRules refuse are answered 403, upgrades too. Pages that the EdgeRules let
// read answers get the headers for that with each answer but those of /admin, those of the
// network too, and their preflights are answered here. A path of the table answers other methods
// than its own 405. Errors below /objects have the shape of object_answer.hpp. /admin, and what is
// below it, is closed to all but administrators, whether a row of the table has the path or not.
//
// Threads    Called on any of the server's loops, concurrently.
// Lifetime   As AgentsEndpoint; the metrics outlive it.
// Secrets    None of these pages tells names of agents, or anything that a client has sent.
class HttpApi final : public net::HttpHandler {
 public:
  HttpApi(runtime::Runtime& runtime, const Readiness& readiness, const Metrics& metrics,
          Random& random, Logger& logger, HttpApiOptions options = {});

  // Refuses requests by these rules; without a call it serves every page and every Host. Call it
  // before the first request.
  void serve_only(OriginRules origins) { origins_ = std::move(origins); }

  // All routes, those of the parts too.
  [[nodiscard]] const Routes& routes() const { return routes_; }

  void on_request(std::shared_ptr<net::HttpExchange> exchange) override;
  void on_refusal(const net::HttpRequest& head, net::HttpResponse& answer) const override;
  net::UpgradePlan on_upgrade(const net::HttpRequest& request) override;

 private:
  void add_pages();
  // What was not refused for where it comes from.
  void route(std::shared_ptr<net::HttpExchange> exchange, std::string_view path, bool is_admin);
  // The refusal of a request that may not ask for this path; or the claims of its client's token,
  // where a class of objects has asked for one. A path for users whose class cannot be told is
  // refused, because its rules for clients are not known.
  [[nodiscard]] std::variant<std::string, net::HttpResponse> admit(
      const net::HttpRequest& request, std::string_view path, const Routes::Found& found) const;
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
  std::optional<ObjectsAdmin> objects_admin_;
  std::optional<ObjectAlarms> object_alarms_;
  std::optional<DefinitionsEndpoint> definitions_;
  AdminApi* const admin_;
  const std::string objects_token_;
  Routes routes_;
  std::string openapi_;
  OriginRules origins_;
};

}  // namespace hearth::api
