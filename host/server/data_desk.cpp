#include "server/data_desk.hpp"

#include "api/admin_requests.hpp"
#include "protocol/request_query.hpp"
#include "server/agent_sql.hpp"
#include "server/work_records.hpp"

#include <string>
#include <utility>

namespace hearth::server {

void DataDesk::add_routes(std::vector<api::Route>& rows) {
  const auto row = row_adder(rows);
  const auto add = [&](auto method, auto pattern, auto summary, auto work, api::RouteShape shape) {
    row(method, pattern, summary, on_desk(desk_, *this, work), shape);
  };
  add("POST", "/admin/agents/{class}/{name...}/work/{kind}/{id}/{action}",
      "Changes a fiber, a schedule or an item of an agent's queue.", &DataDesk::change,
      {.body = "WorkChange", .answer = "Work"});
  add("GET", "/admin/agents/{class}/{name...}/work/{kind}/{id}",
      "One fiber, schedule or item of an agent's queue.", &DataDesk::show, {.answer = "Work"});
  add("GET", "/admin/agents/{class}/{name...}/work",
      "A page of the fibers, schedules and items of an agent.", &DataDesk::list,
      {.query = "kind state after limit", .answer = "WorkPage"});
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
  if (changed && kind == "fiber" && action != "revive") agents_.end_instance(*key);
  return changed;
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
