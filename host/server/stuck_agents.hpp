#pragma once
// The agents whose wait needs a person, or is older than it should be.

#include "api/admin_requests.hpp"
#include "extensions/wait.hpp"
#include "json/json.hpp"
#include "runtime/runtime.hpp"
#include "server/agent_waits.hpp"
#include "storage/directory.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <set>
#include <string>

namespace hearth::server {

// Without a class, page() looks only at agents whose shard or wake index hints at it
// (Shard::waiting()). So it does not find: dead work, and work that waits for code behind other
// work that is due earlier. With a class it looks at each agent of the class.
//
// Bounded    A page ends after `limit` agents, after kMostLooks looks, or at `until`.
// Threads    One that may wait.  Lifetime  The constructor's arguments outlive it.
class StuckAgents {
 public:
  static constexpr std::size_t kMostLooks = 200;

  StuckAgents(runtime::Runtime& runtime, storage::Directory& directory, const AgentWaits& waits)
      : runtime_(runtime), directory_(directory), waits_(waits) {}

  // `agent_class`: the class's own name, or "". In the order of class and name:
  // {"agents":[why_json()...],"skipped":[{"class","agent","reason"}...],"next":"..." or null}
  // Failure  kInvalidArgument: the cursor. kUnavailable: no shard answers.
  [[nodiscard]] Result<Json> page(const api::AgentPageRequest& request,
                                  const std::string& agent_class,
                                  std::chrono::steady_clock::time_point until);

 private:
  // Those to look at. A shard that does not answer has agents that wait for it: `skipped` says so.
  [[nodiscard]] std::set<storage::AgentKey> candidates(
      const std::string& agent_class, const storage::AgentKey& after,
      const std::function<bool(const extensions::Wait&)>& is_urgent, Json& skipped);

  runtime::Runtime& runtime_;
  storage::Directory& directory_;
  const AgentWaits& waits_;
};

}  // namespace hearth::server
