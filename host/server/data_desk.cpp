#include "server/data_desk.hpp"

#include "api/admin_requests.hpp"
#include "protocol/request_query.hpp"
#include "server/agent_sql.hpp"
#include "server/chats.hpp"
#include "server/work_records.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace hearth::server {

void DataDesk::add_routes(std::vector<api::Route>& rows) {
  const auto row = row_adder(rows);
  const auto add = [&](auto method, auto pattern, auto summary, auto work, api::RouteShape shape) {
    row(method, pattern, summary, on_desk(desk_, *this, work), shape);
  };
  add("POST", "/admin/agents/{class}/{name...}/work/{kind}/{id}/{action}",
      "Changes a fiber, a schedule, an item of an agent's queue or a turn of a chat.",
      &DataDesk::change, {.body = "WorkChange", .answer = "Work"});
  add("GET", "/admin/agents/{class}/{name...}/work/{kind}/{id}",
      "One fiber, schedule, item of an agent's queue or turn of a chat.", &DataDesk::show,
      {.answer = "Work"});
  add("GET", "/admin/agents/{class}/{name...}/work",
      "A page of the fibers, schedules, items or turns of an agent.", &DataDesk::list,
      {.query = "kind state after limit", .answer = "WorkPage"});
  add("GET", "/admin/chats", "A page of the chats of a class.", &DataDesk::list_chats,
      {.query = "class after limit", .answer = "ChatPage"});
  add("POST", "/admin/agents/{class}/{name...}/sql", "Reads an agent's database with SQL.",
      &DataDesk::query, {.body = "Sql", .answer = "SqlRows"});
}

Result<Json> DataDesk::list(const api::RouteCall& call) {
  const auto query = api::read_work_query(call.query);
  if (!query) return query.error();
  const auto key = agents_.target(call);
  if (!key) return key.error();
  return agents_.visit(
      *key, [query = *query](extensions::AgentContext& agent) { return work_page(agent, query); });
}

Result<Json> DataDesk::show(const api::RouteCall& call) {
  const auto key = agents_.target(call);
  if (!key) return key.error();
  return agents_.visit(
      *key, [kind = std::string(call.values[2]), id = protocol::percent_decode(call.values[3])](
                extensions::AgentContext& agent) { return work_record(agent, kind, id); });
}

Result<Json> DataDesk::change(const api::RouteCall& call) {
  const auto change = api::read_work_change(call.exchange->request().body);
  if (!change) return change.error();
  agents_.log("admin.change_work", call);
  const auto key = agents_.target(call);
  if (!key) return key.error();
  const std::string kind(call.values[2]);
  const std::string id = protocol::percent_decode(call.values[3]);
  const std::string action(call.values[4]);
  // The visit itself records it: it may take place after the request has timed out.
  const auto note_it = [&logger = logger_, key = *key, kind, id, action, change = *change,
                        actor = call.actor] {
    logger.record(LogLevel::kDebug, "admin.work_changed",
                  {{"class", key.agent_class},
                   {"agent", key.name},
                   {"kind", kind},
                   {"id", id},
                   {"action", action},
                   {"outcome", change.outcome},
                   {"note", change.note},
                   {"actor", actor}});
  };
  auto changed = agents_.visit(
      *key,
      [kind, id, action, change = *change](extensions::AgentContext& agent) {
        return change_work(agent, kind, id, action, change);
      },
      note_it);
  // The agent's own code does not know that its fiber has ended, and may be in the middle of it.
  if (changed && (kind == "fiber" || kind == "turn") && action != "revive")
    agents_.end_instance(*key);
  return changed;
}

Result<Json> DataDesk::list_chats(const api::RouteCall& call) {
  const auto request = api::read_agent_page(call.query);
  if (!request) return request.error();
  const auto name = agents_.class_name(request->agent_class);
  if (!name) return name.error();
  const auto until = std::chrono::steady_clock::now() + kListPatience;
  Json chats = Json::array();
  Json skipped = Json::array();
  Json next;
  std::size_t looks = 0;
  const auto found = desk_.directory().list(*name, request->after, kMostChatLooks + 1);
  for (const auto& [key, created_at_ms] : found) {
    if (chats.size() >= request->limit || looks >= kMostChatLooks ||
        (looks > 0 && std::chrono::steady_clock::now() >= until)) {
      next = found[looks - 1].key.name;
      break;
    }
    ++looks;
    auto chat = agents_.visit(key, chat_summary);
    if (!chat) {
      skipped.push_back({{"class", *name}, {"agent", key.name}, {"reason", chat.error().message}});
    } else if (!chat->is_null()) {
      (*chat)["agent"] = key.name;
      chats.push_back(*std::move(chat));
    }
  }
  return Json{{"class", *name},
              {"chats", std::move(chats)},
              {"skipped", std::move(skipped)},
              {"next", std::move(next)}};
}

Result<Json> DataDesk::query(const api::RouteCall& call) {
  auto sql = api::read_sql_text(call.exchange->request().body);
  if (!sql) return sql.error();
  const auto key = agents_.target(call);
  if (!key) return key.error();
  logger_.record(LogLevel::kInfo, "admin.sql",
                 {{"class", key->agent_class},
                  {"agent", key->name},
                  {"sql", *sql},
                  {"peer", call.exchange->request().peer},
                  {"actor", call.actor}});
  return agents_.visit(*key, [sql = *std::move(sql)](extensions::AgentContext& agent) {
    return read_with_sql(agent, sql);
  });
}

}  // namespace hearth::server
