#include "config/edge_section.hpp"

#include "base/authority.hpp"
#include "base/escape.hpp"
#include "base/http_token.hpp"
#include "base/name_template.hpp"
#include "base/names.hpp"
#include "config/definitions.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::config {
namespace {

namespace fs = std::filesystem;

using extensions::ClassSettings;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kMaxRoutes = 64;

// ---- auth ---------------------------------------------------------------------------------------

// `absent`: the value to show if none is set.
template <class Owner>
Setting<Owner> name_rule(Fields<Owner, std::optional<std::string>> fields, Json absent,
                         std::string default_words) {
  constexpr std::string_view kForm = "a template of claims such as \"{sub}\"";
  auto setting = row(
      "auth.name", "template", "", std::move(fields),
      [=](const Reading& in, std::optional<std::string>& out) {
        const YamlNode* const node = in.reader.find_scalar(in.key, kForm);
        if (node == nullptr) return;
        if (!node->text.empty() && !is_name_template(node->text)) {
          return in.reader.complain(
              in.key, node->at,
              "expected " + std::string(kForm) + ", found " + quote_text(node->text));
        }
        out = node->text;
      },
      [absent = std::move(absent)](const std::optional<std::string>& value) {
        return value ? Json(*value) : absent;
      },
      "the name that an agent must have for a client to reach it, made of claims of "
      "the client's token: `\"{sub}\"`, [`\"{org}:{sub}\"`](#authentication). For an "
      "agent below others, the name of the topmost agent counts. `\"\"`: any name");
  setting.default_words = std::move(default_words);
  return setting;
}

template <class Owner>
Setting<Owner> proof_kind(Fields<Owner, std::optional<ProofKind>> fields, std::string_view without,
                          std::string meaning) {
  using Kind = std::optional<ProofKind>;
  Words<Kind> words{
      {"none", ProofKind::kNone}, {"token", ProofKind::kToken}, {"jwt", ProofKind::kJwt}};
  const bool is_of_class = without != "none";
  if (is_of_class) {
    words.insert(words.begin(), {without, std::nullopt});
    words.emplace_back("objects_key", ProofKind::kObjectsKey);
  }
  Setting<Owner> setting = word("auth.type", std::move(fields), words, std::move(meaning));
  if (is_of_class)
    setting.default_words = "`server`; of objects with `objects.token_file`: `objects_key`";
  return setting;
}

bool is_text(std::string_view text) {
  return !text.empty();
}

Settings<ServerConfig> auth_rows() {
  using Server = ServerConfig;
  Fields<Server, std::optional<ProofKind>> type{
      {.get = [](const Server& server) -> const std::optional<ProofKind>& {
         return server.auth.rules.type;
       },
       .of = [](Server& server) -> std::optional<ProofKind>& { return server.auth.rules.type; }}};
  Fields<Server, std::optional<std::string>> name{
      {.get = [](const Server& server) -> const std::optional<std::string>& {
         return server.auth.rules.name;
       },
       .of = [](Server& server) -> std::optional<std::string>& { return server.auth.rules.name; }}};
  return {
      proof_kind(std::move(type), "none",
                 "how clients of agents [authenticate](#authentication): `none` (not at all), "
                 "`token` (one of `auth.token_file`) or `jwt` (a JSON Web Token that one of the "
                 "keys has signed)"),
      name_rule(std::move(name), "", "`\"\"`"),
      path("auth.token_file", at(&Server::auth, &AuthConfig::token_file),
           "tokens of clients, one a line: 16 to 512 printable characters without a "
           "space; at most 64. The server reads the file again when it changes"),
      path("auth.keys_file", at(&Server::auth, &AuthConfig::keys_file),
           "keys of JSON Web Tokens: a JSON Web Key Set, or PEM with public keys. The "
           "server reads the file again when it changes"),
      text_setting("auth.keys_url", at(&Server::auth, &AuthConfig::keys_url), "URL",
                   "an https URL, or an http one of this machine", is_own_url,
                   "where a provider publishes its JSON Web Key Set; use either this or "
                   "`auth.keys_file`"),
      text_setting("auth.issuer", at(&Server::auth, &AuthConfig::issuer), "text",
                   "what tokens have as iss", is_text, "a token's `iss` must be this"),
      texts("auth.audience", at(&Server::auth, &AuthConfig::audiences),
            "texts such as [\"hearth\"]", is_text,
            "a token's `aud` must be, or contain, one of these"),
      duration("auth.clock_skew", at(&Server::auth, &AuthConfig::clock_skew),
               {seconds(0), minutes(10)},
               "how far the issuer's clock may differ from the server's; a token stays valid "
               "for this long after its `exp`"),
  };
}

// ---- cors ---------------------------------------------------------------------------------------

bool is_page_origin(std::string_view text) {
  return text == "*" || text == "null" || parse_origin(text).has_value();
}

bool is_method_name(std::string_view text) {
  return is_http_token(text) && text != "*";
}

bool is_header_word(std::string_view text) {
  return is_http_token(text);
}

template <class Owner>
Settings<Owner> cors_rows(CorsRules Owner::* part) {
  Setting<Owner> credentials = row(
      "cors.credentials", "`true`, `false`", "", at(part),
      [](const Reading& in, CorsRules& out) {
        in.reader.read_choice(in.key, out.credentials,
                              Words<bool>{{"true", true}, {"false", false}});
        const YamlNode* const node = in.reader.look(in.key);
        if (node == nullptr || !out.credentials) return;
        if (std::ranges::find(out.origins, "*") == out.origins.end()) return;
        out.credentials = false;
        in.reader.complain(in.key, node->at,
                           "not with the origin \"*\": any page could use the cookies of its "
                           "visitors. Name the origins");
      },
      [](const CorsRules& rules) { return Json(rules.credentials); },
      "whether these pages may send cookies; not with the origin `\"*\"`. A token in "
      "a header or in the query needs no cookies");
  return {
      texts("cors.origins", at(part, &CorsRules::origins),
            "origins such as [\"https://app.example\"]", is_page_origin,
            "[pages](#pages-and-names) that may use the server, as those of "
            "`allowed_origins`, and also read its answers: `\"https://app.example\"`, "
            "`\"null\"`, `\"*\"`"),
      texts("cors.methods", at(part, &CorsRules::methods), "methods such as [\"GET\", \"POST\"]",
            is_method_name, "methods that these pages may send, besides simple requests"),
      texts("cors.headers", at(part, &CorsRules::headers), "names of headers such as [\"X-Team\"]",
            is_header_word, "headers that these pages may set; `\"*\"`: any, `Authorization` too"),
      std::move(credentials),
      duration("cors.max_age", at(part, &CorsRules::max_age), {seconds(0), hours(24 * 7)},
               "how long a browser may remember the answer to a preflight"),
  };
}

// ---- routes -------------------------------------------------------------------------------------

bool is_route_path(std::string_view text) {
  return text.starts_with('/') && text.find("//") == std::string_view::npos &&
         std::ranges::all_of(text, [](char c) {
           return c > ' ' && c < '\x7f' && c != '?' && c != '#' && c != '{' && c != '}';
         });
}

// One text of a row; empty: it is missing, or it is wrong. A wrong text is reported and sets
// `is_told`.
std::string route_text(MappingReader& reader, std::string_view key, std::string_view form,
                       bool (*is_valid)(std::string_view), bool& is_told) {
  const YamlNode* const node = reader.find_scalar(key, form);
  is_told = is_told || (node == nullptr && reader.look(key) != nullptr);
  if (node == nullptr) return {};
  if (is_valid(node->text)) return node->text;
  is_told = true;
  reader.complain(key, node->at,
                  "expected " + std::string(form) + ", found " + quote_text(node->text));
  return {};
}

std::optional<RouteRule> read_route(const YamlNode& node, Report& report) {
  constexpr std::string_view kPathForm = "a path such as \"/api/agents\"";
  MappingReader reader(node, "routes.", report);
  RouteRule rule;
  bool is_told = false;
  const std::string prefix = route_text(reader, "prefix", kPathForm, is_route_path, is_told);
  rule.path = route_text(reader, "path", kPathForm, is_route_path, is_told);
  rule.agent_class = route_text(reader, "agent", "a class as URLs spell it, such as \"chat-room\"",
                                is_class_alias, is_told);
  rule.name = route_text(reader, "name", "a name or a template such as \"{sub}\"", is_name_template,
                         is_told);
  std::uint32_t status = 0;
  reader.read_count("status", status, {400, 599});
  reader.finish();
  rule.status = static_cast<int>(status);
  rule.is_prefix = !prefix.empty();
  const bool is_agent = !rule.agent_class.empty() && !rule.name.empty();
  const bool has_part = !rule.agent_class.empty() || !rule.name.empty();
  const bool is_good =
      rule.is_prefix ? rule.path.empty() && rule.name.empty() && status == 0
                     : !rule.path.empty() && has_part == is_agent && is_agent == (status == 0);
  if (rule.is_prefix) rule.path = prefix;
  if (is_good) return rule;
  if (is_told) return std::nullopt;
  report.add(
      node.at,
      "routes: a row has `prefix`, or `prefix` with `agent`, or `path` with `agent` and `name`, or "
      "`path` with `status`");
  return std::nullopt;
}

void read_routes(const Reading& in, std::vector<RouteRule>& out) {
  const YamlNode* const node = in.reader.find(in.key);
  if (node == nullptr || node->kind == YamlNode::Kind::kRefused) return;
  const bool is_list = node->kind == YamlNode::Kind::kList;
  if ((!is_list && node->kind != YamlNode::Kind::kNull) || node->items.size() > kMaxRoutes) {
    return in.reader.complain(in.key, node->at,
                              "expected a list of at most 64 rows, found " + describe(*node));
  }
  out.clear();
  for (const YamlNode& each : node->items) {
    if (auto rule = read_route(each, in.report)) out.push_back(*std::move(rule));
  }
}

Json shown_routes(const std::vector<RouteRule>& rules) {
  Json list = Json::array();
  for (const RouteRule& rule : rules) {
    if (rule.is_prefix && rule.agent_class.empty()) {
      list.push_back({{"prefix", rule.path}});
    } else if (rule.is_prefix) {
      list.push_back({{"prefix", rule.path}, {"agent", rule.agent_class}});
    } else if (rule.status != 0) {
      list.push_back({{"path", rule.path}, {"status", rule.status}});
    } else {
      list.push_back({{"path", rule.path}, {"agent", rule.agent_class}, {"name", rule.name}});
    }
  }
  return list;
}

// ---- claims that no client has ------------------------------------------------------------------

constexpr std::string_view kNoClaims = "only with auth.type \"jwt\": other clients have no claims";

bool has_claims(const AuthRules& servers, const ClassConfig* agent_class) {
  const auto own = agent_class == nullptr ? std::nullopt : agent_class->settings.auth.type;
  return own.value_or(servers.type.value_or(ProofKind::kNone)) == ProofKind::kJwt;
}

bool asks_for_claims(std::string_view name) {
  bool asks = false;
  (void)expand_template(name, [&asks](std::string_view of) -> std::optional<std::string> {
    asks = asks || !of.starts_with("header:");
    return "\x01";  // in no template
  });
  return asks;
}

const ClassConfig* find_class(const ClassConfigs& classes, const ClassSegment& segment,
                              const std::string& wanted) {
  for (const auto& [name, agent_class] : classes) {
    const auto& aliases = agent_class.settings.aliases;
    if ((segment ? segment(name) : name) == wanted ||
        std::ranges::find(aliases, wanted) != aliases.end())
      return &agent_class;
  }
  return nullptr;
}

Position place_of(const Sources& sources, std::string_view key) {
  const auto found = sources.find(std::string(key));
  return found == sources.end() ? Position{} : found->second.at;
}

}  // namespace

