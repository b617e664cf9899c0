#include "tools.hpp"

#include <hearth/chat/ask_chat.hpp>
#include <hearth/operations.hpp>
#include <hearth/url.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace assistant {

namespace {

using hearth::Effect;
using hearth::Json;

constexpr std::size_t kMaxNameBytes = 64;  // what every provider takes
constexpr std::size_t kMaxTools = 128;

[[noreturn]] void refuse_option(const std::string& place, const std::string& why) {
  throw hearth::Error(HEARTH_E_INVALID, place + ": " + why);
}

[[noreturn]] void refuse_input(std::string_view member, const std::string& why) {
  throw hearth::NotExecuted("input." + std::string(member) + ": " + why, HEARTH_E_INVALID);
}

// ---- templates ----------------------------------------------------------------------------------

bool is_digit_or_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// What RFC 3986 calls unreserved stays as it is.
std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_digit_or_letter(c) || std::string_view("-._~").find(c) != std::string_view::npos)
      out += c;
    else
      (out += '%') += {kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return out;
}

// The text without its next piece, up to and without `end`.
std::string_view take_piece(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  const std::string_view piece = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return piece;
}

constexpr const char* kBadBraces =
    "a field is a name of letters, digits, _ and - in braces, as in {city}";

bool is_name(std::string_view text) {
  const auto is_allowed = [](char c) { return is_digit_or_letter(c) || c == '_' || c == '-'; };
  return !text.empty() && std::ranges::all_of(text, is_allowed);
}

// The fields of a template. Nothing: it has other braces.
std::optional<std::vector<std::string>> fields_of(std::string_view text) {
  std::vector<std::string> fields;
  while (!text.empty()) {
    const std::size_t open = text.find_first_of("{}");
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find('}', open);
    if (text[open] == '}' || close == std::string_view::npos) return std::nullopt;
    const std::string_view name = text.substr(open + 1, close - open - 1);
    if (!is_name(name)) return std::nullopt;
    fields.emplace_back(name);
    text.remove_prefix(close + 1);
  }
  return fields;
}

std::string scalar_text(std::string_view member, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return hearth::to_text(value);
  refuse_input(member, "expected a text, a number, true or false");
}

// `text`: a template whose braces are right.
std::string filled(std::string_view text, const Json& input) {
  std::string out;
  while (!text.empty()) {
    out += take_piece(text, '{');
    if (text.empty()) break;
    const std::string_view field = take_piece(text, '}');
    const auto member = input.find(field);
    if (member == input.end()) refuse_input(field, "missing");
    out += percent_encoded(scalar_text(field, *member));
  }
  return out;
}

// A path goes up where a segment is "..". Some servers look for such segments only after they have
// decoded the path.
bool leads_elsewhere(std::string_view segment) {
  const std::string decoded = hearth::url_decoded(segment);
  std::string_view rest = decoded;
  while (!rest.empty()) {
    const std::size_t at = rest.find_first_of("/\\");
    const std::string_view piece = rest.substr(0, at);
    if (piece == "." || piece == "..") return true;
    rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  }
  return false;
}

// `text`: with a field.
std::string_view first_field(std::string_view text) {
  take_piece(text, '{');
  return take_piece(text, '}');
}

std::string filled_path(std::string_view path, const Json& input) {
  std::string out;
  while (!path.empty()) {
    const bool has_more = path.find('/') != std::string_view::npos;
    const std::string_view segment = take_piece(path, '/');
    const std::string text = filled(segment, input);
    if (text != segment && (text.empty() || leads_elsewhere(text)))
      refuse_input(first_field(segment), "expected a name");
    out += text;
    if (has_more) out += '/';
  }
  return out;
}

// ---- URLs ---------------------------------------------------------------------------------------

// A URL template in two parts; `query` is without its question mark.
struct UrlParts {
  std::string_view path;  // with scheme and host
  std::string_view query;
};

UrlParts split_url(std::string_view url) {
  UrlParts parts;
  parts.path = take_piece(url, '?');
  parts.query = url;
  return parts;
}

std::vector<std::string> query_names(std::string_view query) {
  std::vector<std::string> names;
  while (!query.empty()) {
    std::string_view pair = take_piece(query, '&');
    names.push_back(hearth::url_decoded(take_piece(pair, '=')));
  }
  return names;
}

