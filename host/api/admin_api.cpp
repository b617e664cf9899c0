#include "api/admin_api.hpp"

#include "api/class_page.hpp"
#include "api/client_proof.hpp"
#include "api/edge_rules.hpp"
#include "api/http_errors.hpp"
#include "api/query_words.hpp"
#include "base/assert.hpp"
#include "base/http_token.hpp"
#include "base/secret.hpp"
#include "json/json.hpp"
#include "protocol/request_query.hpp"
#include "storage/agent_key.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace hearth::api {
namespace {

constexpr std::string_view kRoot = "/admin";

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

net::HttpResponse refusal_of(int status, std::string_view code, std::string_view message,
                             net::HttpHeaders more = {}) {
  net::HttpResponse response = error_answer(status, code, message);
  for (net::HttpHeader& header : more) response.headers.push_back(std::move(header));
  seal(response);
  return response;
}

void refuse(net::HttpExchange& exchange, int status, std::string_view code,
            std::string_view message) {
  exchange.respond(refusal_of(status, code, message));
}

void refuse(net::HttpExchange& exchange, const Error& error) {
  refuse(exchange, http_status(error.code), to_string(error.code), error.message);
}

// Makes the callback that turns an answer of the actions into the answer to a request.
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
          {"code", view.code},
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

Json to_json(const storage::AuditEntry& entry) {
  auto detail = parse_host_json(entry.detail);
  return {{"id", entry.id},
          {"at_ms", entry.at_ms},
          {"event", entry.event},
          {"actor", entry.actor},
          {"class", text_or_null(entry.agent_class)},
          {"agent", text_or_null(entry.agent)},
          {"detail", detail ? *std::move(detail) : Json()}};
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
  const auto json = parse_client_json(body, 4);
  if (!json || !json->is_object()) return wrong;
  if (json->empty()) return std::string();
  const auto found = json->find("class");
  if (json->size() != 1 || found == json->end() || !found->is_string()) return wrong;
  auto name = found->get<std::string>();
  if (name.empty()) return wrong;
  return name;
}

Result<storage::AuditQuery> audit_query(std::string_view text) {
  storage::AuditQuery query;
  if (auto read = read_words(text, {{"event", &query.event},
                                    {"actor", &query.actor},
                                    {"class", &query.agent_class},
                                    {"agent", &query.agent}});
      read.has_error())
    return read.error();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kPage = AdminApi::kMaxPage;
  const auto after = number_in(text, "after", 0, kMost);
  if (!after) return after.error();
  query.after = after->value_or(0);
  const auto limit = number_in(text, "limit", 1, kPage);
  if (!limit) return limit.error();
  const auto last = number_in(text, "last", 1, kPage);
  if (!last) return last.error();
  query.newest = last->has_value();
  query.limit = static_cast<std::size_t>(last->value_or(limit->value_or(AdminApi::kDefaultPage)));
  for (const auto& [key, moment] :
       {std::pair("since_ms", &query.since_ms), std::pair("until_ms", &query.until_ms)}) {
    auto given = number_in(text, key, 0, kMost);
    if (!given) return given.error();
    *moment = *given;
  }
  return query;
}

std::vector<std::string> words_in(std::string_view list) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    words.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// The name of an agent's key, as lists print it. In a URL the names of sub-agents may be encoded in
// any way; a root's name is as its URL has it.
std::string name_of_key(std::string_view written) {
  const storage::AgentKey key{.agent_class = {}, .name = std::string(written)};
  if (!key.is_sub_agent()) return key.name;
  const auto next = [&written] {
    const std::string_view part = written.substr(0, written.find('/'));
    written.remove_prefix(std::min(part.size() + 1, written.size()));
    return part;
  };
  const std::string_view root_class = next();
  storage::AgentKey at{.agent_class = std::string(root_class), .name = std::string(next())};
  for (std::string_view part = next(); !written.empty(); part = next())
    at = at.child(part, protocol::percent_decode(next()));
  return at.child({}, protocol::percent_decode(key.name.substr(key.name.rfind('/') + 1))).name;
}

Result<OperationQuery> operation_query(std::string_view text) {
  OperationQuery query;
  std::string states;
  if (auto read = read_words(text, {{"class", &query.agent_class},
                                    {"agent", &query.agent},
                                    {"kind", &query.kind},
                                    {"state", &states},
                                    {"after", &query.after}});
      read.has_error())
    return read.error();
  if (!query.agent.empty() && query.agent_class.empty())
    return Error{Errc::kInvalidArgument, "name the class of the agent, too"};
  query.agent = name_of_key(query.agent);
  query.states = words_in(states);
  auto before = number_in(text, "begun_before_ms", 0, std::numeric_limits<std::int64_t>::max());
  if (!before) return before.error();
  query.begun_before_ms = *before;
  const auto limit = number_in(text, "limit", 1, std::int64_t{AdminApi::kMaxPage});
  if (!limit) return limit.error();
  query.limit = static_cast<std::size_t>(limit->value_or(AdminApi::kDefaultPage));
  return query;
}

// For JSON that Hearth itself has written.
Json parsed(const std::string& text) {
  auto json = parse_host_json(text);
  return json ? *std::move(json) : Json();
}

Json to_json(const OperationPage& page) {
  Json operations = Json::array();
  for (const std::string& record : page.operations) operations.push_back(parsed(record));
  Json skipped = Json::array();
  for (const SkippedAgent& each : page.skipped) {
    skipped.push_back(
        {{"class", each.agent.agent_class}, {"agent", each.agent.name}, {"reason", each.reason}});
  }
  return {{"operations", std::move(operations)},
          {"skipped", std::move(skipped)},
          {"next", text_or_null(page.next)}};
}

Result<Resolution> read_resolution(const std::string& body) {
  Error wrong{Errc::kInvalidArgument,
              R"(expected a JSON object such as {"outcome":"completed","result":1,"note":"..."} )"
              R"(or {"outcome":"not_executed","note":"..."})"};
  if (body.size() > AdminApi::kMaxResolution)
    return Error{Errc::kInvalidArgument, "a resolution, its result included, has at most " +
                                             std::to_string(AdminApi::kMaxResolution) + " bytes"};
  const auto json = parse_client_json(body);
  if (!json || !json->is_object()) return wrong;
  Resolution how;
  bool has_outcome = false;
  for (const auto& [key, value] : json->items()) {
    if (key == "outcome" && (value == "completed" || value == "not_executed")) {
      has_outcome = true;
      how.was_executed = value == "completed";
    } else if (key == "note" && value.is_string()) {
      how.note = value.get<std::string>();
    } else if (key == "result") {
      how.result = dump_json(value);
    } else {
      return wrong;
    }
  }
  if (!has_outcome || (!how.was_executed && !how.result.empty())) return wrong;
  return how;
}

// For a path with {class} and {name}.
AgentName named_agent(const RouteCall& call) {
  return {std::string(call.values[0]), name_of_key(call.values[1])};
}

// For a path with {class}, {name} and {id}.
OperationName named_operation(const RouteCall& call) {
  return {named_agent(call), std::string(call.values[2])};
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

}  // namespace

AdminApi::AdminApi(AdminActions& actions, std::string token, Logger& logger, Metrics& metrics)
    : actions_(actions),
      token_(std::move(token)),
      logger_(logger),
      refusals_(metrics.counter("hearth_admin_refused_total",
                                "Requests to /admin without the token, or of a foreign page.")) {
  HEARTH_ASSERT(!token_.empty(), "an admin API without a token");
}

bool AdminApi::is_ours(std::string_view path) {
  return is_at_or_below(kRoot, path);
}

std::optional<net::HttpResponse> AdminApi::refusal(const net::HttpRequest& request,
                                                   std::string_view keys) {
  const net::HttpHeaders& headers = request.headers;
  if (is_foreign_page(headers)) {
    refusals_.add();
    return refusal_of(403, "forbidden", "pages of other origins are not answered here");
  }
  if (is_same_secret(api_key_of(headers), token_)) return std::nullopt;
  refusals_.add();
  return refusal_of(401, "unauthorized", keys,
                    {{"WWW-Authenticate", "Bearer realm=\"hearth admin\""}});
}

void AdminApi::add_routes(Routes& routes) {
  struct Row {
    std::string_view method, pattern, summary;
    void (AdminApi::*answer)(const RouteCall&);
    RouteShape shape;
  };
  static constexpr Row kRows[] = {
      {"GET",
       "/admin/plugins",
       "The libraries that are served, and the files that are not.",
       &AdminApi::list_plugins,
       {.answer = "PluginList"}},
      {"POST",
       "/admin/plugins/reload",
       "Looks at the libraries and the class files.",
       &AdminApi::reload,
       {.body = "NamedClass", .answer = "ReloadedFiles"}},
      {"GET",
       "/admin/generations",
       "All versions of libraries that are loaded.",
       &AdminApi::list_generations,
       {.answer = "GenerationList"}},
      {"GET",
       "/admin/classes",
       "The classes that are served.",
       &AdminApi::list_classes,
       {.answer = "ClassList"}},
      {"GET",
       "/admin/classes/{class}/methods",
       "The methods of a class.",
       &AdminApi::list_methods,
       {.answer = "MethodList"}},
      {"GET",
       "/admin/quarantine",
       "The classes that crashed the server too often.",
       &AdminApi::list_quarantined,
       {.answer = "QuarantineList"}},
      {"POST",
       "/admin/quarantine/release",
       "Serves a class again.",
       &AdminApi::release,
       {.body = "NamedClass", .answer = "Released"}},
      {"GET",
       "/admin/agents",
       "A page of the agents of a class.",
       &AdminApi::list_agents,
       {.query = "class after limit", .answer = "AgentPage"}},
      {"POST",
       "/admin/agents/{class}/{name...}/evict",
       "Evicts an agent from memory.",
       &AdminApi::evict_agent,
       {.answer = "Evicted"}},
      {"GET",
       "/admin/agents/{class}/{name...}",
       "One agent.",
       &AdminApi::show_agent,
       {.answer = "Agent"}},
      {"GET",
       "/admin/audit",
       "A page of the audit log.",
       &AdminApi::list_audit,
       {.query = "after limit last event actor class agent since_ms until_ms",
        .answer = "AuditPage"}},
      {"DELETE",
       "/admin/agents/{class}/{name...}",
       "Destroys an agent and its data.",
       &AdminApi::destroy_agent,
       {.answer = "Destroyed"}},
      {"GET",
       "/admin/operations",
       "Operations of agents whose outcome is not known or settled.",
       &AdminApi::list_operations,
       {.query = "class agent kind state begun_before_ms after limit", .answer = "OperationPage"}},
      {"POST",
       "/admin/operations/{class}/{name...}/{id}/resolve",
       "Sets the outcome of an operation.",
       &AdminApi::resolve_operation,
       {.body = "Resolution", .answer = "Operation"}},
      {"GET",
       "/admin/operations/{class}/{name...}/{id}",
       "One operation of an agent.",
       &AdminApi::show_operation,
       {.answer = "Operation"}},
  };
  for (const Row& row : kRows) {
    routes.add({row.method, row.pattern, Access::kAdministrator, row.summary,
                [this, answer = row.answer](const RouteCall& call) { (this->*answer)(call); },
                row.shape});
  }
}

void AdminApi::refuse_unknown(net::HttpExchange& exchange) {
  refuse(exchange, 404, "not_found", "there is nothing at this path");
}

void AdminApi::list_plugins(const RouteCall& call) {
  actions_.plugins(answer_to<PluginList>(call.exchange, current_versions));
}

void AdminApi::list_generations(const RouteCall& call) {
  actions_.plugins(answer_to<PluginList>(call.exchange, [](const PluginList& list) {
    return Json{{"generations", all_to_json(list.versions)}};
  }));
}

void AdminApi::list_quarantined(const RouteCall& call) {
  actions_.quarantined(answer_to<std::vector<QuarantinedView>>(
      call.exchange, [](const auto& views) { return Json{{"quarantined", all_to_json(views)}}; }));
}

void AdminApi::list_classes(const RouteCall& call) {
  actions_.classes(answer_to<std::vector<ClassView>>(
      call.exchange, [](const auto& views) { return Json{{"classes", all_to_json(views)}}; }));
}

void AdminApi::reload(const RouteCall& call) {
  const Exchange& exchange = call.exchange;
  auto name = named_class(exchange->request().body);
  if (!name) return refuse(*exchange, name.error());
  // The loader records the versions that it loads, but does not know the administrator.
  logger_.record(LogLevel::kInfo, "admin.reload",
                 {{"class", *name}, {"peer", exchange->request().peer}});
  actions_.reload(*std::move(name), answer_to<std::vector<ReloadedFile>>(
                                        exchange, [](const std::vector<ReloadedFile>& files) {
                                          return Json{{"files", all_to_json(files)}};
                                        }));
}

void AdminApi::release(const RouteCall& call) {
  const Exchange& exchange = call.exchange;
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

void AdminApi::list_methods(const RouteCall& call) {
  actions_.methods(std::string(call.values[0]),
                   [exchange = call.exchange](const Result<ClassMethodsView>& view) {
                     if (!view) return refuse(*exchange, view.error());
                     net::HttpResponse response = methods_answer(view->segment, view->methods);
                     seal(response);
                     exchange->respond(std::move(response));
                   });
}

void AdminApi::list_agents(const RouteCall& call) {
  const Exchange& exchange = call.exchange;
  const std::string_view query = call.query;
  AgentPageRequest request;
  if (auto read = read_words(query, {{"class", &request.agent_class}, {"after", &request.after}});
      read.has_error())
    return refuse(*exchange, read.error());
  if (request.agent_class.empty())
    return refuse(*exchange, 400, "invalid_argument", "name a class: /admin/agents?class=counter");
  request.after = name_of_key(request.after);
  const auto limit = number_in(query, "limit", 1, std::int64_t{kMaxPage});
  if (!limit) return refuse(*exchange, limit.error());
  request.limit = static_cast<std::size_t>(limit->value_or(kDefaultPage));
  actions_.agents(std::move(request), answer_to<AgentPage>(exchange, page_to_json));
}

void AdminApi::show_agent(const RouteCall& call) {
  actions_.agent(named_agent(call), answer_to<AgentView>(call.exchange, [](const AgentView& agent) {
                   return to_json(agent);
                 }));
}

void AdminApi::evict_agent(const RouteCall& call) {
  const AgentName name = named_agent(call);
  log("admin.evict", call.exchange, name);
  actions_.evict(name, answer_to<std::string>(call.exchange, [](const std::string& state) {
                   return Json{{"evicted", state == "live" || state == "waking"}, {"state", state}};
                 }));
}

void AdminApi::destroy_agent(const RouteCall& call) {
  const AgentName name = named_agent(call);
  log("admin.destroy", call.exchange, name);
  actions_.destroy(name, answer_to<std::string>(call.exchange, [](const std::string&) {
                     return Json{{"destroyed", true}};
                   }));
}

void AdminApi::list_operations(const RouteCall& call) {
  auto query = operation_query(call.query);
  if (!query) return refuse(*call.exchange, query.error());
  actions_.operations(
      *std::move(query),
      answer_to<OperationPage>(call.exchange, [](const auto& page) { return to_json(page); }));
}

void AdminApi::show_operation(const RouteCall& call) {
  actions_.operation(named_operation(call),
                     answer_to<std::string>(
                         call.exchange, [](const std::string& record) { return parsed(record); }));
}

void AdminApi::resolve_operation(const RouteCall& call) {
  auto how = read_resolution(call.exchange->request().body);
  if (!how) return refuse(*call.exchange, how.error());
  OperationName name = named_operation(call);
  log("admin.resolve", call.exchange, name.agent);
  actions_.resolve(std::move(name), *std::move(how),
                   answer_to<std::string>(
                       call.exchange, [](const std::string& record) { return parsed(record); }));
}

void AdminApi::list_audit(const RouteCall& call) {
  const auto query = audit_query(call.query);
  if (!query) return refuse(*call.exchange, query.error());
  actions_.audit(*query, answer_to<std::vector<storage::AuditEntry>>(
                             call.exchange, [after = query->after](const auto& entries) {
                               const auto next = entries.empty() ? after : entries.back().id;
                               return Json{{"entries", all_to_json(entries)}, {"next", next}};
                             }));
}

void AdminApi::log(std::string_view event, const Exchange& exchange, const AgentName& name) {
  logger_.write(
      LogLevel::kInfo, event,
      {{"class", name.agent_class}, {"agent", name.name}, {"peer", exchange->request().peer}});
}

}  // namespace hearth::api