bool is_own_url(std::string_view text) {
  constexpr std::string_view kHttps = "https://";
  constexpr std::string_view kHttp = "http://";
  const bool is_https = text.starts_with(kHttps);
  if (!is_https && !text.starts_with(kHttp)) return false;
  std::string_view host = text.substr(is_https ? kHttps.size() : kHttp.size());
  host = host.substr(0, host.find('/'));
  const auto authority = parse_authority(host);
  return authority && (is_https || is_loopback_host(authority->host));
}

Setting<ServerConfig> text_setting(std::string path, Fields<ServerConfig, std::string> fields,
                                   std::string kind, std::string_view form,
                                   bool (*is_valid)(std::string_view), std::string meaning) {
  return row(
      std::move(path), std::move(kind), "", std::move(fields),
      [form = std::string(form), is_valid](const Reading& in, std::string& out) {
        const YamlNode* const node = in.reader.find_scalar(in.key, form);
        if (node == nullptr) return;
        if (!node->text.empty() && !is_valid(node->text)) {
          return in.reader.complain(in.key, node->at,
                                    "expected " + form + ", found " + quote_text(node->text));
        }
        out = node->text;
      },
      [](const std::string& value) { return Json(value); }, std::move(meaning));
}

Settings<ServerConfig> server_edge_section() {
  Settings<ServerConfig> rows{
      row("routes", "list of mappings", "", at(&ServerConfig::routes), read_routes, shown_routes,
          "[further paths](#further-paths); each row has a `prefix` (it stands for "
          "`/agents`, or with `agent` for the agents of this class), a `path` with `agent` and "
          "`name` (the path of this agent), or a "
          "`path` with a `status` (refused); the first match counts")};
  std::ranges::move(auth_rows(), std::back_inserter(rows));
  std::ranges::move(cors_rows(&ServerConfig::cors), std::back_inserter(rows));
  return rows;
}

