#pragma once
// What the server is able to do right now, as clients and load balancers see it.

#include <atomic>

namespace hearth::api {

// One for the whole server; the app owns it and moves it forward, everything else only reads.
//
// Threads   All members from any thread.
// Order     kStarting, kReady, kStopping; never back.
class Readiness {
 public:
  enum class Phase {
    kStarting,  // plugins are being loaded: a class that is missing may come yet
    kReady,
    kStopping,  // nothing new is taken; clients are to come back later
  };

  [[nodiscard]] Phase phase() const { return phase_.load(std::memory_order_relaxed); }
  void set(Phase phase) { phase_.store(phase, std::memory_order_relaxed); }

 private:
  // Relaxed: nobody concludes from it that other memory is in some state.
  std::atomic<Phase> phase_ = Phase::kStarting;
};

}  // namespace hearth::api