// Why it is no template of a URL; empty: it is one.
std::string url_fault(std::string_view url) {
  const std::size_t scheme = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
  if (scheme == 0) return "expected a URL that begins with http:// or https://";
  const auto is_allowed = [](char c) {
    return c > ' ' && c < 0x7f && std::string_view("\\\"<>^`|#").find(c) == std::string_view::npos;
  };
  if (!std::ranges::all_of(url, is_allowed))
    return "it has a character that URLs do not have, or a fragment";
  const std::string_view host =
      url.substr(scheme, std::min(url.find_first_of("/?", scheme), url.size()) - scheme);
  if (host.empty()) return "it has no host";
  if (host.find_first_of("{}@") != std::string_view::npos)
    return "scheme and host are fixed: no field, user or password can be there";
  if (!fields_of(url)) return kBadBraces;
  std::string_view query = split_url(url).query;
  while (!query.empty()) {
    std::string_view pair = take_piece(query, '&');
    if (take_piece(pair, '=').find('{') != std::string_view::npos)
      return "in the query, a field can only be a value, as in ?city={city}";
  }
  return {};
}

void add_to_query(std::string& url, std::string_view name, const Json& value) {
  if (value.is_null()) return;
  if (value.is_array()) {
    for (const Json& each : value)
      if (!each.is_array()) add_to_query(url, name, each);
    return;
  }
  url += url.find('?') == std::string::npos ? '?' : '&';
  url += percent_encoded(name);
  url += '=';
  url += percent_encoded(value.is_string() ? value.get<std::string>() : hearth::to_text(value));
}

bool has_body(const HttpTool& http) {
  return http.method == "POST" || http.method == "PUT" || http.method == "PATCH";
}

// ---- checks of options --------------------------------------------------------------------------

constexpr std::array<std::pair<std::string_view, Effect>, 4> kEffects = {{
    {"read", Effect::kRead},
    {"idempotent", Effect::kIdempotent},
    {"keyed", Effect::kKeyed},
    {"unsafe", Effect::kUnsafe},
}};

std::optional<Effect> find_effect(std::string_view name) {
  for (const auto& [known, effect] : kEffects)
    if (known == name) return effect;
  return std::nullopt;
}

// `schema`: an object.
const Json* find_properties(const Json& schema) {
  const auto found = schema.find("properties");
  return found != schema.end() && found->is_object() ? &*found : nullptr;
}

// That the schema has the fields of a template.
void check_fields(const std::string& place, std::string_view text, const Json& schema) {
  const Json* const properties = find_properties(schema);
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): it was read before
  const std::vector<std::string> fields = *fields_of(text);
  for (const std::string& field : fields)
    if (properties == nullptr || !properties->contains(field))
      refuse_option(place, "{" + field + "} is not among the properties of the tool's schema");
}

void check_http(const std::string& place, const HttpTool& http, const Json& schema) {
  constexpr std::array<std::string_view, 5> kMethods = {"GET", "POST", "PUT", "PATCH", "DELETE"};
  if (std::ranges::find(kMethods, http.method) == kMethods.end())
    refuse_option(place + ".method", "expected GET, POST, PUT, PATCH or DELETE");
  if (const std::string fault = url_fault(http.url); !fault.empty())
    refuse_option(place + ".url", fault);
  check_fields(place + ".url", http.url, schema);
  if (!http.effect.empty() && !find_effect(http.effect))
    refuse_option(place + ".effect", "expected read, idempotent, keyed or unsafe");
}

void check_agent(const std::string& place, const AgentTool& agent, const Json& schema) {
  if (agent.agent_class.empty()) refuse_option(place + ".class", "missing, expected string");
  if (agent.name.empty()) refuse_option(place + ".name", "missing, expected string");
  if (agent.method.empty()) refuse_option(place + ".method", "missing, expected string");
  if (!fields_of(agent.name)) refuse_option(place + ".name", kBadBraces);
  check_fields(place + ".name", agent.name, schema);
  const auto effect = find_effect(agent.effect);
  if (!effect || effect == Effect::kKeyed)
    refuse_option(place + ".effect",
                  "expected read, idempotent or unsafe: a call of an agent carries no key");
}

void check_chat(const std::string& place, const ChatTool& chat, const Json& schema) {
  if (chat.agent_class.empty()) refuse_option(place + ".class", "missing, expected string");
  if (chat.name.empty()) refuse_option(place + ".name", "missing, expected string");
  if (!fields_of(chat.name)) refuse_option(place + ".name", kBadBraces);
  check_fields(place + ".name", chat.name, schema);
  check_fields(place, "{text}", schema);
}

void check_tool(const std::string& place, const ToolConfig& tool) {
  if (!is_name(tool.name) || tool.name.size() > kMaxNameBytes)
    refuse_option(place + ".name", "expected 1 to 64 letters, digits, _ or -");
  if (!tool.schema.is_object() || tool.schema.value("type", Json()) != "object")
    refuse_option(place + ".schema", "expected a JSON schema with type: object");
  if (int{tool.http.has_value()} + int{tool.agent.has_value()} + int{tool.chat.has_value()} +
          int{tool.client} !=
      1)
    refuse_option(place, "expected one of http, agent, chat and client: true");
  if (tool.client && tool.approval)
    refuse_option(place + ".approval", "the client that runs a tool asks its user itself");
  if (tool.http) check_http(place + ".http", *tool.http, tool.schema);
  if (tool.agent) check_agent(place + ".agent", *tool.agent, tool.schema);
  if (tool.chat) check_chat(place + ".chat", *tool.chat, tool.schema);
}