Settings<ClassSettings> class_edge_section() {
  Settings<ClassSettings> rows{
      proof_kind(at(&ClassSettings::auth, &AuthRules::type), "server",
                 "how clients of the class's agents [authenticate](#authentication): one of the "
                 "server's words, `server` (as the server file says) or `objects_key` (with the "
                 "[key of objects](#the-key-of-objects))"),
      name_rule(at(&ClassSettings::auth, &AuthRules::name), nullptr,
                "with `jwt` the server's, else `\"\"`")};
  std::ranges::move(cors_rows(&ClassSettings::cors), std::back_inserter(rows));
  return rows;
}

Diagnostics check_routes(const Config& config, const ClassSegment& segment,
                         const std::string& server_file) {
  Diagnostics mistakes;
  const auto definitions = definitions_directory(config.server.data);
  for (const RouteRule& route : config.server.routes) {
    const ClassConfig* const found = find_class(config.classes, segment, route.agent_class);
    if (!asks_for_claims(route.name) || has_claims(config.server.auth.rules, found)) continue;
    if (found != nullptr && fs::path(found->file).parent_path() == definitions) continue;
    mistakes.push_back({.file = server_file,
                        .at = place_of(config.server.sources, "routes"),
                        .message = "routes: the name of " + quote_text(route.path) +
                                   " has claims, " + std::string(kNoClaims)});
  }
  return mistakes;
}

