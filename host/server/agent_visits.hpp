#pragma once
// Visits of agents (runtime/agent_visit.hpp).

#include "base/error.hpp"
#include "runtime/agent_visit.hpp"
#include "runtime/runtime.hpp"
#include "storage/agent_key.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace hearth::server {

using VisitWork = std::function<Result<std::string>(extensions::AgentContext&)>;
using Visited = std::function<void(const Result<std::string>&)>;

// For the result of a visit. `told` gets it once, on the agent's shard; kClosing: the server stops.
[[nodiscard]] std::shared_ptr<runtime::CallSink> visit_sink(Visited told);

// Runs `work` on the agent's shard; `told` as visit_sink() says. Without a work it waits until the
// agent is not in memory, and its files are gone if it was destroyed.
void visit_agent(runtime::Runtime& runtime, const storage::AgentKey& key, VisitWork work,
                 Visited told);

// The same for a thread that may wait: returns the result.
//
// `on_success` is called on the shard when the work has succeeded and its writes are as durable as
// the class asks: before this returns, or later if the visit takes place later.
//
// Failure  kUnavailable: the shard or the agent does not answer before `until`; the visit may still
//          take place later. kClosing: the server stops. And the errors of the visit.
[[nodiscard]] Result<std::string> visit_agent(runtime::Runtime& runtime,
                                              const storage::AgentKey& key, VisitWork work,
                                              std::chrono::steady_clock::time_point until,
                                              std::function<void()> on_success = nullptr);

// Destroys an agent for ever. One that is starting or leaving is destroyed once it has, within the
// patience.
//
// Threads  One that may wait.  Failure  As ShardAdmin::destroy(); kUnavailable: its shard does not
//                                       answer.
[[nodiscard]] Result<void> destroy_agent(runtime::Runtime& runtime, const storage::AgentKey& key,
                                         std::chrono::milliseconds patience);

}  // namespace hearth::server
