#pragma once
// /objects besides calls and alarms: the life of objects and their storage.

#include "api/object_actions.hpp"
#include "api/readiness.hpp"
#include "api/routes.hpp"
#include "net/http.hpp"
#include "runtime/class_registry.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace hearth::api {

// For administrators, and for requests with the key of objects:
//  GET    /objects?class=&status=&limit=&cursor=   a page, with "next":"..." or null beside "data".
//                                                  limit: 1 to 1000 (100); status: Active or
//                                                  Hibernating in any case. A page may have fewer
//                                                  than `limit`
//  POST   /objects                                 201; body: {"class","object_id","storage"?}; 409
//                                                  object_exists; a class that cannot have objects
//                                                  now is refused as in calls
//  GET, DELETE /objects/{uuid}                     an object by its own id
//  PATCH  /objects/{uuid}                          body: {"storage": a JSON merge patch}
//  GET    /objects/{class}/{id}?after=&limit=      the object, with a page of its storage
//  DELETE /objects/{class}/{id}                    deletes all data of the object
//  POST   /objects/{class}/{id}/hibernate          it leaves memory; a call in progress is cut off
//  POST   /objects/{class}/{id}/checkpoint         all that it has written is durable
//  PATCH  /objects/{class}/{id}/storage            body: a JSON merge patch (RFC 7396)
//
// An object: {"id","class","object_id","status","sandbox_name","created_at","last_active",
// "storage"?,"storage_next"?}. `id` is its own, `object_id` is the {id} of its path, decoded.
// Answers are {"success":true,"data":X}, errors as object_answer.hpp has them.
//
// Threads, Lifetime  As AdminApi.
class ObjectsAdmin {
 public:
  ObjectsAdmin(ObjectActions& actions, const runtime::ClassRegistry& classes,
               const Readiness& readiness, std::size_t max_name_bytes)
      : actions_(actions),
        classes_(classes),
        readiness_(readiness),
        max_name_bytes_(max_name_bytes) {}

  // The rows call this object: it outlives the table's last use.
  void add_routes(Routes& routes);

 private:
  void list(const RouteCall& call);
  void create(const RouteCall& call);
  void show_by_uuid(const RouteCall& call);
  void remove_by_uuid(const RouteCall& call);
  void patch_by_uuid(const RouteCall& call);
  void show(const RouteCall& call);
  void remove(const RouteCall& call);
  void hibernate(const RouteCall& call);
  void checkpoint(const RouteCall& call);
  void patch(const RouteCall& call);

  // Absent: the path is wrong, and the client has its answer.
  [[nodiscard]] std::optional<ObjectName> named(const RouteCall& call) const;
  void show(const std::shared_ptr<net::HttpExchange>& exchange, const ObjectName& name,
            std::string_view query);

  ObjectActions& actions_;
  const runtime::ClassRegistry& classes_;
  const Readiness& readiness_;
  const std::size_t max_name_bytes_;
};

}  // namespace hearth::api
