#include "runtime/serial_waits.hpp"

#include <gtest/gtest.h>

namespace hearth::runtime {
namespace {

using storage::AgentKey;

const AgentKey kA{"Class", "a"};
const AgentKey kB{"Class", "b"};
const AgentKey kC{"Class", "c"};

TEST(SerialWaitsTest, AWaitForItselfIsRefused) {
  SerialWaits waits;
  EXPECT_FALSE(waits.add({kA}, kA));
  EXPECT_FALSE(waits.add({kB, kA}, kA));
}

TEST(SerialWaitsTest, ACircleIsRefusedWhicheverPartComesLast) {
  SerialWaits waits;
  EXPECT_TRUE(waits.add({kA}, kB));
  EXPECT_FALSE(waits.add({kB}, kA));
  EXPECT_TRUE(waits.add({kB}, kC));
  EXPECT_FALSE(waits.add({kC}, kA));
}

TEST(SerialWaitsTest, WhatIsOverCountsNoMore) {
  SerialWaits waits;
  EXPECT_TRUE(waits.add({kA}, kB));
  EXPECT_TRUE(waits.add({kA}, kB)) << "two calls at once";
  waits.remove({kA}, kB);
  EXPECT_FALSE(waits.add({kB}, kA));
  waits.remove({kA}, kB);
  EXPECT_TRUE(waits.add({kB}, kA));
}

}  // namespace
}  // namespace hearth::runtime
