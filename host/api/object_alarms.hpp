#pragma once
// /objects/{class}/{id}/alarms: calls of an object's methods at given times.

#include "api/object_actions.hpp"
#include "api/object_lookup.hpp"
#include "api/readiness.hpp"
#include "api/routes.hpp"
#include "base/clock.hpp"

#include <cstddef>
#include <optional>

namespace hearth::api {

// For users, as calls are:
//  POST   /objects/{class}/{id}/alarms                  201; body: {"method","args"?,"fire_at"
//                                                       (RFC 3339) or "delay_seconds"}
//  GET    /objects/{class}/{id}/alarms?limit=&cursor=   {"alarms":[...],"next":"..." or null}.
//                                                       limit: 1 to 1000 (100). A page may have
//                                                       fewer: it ends after some 1 MiB
//  DELETE /objects/{class}/{id}/alarms/{alarm}
//
// The first alarm of an object makes the object, as a call does. A method that an alarm calls has
// no client: in it caller_claims() and caller_agent() give nothing.
//
// Answers    As ObjectsEndpoint; 404 object_not_found for an object or alarm that does not exist.
// Threads    Any of the server's loops, concurrently.
// Lifetime   All parameters of the constructor outlive it.
class ObjectAlarms {
 public:
  ObjectAlarms(ObjectActions& actions, const runtime::ClassRegistry& classes,
               const Readiness& readiness, const Clock& clock, std::size_t max_name_bytes)
      : actions_(actions),
        classes_(classes),
        readiness_(readiness),
        clock_(clock),
        max_name_bytes_(max_name_bytes) {}

  // The rows call this object: it outlives the table's last use.
  void add_routes(Routes& routes);

 private:
  void set(const RouteCall& call);
  void list(const RouteCall& call);
  void cancel(const RouteCall& call);

  // Absent: the path is wrong, and the client has its answer.
  [[nodiscard]] std::optional<ObjectAddress> find(const RouteCall& call) const;

  ObjectActions& actions_;
  const runtime::ClassRegistry& classes_;
  const Readiness& readiness_;
  const Clock& clock_;
  const std::size_t max_name_bytes_;
};

}  // namespace hearth::api
