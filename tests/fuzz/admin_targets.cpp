// What administrators send: paths, queries and JSON.
#include "api/admin_requests.hpp"
#include "api/object_requests.hpp"
#include "api/query_words.hpp"
#include "api/routes.hpp"
#include "fuzz/targets.hpp"
#include "json/json_scanner.hpp"
#include "protocol/agent_address.hpp"
#include "support/manual_clock.hpp"

#include <algorithm>
#include <string>

namespace hearth::fuzz {
namespace {

constexpr std::size_t kMaxName = 256;

void require_page(std::size_t limit) {
  require(limit > 0 && limit <= api::kMaxPage, "a page is bounded");
}

void read_query(std::string_view query) {
  if (const auto page = api::read_agent_page(query)) {
    require(!page->agent_class.empty(), "a page of agents is of a class");
    require_page(page->limit);
  }
  if (const auto page = api::read_operation_query(query)) {
    require(page->agent.empty() || !page->agent_class.empty(), "an agent has a class");
    require_page(page->limit);
  }
  if (const auto page = api::read_audit_query(query)) require_page(page->limit);
  if (const auto page = api::read_object_page(query)) require_page(page->limit);
  if (const auto page = api::read_page(query, "cursor")) require_page(page->limit);
}

void read_body(const std::string& body) {
  const hearth::testing::ManualClock clock;
  (void)api::read_named_class(body);
  if (const auto how = api::read_resolution(body))
    require(how->result.empty() || (how->was_executed && is_json(how->result)),
            "a result is JSON, of what was executed");
  if (const auto object = api::read_new_object(body, kMaxName)) {
    require(!object->agent_class.empty(), "an object has a class");
    require(protocol::name_problem(object->name, kMaxName).empty(), "its name can be reached");
    require(object->patch.empty() || is_json(object->patch), "a patch is JSON");
  }
  if (const auto patch = api::read_storage_member(body))
    require(is_json(*patch), "a patch is JSON");
  if (const auto alarm = api::read_alarm(body, clock))
    require(is_json(alarm->arguments), "arguments are JSON");
}

// The rows with names in their paths.
const api::Routes& named_rows() {
  static const api::Routes routes = [] {
    api::Routes rows;
    for (const auto& [method, pattern] :
         {std::pair("POST", "/admin/agents/{class}/{name...}/evict"),
          std::pair("GET", "/admin/agents/{class}/{name...}/why"),
          std::pair("GET", "/admin/agents/{class}/{name...}"),
          std::pair("POST", "/admin/operations/{class}/{name...}/{id}/resolve"),
          std::pair("GET", "/admin/operations/{class}/{name...}/{id}")})
      rows.add({method, pattern, api::Access::kAdministrator, "", {}});
    return rows;
  }();
  return routes;
}

}  // namespace

// A line with the method and the target, and the body.
void admin_request(std::string_view bytes) {
  const std::size_t line = std::min(bytes.find('\n'), bytes.size());
  const std::size_t blank = std::min(bytes.find(' '), line);
  const std::string_view target =
      bytes.substr(std::min(blank + 1, line), line - std::min(blank + 1, line));
  const std::string_view path = target.substr(0, target.find('?'));
  const auto found = named_rows().find(bytes.substr(0, blank), path);
  if (found.route != nullptr) {
    require(found.values.size() >= 2, "a path has a class and a name");
    require(!found.values[1].empty(), "a name is not empty");
    (void)api::name_of_key(found.values[1]);
  }
  read_query(target.substr(std::min(target.size(), path.size() + 1)));
  read_body(std::string(bytes.substr(std::min(line + 1, bytes.size()))));
}

}  // namespace hearth::fuzz
