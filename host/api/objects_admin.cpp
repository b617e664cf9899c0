#include "api/objects_admin.hpp"

#include "api/object_answer.hpp"
#include "api/object_lookup.hpp"
#include "api/query_words.hpp"
#include "json/json.hpp"
#include "protocol/agent_address.hpp"
#include "protocol/object_address.hpp"
#include "protocol/rfc3339.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <variant>

namespace hearth::api {
namespace {

using Exchange = std::shared_ptr<net::HttpExchange>;

void refuse_object(net::HttpExchange& exchange, std::string_view why) {
  exchange.respond(object_error(400, "invalid_argument", why));
}

void refuse_object(net::HttpExchange& exchange, const Error& error) {
  exchange.respond(object_refusal(error));
}

Json view_json(const ObjectView& object) {
  const std::string id = protocol::object_id(object.name);
  return {{"id", object.uuid},
          {"class", object.segment},
          {"object_id", id},
          {"status", object.is_active ? "Active" : "Hibernating"},
          {"sandbox_name", "do-" + object.segment + "-" + id},
          {"created_at", protocol::rfc3339(object.created_at_ms)},
          {"last_active", protocol::rfc3339(object.last_active_ms)}};
}

ObjectActions::Answer<ObjectView> view_answer(const Exchange& exchange, int status = 200) {
  return [exchange, status](const Result<ObjectView>& object) {
    if (!object) return refuse_object(*exchange, object.error());
    exchange->respond(object_data(dump_json(view_json(*object)), status));
  };
}

// The answer to a request that gives no data.
ObjectActions::Answer<std::string> done_answer(const Exchange& exchange) {
  return [exchange](const Result<std::string>& done) {
    if (!done) return refuse_object(*exchange, done.error());
    exchange->respond(object_data("null"));
  };
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

void ObjectsAdmin::add_routes(Routes& routes) {
  struct Row {
    std::string_view method, pattern;
    Access access;
    std::string_view summary;
    void (ObjectsAdmin::*answer)(const RouteCall&);
    RouteShape shape;
  };
  static constexpr Row kRows[] = {
      {"GET",
       "/objects",
       Access::kObjectsOwner,
       "A page of the objects.",
       &ObjectsAdmin::list,
       {.query = "class status limit cursor", .answer = "ObjectPage"}},
      {"POST",
       "/objects",
       Access::kObjectsOwner,
       "Makes an object.",
       &ObjectsAdmin::create,
       {.body = "NewObject", .status = 201, .answer = "ObjectAnswer"}},
      {"GET",
       "/objects/{uuid}",
       Access::kObjectsOwner,
       "An object by its own id.",
       &ObjectsAdmin::show_by_uuid,
       {.query = "after limit", .answer = "ObjectAnswer"}},
      {"PATCH",
       "/objects/{uuid}",
       Access::kObjectsOwner,
       "Changes the storage of an object, by its own id.",
       &ObjectsAdmin::patch_by_uuid,
       {.body = "StoragePatch", .answer = "ObjectAnswer"}},
      {"DELETE",
       "/objects/{uuid}",
       Access::kObjectsOwner,
       "Destroys an object and its data, by its own id.",
       &ObjectsAdmin::remove_by_uuid,
       {.answer = "ObjectAnswer"}},
      {"GET",
       "/objects/{class}/{id}",
       Access::kObjectsOwner,
       "An object, with a page of its storage.",
       &ObjectsAdmin::show,
       {.query = "after limit", .answer = "ObjectAnswer"}},
      {"DELETE",
       "/objects/{class}/{id}",
       Access::kObjectsOwner,
       "Destroys an object and its data.",
       &ObjectsAdmin::remove,
       {.answer = "ObjectAnswer"}},
      {"POST",
       "/objects/{class}/{id}/hibernate",
       Access::kObjectsOwner,
       "Evicts an object from memory.",
       &ObjectsAdmin::hibernate,
       {.answer = "ObjectAnswer"}},
      {"POST",
       "/objects/{class}/{id}/checkpoint",
       Access::kObjectsOwner,
       "Answers when all writes of the object are durable.",
       &ObjectsAdmin::checkpoint,
       {.answer = "ObjectAnswer"}},
      {"PATCH",
       "/objects/{class}/{id}/storage",
       Access::kObjectsOwner,
       "Changes the storage of an object by a JSON merge patch.",
       &ObjectsAdmin::patch,
       {.body = "MergePatch", .answer = "Done"}},
  };
  for (const Row& row : kRows) {
    routes.add({row.method, row.pattern, row.access, row.summary,
                [this, answer = row.answer](const RouteCall& call) { (this->*answer)(call); },
                row.shape});
  }
}

std::optional<ObjectName> ObjectsAdmin::named(const RouteCall& call) const {
  ObjectName name{std::string(call.values[0]), protocol::object_name(call.values[1])};
  const auto problem = protocol::name_problem(name.name, max_name_bytes_);
  if (problem.empty()) return name;
  refuse_object(*call.exchange, problem);
  return std::nullopt;
}

// ---- life ---------------------------------------------------------------------------------------

void ObjectsAdmin::list(const RouteCall& call) {
  ObjectPageRequest request;
  std::string status;
  if (const auto read = read_words(
          call.query,
          {{"class", &request.agent_class}, {"cursor", &request.after}, {"status", &status}});
      !read)
    return refuse_object(*call.exchange, read.error());
  status = lower_case(std::move(status));
  if (!status.empty() && status != "active" && status != "hibernating")
    return refuse_object(*call.exchange, "`status` must be Active or Hibernating");
  if (!status.empty()) request.is_active = status == "active";
  const auto limit = page_limit(call.query);
  if (!limit) return refuse_object(*call.exchange, limit.error());
  request.limit = *limit;
  actions_.list(std::move(request), [exchange = call.exchange](const Result<ObjectPage>& page) {
    if (!page) return refuse_object(*exchange, page.error());
    Json objects = Json::array();
    for (const ObjectView& object : page->objects) objects.push_back(view_json(object));
    const Json next = page->next.empty() ? Json(nullptr) : Json(page->next);
    exchange->respond(object_page(dump_json(objects), dump_json(next)));
  });
}

void ObjectsAdmin::create(const RouteCall& call) {
  const Exchange& exchange = call.exchange;
  const auto body = parse_client_json(exchange->request().body);
  if (!body || !body->is_object())
    return refuse_object(*exchange, "the body must be a JSON object");
  ObjectName name{text_member(*body, "class"), text_member(*body, "object_id")};
  if (name.agent_class.empty() || name.name.empty())
    return refuse_object(*exchange, "`class` and `object_id` must be texts");
  // It is a text, not a part of a path: its percent signs stand for themselves.
  name.name = protocol::object_name_of_text(name.name);
  if (const auto problem = protocol::name_problem(name.name, max_name_bytes_); !problem.empty())
    return refuse_object(*exchange, problem);
  const auto storage = body->find("storage");
  std::string patch;
  if (storage != body->end() && !storage->is_null()) patch = dump_json(*storage);
  if (!patch.empty() && !storage->is_object())
    return refuse_object(*exchange, "`storage` must be a JSON object");
  auto its_class = class_of_objects(classes_, readiness_, name.agent_class);
  if (auto* refusal = std::get_if<net::HttpResponse>(&its_class))
    return exchange->respond(std::move(*refusal));
  actions_.create(
      std::move(name), std::move(patch), actor_of(*exchange),
      [exchange](const Result<ObjectView>& made) {
        if (!made && made.error().code == Errc::kConflict)
          return exchange->respond(object_error(409, "object_exists", made.error().message));
        view_answer(exchange, 201)(made);
      });
}

void ObjectsAdmin::show_by_uuid(const RouteCall& call) {
  actions_.find(std::string(call.values[0]), [this, call](const Result<ObjectView>& found) {
    if (!found) return refuse_object(*call.exchange, found.error());
    show(call.exchange, {found->segment, found->name, found->uuid}, call.query);
  });
}

void ObjectsAdmin::remove_by_uuid(const RouteCall& call) {
  actions_.find(std::string(call.values[0]),
                [this, exchange = call.exchange](const Result<ObjectView>& found) {
                  if (!found) return refuse_object(*exchange, found.error());
                  const ObjectName name{found->segment, found->name, found->uuid};
                  actions_.remove(name, actor_of(*exchange), view_answer(exchange));
                });
}

void ObjectsAdmin::patch_by_uuid(const RouteCall& call) {
  const auto body = parse_client_json(call.exchange->request().body);
  if (!body || !body->is_object() || !body->contains("storage") || !(*body)["storage"].is_object())
    return refuse_object(*call.exchange, "the body must be a JSON object with an object `storage`");
  if (body->size() != 1)
    return refuse_object(*call.exchange, "nothing but `storage` can be changed");
  actions_.find(std::string(call.values[0]),
                [this, exchange = call.exchange,
                 patch = dump_json((*body)["storage"])](const Result<ObjectView>& found) {
                  if (!found) return refuse_object(*exchange, found.error());
                  const ObjectName name{found->segment, found->name, found->uuid};
                  actions_.patch_storage(name, patch, actor_of(*exchange),
                                         [this, exchange, name](const Result<std::string>& stored) {
                                           if (!stored)
                                             return refuse_object(*exchange, stored.error());
                                           show(exchange, name, {});
                                         });
                });
}

void ObjectsAdmin::show(const RouteCall& call) {
  if (auto name = named(call)) show(call.exchange, *name, call.query);
}

void ObjectsAdmin::show(const Exchange& exchange, const ObjectName& name, std::string_view query) {
  const auto limit = page_limit(query);
  if (!limit) return refuse_object(*exchange, limit.error());
  std::string after;
  if (const auto read = read_words(query, {{"after", &after}}); !read)
    return refuse_object(*exchange, read.error());
  actions_.show(name, [this, exchange, name, limit = *limit,
                       after = std::move(after)](const Result<ObjectView>& object) {
    if (!object) return refuse_object(*exchange, object.error());
    actions_.storage(
        name, after, limit,
        [exchange, shown = view_json(*object)](const Result<std::string>& page) mutable {
          if (!page) return refuse_object(*exchange, page.error());
          auto read = parse_host_json(*page);
          if (!read) return refuse_object(*exchange, read.error());
          shown["storage"] = std::move((*read)["storage"]);
          shown["storage_next"] = std::move((*read)["next"]);
          exchange->respond(object_data(dump_json(shown)));
        });
  });
}

void ObjectsAdmin::remove(const RouteCall& call) {
  const auto name = named(call);
  if (!name) return;
  actions_.remove(*name, actor_of(*call.exchange), view_answer(call.exchange));
}

void ObjectsAdmin::hibernate(const RouteCall& call) {
  const auto name = named(call);
  if (!name) return;
  actions_.hibernate(*name, actor_of(*call.exchange), view_answer(call.exchange));
}

void ObjectsAdmin::checkpoint(const RouteCall& call) {
  const auto name = named(call);
  if (!name) return;
  actions_.checkpoint(*name, actor_of(*call.exchange), view_answer(call.exchange));
}

void ObjectsAdmin::patch(const RouteCall& call) {
  const auto name = named(call);
  if (!name) return;
  actions_.patch_storage(*name, call.exchange->request().body, actor_of(*call.exchange),
                         done_answer(call.exchange));
}

}  // namespace hearth::api
