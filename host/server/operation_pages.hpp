#pragma once
// The ledgers of all agents, as an administrator pages through them.

#include "api/admin_actions.hpp"
#include "base/error.hpp"
#include "runtime/runtime.hpp"
#include "storage/agent_key.hpp"
#include "storage/directory.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace hearth::server {

// Agents are visited one after the other, in byte order of class and name: those that the wake
// index says may have operations that are not settled. A cold one is opened without its code.
//
// Bounded    A page ends after `limit` operations, kMostAgents agents, or at `until`. Only the
//            first agent of a page is skipped because it does not answer in time: any other begins
//            the next page, which waits for it anew.
// Threads    One that may wait.  Lifetime  What the constructor is given outlives it.
class OperationPages {
 public:
  static constexpr std::size_t kMostAgents = 200;

  OperationPages(runtime::Runtime& runtime, storage::Directory& directory)
      : runtime_(runtime), directory_(directory) {}

  // `agent_class`: the class's own name, or "". `agent`: the only one to look at.
  // Failure  kInvalidArgument: a state, the cursor.
  [[nodiscard]] Result<api::OperationPage> page(const api::OperationQuery& query,
                                                const std::string& agent_class,
                                                const std::optional<storage::AgentKey>& agent,
                                                std::chrono::steady_clock::time_point until);

 private:
  runtime::Runtime& runtime_;
  storage::Directory& directory_;
};

}  // namespace hearth::server
