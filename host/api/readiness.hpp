#pragma once
// The phase of the server, for clients and load balancers.

#include <atomic>
#include <functional>
#include <utility>

namespace hearth::api {

// One object for the whole server. `server` owns it and moves it forward; all other parts only
// read.
//
// Threads   All members from any thread.
// Order     kStarting, kReady, maybe kLost, kStopping; never back.
class Readiness {
 public:
  enum class Phase {
    kStarting,  // plugins are being loaded: a missing class may still come
    kReady,
    kLost,      // the data directory is gone: new data would be lost
    kStopping,  // no new work is accepted; clients must retry later
  };

  [[nodiscard]] Phase phase() const {
    const Phase phase = phase_.load(std::memory_order_relaxed);
    return phase == Phase::kReady && is_lost_ && is_lost_() ? Phase::kLost : phase;
  }
  // No write of an agent is taken, for want of room on the disk. What is stored is served.
  [[nodiscard]] bool is_full() const { return is_full_ && is_full_(); }

  // While `is_lost` returns true, the phase is kLost instead of kReady. Both may be called on any
  // thread. Call watch() before the server listens.
  void watch(std::function<bool()> is_lost, std::function<bool()> is_full) {
    is_lost_ = std::move(is_lost);
    is_full_ = std::move(is_full);
  }
  void set(Phase phase) { phase_.store(phase, std::memory_order_relaxed); }

 private:
  // Relaxed: no reader concludes from it that other memory is in some state.
  std::atomic<Phase> phase_ = Phase::kStarting;
  std::function<bool()> is_lost_;
  std::function<bool()> is_full_;
};

}  // namespace hearth::api
