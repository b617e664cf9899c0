#pragma once
// /admin/agents/{class}/{name}/work and /sql, and /admin/chats: what administrators do with the
// data of agents.

#include "api/routes.hpp"
#include "base/logger.hpp"
#include "server/agent_desk.hpp"
#include "server/desk.hpp"

#include <chrono>
#include <cstddef>
#include <vector>

namespace hearth::server {

//  GET .../{name}/work?kind=&state=&after=&limit=   work_page()
//  GET .../{name}/work/{kind}/{id}                  work_record()
//  POST .../{name}/work/{kind}/{id}/{action}        change_work(); body: nothing, or
//                                                   {"outcome":{...},"note":"..."}
//  GET /admin/chats?class=&after=&limit=            chat_summary() of each agent of the class
//                                                   that is a chat
//  POST .../{name}/sql                              read_with_sql(); body: {"sql":"select ..."}
//
// An agent is visited: a live one between two of its turns, a cold one without its library. Work
// that a change makes due wakes it.
//
// Bounded    A page of chats ends after so many looks, or about kListPatience; a look is bounded as
//            each visit of the desk of agents.
// Audited    Each change (admin.work_changed), and each query (admin.sql).
// Threads, Lifetime  As Desk, and the desk of agents outlives it.
class DataDesk {
 public:
  static constexpr std::size_t kMostChatLooks = 200;
  static constexpr std::chrono::seconds kListPatience{2};

  DataDesk(Desk& desk, AgentDesk& agents, Logger& logger)
      : desk_(desk), agents_(agents), logger_(logger) {}

  // Add them before the rows of agents.
  void add_routes(std::vector<api::Route>& rows);

 private:
  // ---- on the desk's thread ----
  [[nodiscard]] Result<Json> list(const api::RouteCall& call);
  [[nodiscard]] Result<Json> show(const api::RouteCall& call);
  [[nodiscard]] Result<Json> change(const api::RouteCall& call);
  [[nodiscard]] Result<Json> list_chats(const api::RouteCall& call);
  [[nodiscard]] Result<Json> query(const api::RouteCall& call);

  Desk& desk_;
  AgentDesk& agents_;
  Logger& logger_;
};

}  // namespace hearth::server
