#pragma once
// How an agent calls other agents.

#include "base/error.hpp"
#include "base/interface.hpp"
#include "extensions/open_span.hpp"
#include "extensions/origin.hpp"
#include "extensions/remote_operation.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hearth::extensions {

// The most calls between agents that may wait for each other in a chain.
inline constexpr unsigned kMaxCallDepth = 16;

// A flag of the end of a failed call: the callee's code may have begun it (HEARTH_CALL_BEGAN).
inline constexpr std::uint32_t kCallBegan = 0x100;

// One call of another agent, as it leaves the caller.
struct AgentCall {
  std::string agent_class;  // its name in the code, or its segment in URLs
  std::string name;
  std::string method;
  std::string arguments;  // JSON array
  OriginPtr origin;       // from the caller; never null
  // The longest wait for the answer, or for its next part; 0: as for a client's call.
  std::chrono::milliseconds timeout{0};
  std::uint64_t window = 0;  // the first credit
  bool must_exist = false;   // the call does not make the callee
  OpenSpan span = {};        // from the caller's side
};

// Promises
//  P1 Event   The callee gets, on its own thread, an EventKind::kCall that belongs to no
//             connection; it wakes the agent, waits and is refused as a client's call.
//  P2 Failure A call that fails before the callee's code has begun it ends without kCallBegan.
//  P3 Bounds  A call ends at once with kLimitExceeded if origin->depth is more than kMaxCallDepth,
//             and with kConflict if it could never begin.
//
// P3: a call can never begin if it would first have to wait for one of the agents in
// origin->waiting, directly or through other agents (call_order.hpp).
//
// Threads    The caller's shard.
// Lifetime   It outlives the operations that it gives.
class AgentRouter : public Interface {
 public:
  // The name of a class in the code, from that name or from its segment in URLs. kNotFound;
  // kUnavailable if the class is expected and not loaded.
  [[nodiscard]] virtual Result<std::string> class_name(std::string_view named) const = 0;

  // Makes a call, which is sent at its start().
  [[nodiscard]] virtual std::unique_ptr<RemoteOperation> call(AgentCall call) = 0;
};

}  // namespace hearth::extensions
