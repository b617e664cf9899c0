#include "server/object_desk.hpp"

#include "api/object_answer.hpp"
#include "api/sub_agent_gate.hpp"
#include "extensions/alarms.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/kv_storage.hpp"
#include "protocol/agent_address.hpp"
#include "protocol/class_segment.hpp"
#include "protocol/object_address.hpp"
#include "protocol/rfc3339.hpp"
#include "server/agent_visits.hpp"
#include "server/shard_questions.hpp"

#include <utility>
#include <variant>

namespace hearth::server {
namespace {

using api::RouteCall;

// For one page, with a filter that few objects pass.
constexpr std::size_t kMostLookedAt = 5'000;

Error no_object() {
  return Error{Errc::kNotFound, "there is no such object"};
}

void refuse_object(const RouteCall& call, const Error& error) {
  call.exchange->respond(api::object_refusal(error));
}

void respond_data(const Exchange& exchange, const Json& data, int status = 200) {
  exchange->respond(api::object_data(dump_json(data), status));
}

// The client that asks, as the audit log names it.
std::string actor_of(const RouteCall& call) {
  return "client " + call.exchange->request().peer;
}

// Passes a success to `done`; a failure is the answer.
Visited or_refuse(const RouteCall& call, std::function<void(const std::string&)> done) {
  return [call, done = std::move(done)](const Result<std::string>& outcome) {
    if (!outcome) return refuse_object(call, outcome.error());
    done(*outcome);
  };
}

auto patch_with(std::string patch) {
  return [patch = std::move(patch)](extensions::AgentContext& agent) -> Result<std::string> {
    if (const auto done = extensions::patch_storage(agent, patch); done.has_error())
      return done.error();
    return std::string();
  };
}

// `record` is one of durable/alarms.hpp.
void show_time(Json& record) {
  record["fire_at"] = protocol::rfc3339(record.value("fire_at", std::int64_t{0}));
}

Json object_json(const storage::ObjectEntry& entry, const runtime::ShardAdmin::Standing& standing) {
  const std::string id = protocol::object_id(entry.key.name);
  const std::string segment = protocol::kebab_case(entry.key.agent_class);
  return {
      {"id", entry.uuid},
      {"class", segment},
      {"object_id", id},
      {"status", standing.in_memory ? "Active" : "Hibernating"},
      {"sandbox_name", "do-" + segment + "-" + id},
      {"created_at", protocol::rfc3339(entry.created_at_ms)},
      {"last_active", protocol::rfc3339(standing.last_active_ms.value_or(entry.last_active_ms))}};
}

std::string cursor_of(const storage::AgentKey& key) {
  return key.agent_class + '/' + key.name;
}
storage::AgentKey key_of(const std::string& cursor) {
  const std::size_t slash = cursor.find('/');
  if (slash == std::string::npos) return {};
  return {cursor.substr(0, slash), cursor.substr(slash + 1)};
}

Result<void> object_is_there(runtime::Shard& shard, const storage::AgentKey& key) {
  try {
    if (shard.exists(key)) return {};
    return no_object();
  } catch (const StorageError&) {  // agent boundary
    return Error{Errc::kInternal, "the directory of agents cannot be read"};
  }
}

}  // namespace

ObjectDesk::ObjectDesk(runtime::Runtime& runtime, const storage::DataDirectory& data,
                       const api::Readiness& readiness, const Clock& clock, Logger& logger,
                       std::size_t max_name_bytes)
    : runtime_(runtime),
      readiness_(readiness),
      clock_(clock),
      logger_(logger),
      max_name_bytes_(max_name_bytes),
      desk_(data, logger, "object.storage_failed", api::object_refusal) {}

void ObjectDesk::add_routes(std::vector<api::Route>& rows) {
  const auto add = row_adder(rows, api::Access::kObjectsOwner);
  const auto with_target = [this](void (ObjectDesk::*work)(const RouteCall&, const Target&)) {
    return [this, work](const RouteCall& call) {
      on_target(call, [this, work, call](const Target& target) { (this->*work)(call, target); });
    };
  };
  constexpr std::string_view kOne = "/objects/{class}/{id}";
  constexpr std::string_view kByUuid = "/objects/{uuid}";
  constexpr std::string_view kAlarms = "/objects/{class}/{id}/alarms";
  constexpr api::RouteShape kObject{.answer = "ObjectAnswer"};
  constexpr api::RouteShape kStored{.query = "after limit", .answer = "ObjectAnswer"};
  add("GET", "/objects", "A page of the objects.", at_once(*this, &ObjectDesk::list),
      {.query = "class status limit cursor", .answer = "ObjectPage"});
  add("POST", "/objects", "Makes an object.", at_once(*this, &ObjectDesk::create),
      {.body = "NewObject", .status = 201, .answer = "ObjectAnswer"});
  add("GET", kByUuid, "An object by its own id.", at_once(*this, &ObjectDesk::show), kStored);
  add("PATCH", kByUuid, "Changes the storage of an object, by its own id.",
      at_once(*this, &ObjectDesk::patch_by_uuid),
      {.body = "StoragePatch", .answer = "ObjectAnswer"});
  add("DELETE", kByUuid, "Destroys an object and its data, by its own id.",
      with_target(&ObjectDesk::remove), kObject);
  add("GET", kOne, "An object, with a page of its storage.", at_once(*this, &ObjectDesk::show),
      kStored);
  add("DELETE", kOne, "Destroys an object and its data.", with_target(&ObjectDesk::remove),
      kObject);
  add("POST", "/objects/{class}/{id}/hibernate", "Evicts an object from memory.",
      with_target(&ObjectDesk::hibernate), kObject);
  add("POST", "/objects/{class}/{id}/checkpoint",
      "Answers when all writes of the object are durable.", with_target(&ObjectDesk::checkpoint),
      kObject);
  add("PATCH", "/objects/{class}/{id}/storage",
      "Changes the storage of an object by a JSON merge patch.", at_once(*this, &ObjectDesk::patch),
      {.body = "MergePatch", .answer = "Done"});
  add("POST", kAlarms, "Sets an alarm: a call of a method at a time.",
      at_once(*this, &ObjectDesk::set_alarm),
      {.body = "NewAlarm", .status = 201, .answer = "AlarmAnswer"}, api::Access::kUser);
  add("GET", kAlarms, "A page of the alarms of an object.",
      at_once(*this, &ObjectDesk::list_alarms), {.query = "limit cursor", .answer = "AlarmPage"},
      api::Access::kUser);
  add("DELETE", "/objects/{class}/{id}/alarms/{alarm}", "Removes an alarm.",
      at_once(*this, &ObjectDesk::cancel_alarm), {.answer = "Done"}, api::Access::kUser);
}

// ---- which object -------------------------------------------------------------------------------

std::optional<std::string> ObjectDesk::class_name(std::string_view given) {
  if (const auto served = find_by_any_name(runtime_.classes(), given))
    return std::string(served->agent_class->name());
  for (std::string& recorded : desk_.directory().classes()) {
    if (recorded == given || protocol::kebab_case(recorded) == given) return std::move(recorded);
  }
  return std::nullopt;
}

// Lists an agent of an object's class first that is not listed as one: `hearth repair` brings back
// no more than the agent.
std::optional<storage::ObjectEntry> ObjectDesk::object(const storage::AgentKey& key) {
  storage::Directory& directory = desk_.directory();
  auto entry = directory.object(key);
  const auto is_of_objects = [&] {
    return runtime_.classes().last_settings(protocol::kebab_case(key.agent_class)).is_object;
  };
  if (entry || !directory.contains(key) || !is_of_objects()) return entry;
  (void)ask_home(runtime_, key, kShardPatience,
                 [key](runtime::Shard& shard) { return shard.admin().create_object(key); });
  return directory.object(key);
}

std::optional<storage::ObjectEntry> ObjectDesk::find(const RouteCall& call) {
  std::optional<storage::ObjectEntry> entry;
  if (call.values.size() == 1) {
    entry = desk_.directory().object(call.values[0]);
  } else {
    auto name = protocol::reachable_object_name(call.values[1], max_name_bytes_);
    if (!name) {
      refuse_object(call, name.error());
      return std::nullopt;
    }
    auto its_class = class_name(call.values[0]);
    if (!its_class) {
      call.exchange->respond(api::no_such_class());
      return std::nullopt;
    }
    entry = object({*std::move(its_class), *std::move(name)});
  }
  if (!entry) refuse_object(call, no_object());
  return entry;
}

void ObjectDesk::on_target(const RouteCall& call, std::function<void(const Target&)> work) {
  desk_.run(call.exchange, [this, call, work = std::move(work)] {
    if (const auto target = find(call)) work(*target);
  });
}

Result<std::vector<Json>> ObjectDesk::views(const std::vector<storage::ObjectEntry>& entries) {
  std::vector<storage::AgentKey> keys;
  keys.reserve(entries.size());
  for (const storage::ObjectEntry& entry : entries) keys.push_back(entry.key);
  const auto standings = standings_of(runtime_, keys, kShardPatience);
  if (!standings) return standings.error();
  std::vector<Json> seen;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& standing = (*standings)[i];
    seen.push_back(standing.condemned ? Json() : object_json(entries[i], standing));
  }
  return seen;
}

