#pragma once
// /admin/agents/{class}/{name}/work and /sql: what administrators do with the data of one agent.

#include "api/routes.hpp"
#include "base/logger.hpp"
#include "server/agent_desk.hpp"
#include "server/desk.hpp"

#include <vector>

namespace hearth::server {

//  GET .../{name}/work?kind=&state=&after=&limit=   work_page()
//  GET .../{name}/work/{kind}/{id}                  work_record()
//  POST .../{name}/work/{kind}/{id}/{action}        change_work(); body: nothing, or
//                                                   {"outcome":{...},"note":"..."}
//  POST .../{name}/sql                              read_with_sql(); body: {"sql":"select ..."}
//
// An agent is visited: a live one between two of its turns, a cold one without its library. Work
// that a change makes due wakes it.
//
// Audited    Each change (admin.work_changed), and each query (admin.sql).
// Threads, Lifetime  As Desk, and the desk of agents outlives it.
class DataDesk {
 public:
  DataDesk(Desk& desk, AgentDesk& agents, Logger& logger)
      : desk_(desk), agents_(agents), logger_(logger) {}

  // Add them before the rows of agents.
  void add_routes(std::vector<api::Route>& rows);

 private:
  // ---- on the desk's thread ----
  [[nodiscard]] Result<Json> list(const api::RouteCall& call);
  [[nodiscard]] Result<Json> show(const api::RouteCall& call);
  [[nodiscard]] Result<Json> change(const api::RouteCall& call);
  [[nodiscard]] Result<Json> query(const api::RouteCall& call);

  Desk& desk_;
  AgentDesk& agents_;
  Logger& logger_;
};

}  // namespace hearth::server
