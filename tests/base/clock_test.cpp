#include "base/clock.hpp"

#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace hearth {
namespace {

TEST(ClockTest, UnixMillisCountFromTheEpochAndRoundDown) {
  EXPECT_EQ(unix_millis(WallTime{}), 0);
  EXPECT_EQ(unix_millis(WallTime{std::chrono::microseconds(1'999)}), 1);
  EXPECT_EQ(unix_millis(WallTime{std::chrono::sys_days{std::chrono::year{2026} / 1 / 2}}),
            1'767'312'000'000);
}

TEST(ClockTest, ASteadyMomentHasATimeOfTheWallClock) {
  testing::ManualClock clock;
  const SteadyTime moment = clock.steady_now();
  const std::int64_t then = unix_millis(clock.wall_now());
  clock.advance(std::chrono::microseconds(5'999));
  EXPECT_EQ(unix_millis_of(moment, clock), then);
}

TEST(ClockTest, TheSystemsClocksAreTheSystems) {
  const SystemClock clock;
  const SteadyTime steady = BootClock::now();
  const WallTime wall = std::chrono::system_clock::now();
  EXPECT_GE(clock.steady_now(), steady);
  EXPECT_LT(clock.steady_now() - steady, std::chrono::minutes(1));
  EXPECT_LT(std::chrono::abs(clock.wall_now() - wall), std::chrono::minutes(1));
}

}  // namespace
}  // namespace hearth
