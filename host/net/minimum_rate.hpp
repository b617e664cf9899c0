#pragma once
// Checks that a peer sends or reads fast enough.

#include "net/options.hpp"

#include <chrono>
#include <cstdint>

namespace hearth::net {

// Measures spans of NetOptions::rate_window while bytes are pending. A peer is too slow if it moves
// less than NetOptions::min_rate on average over one span. So a message takes at most its length
// divided by the rate, plus two spans, and needs no other deadline.
//
// Threads   The connection's loop.
class MinimumRate {
 public:
  // `pending`: only the peer can move the pending bytes. `moved`: the total of moved bytes, which
  // never falls. Call it at each sweep.
  [[nodiscard]] bool too_slow(const NetOptions& options, bool pending, std::uint64_t moved,
                              SocketTime now) {
    // A loop that hung did not read or write either, which is not the peer's fault.
    const bool we_slept = now - last_look_ > options.rate_window / 2;
    last_look_ = now;
    if (!pending || !running_ || we_slept) {
      begin(moved, now);
      running_ = pending;
      return false;
    }
    if (now - since_ < options.rate_window) return false;
    const auto seconds = std::chrono::duration<double>(options.rate_window).count();
    const bool is_slow = static_cast<double>(moved - moved_at_since_) <
                         static_cast<double>(options.min_rate) * seconds;
    begin(moved, now);
    return is_slow;
  }

 private:
  void begin(std::uint64_t moved, SocketTime now) {
    since_ = now;
    moved_at_since_ = moved;
  }

  SocketTime since_{};
  SocketTime last_look_{};
  std::uint64_t moved_at_since_ = 0;
  bool running_ = false;
};

}  // namespace hearth::net
