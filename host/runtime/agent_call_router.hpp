#pragma once
// Calls between agents, on another shard or on the same one.

#include "extensions/agent_router.hpp"
#include "runtime/call_waits.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/shard_loop.hpp"
#include "storage/agent_key.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace hearth::runtime {

class Shard;

// What the routers of one runtime share. All of it outlives them.
struct AgentCallPaths {
  ClassRegistry& classes;
  CallWaits waits;
  // Runs `task` on the loop of this agent's shard, later. Any thread.
  std::function<void(const storage::AgentKey& key, std::function<void(Shard& shard)> task)> post;
  // As in RuntimeOptions.
  std::function<Result<std::string>(std::string_view name)> object_name;
};

// The calls that the agents of one shard make.
//
// Promises
//  P1 Posted  Caller and callee never run inside each other: each step between them is a post, also
//             on one shard.
//  P2 Bounded At most kMaxUnread bytes of parts wait for the caller's credit, and a callee that
//             emits more has its call ended with kUnavailable.
//  P3 Dropped If the callee's sink is dropped without an answer, the call ends with kClosing.
//  P4 Objects In a class of objects, each spelling of a name reaches the agent that clients reach
//             by it.
//
// P2: A callee can wait with DRAIN, which ends when at most kFewUnread bytes wait.
// P4: A name that no client can use is kInvalidArgument.
//
// Threads     The caller's shard.
class AgentCallRouter final : public extensions::AgentRouter {
 public:
  static constexpr std::size_t kMaxUnread = std::size_t{16} << 20;
  static constexpr std::size_t kFewUnread = std::size_t{64} << 10;

  // `loop`: of the caller's shard. Both outlive the router and its calls.
  AgentCallRouter(ShardLoop& loop, AgentCallPaths& paths) : loop_(loop), paths_(paths) {}

  [[nodiscard]] Result<std::string> class_name(std::string_view named) const override;
  [[nodiscard]] std::unique_ptr<extensions::RemoteOperation> call(
      extensions::AgentCall call) override;

 private:
  ShardLoop& loop_;
  AgentCallPaths& paths_;
};

}  // namespace hearth::runtime
