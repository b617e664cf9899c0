#pragma once
// Calls between agents, from one shard to another, or to the same one.

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

class Shard;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

// What the routers of one runtime share. It outlives them.
struct AgentCallPaths {
  ClassRegistry& classes;
  CallWaits waits;
  // Has `task` run on the loop of this agent's shard, later. Any thread.
  std::function<void(const storage::AgentKey& key, std::function<void(Shard& shard)> task)> post;
  // As RuntimeOptions has it.
  std::function<Result<std::string>(std::string_view name)> object_name;
};

// The way out of one shard.
//
// Promises
//  P1 Posted   Each way between caller and callee is a post, on the same shard too: neither runs
//              inside the other.
//  P2 Bounded  At most kMaxUnread bytes of parts wait for the caller's credit. A callee that emits
//              more without a wait (DRAIN) has its call ended with kUnavailable. DRAIN waits until
//              at most kFewUnread bytes wait.
//  P3 Dropped  A callee's sink that goes without an answer ends the call with kClosing.
//  P4 Objects  In a class of objects each spelling of a name reaches the one agent that clients
//              reach by it. A name that no client can use is kInvalidArgument.
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
