#pragma once
// A clock that the test moves.

#include "base/clock.hpp"

namespace hearth::testing {

class ManualClock final : public Clock {
 public:
  [[nodiscard]] SteadyTime steady_now() const override { return steady_; }
  [[nodiscard]] WallTime wall_now() const override { return wall_; }

  // Both clocks advance together.
  void advance(std::chrono::nanoseconds by) {
    steady_ += std::chrono::duration_cast<SteadyTime::duration>(by);
    wall_ += std::chrono::duration_cast<WallTime::duration>(by);
  }
  // Only the wall time jumps, as if the clock was set.
  void set_wall(WallTime to) { wall_ = to; }

 private:
  SteadyTime steady_{std::chrono::hours(1)};
  WallTime wall_{std::chrono::sys_days{std::chrono::year{2026} / 1 / 2}};
};

}  // namespace hearth::testing