std::optional<Json> ObjectDesk::view(const RouteCall& call, const storage::ObjectEntry& entry) {
  auto seen = views({entry});
  if (seen && !seen->front().is_null()) return std::move(seen->front());
  refuse_object(call, seen ? no_object() : seen.error());
  return std::nullopt;
}

// ---- life ---------------------------------------------------------------------------------------

void ObjectDesk::list(const RouteCall& call) {
  const auto request = api::read_object_page(call.query);
  if (!request) return refuse_object(call, request.error());
  desk_.run(call.exchange, [this, call, request = *request] {
    const auto name = request.agent_class.empty() ? std::optional<std::string>("")
                                                  : class_name(request.agent_class);
    if (!name) return call.exchange->respond(api::no_such_class());
    const auto found = page(request, *name);
    if (!found) return refuse_object(call, found.error());
    const Json next = found->second.empty() ? Json() : Json(found->second);
    call.exchange->respond(api::object_page(dump_json(found->first), dump_json(next)));
  });
}

// The objects, and the cursor of the next page; empty: there is none.
Result<std::pair<Json, std::string>> ObjectDesk::page(const api::ObjectPageRequest& request,
                                                      const std::string& agent_class) {
  Json objects = Json::array();
  storage::AgentKey after = key_of(request.after);
  for (std::size_t looked_at = 0; looked_at < kMostLookedAt && objects.size() < request.limit;
       looked_at += request.limit) {
    // Without a filter every entry counts. With a filter, look at a page of entries at a time.
    const auto entries = desk_.directory().list_objects(
        agent_class, after, request.is_active ? request.limit : request.limit - objects.size());
    if (entries.empty()) break;
    auto seen = views(entries);
    if (!seen) return seen.error();
    for (std::size_t i = 0; i < entries.size() && objects.size() < request.limit; ++i) {
      after = entries[i].key;
      Json& object = (*seen)[i];
      if (object.is_null()) continue;
      if (!request.is_active || (object["status"] == "Active") == *request.is_active)
        objects.push_back(std::move(object));
    }
  }
  const bool is_last = desk_.directory().list_objects(agent_class, after, 1).empty();
  return std::pair(std::move(objects), is_last ? std::string() : cursor_of(after));
}

