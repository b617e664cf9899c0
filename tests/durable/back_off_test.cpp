#include "durable/back_off.hpp"

#include "support/seeded_random.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(BackOffTest, DoublesUpToTheCapAndAddsAtMostAQuarter) {
  hearth::testing::SeededRandom random(7);
  for (int round = 0; round < 200; ++round) {
    milliseconds expected = seconds(1);
    for (int failures = 1; failures <= 12; ++failures) {
      const milliseconds wait = back_off(failures, seconds(1), seconds(300), random);
      EXPECT_GE(wait, expected);
      EXPECT_LE(wait, expected + expected / 4);
      expected = std::min(expected * 2, milliseconds(seconds(300)));
    }
  }
}

TEST(BackOffTest, NeverOverflowsAndNeverIsZero) {
  hearth::testing::SeededRandom random(7);
  EXPECT_LE(back_off(1'000'000, seconds(1), seconds(300), random), seconds(375));
  EXPECT_GE(back_off(0, milliseconds(0), seconds(300), random), milliseconds(1));
}

TEST(BackOffTest, WaitsOfMoreThanAFewMillisecondsDiffer) {
  hearth::testing::SeededRandom random(7);
  const milliseconds first = back_off(1, seconds(10), seconds(300), random);
  bool differs = false;
  for (int i = 0; i < 10; ++i)
    differs = differs || back_off(1, seconds(10), seconds(300), random) != first;
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace hearth::durable
