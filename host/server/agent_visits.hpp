#pragma once
// Visits of agents (runtime/agent_visit.hpp), for threads that may wait.

#include "base/error.hpp"
#include "runtime/agent_visit.hpp"
#include "runtime/runtime.hpp"
#include "storage/agent_key.hpp"

#include <chrono>
#include <functional>
#include <string>

namespace hearth::server {

// Runs `work` on the agent's shard and returns its result.
//
// `on_success` is called on the shard when the work has succeeded and its writes are as durable as
// the class asks: before this returns, or later if the visit takes place later.
//
// Failure  kUnavailable: the shard or the agent does not answer before `until`; the visit may still
//          take place later. kClosing: the server stops. And the errors of the visit.
[[nodiscard]] Result<std::string> visit_agent(
    runtime::Runtime& runtime, const storage::AgentKey& key,
    std::function<Result<std::string>(extensions::AgentContext&)> work,
    std::chrono::steady_clock::time_point until, std::function<void()> on_success = nullptr);

}  // namespace hearth::server
