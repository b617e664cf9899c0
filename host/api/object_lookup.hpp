#pragma once
// Which object a path below /objects means.

#include "api/readiness.hpp"
#include "net/http.hpp"
#include "runtime/class_registry.hpp"
#include "storage/agent_key.hpp"

#include <cstddef>
#include <memory>
#include <string_view>
#include <variant>

namespace hearth::api {

// An object that clients may ask for. It need not exist.
struct ObjectAddress {
  std::shared_ptr<const runtime::ServedClass> served;
  storage::AgentKey key;
};

// The class that {class} names, or what the client is told. HttpApi asks it whose rules for clients
// hold, and the routes for clients ask it which class answers: a spelling that one of them does not
// know, the other one does not know either. Its answers:
//   503 sandbox_unavailable   the server starts or stops, or the class is not loaded now
//   422 library_missing       the class has settings, and never had a library
//   404 class_not_found       there is no such class, or it has no objects
//
// Threads   Any.
[[nodiscard]] std::variant<std::shared_ptr<const runtime::ServedClass>, net::HttpResponse>
class_of_objects(const runtime::ClassRegistry& classes, const Readiness& readiness,
                 std::string_view agent_class);

// The object of /objects/{class}/{id}, or what the client is told: as class_of_objects(), and 400
// invalid_argument for an id that cannot be.
[[nodiscard]] std::variant<ObjectAddress, net::HttpResponse> object_at(
    const runtime::ClassRegistry& classes, const Readiness& readiness, std::string_view agent_class,
    std::string_view id, std::size_t max_name_bytes);

}  // namespace hearth::api
