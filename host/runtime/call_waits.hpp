#pragma once
// Which agents wait for each other.

#include "base/mutex.hpp"
#include "extensions/origin.hpp"
#include "storage/agent_key.hpp"

#include <cstddef>
#include <map>
#include <vector>

namespace hearth::runtime {

// An agent whose call runs alone (extensions/call_order.hpp) handles no other before that is over.
// If the call waits for one that waits for the agent in turn, neither is ever answered.
//
// Promises   No waits that were added and not removed form a circle in which each holds up the one
//            before it.
// Threads    Any.
// Bounded    One entry for each waiting agent of each call in progress.
class CallWaits {
 public:
  // The agents in `waiting` wait for a call of `callee` from now on. `whole`: the call runs alone,
  // so that it waits for all others of the callee. False: nothing was added, for the callee waits
  // for one of them, or is one of them.
  [[nodiscard]] bool add(const std::vector<extensions::WaitingAgent>& waiting,
                         const storage::AgentKey& callee, bool whole);
  // A call that was added is over.
  void remove(const std::vector<extensions::WaitingAgent>& waiting, const storage::AgentKey& callee,
              bool whole);

 private:
  // Of an agent that waits.
  struct Wait {
    bool alone = false;  // with a call of its own that runs alone
    storage::AgentKey callee;
    bool whole = false;

    // Whether what waits for the callee with `next` is in the way of this.
    [[nodiscard]] bool is_held_up_by(bool next_alone) const { return whole || next_alone; }
    bool operator==(const Wait&) const = default;
  };
  [[nodiscard]] bool closes_circle(const extensions::WaitingAgent& waiting, const Wait& first) const
      REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::multimap<storage::AgentKey, Wait> waits_ GUARDED_BY(mutex_);  // by the waiting agent
};

}  // namespace hearth::runtime
