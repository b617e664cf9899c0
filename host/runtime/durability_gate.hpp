#pragma once
// When a committed turn is as durable as its class asks. The outbox of an agent waits for the
// answer.

#include "base/interface.hpp"

#include <functional>

namespace hearth::runtime {

// One agent's view of the sync service. A class with durability `process` has no gate: without one,
// a commit survives the death of the process.
//
// Threads   request() on the agent's shard. `done` runs there too, later, never inside request().
// Order     Answers come in the order of the requests. A failure is final: the agent breaks.
class DurabilityGate : public Interface {
 public:
  // Calls `done(true)` when every earlier commit would survive a loss of power.
  virtual void request(std::function<void(bool durable)> done) = 0;

  // The directory of agents was written to for this agent: later requests cover that write too.
  virtual void directory_written() = 0;
};

}  // namespace hearth::runtime
