#pragma once
// Which agents of serial classes wait for each other.

#include "base/mutex.hpp"
#include "storage/agent_key.hpp"

#include <set>
#include <utility>
#include <vector>

namespace hearth::runtime {

// A serial agent that waits for a call handles nothing else meanwhile. If the callee is serial too
// and waits for it in turn, neither is ever answered.
//
// Promises   No two waits that were added and not removed form a circle.
// Threads    Any.
// Bounded    One entry for each waiting agent of each call in progress.
class SerialWaits {
 public:
  // The agents in `waiting` wait for serial agent `callee` from now on. False: it waits for one of
  // them, or is one of them; nothing was added.
  [[nodiscard]] bool add(const std::vector<storage::AgentKey>& waiting,
                         const storage::AgentKey& callee);
  // One call that was added is over.
  void remove(const std::vector<storage::AgentKey>& waiting, const storage::AgentKey& callee);

 private:
  [[nodiscard]] bool leads_to(const storage::AgentKey& from,
                              const std::vector<storage::AgentKey>& to) const REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::multiset<std::pair<storage::AgentKey, storage::AgentKey>> waits_
      GUARDED_BY(mutex_);  // who, for whom
};

}  // namespace hearth::runtime