void ObjectDesk::create(const RouteCall& call) {
  auto object = api::read_new_object(call.exchange->request().body, max_name_bytes_);
  if (!object) return refuse_object(call, object.error());
  auto found = api::class_of_objects(runtime_.classes(), readiness_, object->agent_class);
  if (auto* refusal = std::get_if<net::HttpResponse>(&found))
    return call.exchange->respond(std::move(*refusal));
  desk_.run(call.exchange, [this, call, object = *std::move(object),
                            served = std::get<0>(std::move(found))] {
    const auto entry = made(*served, object);
    if (!entry) {
      if (entry.error().code != Errc::kConflict) return refuse_object(call, entry.error());
      return call.exchange->respond(api::object_error(409, "object_exists", entry.error().message));
    }
    record("admin.object_created", call, entry->key);
    auto shown = view(call, *entry);
    if (!shown) return;
    if (object.patch.empty()) return respond_data(call.exchange, *shown, 201);
    visit_agent(runtime_, entry->key, patch_with(object.patch),
                or_refuse(call, [exchange = call.exchange, shown = *std::move(shown)](const auto&) {
                  respond_data(exchange, shown, 201);
                }));
  });
}

// Checks the patch first: a refused patch makes no object.
Result<storage::ObjectEntry> ObjectDesk::made(const runtime::ServedClass& served,
                                              const api::NewObject& object) {
  if (!object.patch.empty()) {
    if (auto good = extensions::check_first_patch(served.settings.kv, object.patch);
        good.has_error())
      return good.error();
  }
  const storage::AgentKey key{std::string(served.agent_class->name()), object.name};
  const auto is_new = ask_home(runtime_, key, kShardPatience, [key](runtime::Shard& shard) {
    return shard.admin().create_object(key);
  });
  if (!is_new) return no_loop();
  if (!*is_new) return is_new->error();
  if (!**is_new) return Error{Errc::kConflict, "the object is there already"};
  if (auto entry = desk_.directory().object(key)) return *std::move(entry);
  return no_object();
}

