#include "server/agent_desk.hpp"

#include "api/admin_api.hpp"
#include "base/clock.hpp"
#include "base/escape.hpp"
#include "durable/wake.hpp"
#include "extensions/operations.hpp"
#include "protocol/class_segment.hpp"
#include "protocol/request_query.hpp"
#include "server/agent_visits.hpp"
#include "server/operation_pages.hpp"
#include "server/shard_questions.hpp"
#include "server/stuck_agents.hpp"

#include <iterator>
#include <map>
#include <utility>

namespace hearth::server {
namespace {

constexpr std::size_t kShownBytes = 128;

// `created_at_ms`: of its first write; absent: it has stored nothing yet.
Json agent_json(const std::string& name, const std::optional<std::int64_t>& created_at_ms,
                const runtime::ShardAdmin::Standing& standing) {
  // Work that waits for code has no moment.
  auto next_wake_ms = standing.wake.at_ms;
  if (next_wake_ms && durable::is_next_version(*next_wake_ms)) next_wake_ms.reset();
  return {{"name", name},
          {"created_at_ms", api::or_null(created_at_ms)},
          {"state", state_word(standing.state)},
          {"connections", standing.connections},
          {"version", api::or_null(standing.version)},
          {"working", standing.wake.working},
          {"next_wake_ms", api::or_null(next_wake_ms)}};
}

api::AgentName named(const api::RouteCall& call) {
  std::string name(call.values[1]);
  if (call.actor == "console") name = protocol::percent_decode(name);
  return {std::string(call.values[0]), api::name_of_key(name)};
}

}  // namespace

void AgentDesk::add_routes(std::vector<api::Route>& rows) {
  const auto row = row_adder(rows);
  const auto add = [&](auto method, auto pattern, auto summary, auto work, api::RouteShape shape) {
    row(method, pattern, summary, on_desk(desk_, *this, work), shape);
  };
  add("GET", "/admin/agents", "A page of the agents of a class.", &AgentDesk::list,
      {.query = "class after limit", .answer = "AgentPage"});
  add("POST", "/admin/agents/{class}/{name...}/evict", "Evicts an agent from memory.",
      &AgentDesk::evict, {.answer = "Evicted"});
  add("GET", "/admin/agents/{class}/{name...}/why", "What an agent does or waits for.",
      &AgentDesk::why, {.answer = "Why"});
  add("GET", "/admin/stuck", "A page of the agents whose wait needs a person, or is too long.",
      &AgentDesk::stuck, {.query = "class after limit", .answer = "StuckPage"});
  add("GET", "/admin/agents/{class}/{name...}", "One agent.", &AgentDesk::show,
      {.answer = "Agent"});
  add("DELETE", "/admin/agents/{class}/{name...}", "Destroys an agent and its data.",
      &AgentDesk::destroy, {.answer = "Destroyed"});
  add("GET", "/admin/operations", "Operations of agents whose outcome is not known or settled.",
      &AgentDesk::list_operations,
      {.query = "class agent kind state begun_before_ms after limit", .answer = "OperationPage"});
  add("POST", "/admin/operations/{class}/{name...}/{id}/resolve",
      "Sets the outcome of an operation.", &AgentDesk::resolve_operation,
      {.body = "Resolution", .answer = "Operation"});
  add("GET", "/admin/operations/{class}/{name...}/{id}", "One operation of an agent.",
      &AgentDesk::show_operation, {.answer = "Operation"});
}

// ---- which agent --------------------------------------------------------------------------------

Result<std::string> AgentDesk::class_name(const std::string& given) {
  if (runtime_.classes().find_by_name(given) != nullptr) return given;
  std::string segment = protocol::kebab_case(given);
  if (const auto served = runtime_.classes().find_for_client(segment))
    return std::string(served->agent_class->name());
  if (std::string target = runtime_.classes().aliased(segment); !target.empty())
    segment = std::move(target);
  for (const std::string& recorded : desk_.directory().classes()) {
    if (recorded == given || protocol::kebab_case(recorded) == segment) return recorded;
  }
  return Error{Errc::kNotFound, "no class " + quote_text(given, kShownBytes) +
                                    " is served, and none has agents here"};
}

Result<storage::AgentKey> AgentDesk::existing(const api::AgentName& name) {
  auto agent_class = class_name(name.agent_class);
  if (!agent_class) return agent_class.error();
  storage::AgentKey key{*std::move(agent_class), name.name};
  if (desk_.directory().contains(key)) return key;
  const auto standings = standings_of(runtime_, {key}, shard_patience_);
  if (!standings) return standings.error();
  if (standings->front().in_memory || standings->front().connections != 0) return key;
  return Error{Errc::kNotFound, "there is no agent " + quote_text(name.name, kShownBytes) +
                                    " of the class " + quote_text(key.agent_class, kShownBytes)};
}

Result<storage::AgentKey> AgentDesk::target(const api::RouteCall& call) {
  return existing(named(call));
}

// ---- agents -------------------------------------------------------------------------------------

Result<Json> AgentDesk::list(const api::RouteCall& call) {
  const auto request = api::read_agent_page(call.query);
  if (!request) return request.error();
  const auto name = class_name(request->agent_class);
  if (!name) return name.error();
  // One more than requested: shows whether there is another page.
  const std::size_t at_most = request->limit + 1;
  std::map<std::string, std::optional<std::int64_t>> found;  // when each was created
  for (const auto& entry : desk_.directory().list(*name, request->after, at_most))
    found[entry.key.name] = entry.created_at_ms;
  const auto in_memory =
      ask_all(runtime_, shard_patience_,
              [name = *name, after = request->after, at_most](runtime::Shard& shard) {
                return shard.admin().names_in_memory(name, after, at_most);
              });
  if (!in_memory) return no_loop();
  for (const auto& names : *in_memory) {
    for (const std::string& each : names) found.try_emplace(each);
  }
  const bool has_more = found.size() > request->limit;
  while (found.size() > request->limit) found.erase(std::prev(found.end()));
  std::vector<storage::AgentKey> keys;
  keys.reserve(found.size());
  for (const auto& [agent, created_at_ms] : found) keys.push_back({*name, agent});
  const auto standings = standings_of(runtime_, keys, shard_patience_);
  if (!standings) return standings.error();
  Json agents = Json::array();
  for (const auto& [agent, created_at_ms] : found)
    agents.push_back(agent_json(agent, created_at_ms, (*standings)[agents.size()]));
  return Json{{"class", *name},
              {"agents", std::move(agents)},
              {"next", has_more ? Json(keys.back().name) : Json()}};
}

Result<Json> AgentDesk::show(const api::RouteCall& call) {
  const auto key = target(call);
  if (!key) return key.error();
  const auto standings = standings_of(runtime_, {*key}, shard_patience_);
  if (!standings) return standings.error();
  return agent_json(key->name, desk_.directory().created_at_ms(*key), standings->front());
}

Result<Json> AgentDesk::why(const api::RouteCall& call) {
  const api::AgentName name = named(call);
  auto agent_class = class_name(name.agent_class);
  if (!agent_class) return agent_class.error();
  const storage::AgentKey key{*std::move(agent_class), name.name};
  const auto until = std::chrono::steady_clock::now() + AgentWaits::kLoopPatience;
  AgentWaits::Seen seen = waits_.look(key, until);
  if (!seen.is_known) {
    if (const auto found = existing(name); !found) return found.error();
  }
  return why_json(std::move(seen), unix_millis(SystemClock().wall_now()));
}

Result<Json> AgentDesk::stuck(const api::RouteCall& call) {
  const auto request = api::read_stuck_page(call.query);
  if (!request) return request.error();
  std::string agent_class(request->agent_class);
  if (!agent_class.empty() && agent_class != kEachClass) {
    auto name = class_name(request->agent_class);
    if (!name) return name.error();
    agent_class = *std::move(name);
  }
  return stuck_page(runtime_, desk_.directory(), waits_, *request, agent_class,
                    std::chrono::steady_clock::now() + shard_patience_);
}

std::size_t AgentDesk::count_stuck() {
  const auto now = std::chrono::steady_clock::now();
  auto due = next_look_.load();
  if (now >= due && next_look_.compare_exchange_strong(due, now + kLookEvery)) {
    desk_.run([this] {
      const auto until = std::chrono::steady_clock::now() + shard_patience_;
      std::size_t seen = 0;
      for (Json next = ""; !next.is_null() && std::chrono::steady_clock::now() < until;) {
        const auto page = stuck_page(
            runtime_, desk_.directory(), waits_,
            {.agent_class = {}, .after = next.get<std::string>(), .limit = kMostStuckLooks}, {},
            until);
        if (!page) return;
        seen += page->at("agents").size();
        next = page->at("next");
        // A look that was cut short has not seen all of them.
        if (next.is_null() || seen > stuck_) stuck_ = seen;
      }
    });
  }
  return stuck_;
}

Result<Json> AgentDesk::evict(const api::RouteCall& call) {
  log("admin.evict", call);
  const auto key = target(call);
  if (!key) return key.error();
  const auto state = end_instance(*key);
  if (!state) return no_loop();
  const bool leaves =
      *state == runtime::AgentState::kLive || *state == runtime::AgentState::kWaking;
  if (leaves) record("admin.evicted", *key, call);
  return Json{{"evicted", leaves}, {"state", state_word(*state)}};
}

std::optional<runtime::AgentState> AgentDesk::end_instance(const storage::AgentKey& key) {
  return ask_home(runtime_, key, shard_patience_,
                  [key](runtime::Shard& shard) { return shard.admin().evict(key); });
}

Result<Json> AgentDesk::destroy(const api::RouteCall& call) {
  log("admin.destroy", call);
  const auto key = target(call);
  if (!key) return key.error();
  const auto destroyed = destroy_agent(runtime_, *key, shard_patience_);
  if (!destroyed) return destroyed.error();
  record("admin.destroyed", *key, call);
  if (const auto synced = sync_end(runtime_, "agent"); !synced) return synced.error();
  return Json{{"destroyed", true}};
}

void AgentDesk::log(std::string_view event, const api::RouteCall& call) {
  const api::AgentName name = named(call);
  const auto known = class_name(name.agent_class);
  logger_.write(LogLevel::kInfo, event,
                {{"class", known ? *known : name.agent_class},
                 {"agent", name.name},
                 {"peer", call.exchange->request().peer}});
}

void AgentDesk::record(std::string_view event, const storage::AgentKey& key,
                       const api::RouteCall& call) {
  logger_.record(LogLevel::kDebug, event,
                 {{"class", key.agent_class}, {"agent", key.name}, {"actor", call.actor}});
}

// ---- operations ---------------------------------------------------------------------------------

Result<Json> AgentDesk::list_operations(const api::RouteCall& call) {
  const auto query = api::read_operation_query(call.query);
  if (!query) return query.error();
  std::optional<storage::AgentKey> agent;
  std::string its_class;
  if (!query->agent.empty()) {
    auto key = existing({query->agent_class, query->agent});
    if (!key) return key.error();
    agent = *std::move(key);
  } else if (!query->agent_class.empty()) {
    auto name = class_name(query->agent_class);
    if (!name) return name.error();
    its_class = *std::move(name);
  }
  return operation_page(runtime_, desk_.directory(), *query, its_class, agent,
                        std::chrono::steady_clock::now() + shard_patience_);
}

Result<Json> AgentDesk::visit(const storage::AgentKey& key,
                              std::function<Result<std::string>(extensions::AgentContext&)> work,
                              std::function<void()> on_success) {
  const auto record =
      visit_agent(runtime_, key, std::move(work),
                  std::chrono::steady_clock::now() + shard_patience_, std::move(on_success));
  if (!record) return record.error();
  return parse_host_json(*record);
}

Result<Json> AgentDesk::show_operation(const api::RouteCall& call) {
  const auto key = target(call);
  if (!key) return key.error();
  return visit(*key, [id = std::string(call.values[2])](extensions::AgentContext& agent) {
    return agent.work().operations().records().inspect(id);
  });
}

Result<Json> AgentDesk::resolve_operation(const api::RouteCall& call) {
  const auto how = api::read_resolution(call.exchange->request().body);
  if (!how) return how.error();
  log("admin.resolve", call);
  const auto key = target(call);
  if (!key) return key.error();
  const std::string id(call.values[2]);
  // The visit itself records it: it may take place after the request has timed out.
  const auto note_it = [&logger = logger_, key = *key, id, how = *how, actor = call.actor] {
    logger.record(LogLevel::kDebug, "admin.operation_resolved",
                  {{"class", key.agent_class},
                   {"agent", key.name},
                   {"operation", id},
                   {"outcome", how.was_executed ? "completed" : "not_executed"},
                   {"note", how.note},
                   {"actor", actor}});
  };
  return visit(
      *key,
      [id, how = *how](extensions::AgentContext& agent) -> Result<std::string> {
        extensions::OperationsExtension ledger(agent);
        const auto outcome = how.was_executed ? durable::OperationOutcome::kCompleted
                                              : durable::OperationOutcome::kNotExecuted;
        if (auto done =
                ledger.resolve(id, outcome, how.result, how.note, extensions::kAdministrator);
            done.has_error())
          return done.error();
        return agent.work().operations().records().inspect(id);
      },
      note_it);
}

}  // namespace hearth::server
