#include "api/admin_api.hpp"

#include "api/class_page.hpp"
#include "api/http_errors.hpp"
#include "base/assert.hpp"
#include "base/http_token.hpp"
#include "base/secret.hpp"
#include "json/json.hpp"
#include "protocol/request_query.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace hearth::api {
namespace {

constexpr std::string_view kRoot = "/admin";
constexpr std::string_view kAgents = "/admin/agents";
constexpr std::string_view kClasses = "/admin/classes";

// Of class and name in a query: longer ones do not exist.
constexpr std::size_t kMaxValueBytes = 4096;

// ---- answers ------------------------------------------------------------------------------------

void seal(net::HttpResponse& response) {
  response.headers.push_back({"Cache-Control", "no-store"});
  response.headers.push_back({"X-Content-Type-Options", "nosniff"});
}

void respond(net::HttpExchange& exchange, const Json& body) {
  net::HttpResponse response;
  response.headers.push_back({"Content-Type", "application/json"});
  response.body = dump_json(body);
  seal(response);
  exchange.respond(std::move(response));
}

void refuse(net::HttpExchange& exchange, int status, std::string_view code,
            std::string_view message, net::HttpHeaders more = {}) {
  net::HttpResponse response = error_answer(status, code, message);
  for (net::HttpHeader& header : more) response.headers.push_back(std::move(header));
  seal(response);
  exchange.respond(std::move(response));
}

void refuse(net::HttpExchange& exchange, const Error& error) {
  refuse(exchange, http_status(error.code), to_string(error.code), error.message);
}

void not_found(net::HttpExchange& exchange) {
  refuse(exchange, 404, "not_found", "there is nothing at this path");
}

// Answers 405 if the request has another method.
bool has_method(net::HttpExchange& exchange, std::string_view method) {
  const std::string& asked = exchange.request().method;
  if (asked == method || (method == "GET" && asked == "HEAD")) return true;
  const std::string allowed = method == "GET" ? "GET, HEAD" : std::string(method);
  refuse(exchange, 405, "method_not_allowed", "only " + allowed + " is answered here",
         {{"Allow", allowed}});
  return false;
}

// An answer of the actions as the answer to a request.
template <class T, class ToJson>
AdminActions::Answer<T> answer_to(const std::shared_ptr<net::HttpExchange>& exchange,
                                  ToJson to_json) {
  return [exchange, to_json](const Result<T>& outcome) {
    if (outcome) {
      respond(*exchange, to_json(*outcome));
    } else {
      refuse(*exchange, outcome.error());
    }
  };
}

// ---- values -------------------------------------------------------------------------------------

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json to_json(const PluginVersion& version) {
  return {{"file", version.file},
          {"plugin", version.plugin},
          {"version", version.version},
          {"sha256", version.sha256},
          {"generation", version.generation},
          {"state", version.state},
          {"pinned_because", text_or_null(version.pinned_because)},
          {"classes", version.classes}};
}

Json to_json(const RefusedFile& refused) {
  return {{"file", refused.file}, {"rule", refused.rule}, {"reason", refused.reason}};
}

Json to_json(const ReloadedFile& file) {
  Json json{{"file", file.file}, {"outcome", file.outcome}};
  if (!file.version.empty()) json["version"] = file.version;
  if (file.generation != 0) json["generation"] = file.generation;
  if (!file.reason.empty()) json["reason"] = file.reason;
  if (!file.agent_class.empty()) json["class"] = file.agent_class;
  if (!file.keys.empty()) json["keys"] = file.keys;
  if (!file.note.empty()) json["note"] = file.note;
  return json;
}

Json to_json(const UnprovenSettings& settings) {
  return {{"class", settings.agent_class},
          {"state", settings.state},
          {"reason", text_or_null(settings.reason)}};
}

Json to_json(const QuarantinedView& view) {
  return {{"class", view.agent_class}, {"library", view.library}, {"sha256", view.sha256},
          {"reason", view.reason},     {"call", view.call},       {"since_ms", view.since_ms}};
}

Json to_json(const ClassView& view) {
  Json aliases = Json::array();
  for (const std::string& alias : view.aliases) aliases.push_back("/agents/" + alias);
  return {{"class", view.name},
          {"path", "/agents/" + view.segment},
          {"aliases", std::move(aliases)},
          {"version", view.version},
          {"library", view.library},
          {"refusal", text_or_null(view.refusal)},
          {"agents", view.agents},
          {"live", view.live}};
}

Json to_json(const AgentView& agent) {
  return {{"name", agent.name},
          {"created_at_ms", agent.created_at_ms ? Json(*agent.created_at_ms) : Json()},
          {"state", agent.state},
          {"connections", agent.connections},
          {"version", text_or_null(agent.version)},
          {"working", agent.working},
          {"next_wake_ms", agent.next_wake_ms ? Json(*agent.next_wake_ms) : Json()}};
}

template <class T>
Json all_to_json(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& each : values) list.push_back(to_json(each));
  return list;
}

