#pragma once
// How an agent reaches others.

#include "base/error.hpp"
#include "extensions/origin.hpp"
#include "extensions/remote_operation.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hearth::extensions {

// So many calls between agents may wait for each other.
inline constexpr unsigned kMaxCallDepth = 16;

// Of the end of a call that has failed: the callee's code may have begun it (HEARTH_CALL_BEGAN).
inline constexpr std::uint32_t kCallBegan = 0x100;

// One call of an agent by another one, as it leaves.
struct AgentCall {
  std::string agent_class;  // its name in the code, or its segment in URLs
  std::string name;
  std::string method;
  std::string arguments;  // JSON array
  OriginPtr origin;       // of the caller; never null
  // Until the answer, or its next part; 0: as long as a client's call may take.
  std::chrono::milliseconds timeout{0};
  std::uint64_t window = 0;  // the first credit
  bool must_exist = false;   // no agent is made for it
};

// Promises
//  P1 Event   The callee gets an EventKind::kCall that belongs to no connection, on its own thread,
//             as a client's call: it wakes the agent, waits and is refused as that.
//  P2 Failure What fails before the callee's code has begun it ends without kCallBegan.
//  P3 Bounds  Ends with kLimitExceeded at once if origin->depth is more than kMaxCallDepth, and
//             with kConflict if the call could not begin before one of the agents in
//             origin->waiting goes on, directly or through others (call_order.hpp).
//
// Threads    The caller's shard.
// Lifetime   It outlives what it gives.
class AgentRouter {
 public:
  AgentRouter() = default;
  virtual ~AgentRouter() = default;
  AgentRouter(const AgentRouter&) = delete;
  AgentRouter& operator=(const AgentRouter&) = delete;

  // A class's own name, by that name or by its segment in URLs. kNotFound, or kUnavailable if it is
  // expected and not loaded.
  [[nodiscard]] virtual Result<std::string> class_name(std::string_view named) const = 0;

  // Nothing leaves before its start().
  [[nodiscard]] virtual std::unique_ptr<RemoteOperation> call(AgentCall call) = 0;
};

}  // namespace hearth::extensions
