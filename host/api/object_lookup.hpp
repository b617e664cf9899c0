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

// An object that clients may ask for. It may not exist yet.
struct ObjectAddress {
  std::shared_ptr<const runtime::ServedClass> served;
  storage::AgentKey key;
};

// The class that {class} names, or the refusal for the client:
//   503 sandbox_unavailable   the server starts or stops, or the class is not loaded now
//   422 library_missing       the class has settings, and never had a library
//   404 class_not_found       there is no such class, or it has no objects
//
// Threads   Any.
[[nodiscard]] std::variant<std::shared_ptr<const runtime::ServedClass>, net::HttpResponse>
class_of_objects(const runtime::ClassRegistry& classes, const Readiness& readiness,
                 std::string_view agent_class);

// The object of the class that {id} names, or the refusal: 400 invalid_argument, or 503
// sandbox_unavailable while no agent of the class is woken.
[[nodiscard]] std::variant<ObjectAddress, net::HttpResponse> object_of(
    std::shared_ptr<const runtime::ServedClass> served, std::string_view id,
    std::size_t max_name_bytes);

}  // namespace hearth::api
