#include "api/http_api.hpp"

#include "api/client_proof.hpp"
#include "api/cors.hpp"
#include "api/http_errors.hpp"
#include "api/object_answer.hpp"
#include "api/object_lookup.hpp"
#include "api/openapi.hpp"
#include "base/secret.hpp"
#include "json/json.hpp"
#include "protocol/object_address.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace hearth::api {
namespace {

constexpr std::string_view kFrontPage =
    "Hearth serves agents.\n"
    "\n"
    "  /agents/{class}/{name}   an agent, over WebSocket or HTTP\n"
    "  /objects/{class}/{id}    an object, over HTTP and JSON\n"
    "  /healthz                 is the server alive\n"
    "  /readyz                  is it ready, and for which classes\n"
    "  /metrics                 figures about it, for Prometheus\n"
    "  /console                 the page for its administrators; `hearth console` prints a link\n"
    "  /openapi.json            all of this as an OpenAPI document\n"
    "\n"
    "From a program: new AgentClient({ agent: \"counter\", name: \"demo\", host }) of the npm "
    "package \"agents\".\n";

net::HttpResponse text_answer(int status, std::string_view type, std::string body) {
  net::HttpResponse response;
  response.status = status;
  // The answer may be different a moment later.
  response.headers = {{"Content-Type", std::string(type)}, {"Cache-Control", "no-store"}};
  response.body = std::move(body);
  return response;
}

net::HttpResponse json_answer(int status, const Json& body) {
  return text_answer(status, "application/json", dump_json(body));
}

net::HttpResponse nothing_there() {
  return error_answer(404, "not_found", "there is nothing at this path");
}

constexpr std::string_view kObjectsKeys =
    "send the key of objects, or the administrators' token: Authorization: Bearer KEY or "
    "X-Api-Key: KEY";

// There the rows with Access::kUser have {class} and {id} as their first parameters.
bool is_below_objects(std::string_view path) {
  return is_at_or_below("/objects", path);
}

// An error, in the shape that errors at this path have.
net::HttpResponse in_shape_of(std::string_view path, net::HttpResponse response) {
  return is_below_objects(path) ? as_object_error(std::move(response)) : std::move(response);
}

}  // namespace

HttpApi::HttpApi(runtime::Runtime& runtime, const Readiness& readiness, const Metrics& metrics,
                 Random& random, Logger& logger, HttpApiOptions options)
    : runtime_(runtime),
      readiness_(readiness),
      metrics_(metrics),
      agents_(runtime, readiness, random, logger, options.max_name_bytes, std::move(options.edge)),
      objects_(runtime),
      admin_(options.admin),
      max_name_bytes_(options.max_name_bytes),
      objects_token_(std::move(options.objects_token)) {
  add_pages();
  agents_.add_routes(routes_);
  for (Route& row : options.rows) routes_.add(std::move(row));
  objects_.add_routes(routes_);
}

void HttpApi::add_pages() {
  struct Page {
    std::string_view path, summary;
    net::HttpResponse (HttpApi::*answer)() const;
    std::string_view schema = {};
  };
  static constexpr Page kPages[] = {
      {"/", "What this server is, as text.", &HttpApi::front_page},
      {"/healthz", "Whether the server is alive.", &HttpApi::health, "Health"},
      {"/readyz", "Whether the server is ready, and for which classes.", &HttpApi::readiness,
       "Readiness"},
      {"/metrics", "Figures about the server, for Prometheus.", &HttpApi::metrics},
      {"/openapi.json", "This document.", &HttpApi::openapi, "Anything"},
  };
  for (const Page& page : kPages) {
    routes_.add({"GET",
                 page.path,
                 Access::kAnybody,
                 page.summary,
                 [this, answer = page.answer](const RouteCall& call) {
                   call.exchange->respond((this->*answer)());
                 },
                 {.answer = page.schema}});
  }
}

bool HttpApi::reads_body(const net::HttpRequest& head) const {
  const std::string_view path = path_of(head.target);
  if (admin_ != nullptr && AdminApi::is_ours(path)) return false;
  const bool is_page = routes_.find(head.method, path).is_path && !is_at_or_below("/agents", path);
  return !is_page && agents_.reads_body(head);
}

void HttpApi::on_request(std::shared_ptr<net::HttpExchange> exchange) {
  const net::HttpRequest& request = exchange->request();
  const std::string_view path = path_of(request.target);
  const bool is_admin = admin_ != nullptr && AdminApi::is_ours(path);
  const CorsRules cors = is_admin ? CorsRules{} : agents_.cors(path);
  if (auto refusal = origins_.refusal(request.headers, cors)) {
    return exchange->respond(in_shape_of(path, *std::move(refusal)));
  }
  if (!cors.origins.empty()) {
    if (auto answer = preflight_answer(cors, request)) return exchange->respond(*std::move(answer));
    exchange = with_cors(std::move(exchange), cors);
  }
  route(std::move(exchange), path, is_admin);
}