Json current_versions(const PluginList& list) {
  Json plugins = Json::array();
  for (const PluginVersion& version : list.versions) {
    if (version.current) plugins.push_back(to_json(version));
  }
  return {{"plugins", std::move(plugins)},
          {"refused", all_to_json(list.refused)},
          {"moving", list.moving},
          {"settings", all_to_json(list.settings)}};
}

Json page_to_json(const AgentPage& page) {
  return {{"class", page.agent_class},
          {"agents", all_to_json(page.agents)},
          {"next", page.more && !page.agents.empty() ? Json(page.agents.back().name) : Json()}};
}

// The class that a body names; "" if there is none.
Result<std::string> named_class(const std::string& body) {
  Error wrong{Errc::kInvalidArgument,
              R"(expected no body, or a JSON object such as {"class":"counter"})"};
  if (body.empty()) return std::string();
  if (body.size() > AdminApi::kMaxBody) return wrong;
  const auto json = parse_json(body, 4);
  if (!json || !json->is_object()) return wrong;
  if (json->empty()) return std::string();
  const auto found = json->find("class");
  if (json->size() != 1 || found == json->end() || !found->is_string()) return wrong;
  auto name = found->get<std::string>();
  if (name.empty()) return wrong;
  return name;
}

// Whether a browser sends this for a page of another origin.
bool is_foreign_page(const net::HttpHeaders& headers) {
  const auto site = net::find_header(headers, "Sec-Fetch-Site");
  if (site && *site != "same-origin" && *site != "none") return true;
  const auto origin = net::find_header(headers, "Origin");
  if (!origin) return false;
  const auto host = net::find_header(headers, "Host");
  if (!host || host->empty()) return true;
  return !equal_ignoring_case(*origin, "http://" + std::string(*host)) &&
         !equal_ignoring_case(*origin, "https://" + std::string(*host));
}

// The token of `Authorization: Bearer TOKEN`; empty if there is none.
std::string_view bearer_token(const net::HttpHeaders& headers) {
  constexpr std::string_view kScheme = "Bearer ";
  const auto value = net::find_header(headers, "Authorization");
  if (!value || value->size() <= kScheme.size()) return {};
  if (!equal_ignoring_case(value->substr(0, kScheme.size()), kScheme)) return {};
  return value->substr(kScheme.size());
}

}  // namespace

AdminApi::AdminApi(AdminActions& actions, std::string token, Logger& logger, Metrics& metrics)
    : actions_(actions),
      token_(std::move(token)),
      logger_(logger),
      refusals_(metrics.counter("hearth_admin_refused_total",
                                "Requests to /admin without the token, or of a foreign page.")) {
  HEARTH_ASSERT(!token_.empty(), "an admin API that is open to everybody");
}

bool AdminApi::is_ours(std::string_view path) {
  return path.starts_with(kRoot) && (path.size() == kRoot.size() || path[kRoot.size()] == '/');
}

bool AdminApi::admits(const Exchange& exchange) {
  const net::HttpHeaders& headers = exchange->request().headers;
  if (is_foreign_page(headers)) {
    refusals_.add();
    refuse(*exchange, 403, "forbidden", "pages of other origins are not answered here");
    return false;
  }
  if (is_same_secret(bearer_token(headers), token_)) return true;
  refusals_.add();
  refuse(*exchange, 401, "unauthorized",
         "send the token of this server's administrators: Authorization: Bearer TOKEN",
         {{"WWW-Authenticate", "Bearer realm=\"hearth admin\""}});
  return false;
}

void AdminApi::on_request(const Exchange& exchange) {
  if (!admits(exchange)) return;
  const std::string_view target = exchange->request().target;
  const std::string_view path = target.substr(0, target.find('?'));
  const std::string_view query = target.substr(std::min(target.size(), path.size() + 1));
  if (path == "/admin/plugins") {
    if (has_method(*exchange, "GET"))
      actions_.plugins(answer_to<PluginList>(exchange, current_versions));
  } else if (path == "/admin/generations") {
    if (!has_method(*exchange, "GET")) return;
    actions_.plugins(answer_to<PluginList>(exchange, [](const PluginList& list) {
      return Json{{"generations", all_to_json(list.versions)}};
    }));
  } else if (path == "/admin/plugins/reload") {
    if (has_method(*exchange, "POST")) reload(exchange);
  } else if (path == "/admin/quarantine") {
    list_quarantined(exchange);
  } else if (path == "/admin/quarantine/release") {
    if (has_method(*exchange, "POST")) release(exchange);
  } else if (path == kClasses) {
    list_classes(exchange);
  } else if (path.starts_with(kClasses) && path[kClasses.size()] == '/') {
    one_class(exchange, path.substr(kClasses.size() + 1));
  } else if (path == kAgents) {
    if (has_method(*exchange, "GET")) list_agents(exchange, query);
  } else if (path.starts_with(kAgents) && path[kAgents.size()] == '/') {
    one_agent(exchange, path.substr(kAgents.size() + 1));
  } else {
    not_found(*exchange);
  }
}

