#include "api/object_lookup.hpp"

#include "api/object_answer.hpp"
#include "protocol/agent_address.hpp"
#include "protocol/object_address.hpp"

#include <string>
#include <utility>

namespace hearth::api {

std::variant<std::shared_ptr<const runtime::ServedClass>, net::HttpResponse> class_of_objects(
    const runtime::ClassRegistry& classes, const Readiness& readiness,
    std::string_view agent_class) {
  if (readiness.phase() != Readiness::Phase::kReady)
    return object_error(503, "sandbox_unavailable", "the server is starting or stopping");
  auto served = find_by_any_name(classes, agent_class);
  if (served == nullptr &&
      (classes.is_expected(agent_class) || classes.is_expected_name(agent_class)))
    return classes.had_library(agent_class)
               ? object_error(503, "sandbox_unavailable", "the class is not loaded now")
               : object_error(422, "library_missing", "no library with this class was loaded yet");
  if (served == nullptr || !served->settings.is_object) return no_such_class();
  return served;
}

std::variant<ObjectAddress, net::HttpResponse> object_of(
    std::shared_ptr<const runtime::ServedClass> served, std::string_view id,
    std::size_t max_name_bytes) {
  std::string name = protocol::object_name(id);
  if (const auto problem = protocol::name_problem(name, max_name_bytes); !problem.empty())
    return object_error(400, "invalid_argument", problem);
  if (!served->refusal.empty()) return object_error(503, "sandbox_unavailable", served->refusal);
  storage::AgentKey key{std::string(served->agent_class->name()), std::move(name)};
  return ObjectAddress{std::move(served), std::move(key)};
}

}  // namespace hearth::api