Diagnostics lost_claims(const std::vector<RouteRule>& routes, const AuthRules& servers,
                        const ClassConfigs& before, const ClassConfigs& now,
                        const ClassSegment& segment) {
  Diagnostics mistakes;
  for (const RouteRule& route : routes) {
    if (!asks_for_claims(route.name)) continue;
    const ClassConfig* const was = find_class(before, segment, route.agent_class);
    const ClassConfig* const is = find_class(now, segment, route.agent_class);
    if (!has_claims(servers, was) || has_claims(servers, is)) continue;
    mistakes.push_back(
        {.file = is != nullptr ? is->file : was->file,  // one is there, since claims differ
         .at = is != nullptr ? place_of(is->sources, "auth.type") : Position{},
         .message = "auth.type: the name of the route " + quote_text(route.path) + " has claims, " +
                    std::string(kNoClaims)});
  }
  return mistakes;
}

void check_class_auth(const ClassConfig& agent_class, Report& report) {
  const AuthRules& own = agent_class.settings.auth;
  const bool has_claims = own.type.value_or(ProofKind::kJwt) == ProofKind::kJwt;
  if (!has_claims && own.name && !own.name->empty())
    report.add(place_of(agent_class.sources, "auth.name"), "auth.name: " + std::string(kNoClaims));
}

void check_auth(const ServerConfig& server, Report& report) {
  const AuthConfig& auth = server.auth;
  const auto complain = [&](const std::string& key, std::string_view message) {
    report.add(place_of(server.sources, key), key + ": " + std::string(message));
  };
  const bool has_keys = !auth.keys_file.empty() || !auth.keys_url.empty();
  const std::string keys = auth.keys_url.empty() ? "auth.keys_file" : "auth.keys_url";
  if (!auth.keys_file.empty() && !auth.keys_url.empty())
    complain("auth.keys_url", "there is an auth.keys_file as well: name one of them");
  if (has_keys && (auth.issuer.empty() || auth.audiences.empty()))
    complain(keys, "needs auth.issuer and auth.audience: else any token of that issuer would do");
  if (auth.rules.type == ProofKind::kToken && auth.token_file.empty())
    complain("auth.type", "\"token\" needs auth.token_file");
  if (auth.rules.type == ProofKind::kJwt && !has_keys)
    complain("auth.type", "\"jwt\" needs auth.keys_file or auth.keys_url");
  if (auth.rules.name && !auth.rules.name->empty() && auth.rules.type != ProofKind::kJwt)
    complain("auth.name", kNoClaims);
}

}  // namespace hearth::config
