#pragma once
// What the server is able to do right now, as clients and load balancers see it.

#include <atomic>
#include <functional>
#include <utility>

namespace hearth::api {

// One for the whole server; the app owns it and moves it forward, everything else only reads.
//
// Threads   All members from any thread.
// Order     kStarting, kReady, maybe kLost, kStopping; never back.
class Readiness {
 public:
  enum class Phase {
    kStarting,  // plugins are being loaded: a class that is missing may come yet
    kReady,
    kLost,      // the data directory is gone: what is taken now would be lost
    kStopping,  // nothing new is taken; clients are to come back later
  };

  [[nodiscard]] Phase phase() const {
    const Phase phase = phase_.load(std::memory_order_relaxed);
    return phase == Phase::kReady && is_lost_ && is_lost_() ? Phase::kLost : phase;
  }
  // While it says so the phase is kLost instead of kReady. Any thread; before the server listens.
  void watch(std::function<bool()> is_lost) { is_lost_ = std::move(is_lost); }
  void set(Phase phase) { phase_.store(phase, std::memory_order_relaxed); }

 private:
  // Relaxed: nobody concludes from it that other memory is in some state.
  std::atomic<Phase> phase_ = Phase::kStarting;
  std::function<bool()> is_lost_;
};

}  // namespace hearth::api
