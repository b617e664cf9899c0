#pragma once
// Wakes the thread that replaces versions when a shard has advanced a rollout.

#include "base/mutex.hpp"

#include <atomic>
#include <functional>
#include <utility>

namespace hearth::runtime {

// One listener; many threads ring. While no rollout wants news, a ring costs one read of memory.
//
// Threads    Any.
class VersionNews {
 public:
  // `heard` is called on the thread that rings, and must not wait. Null removes the listener; a
  // call in progress has ended when this returns.
  void listen(std::function<void()> heard) {
    const MutexLock lock(mutex_);
    heard_ = std::move(heard);
  }

  // Whether a rollout is in progress. Rings are lost while no news is wanted: check once after
  // wanting it.
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
