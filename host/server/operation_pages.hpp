#pragma once
// The operations of all agents, in pages for administrators.

#include "api/admin_requests.hpp"
#include "json/json.hpp"
#include "runtime/runtime.hpp"
#include "storage/agent_key.hpp"
#include "storage/directory.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace hearth::server {

inline constexpr std::size_t kMostAgentsOfAPage = 200;

// Visits agents one after the other, in byte order of class and name. It visits only agents that
// the wake index marks: they may have unsettled operations. Cold agents are opened without their
// code.
//
// `agent_class`: the class's own name, or "". `agent`: the only one to look at.
// {"operations":[...],"skipped":[...],"next":"..." or null}
//
// Bounded    A page ends after `limit` operations, kMostAgentsOfAPage agents, or at `until`. If the
//            first agent of a page does not answer in time, it is skipped. Any other such agent is
//            the first of the next page, which waits for it again.
// Threads    One that may wait.
// Failure    kInvalidArgument: a state, the cursor.
[[nodiscard]] Result<Json> operation_page(runtime::Runtime& runtime, storage::Directory& directory,
                                          const api::OperationQuery& query,
                                          const std::string& agent_class,
                                          const std::optional<storage::AgentKey>& agent,
                                          std::chrono::steady_clock::time_point until);

}  // namespace hearth::server
