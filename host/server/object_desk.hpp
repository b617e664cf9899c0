#pragma once
// /objects besides calls: the life of objects, their storage and their alarms.

#include "api/object_requests.hpp"
#include "api/readiness.hpp"
#include "api/routes.hpp"
#include "base/clock.hpp"
#include "json/json.hpp"
#include "runtime/runtime.hpp"
#include "server/agent_visits.hpp"
#include "server/desk.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::server {

// add_routes() has the paths; openapi_schemas.cpp has the bodies. Beyond them:
//  - A page may have fewer items than its `limit`; a page of alarms ends after some 1 MiB.
//  - A class that cannot have objects now is refused as in calls. 409 object_exists.
//  - After a DELETE later requests reach a new object. Hibernating cuts a call in progress off.
//  - A patch is a JSON merge patch (RFC 7396).
//
// An object: {"id","class","object_id","status","sandbox_name","created_at","last_active",
// "storage"?,"storage_next"?}. `id` is its own, `object_id` is the {id} of its path, decoded.
// api/object_requests.hpp has the bodies. Answers are {"success":true,"data":X}, errors as
// api/object_answer.hpp has them. The first alarm of an object makes the object, as a call does. A
// method that an alarm calls has no client.
//
// A request for an object's data runs no code of its class: a cold object is only opened for it
// (runtime/agent_visit.hpp). Requests of users go to the object's loop at once, and are bounded as
// calls are; the others as Desk says.
//
// Threads, Lifetime  As Desk. The rows call this object: it outlives the table's last use.
class ObjectDesk {
 public:
  static constexpr std::chrono::milliseconds kShardPatience{5000};

  ObjectDesk(runtime::Runtime& runtime, const storage::DataDirectory& data,
             const api::Readiness& readiness, const Clock& clock, Logger& logger,
             std::size_t max_name_bytes);

  void add_routes(std::vector<api::Route>& rows);
  void stop() { desk_.stop(); }

 private:
  using Done = std::function<void(const std::string&)>;  // not called after a failure
  // The object that a path names. A later object of the same name is another target.
  using Target = storage::ObjectEntry;

  void list(const api::RouteCall& call);
  void create(const api::RouteCall& call);
  void show(const api::RouteCall& call);
  void patch(const api::RouteCall& call);
  void patch_by_uuid(const api::RouteCall& call);
  void remove(const api::RouteCall& call, const Target& target);
  void hibernate(const api::RouteCall& call, const Target& target);
  void checkpoint(const api::RouteCall& call, const Target& target);
  void set_alarm(const api::RouteCall& call);
  void list_alarms(const api::RouteCall& call);
  void cancel_alarm(const api::RouteCall& call);

  // Runs `work` on the desk's thread with the object that the path names, or refuses the request.
  void on_target(const api::RouteCall& call, std::function<void(const Target&)> work);
  // An object and a page of its storage.
  void show_page(const api::RouteCall& call, const api::PageRequest& page);
  // Stores a merge patch.
  void store(const api::RouteCall& call, std::string patch, Done done);
  // Visits the object for a user. `may_visit` runs first: it makes sure that the object exists.
  using Gate = std::function<Result<void>(runtime::Shard&, const storage::AgentKey&)>;
  void visit_for_user(const api::RouteCall& call, Gate may_visit, VisitWork work, Done done);
  void record(std::string_view event, const api::RouteCall& call, const storage::AgentKey& key);
  void record_alarm(std::string_view event, const api::RouteCall& call, std::string_view what,
                    std::string_view value);

  // ---- on the desk's thread ----
  // The name of a class that is served or has agents. Only for administrators: the server does not
  // know which clients a class lets in that is not served.
  [[nodiscard]] std::optional<std::string> class_name(std::string_view given);
  [[nodiscard]] std::optional<storage::ObjectEntry> object(const storage::AgentKey& key);
  // Absent: the request has its answer.
  [[nodiscard]] std::optional<Target> find(const api::RouteCall& call);
  // With data from the shards; null for an object that is being destroyed.
  [[nodiscard]] Result<std::vector<Json>> views(const std::vector<storage::ObjectEntry>& entries);
  // Absent: the request has its answer.
  [[nodiscard]] std::optional<Json> view(const api::RouteCall& call,
                                         const storage::ObjectEntry& entry);
  [[nodiscard]] Result<std::pair<Json, std::string>> page(const api::ObjectPageRequest& request,
                                                          const std::string& agent_class);
  [[nodiscard]] Result<storage::ObjectEntry> made(const runtime::ServedClass& served,
                                                  const api::NewObject& object);

  runtime::Runtime& runtime_;
  const api::Readiness& readiness_;
  const Clock& clock_;
  Logger& logger_;
  const std::size_t max_name_bytes_;
  Desk desk_;
};

}  // namespace hearth::server