std::variant<HttpApi::Admitted, net::HttpResponse> HttpApi::admit(
    const net::HttpRequest& request, std::string_view path, const Routes::Found& found) const {
  const bool is_object = is_below_objects(path);
  const auto is_for = [&found](Access access) { return found.is_path && found.access == access; };
  const bool is_for_administrators = AdminApi::is_ours(path) || is_for(Access::kAdministrator);
  const bool asks_for_key = is_object && !objects_token_.empty();
  const bool has_key = asks_for_key && !is_for_administrators &&
                       is_same_secret(api_key_of(request.headers), objects_token_);
  if (!has_key && (asks_for_key || is_for_administrators || is_for(Access::kObjectsOwner))) {
    if (admin_ == nullptr) return nothing_there();
    if (auto refusal = admin_->refusal(request, is_object ? kObjectsKeys : AdminApi::kKeys))
      return *std::move(refusal);
  }
  Admitted admitted;
  if (!is_object || !is_for(Access::kUser) || found.values.size() < 2) return admitted;
  auto asked = class_of_objects(runtime_.classes(), readiness_, found.values[0]);
  const auto* const served = std::get_if<std::shared_ptr<const runtime::ServedClass>>(&asked);
  if (!asks_for_key) {
    // A client that is refused does not learn whether the class exists.
    auto claims = agents_.claims_for(request, served == nullptr ? nullptr : *served,
                                     protocol::object_name(found.values[1]));
    if (auto* refusal = std::get_if<net::HttpResponse>(&claims)) return std::move(*refusal);
    admitted.claims = std::get<std::string>(std::move(claims));
  }
  if (served == nullptr && (found.route != nullptr || !asks_for_key))
    return std::get<net::HttpResponse>(std::move(asked));
  if (found.route == nullptr) return admitted;
  auto object = object_of(*served, found.values[1], max_name_bytes_);
  if (auto* refusal = std::get_if<net::HttpResponse>(&object)) return std::move(*refusal);
  admitted.object = std::get<ObjectAddress>(std::move(object));
  return admitted;
}

void HttpApi::route(std::shared_ptr<net::HttpExchange> exchange, std::string_view path,
                    bool is_admin) {
  const net::HttpRequest& request = exchange->request();
  const std::string_view target = request.target;
  const auto refuse = [&exchange, path](net::HttpResponse response) {
    exchange->respond(in_shape_of(path, std::move(response)));
  };
  Routes::Found found = routes_.find(request.method, path);
  auto admitted = admit(request, path, found);
  if (auto* refusal = std::get_if<net::HttpResponse>(&admitted)) return refuse(std::move(*refusal));
  if (found.route != nullptr) {
    const std::string_view query = target.substr(std::min(target.size(), path.size() + 1));
    auto& [claims, object] = std::get<Admitted>(admitted);
    return found.route->answer({std::move(exchange), std::move(found.values), query,
                                std::move(claims), std::move(object), AdminApi::actor_of(request)});
  }
  if (found.is_path) return refuse(routes_.wrong_method(path));
  if (is_admin)
    return exchange->respond(admin_refusal({Errc::kNotFound, "there is nothing at this path"}));
  if (is_below_objects(path) && !agents_.has_route(path)) return refuse(nothing_there());
  agents_.on_request(std::move(exchange));  // other paths of agents, and 404
}

void HttpApi::on_refusal(const net::HttpRequest& head, net::HttpResponse& answer) const {
  const std::string_view path = path_of(head.target);
  answer = in_shape_of(path, std::move(answer));
  if (admin_ != nullptr && AdminApi::is_ours(path)) return;
  const CorsRules cors = agents_.cors(path);
  if (cors.origins.empty() || origins_.refusal(head.headers, cors)) return;
  add_cors(cors, head, answer);
}

net::UpgradePlan HttpApi::on_upgrade(const net::HttpRequest& request) {
  const std::string_view path = path_of(request.target);
  const CorsRules cors = agents_.cors(path);
  auto refusal = origins_.refusal(request.headers, cors);
  // A route to an agent may lie below /objects, where a key is needed.
  if (!refusal) {
    auto admitted = admit(request, path, routes_.find("GET", path));
    if (auto* denied = std::get_if<net::HttpResponse>(&admitted)) refusal = std::move(*denied);
  }
  net::UpgradePlan plan;
  if (refusal) {
    plan.refusal = *std::move(refusal);
  } else {
    plan = agents_.on_upgrade(request);
  }
  if (plan.refusal) plan.refusal = in_shape_of(path, *std::move(plan.refusal));
  return plan;
}

net::HttpResponse HttpApi::front_page() const {
  return text_answer(200, "text/plain; charset=utf-8", std::string(kFrontPage));
}

net::HttpResponse HttpApi::health() const {
  return json_answer(200, {{"status", "ok"}});
}

net::HttpResponse HttpApi::readiness() const {
  switch (readiness_.phase()) {
    case Readiness::Phase::kStarting: return json_answer(503, {{"status", "starting"}});
    case Readiness::Phase::kLost: return json_answer(503, {{"status", "data_lost"}});
    case Readiness::Phase::kStopping: return json_answer(503, {{"status", "stopping"}});
    case Readiness::Phase::kReady: break;
  }
  Json classes = Json::array();
  for (const auto& served : runtime_.classes().all()) {
    if (served->refusal.empty()) classes.push_back(served->segment);
  }
  return json_answer(200, {{"status", "ready"},
                           {"storage", readiness_.is_full() ? "full" : "ok"},
                           {"classes", std::move(classes)}});
}

net::HttpResponse HttpApi::openapi() const {
  std::call_once(openapi_made_,
                 [this] { openapi_ = openapi_document(routes_, !objects_token_.empty()); });
  return text_answer(200, "application/json", openapi_);
}

net::HttpResponse HttpApi::metrics() const {
  return text_answer(200, "text/plain; version=0.0.4; charset=utf-8", metrics_.text());
}

}  // namespace hearth::api
