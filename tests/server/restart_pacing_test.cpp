#include "server/restart_pacing.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hearth::server {
namespace {

using std::chrono::milliseconds;

TEST(RestartPacingTest, TheFirstRestartIsImmediateAndTheNextDoubleUpToHalfAMinute) {
  RestartPacing pacing;
  std::vector<milliseconds::rep> waits;
  for (int i = 0; i < 9; ++i) waits.push_back(pacing.wait_after_crash(milliseconds(5)).count());
  EXPECT_EQ(waits, (std::vector<milliseconds::rep>{0, 1000, 2000, 4000, 8000, 16000, 30000, 30000,
                                                   30000}));
}

TEST(RestartPacingTest, WhoWasUpForAMinuteBeginsAnew) {
  RestartPacing pacing;
  for (int i = 0; i < 4; ++i) (void)pacing.wait_after_crash(milliseconds(59'999));
  EXPECT_EQ(pacing.wait_after_crash(milliseconds(59'999)).count(), 8000);
  EXPECT_EQ(pacing.wait_after_crash(RestartPacing::kCalm).count(), 0);
  EXPECT_EQ(pacing.wait_after_crash(milliseconds(5)).count(), 1000);
}

}  // namespace
}  // namespace hearth::server