void ObjectDesk::show(const RouteCall& call) {
  const auto page = api::read_page(call.query, "after");
  if (!page) return refuse_object(call, page.error());
  show_page(call, *page);
}

void ObjectDesk::show_page(const RouteCall& call, const api::PageRequest& page) {
  on_target(call, [this, call, page](const Target& target) {
    auto shown = view(call, target);
    if (!shown) return;
    visit_agent(
        runtime_, target.key,
        [page](extensions::AgentContext& agent) {
          return extensions::storage_page(agent, page.after, page.limit);
        },
        or_refuse(call, [call, shown = *std::move(shown)](const std::string& stored) mutable {
          auto read = parse_host_json(stored);
          if (!read) return refuse_object(call, read.error());
          shown["storage"] = std::move((*read)["storage"]);
          shown["storage_next"] = std::move((*read)["next"]);
          respond_data(call.exchange, shown);
        }));
  });
}

void ObjectDesk::remove(const RouteCall& call, const Target& target) {
  const auto shown = view(call, target);
  if (!shown) return;
  const storage::AgentKey& key = target.key;
  Result<void> destroyed = destroy_agent(runtime_, key, kShardPatience);
  if (destroyed) destroyed = sync_end(runtime_, "object");
  if (!destroyed) return refuse_object(call, destroyed.error());
  record("admin.object_removed", call, key);
  // Its files are gone when the visit ends, which finds no object.
  visit_agent(runtime_, key, {}, [exchange = call.exchange, shown = *shown](const auto&) {
    respond_data(exchange, shown);
  });
}

void ObjectDesk::hibernate(const RouteCall& call, const Target& target) {
  auto shown = view(call, target);
  if (!shown) return;
  const storage::AgentKey& key = target.key;
  const unsigned index = runtime_.shard_index(key);
  runtime_.loop(index).post([&shard = runtime_.shard(index), key] { shard.admin().evict(key); });
  record("admin.object_hibernated", call, key);
  (*shown)["status"] = "Hibernating";
  visit_agent(runtime_, key, {},
              or_refuse(call, [exchange = call.exchange, shown = *std::move(shown)](const auto&) {
                respond_data(exchange, shown);
              }));
}

// ---- storage ------------------------------------------------------------------------------------

// The writes of each call are durable before its answer: a later visit finds them durable.
void ObjectDesk::checkpoint(const RouteCall& call, const Target& target) {
  const auto nothing = [](extensions::AgentContext&) -> Result<std::string> { return {""}; };
  visit_agent(runtime_, target.key, nothing,
              or_refuse(call, [this, call, key = target.key](const auto&) {
                record("admin.object_checkpointed", call, key);
                on_target(call, [this, call](const Target& now) {
                  if (const auto shown = view(call, now)) respond_data(call.exchange, *shown);
                });
              }));
}

void ObjectDesk::patch(const RouteCall& call) {
  store(call, call.exchange->request().body,
        [call](const auto&) { respond_data(call.exchange, nullptr); });
}

void ObjectDesk::patch_by_uuid(const RouteCall& call) {
  auto storage = api::read_storage_member(call.exchange->request().body);
  if (!storage) return refuse_object(call, storage.error());
  store(call, *std::move(storage),
        [this, call](const auto&) { show_page(call, api::read_page({}, {}).value()); });
}

