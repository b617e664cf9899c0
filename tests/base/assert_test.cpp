#include "base/assert.hpp"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(AssertTest, AHeldInvariantCostsNothingButItsCheck) {
  int checks = 0;
  HEARTH_ASSERT(++checks == 1, "it is evaluated once");
  EXPECT_EQ(checks, 1);
}

TEST(AssertDeathTest, ABrokenInvariantEndsTheProcessAndSaysWhichWhereAndWhy) {
  const bool door_is_shut = false;
  EXPECT_DEATH(HEARTH_ASSERT(door_is_shut, "nobody may come in"),
               "assert_test.cpp:.*invariant violated: nobody may come in .door_is_shut.");
}

}  // namespace
}  // namespace hearth
