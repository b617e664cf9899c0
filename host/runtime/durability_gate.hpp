#pragma once
// When is a committed turn as durable as its class asks? The output gate of an agent waits for the
// answer.

#include <functional>

namespace hearth::runtime {

// One agent's view of the sync service. A class with durability `process` has none: a commit
// survives the death of the process by itself.
//
// Threads   request() on the agent's shard; `done` runs there too, later, never inside request().
// Order     Answers come in the order of the requests. A failed one is final: the agent breaks.
class DurabilityGate {
 public:
  DurabilityGate() = default;
  virtual ~DurabilityGate() = default;
  DurabilityGate(const DurabilityGate&) = delete;
  DurabilityGate& operator=(const DurabilityGate&) = delete;

  // Calls `done(true)` when everything committed before this call would survive a loss of power.
  virtual void request(std::function<void(bool durable)> done) = 0;

  // The directory of agents was written to, for this agent: from now on requests are about that as
  // well.
  virtual void directory_written() = 0;
};

}  // namespace hearth::runtime
