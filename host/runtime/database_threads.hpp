#pragma once
// Where agents' databases wait for the device, so that their shard need not.

#include "runtime/blocking_pool.hpp"
#include "runtime/shard_loop.hpp"

#include <functional>
#include <string>

namespace hearth::runtime {

class LiveAgent;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

// Threads    The shard's. The work that waits for the device runs on the pools, or, without a pool,
//            inside the call.
// Lifetime   The loop and the pools outlive it. The caller keeps the agent until it has the answer.
class DatabaseThreads {
 public:
  // A null pool: its work is done inside the call.
  DatabaseThreads(ShardLoop& loop, BlockingPool* closers, BlockingPool* checkpointers)
      : loop_(loop), closers_(closers), checkpointers_(checkpointers) {}

  // After LiveAgent::shut(): closes the agent's database, then calls `done` on the shard with what
  // went wrong, or "". Without a pool this happens inside the call.
  void close(LiveAgent& live, const std::function<void(const std::string& trouble)>& done);
  // Lends the agent for a checkpoint, and takes it back. Only this agent waits.
  void checkpoint(LiveAgent& live);

 private:
  ShardLoop& loop_;
  BlockingPool* const closers_;
  BlockingPool* const checkpointers_;
};

}  // namespace hearth::runtime
