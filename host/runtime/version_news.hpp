#pragma once
// Wakes the thread that replaces versions when a shard has brought a rollout further.

#include "base/mutex.hpp"

#include <atomic>
#include <functional>
#include <utility>

namespace hearth::runtime {

// One listener, many that ring. While no news are wanted a ring costs one read of memory.
//
// Threads    Any.
class VersionNews {
 public:
  // `heard` is called on the thread that rings, and must not wait. Null: no listener; a call that
  // runs has ended when this returns.
  void listen(std::function<void()> heard) {
    const MutexLock lock(mutex_);
    heard_ = std::move(heard);
  }

  // Whether a rollout is under way. What happens between two rings while none are wanted is not
  // told: look once after wanting them.
  void want(bool wanted) { wanted_ = wanted; }

  void ring() {
    if (!wanted_) return;
    const MutexLock lock(mutex_);
    if (heard_) heard_();
  }

 private:
  std::atomic<bool> wanted_{false};
  Mutex mutex_;
  std::function<void()> heard_ GUARDED_BY(mutex_);
};

}  // namespace hearth::runtime
