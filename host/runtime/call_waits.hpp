#pragma once
// Which agents wait for each other.

#include "base/mutex.hpp"
#include "extensions/origin.hpp"
#include "storage/agent_key.hpp"

#include <cstddef>
#include <map>
#include <vector>

namespace hearth::runtime {

// While a call that runs alone (extensions/call_order.hpp) is in progress, its agent handles no
// other call. If that call waits for an agent that waits for this one in turn, neither is ever
// answered.
//
// Promises   The waits that were added and not removed contain no circle in which each blocks the
//            one before it.
// Threads    Any.
// Bounded    One entry for each waiting agent of each call in progress.
class CallWaits {
 public:
  // The agents in `waiting` wait for a call of `callee` from now on. `whole`: the call runs alone,
  // so it waits for all other calls of the callee. False: nothing was added, because the callee
  // waits for one of these agents, or is one of them.
  [[nodiscard]] bool add(const std::vector<extensions::WaitingAgent>& waiting,
                         const storage::AgentKey& callee, bool whole);
  // A call that was added is over.
  void remove(const std::vector<extensions::WaitingAgent>& waiting, const storage::AgentKey& callee,
              bool whole);

 private:
  // One wait of an agent.
  struct Wait {
    bool alone = false;  // the agent waits in a call of its own that runs alone
    storage::AgentKey callee;
    bool whole = false;

    // Whether a wait of the callee, with `next_alone`, blocks this one.
    [[nodiscard]] bool is_held_up_by(bool next_alone) const { return whole || next_alone; }
    bool operator==(const Wait&) const = default;
  };
  [[nodiscard]] bool closes_circle(const extensions::WaitingAgent& waiting, const Wait& first) const
      REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::multimap<storage::AgentKey, Wait> waits_ GUARDED_BY(mutex_);  // by the waiting agent
};

}  // namespace hearth::runtime
