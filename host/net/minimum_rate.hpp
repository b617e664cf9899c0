#pragma once
// Whether a peer moves bytes fast enough while it is its turn.

#include "net/options.hpp"

#include <chrono>
#include <cstdint>

namespace hearth::net {

// Looks at spans of NetOptions::rate_window while something is pending: a peer that moves less than
// NetOptions::min_rate on average over one of them is too slow. So a message of any length is over
// after its length divided by the rate, and two spans: there is no further deadline for the whole.
//
// Threads   The connection's loop.
class MinimumRate {
 public:
  // `pending`: the peer owes bytes, or has bytes to take, and nothing but the peer is waited for.
  // `moved`: in all; it never falls. Called with each sweep.
  [[nodiscard]] bool too_slow(const NetOptions& options, bool pending, std::uint64_t moved,
                              SocketTime now) {
    // A loop that has stood still for long has not read or written either: that is not the peer's
    // fault.
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