void AdminApi::list_quarantined(const Exchange& exchange) {
  if (!has_method(*exchange, "GET")) return;
  actions_.quarantined(answer_to<std::vector<QuarantinedView>>(
      exchange, [](const auto& views) { return Json{{"quarantined", all_to_json(views)}}; }));
}

void AdminApi::list_classes(const Exchange& exchange) {
  if (!has_method(*exchange, "GET")) return;
  actions_.classes(answer_to<std::vector<ClassView>>(
      exchange, [](const auto& views) { return Json{{"classes", all_to_json(views)}}; }));
}

void AdminApi::reload(const Exchange& exchange) {
  auto name = named_class(exchange->request().body);
  if (!name) return refuse(*exchange, name.error());
  log("admin.reload", exchange, {*name, ""});
  actions_.reload(*std::move(name), answer_to<std::vector<ReloadedFile>>(
                                        exchange, [](const std::vector<ReloadedFile>& files) {
                                          return Json{{"files", all_to_json(files)}};
                                        }));
}

void AdminApi::release(const Exchange& exchange) {
  auto name = named_class(exchange->request().body);
  if (!name) return refuse(*exchange, name.error());
  if (name->empty())
    return refuse(*exchange, 400, "invalid_argument", R"(name a class: {"class":"counter"})");
  log("admin.release", exchange, {*name, ""});
  actions_.release(
      *std::move(name), answer_to<ReleasedClass>(exchange, [](const ReleasedClass& released) {
        return Json{{"released", released.agent_class}, {"files", all_to_json(released.files)}};
      }));
}

// `path`: class/methods.
void AdminApi::one_class(const Exchange& exchange, std::string_view path) {
  const std::size_t slash = path.find('/');
  if (slash == 0 || slash == std::string_view::npos || path.substr(slash) != "/methods")
    return not_found(*exchange);
  if (!has_method(*exchange, "GET")) return;
  actions_.methods(std::string(path.substr(0, slash)),
                   [exchange](const Result<ClassMethodsView>& view) {
                     if (!view) return refuse(*exchange, view.error());
                     net::HttpResponse response = methods_answer(view->segment, view->methods);
                     seal(response);
                     exchange->respond(std::move(response));
                   });
}

void AdminApi::list_agents(const Exchange& exchange, std::string_view query) {
  AgentPageRequest request;
  const auto agent_class = protocol::query_value(query, "class", kMaxValueBytes);
  if (!agent_class || agent_class->empty())
    return refuse(*exchange, 400, "invalid_argument", "name a class: /admin/agents?class=counter");
  request.agent_class = *agent_class;
  request.after = protocol::query_value(query, "after", kMaxValueBytes).value_or("");
  request.limit = kDefaultPage;
  if (const auto limit = protocol::query_value(query, "limit", 16)) {
    const char* const end = limit->data() + limit->size();
    const auto read = std::from_chars(limit->data(), end, request.limit);
    if (read.ec != std::errc() || read.ptr != end || request.limit < 1 || request.limit > kMaxPage)
      return refuse(*exchange, 400, "invalid_argument", "limit is a whole number from 1 to 1000");
  }
  actions_.agents(std::move(request), answer_to<AgentPage>(exchange, page_to_json));
}

// `path`: class/name or class/name/evict.
void AdminApi::one_agent(const Exchange& exchange, std::string_view path) {
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return not_found(*exchange);
  const std::string_view rest = path.substr(slash + 1);
  const std::size_t end = rest.find('/');
  const AgentName name{std::string(path.substr(0, slash)), std::string(rest.substr(0, end))};
  if (name.agent_class.empty() || name.name.empty()) return not_found(*exchange);
  if (end != std::string_view::npos) {
    if (rest.substr(end) != "/evict") return not_found(*exchange);
    if (!has_method(*exchange, "POST")) return;
    log("admin.evict", exchange, name);
    actions_.evict(name, answer_to<std::string>(exchange, [](const std::string& state) {
                     return Json{{"evicted", state == "live" || state == "waking"},
                                 {"state", state}};
                   }));
    return;
  }
  if (exchange->request().method == "DELETE") {
    log("admin.destroy", exchange, name);
    actions_.destroy(name, answer_to<std::string>(exchange, [](const std::string&) {
                       return Json{{"destroyed", true}};
                     }));
    return;
  }
  if (!has_method(*exchange, "GET")) return;
  actions_.agent(
      name, answer_to<AgentView>(exchange, [](const AgentView& agent) { return to_json(agent); }));
}

void AdminApi::log(std::string_view event, const Exchange& exchange, const AgentName& name) {
  logger_.write(
      LogLevel::kInfo, event,
      {{"class", name.agent_class}, {"agent", name.name}, {"peer", exchange->request().peer}});
}

}  // namespace hearth::api
