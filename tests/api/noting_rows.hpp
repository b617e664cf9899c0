#pragma once
// The rows that a server answers itself (server/admin_desk.hpp, server/object_desk.hpp), with
// functions that only note what was asked. tests/process/proofs_test.cpp asks the real ones.

#include "api/admin_api.hpp"
#include "api/routes.hpp"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hearth::api::testing {

// Asked on any loop; outlives the server.
class NotingRows {
 public:
  [[nodiscard]] std::vector<Route> rows() {
    struct Row {
      std::string_view methods, pattern;
      Access access;
    };
    constexpr Row kRows[] = {
        {"GET", "/admin/plugins", Access::kAdministrator},
        {"POST", "/admin/plugins/reload", Access::kAdministrator},
        {"GET", "/admin/generations", Access::kAdministrator},
        {"GET", "/admin/classes", Access::kAdministrator},
        {"GET", "/admin/classes/{class}/methods", Access::kAdministrator},
        {"GET", "/admin/quarantine", Access::kAdministrator},
        {"POST", "/admin/quarantine/release", Access::kAdministrator},
        {"GET", "/admin/audit", Access::kAdministrator},
        {"GET", "/admin/agents", Access::kAdministrator},
        {"POST", "/admin/agents/{class}/{name...}/evict", Access::kAdministrator},
        {"GET DELETE", "/admin/agents/{class}/{name...}", Access::kAdministrator},
        {"GET", "/admin/operations", Access::kAdministrator},
        {"POST", "/admin/operations/{class}/{name...}/{id}/resolve", Access::kAdministrator},
        {"GET", "/admin/operations/{class}/{name...}/{id}", Access::kAdministrator},
        {"GET POST", "/objects/definitions", Access::kAdministrator},
        {"GET PUT DELETE", "/objects/definitions/{class}", Access::kAdministrator},
        {"GET POST", "/objects", Access::kObjectsOwner},
        {"GET PATCH DELETE", "/objects/{uuid}", Access::kObjectsOwner},
        {"GET DELETE", "/objects/{class}/{id}", Access::kObjectsOwner},
        {"POST", "/objects/{class}/{id}/hibernate", Access::kObjectsOwner},
        {"POST", "/objects/{class}/{id}/checkpoint", Access::kObjectsOwner},
        {"PATCH", "/objects/{class}/{id}/storage", Access::kObjectsOwner},
        {"GET POST", "/objects/{class}/{id}/alarms", Access::kUser},
        {"DELETE", "/objects/{class}/{id}/alarms/{alarm}", Access::kUser},
    };
    std::vector<Route> all;
    for (const Row& row : kRows) {
      std::string_view methods = row.methods;
      while (!methods.empty()) {
        const std::string_view method = methods.substr(0, methods.find(' '));
        methods.remove_prefix(std::min(method.size() + 1, methods.size()));
        all.push_back({method, row.pattern, row.access, "A sentence.",
                       [this](const RouteCall& call) { answer(call); }});
      }
    }
    return all;
  }

  // The methods and targets that were asked since the last call; of users also the object.
  [[nodiscard]] std::vector<std::string> take_asked() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, {});
  }

 private:
  void answer(const RouteCall& call) {
    const net::HttpRequest& request = call.exchange->request();
    std::string what = request.method + ' ' + request.target;
    if (call.object.served != nullptr)
      what += ' ' + call.object.key.agent_class + ' ' + call.object.key.name;
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(std::move(what));
    }
    call.exchange->respond(admin_answer(Json::object()));
  }

  std::mutex mutex_;
  std::vector<std::string> asked_;
};

}  // namespace hearth::api::testing
