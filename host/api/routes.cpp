#include "api/routes.hpp"

#include "api/http_errors.hpp"
#include "base/assert.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace hearth::api {
namespace {

constexpr std::string_view kAgentName = "{name...}";

// Takes the first segment off `path`, with the slash before it. `path` begins with a slash.
std::string_view take_path_segment(std::string_view& path) {
  const std::size_t end = std::min(path.find('/', 1), path.size());
  const std::string_view segment = path.substr(1, end - 1);
  path.remove_prefix(end);
  return segment;
}

// Takes off `path` what `want` stands for, a parameter of several segments: all but as many as
// `pattern` has behind it. An agent's name has an odd number.
std::optional<std::string_view> take_rest(std::string_view want, std::string_view pattern,
                                          std::string_view& path) {
  std::size_t end = path.size();
  for (auto left = std::ranges::count(pattern, '/'); left > 0 && end != std::string_view::npos;
       --left)
    end = end == 0 ? std::string_view::npos : path.rfind('/', end - 1);
  if (end == std::string_view::npos || end == 0 || (!pattern.empty() && end == 1))
    return std::nullopt;
  const std::string_view rest = path.substr(0, end);
  if (want == kAgentName && !pattern.empty() && std::ranges::count(rest, '/') % 2 == 0)
    return std::nullopt;
  path.remove_prefix(end);
  return rest.substr(1);
}

// The values of the parameters; absent if `path` does not fit the pattern.
std::optional<std::vector<std::string_view>> match(std::string_view pattern,
                                                   std::string_view path) {
  std::vector<std::string_view> values;
  while (pattern.starts_with('/') && path.starts_with('/')) {
    const std::string_view want = take_path_segment(pattern);
    if (want.ends_with("...}")) {
      const auto rest = take_rest(want, pattern, path);
      if (!rest) return std::nullopt;
      values.push_back(*rest);
      continue;
    }
    const std::string_view segment = take_path_segment(path);
    if (want.starts_with('{')) {
      if (segment.empty()) return std::nullopt;
      values.push_back(segment);
    } else if (want != segment) {
      return std::nullopt;
    }
  }
  if (!pattern.empty() || !path.empty()) return std::nullopt;
  return values;
}

bool answers(const Route& row, std::string_view method) {
  return row.method == method || (row.method == "GET" && method == "HEAD");
}

}  // namespace

void Routes::add(Route route) {
  for (const Route& row : rows_) {
    HEARTH_ASSERT(row.pattern != route.pattern || row.access == route.access,
                  "rows of one path with different access");
  }
  rows_.push_back(std::move(route));
}

Routes::Found Routes::find(std::string_view method, std::string_view path) const {
  Found found;
  std::string_view pattern;
  for (const Route& row : rows_) {
    if (!found.is_path) {
      auto values = match(row.pattern, path);
      if (!values) continue;
      found = {.is_path = true, .access = row.access, .values = *std::move(values)};
      pattern = row.pattern;
    }
    if (row.pattern != pattern) continue;
    if (answers(row, method)) {
      found.route = &row;
      break;
    }
    if (row.method == "*") found.route = &row;
  }
  return found;
}

net::HttpResponse Routes::wrong_method(std::string_view path) const {
  std::string allowed;
  std::string_view pattern;
  for (const Route& row : rows_) {
    if (pattern.empty() && match(row.pattern, path)) pattern = row.pattern;
    if (row.pattern != pattern) continue;
    if (!allowed.empty()) allowed += ", ";
    allowed += row.method == "GET" ? "GET, HEAD" : row.method;
  }
  net::HttpResponse response =
      error_answer(405, "method_not_allowed", "this path answers " + allowed);
  response.headers.push_back({"Allow", std::move(allowed)});
  response.headers.push_back({"Cache-Control", "no-store"});
  response.headers.push_back({"X-Content-Type-Options", "nosniff"});
  return response;
}

}  // namespace hearth::api
