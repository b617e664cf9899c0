#pragma once
// /admin/agents and /admin/operations: what administrators ask of agents.

#include "api/admin_requests.hpp"
#include "api/routes.hpp"
#include "runtime/runtime.hpp"
#include "server/agent_waits.hpp"
#include "server/desk.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::server {

// add_routes() has the paths; openapi_schemas.cpp has the bodies. Beyond them:
//  - Pages of agents are in byte order of the names; `next` is the `after` of the next one. A path
//    has the name as lists print it, with the slashes of a sub-agent's path.
//  - .../why opens a cold agent as for its operations, and does not wake it.
//  - .../evict: the agent leaves memory when its on_evict has returned; its clients stay connected.
//    `state`: the one it was in. One that was cold, or was leaving already, is left alone.
//  - GET /admin/operations: as OperationQuery; `state` has words with commas between them;
//    `skipped` are agents that could not be read now. .../resolve answers the record after the
//    change; 409: the operation is in progress, or is settled.
//
// A name is the part of the agent's own URL, percent-encoded as it is there; `after` is such a
// name, encoded once more. So are the names of the console, because browsers encode some characters
// of a path, and each spelling of a name is another agent.
//
// Requests for operations run no code of the agent in order to answer. But a cold agent is opened,
// and an agent that was not told yet of an unknown operation is woken afterwards and told. That
// happens whenever such an agent is loaded, at most ten times for each operation.
//
// Bounded    It waits for a shard's answer at most `shard_patience`.
// Logged     Each change that begins (admin.evict, admin.destroy, admin.resolve).
// Threads, Lifetime  As Desk.
class AgentDesk {
 public:
  AgentDesk(Desk& desk, runtime::Runtime& runtime, Logger& logger,
            std::chrono::milliseconds shard_patience, AgentWaits waits)
      : desk_(desk),
        runtime_(runtime),
        logger_(logger),
        shard_patience_(shard_patience),
        waits_(std::move(waits)) {}

  void add_routes(std::vector<api::Route>& rows);

  // The agents of stuck_page(), at most kMostStuckLooks of them, as of the last look. Looks again
  // on the desk's thread, at most once in kLookEvery. Any thread.
  [[nodiscard]] std::size_t count_stuck();
  static constexpr std::chrono::minutes kLookEvery{5};

  // ---- on the desk's thread, for this desk and DataDesk ----
  // The class that an operator has named: one that is served or has agents.
  [[nodiscard]] Result<std::string> class_name(const std::string& given);
  // For a path with {class} and {name}.
  [[nodiscard]] Result<storage::AgentKey> target(const api::RouteCall& call);
  // Logs that a change of an agent was asked for.
  void log(std::string_view event, const api::RouteCall& call);
  // The JSON that `work` returns (server/agent_visits.hpp).
  [[nodiscard]] Result<Json> visit(
      const storage::AgentKey& key,
      std::function<Result<std::string>(extensions::AgentContext&)> work,
      std::function<void()> on_success = nullptr);
  // An instance in memory is evicted. The state it was in; absent: its loop does not answer.
  std::optional<runtime::AgentState> end_instance(const storage::AgentKey& key);

 private:
  // ---- on the desk's thread ----
  [[nodiscard]] Result<Json> list(const api::RouteCall& call);
  [[nodiscard]] Result<Json> show(const api::RouteCall& call);
  [[nodiscard]] Result<Json> why(const api::RouteCall& call);
  [[nodiscard]] Result<Json> stuck(const api::RouteCall& call);
  [[nodiscard]] Result<Json> evict(const api::RouteCall& call);
  [[nodiscard]] Result<Json> destroy(const api::RouteCall& call);
  [[nodiscard]] Result<Json> list_operations(const api::RouteCall& call);
  [[nodiscard]] Result<Json> show_operation(const api::RouteCall& call);
  [[nodiscard]] Result<Json> resolve_operation(const api::RouteCall& call);

  // The agent, if it exists.
  [[nodiscard]] Result<storage::AgentKey> existing(const api::AgentName& name);
  // Records that it was done.
  void record(std::string_view event, const storage::AgentKey& key, const api::RouteCall& call);

  Desk& desk_;
  runtime::Runtime& runtime_;
  Logger& logger_;
  const std::chrono::milliseconds shard_patience_;
  std::atomic<std::size_t> stuck_ = 0;
  std::atomic<std::chrono::steady_clock::time_point> next_look_{};
  const AgentWaits waits_;
};

}  // namespace hearth::server
