#pragma once
// The rows of server/admin_desk.hpp and server/object_desk.hpp, and their access. Their tests
// compare it with the real rows.

#include "api/routes.hpp"

#include <string_view>

namespace hearth::api::testing {

struct DeskRow {
  std::string_view method, pattern;
  Access access;
};
inline constexpr DeskRow kAdminDeskRows[] = {
    {"GET", "/admin/plugins", Access::kAdministrator},
    {"POST", "/admin/plugins/reload", Access::kAdministrator},
    {"POST", "/admin/plugins/take-back", Access::kAdministrator},
    {"GET", "/admin/generations", Access::kAdministrator},
    {"GET", "/admin/classes", Access::kAdministrator},
    {"GET", "/admin/classes/{class}/methods", Access::kAdministrator},
    {"GET", "/admin/quarantine", Access::kAdministrator},
    {"POST", "/admin/quarantine/release", Access::kAdministrator},
    {"GET", "/admin/audit", Access::kAdministrator},
    {"POST", "/admin/backup", Access::kAdministrator},
    {"GET", "/admin/backup", Access::kAdministrator},
    {"DELETE", "/admin/backup", Access::kAdministrator},
    {"GET", "/admin/agents", Access::kAdministrator},
    {"POST", "/admin/agents/{class}/{name...}/evict", Access::kAdministrator},
    {"GET", "/admin/agents/{class}/{name...}/why", Access::kAdministrator},
    {"GET", "/admin/stuck", Access::kAdministrator},
    {"POST", "/admin/agents/{class}/{name...}/work/{kind}/{id}/{action}", Access::kAdministrator},
    {"GET", "/admin/agents/{class}/{name...}/work/{kind}/{id}", Access::kAdministrator},
    {"GET", "/admin/agents/{class}/{name...}/work", Access::kAdministrator},
    {"GET", "/admin/chats", Access::kAdministrator},
    {"POST", "/admin/agents/{class}/{name...}/sql", Access::kAdministrator},
    {"GET", "/admin/agents/{class}/{name...}", Access::kAdministrator},
    {"DELETE", "/admin/agents/{class}/{name...}", Access::kAdministrator},
    {"GET", "/admin/operations", Access::kAdministrator},
    {"POST", "/admin/operations/{class}/{name...}/{id}/resolve", Access::kAdministrator},
    {"GET", "/admin/operations/{class}/{name...}/{id}", Access::kAdministrator},
    {"GET", "/objects/definitions", Access::kAdministrator},
    {"POST", "/objects/definitions", Access::kAdministrator},
    {"GET", "/objects/definitions/{class}", Access::kAdministrator},
    {"PUT", "/objects/definitions/{class}", Access::kAdministrator},
    {"DELETE", "/objects/definitions/{class}", Access::kAdministrator},
};
inline constexpr DeskRow kObjectDeskRows[] = {
    {"GET", "/objects", Access::kObjectsOwner},
    {"POST", "/objects", Access::kObjectsOwner},
    {"GET", "/objects/{uuid}", Access::kObjectsOwner},
    {"PATCH", "/objects/{uuid}", Access::kObjectsOwner},
    {"DELETE", "/objects/{uuid}", Access::kObjectsOwner},
    {"GET", "/objects/{class}/{id}", Access::kObjectsOwner},
    {"DELETE", "/objects/{class}/{id}", Access::kObjectsOwner},
    {"POST", "/objects/{class}/{id}/hibernate", Access::kObjectsOwner},
    {"POST", "/objects/{class}/{id}/checkpoint", Access::kObjectsOwner},
    {"PATCH", "/objects/{class}/{id}/storage", Access::kObjectsOwner},
    {"GET", "/objects/{class}/{id}/alarms", Access::kUser},
    {"POST", "/objects/{class}/{id}/alarms", Access::kUser},
    {"DELETE", "/objects/{class}/{id}/alarms/{alarm}", Access::kUser},
};

}  // namespace hearth::api::testing
