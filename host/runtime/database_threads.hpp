#pragma once
// Where agents' databases wait for the device, so that their shard need not.

#include "runtime/blocking_pool.hpp"
#include "runtime/shard_loop.hpp"

#include <functional>
#include <string>

namespace hearth::runtime {

class LiveAgent;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

// Threads    The shard's; what waits runs on the pools, or, without one, inside the call.
// Lifetime   The loop and the pools outlive it. The caller keeps the agent until it has the answer.
class DatabaseThreads {
 public:
  // Null: that work is done here and now.
  DatabaseThreads(ShardLoop& loop, BlockingPool* closers, BlockingPool* checkpointers)
      : loop_(loop), closers_(closers), checkpointers_(checkpointers) {}

  // Closes the database of an agent after LiveAgent::shut(), then calls `done`, on the shard, with
  // what went wrong, or "". Without a pool that is inside this call.
  void close(LiveAgent& live, const std::function<void(const std::string& trouble)>& done);
  // Lends the agent for a checkpoint, and has it taken back. Only this agent waits.
  void checkpoint(LiveAgent& live);

 private:
  ShardLoop& loop_;
  BlockingPool* const closers_;
  BlockingPool* const checkpointers_;
};

}  // namespace hearth::runtime
