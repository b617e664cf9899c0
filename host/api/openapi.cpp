#include "api/openapi.hpp"

#include "api/edge_rules.hpp"
#include "api/openapi_schemas.hpp"
#include "base/assert.hpp"
#include "json/json.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::api {
namespace {

constexpr std::array<std::string_view, 5> kAllMethods{"GET", "PUT", "POST", "PATCH", "DELETE"};

Json schema_reference(std::string_view name) {
  return {{"$ref", "#/components/schemas/" + std::string(name)}};
}

Json content(std::string_view schema) {
  const char* const type = schema == "EventStream" ? "text/event-stream" : "application/json";
  return {{type, {{"schema", schema_reference(schema)}}}};
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// The path as OpenAPI writes it, and the names of its parameters.
std::pair<std::string, std::vector<std::string>> templated(std::string_view pattern) {
  std::string path;
  std::vector<std::string> names;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '{') {
      const std::size_t end = pattern.find('}', at);
      std::string name(pattern.substr(at + 1, end - at - 1));
      if (name.ends_with("...")) name.resize(name.size() - 3);
      path += '{' + name + '}';
      names.push_back(std::move(name));
      at = end;
    } else {
      path += pattern[at];
    }
  }
  return {std::move(path), std::move(names)};
}

Json parameters_of(const Route& row, const std::vector<std::string>& names) {
  const auto parameter = [](const std::string& name, const char* in) {
    return Json{{"name", name},
                {"in", in},
                {"required", std::string_view(in) == "path"},
                {"schema", {{"type", "string"}}}};
  };
  Json all = Json::array();
  for (const std::string& name : names) all.push_back(parameter(name, "path"));
  for (const std::string& name : words_of(row.shape.query)) all.push_back(parameter(name, "query"));
  if (row.shape.answer == "CallResult") all.push_back(parameter("Idempotency-Key", "header"));
  return all;
}

Json security_of(Access access, bool asks_for_key) {
  Json either = Json::array({{{"bearer", Json::array()}}, {{"key", Json::array()}}});
  switch (access) {
    case Access::kAnybody: return Json::array();
    case Access::kUser:
      if (!asks_for_key) either.insert(either.begin(), Json::object());
      return either;
    case Access::kObjectsOwner:
    case Access::kAdministrator: break;
  }
  return either;
}

Json operation(const Route& row, const std::vector<std::string>& names, bool objects_ask_for_key) {
  const RouteShape& shape = row.shape;
  Json answer{{"description", "The answer."}};
  if (!shape.answer.empty()) answer["content"] = content(shape.answer);
  const bool is_object = row.pattern.starts_with("/objects");
  Json operation{{"summary", row.summary},
                 {"parameters", parameters_of(row, names)},
                 {"security", security_of(row.access, is_object && objects_ask_for_key)},
                 {"responses",
                  {{std::to_string(shape.status), std::move(answer)},
                   {"default",
                    {{"description", "A refusal."},
                     {"content", content(is_object ? "ObjectError" : "Error")}}}}}};
  if (!shape.body.empty()) operation["requestBody"] = {{"content", content(shape.body)}};
  return operation;
}

std::string lower_case_method(std::string_view method) {
  std::string text(method);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

std::string openapi_document(const Routes& routes, bool objects_ask_for_key) {
  Json paths = Json::object();
  for (const Route& row : routes.all()) {
    // A page for people, which is no part of the API.
    if (is_at_or_below("/console", row.pattern)) continue;
    const auto [path, names] = templated(row.pattern);
    Json& there = paths[path];
    if (row.method != "*") {
      there[lower_case_method(row.method)] = operation(row, names, objects_ask_for_key);
      continue;
    }
    for (const std::string_view method : kAllMethods) {
      const bool has_row = std::ranges::any_of(routes.all(), [&](const Route& other) {
        return other.pattern == row.pattern && other.method == method;
      });
      if (!has_row) there[lower_case_method(method)] = operation(row, names, objects_ask_for_key);
    }
  }
  auto schemas = parse_json(openapi_schemas());
  HEARTH_ASSERT(schemas.has_value(), "the schemas of the API are no JSON");
  Json keys{{"bearer", {{"type", "http"}, {"scheme", "bearer"}}},
            {"key", {{"type", "apiKey"}, {"in", "header"}, {"name", "X-Api-Key"}}}};
  return dump_json(
      {{"openapi", "3.1.0"},
       {"info", {{"title", "Hearth"}, {"version", HEARTH_VERSION}}},
       {"paths", std::move(paths)},
       {"components", {{"schemas", *std::move(schemas)}, {"securitySchemes", std::move(keys)}}}});
}

}  // namespace hearth::api