// ---- input and answers --------------------------------------------------------------------------

// A model may make members up; they must not reach the other side.
void check_input(const ToolConfig& tool, const Json& input) {
  if (!input.is_object()) throw hearth::NotExecuted("input: expected an object", HEARTH_E_INVALID);
  const Json* const properties = find_properties(tool.schema);
  if (properties == nullptr) return;
  for (const auto& [name, value] : input.items())
    if (!properties->contains(name)) refuse_input(name, "the tool's schema has no such property");
}

// The first bytes, up to the end of a character.
std::string cut_text(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text;
}

// At most `limit` bytes of valid UTF-8.
std::string valid_text(std::string text, std::size_t limit) {
  const Json cut = cut_text(std::move(text), limit);
  const std::string json = cut.dump(-1, ' ', false, Json::error_handler_t::replace);
  return cut_text(Json::parse(json).get<std::string>(), limit);
}

}  // namespace

Effect ToolConfig::effect() const {
  if (chat) return Effect::kIdempotent;  // one turn for each call
  if (agent) return find_effect(agent->effect).value_or(Effect::kUnsafe);
  if (!http) return Effect::kUnsafe;
  const std::string_view by_default = http->method == "GET" ? "read" : "unsafe";
  return find_effect(http->effect.empty() ? by_default : http->effect).value_or(Effect::kUnsafe);
}

AssistantOptions read_assistant_options(const Json& given) {
  auto options = hearth::chat::read_chat_options<AssistantOptions>(given);
  if (options.tools.size() > kMaxTools) refuse_option("options.tools", "at most 128 tools");
  for (std::size_t i = 0; i < options.tools.size(); ++i) {
    ToolConfig& tool = options.tools[i];
    if (tool.chat && tool.schema == ToolConfig().schema)
      tool.schema = hearth::chat::ask_chat_schema();
    const std::string place = "options.tools[" + std::to_string(i) + "]";
    check_tool(place, tool);
    const auto first = std::ranges::find(options.tools, tool.name, &ToolConfig::name);
    if (&*first != &tool) refuse_option(place + ".name", "an earlier tool has this name");
  }
  return options;
}

hearth::FetchRequest http_request(const ToolConfig& tool, Json input) {
  check_input(tool, input);
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): an http tool
  const HttpTool& http = *tool.http;
  const UrlParts parts = split_url(http.url);
  hearth::FetchRequest request;
  request.method = http.method;
  request.credential = http.credential;
  request.url = filled_path(parts.path, input);
  if (!parts.query.empty()) request.url += "?" + filled(parts.query, input);
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): checked at the start
  const std::vector<std::string> fields = *fields_of(http.url);
  for (const std::string& field : fields) input.erase(field);
  if (has_body(http)) {
    request.json = std::move(input);
    return request;
  }
  const std::vector<std::string> fixed = query_names(parts.query);
  for (const auto& [name, value] : input.items()) {
    if (std::ranges::find(fixed, name) != fixed.end())
      refuse_input(name, "the tool's URL has a value of this name");
    add_to_query(request.url, name, value);
  }
  return request;
}

std::string agent_name(const ToolConfig& tool, const Json& input) {
  check_input(tool, input);
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): a tool of one of the two
  return filled_path(tool.chat ? tool.chat->name : tool.agent->name, input);
}

bool is_refusal(unsigned status, Effect effect) {
  if (status < 300 || status > 499) return false;
  constexpr std::array<unsigned, 5> kNotAboutTheRequest = {401, 408, 409, 425, 429};
  return effect != Effect::kKeyed ||
         std::ranges::find(kNotAboutTheRequest, status) == kNotAboutTheRequest.end();
}

Json answer_json(unsigned status, std::string body) {
  if (body.empty()) return {{"status", status}};
  if (body.size() > kMaxAnswerBytes)
    return valid_text(std::move(body), kMaxAnswerBytes) + "\n[The answer was longer.]";
  try {
    return hearth::parse_json(body);
  } catch (const hearth::Error&) {
    return valid_text(std::move(body), kMaxAnswerBytes);
  }
}

std::string error_sentence(unsigned status, std::string body) {
  std::string text = "status " + std::to_string(status);
  if (body.empty()) return text;
  return text + ": " + valid_text(std::move(body), kMaxErrorBytes);
}

}  // namespace assistant