void ObjectDesk::store(const RouteCall& call, std::string patch, Done done) {
  on_target(call, [this, call, patch = std::move(patch),
                   done = std::move(done)](const Target& target) {
    visit_agent(runtime_, target.key, patch_with(patch),
                or_refuse(call, [this, call, done, key = target.key](const std::string& stored) {
                  record("admin.object_patched", call, key);
                  done(stored);
                }));
  });
}

void ObjectDesk::record(std::string_view event, const RouteCall& call,
                        const storage::AgentKey& key) {
  logger_.record(LogLevel::kInfo, event,
                 {{"class", key.agent_class}, {"agent", key.name}, {"actor", actor_of(call)}});
}

// ---- alarms -------------------------------------------------------------------------------------

void ObjectDesk::visit_for_user(const RouteCall& call, Gate may_visit, VisitWork work, Done done) {
  const unsigned index = runtime_.shard_index(call.object.key);
  runtime_.loop(index).post([&shard = runtime_.shard(index), object = call.object,
                             may_visit = std::move(may_visit), work = std::move(work),
                             sink = visit_sink(or_refuse(call, std::move(done)))] {
    if (const auto fine = may_visit(shard, object.key); fine.has_error())
      return sink->finish({}, fine.error());
    shard.admin().visit(object.key, object.served->segment, {.work = work, .sink = sink});
  });
}

// Any client may set alarms: so their audit entries are limited like those of agents.
void ObjectDesk::record_alarm(std::string_view event, const RouteCall& call, std::string_view what,
                              std::string_view value) {
  const storage::AgentKey& key = call.object.key;
  (void)logger_.record_limited(
      LogLevel::kDebug, event, {key.agent_class},
      {{"class", key.agent_class}, {"agent", key.name}, {"actor", actor_of(call)}, {what, value}},
      extensions::kAuditLimit);
}

void ObjectDesk::set_alarm(const RouteCall& call) {
  const net::HttpRequest& request = call.exchange->request();
  const auto asked = api::read_alarm(request.body, clock_);
  if (!asked) return refuse_object(call, asked.error());
  auto alarm = extensions::checked_alarm(asked->method, asked->arguments, asked->at_ms,
                                         call.object.served->settings.sql.max_value_bytes);
  if (!alarm) return refuse_object(call, alarm.error());
  const auto make_it = [setter = request.address](runtime::Shard& shard,
                                                  const storage::AgentKey& key) -> Result<void> {
    if (api::makes_too_many(shard, setter.get(), key))
      return Error{Errc::kLimitExceeded, net::too_many_reason(api::kNewAgents)};
    if (const auto made = shard.admin().create_object(key); !made) return made.error();
    return {};
  };
  visit_for_user(
      call, make_it,
      [alarm = *alarm](extensions::AgentContext& agent) {
        return extensions::set_alarm(agent, alarm);
      },
      [this, call, method = alarm->method](const std::string& set) {
        record_alarm("alarm.set", call, "method", method);
        auto record = parse_host_json(set);
        if (!record) return refuse_object(call, record.error());
        show_time(*record);
        respond_data(call.exchange, *record, 201);
      });
}

void ObjectDesk::list_alarms(const RouteCall& call) {
  const auto page = api::read_page(call.query, "cursor");
  if (!page) return refuse_object(call, page.error());
  visit_for_user(
      call, object_is_there,
      [page = *page](extensions::AgentContext& agent) {
        return extensions::alarm_page(agent, page.after, page.limit);
      },
      [call](const std::string& listed) {
        auto page = parse_host_json(listed);
        if (!page) return refuse_object(call, page.error());
        for (Json& record : (*page)["alarms"]) show_time(record);
        respond_data(call.exchange, *page);
      });
}

void ObjectDesk::cancel_alarm(const RouteCall& call) {
  visit_for_user(
      call, object_is_there,
      [id = std::string(call.values[2])](extensions::AgentContext& agent) -> Result<std::string> {
        if (const auto done = agent.work().alarms().remove(id); done.has_error())
          return done.error();
        return std::string();
      },
      [this, call](const auto&) {
        record_alarm("alarm.removed", call, "alarm", call.values[2]);
        respond_data(call.exchange, nullptr);
      });
}

}  // namespace hearth::server
