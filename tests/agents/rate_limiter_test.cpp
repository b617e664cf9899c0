// The rate limiter on the mock host.

#include "rate-limiter/rate_limiter.cpp"  // NOLINT(bugprone-suspicious-include): as counter_test.cpp

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>

namespace {

using hearth::Json;
using hearth::testing::CallError;
using hearth::testing::Host;

class RateLimiterTest : public ::testing::Test {
 protected:
  // Of a mock host's clock.
  static constexpr std::chrono::sys_days kStart{std::chrono::year(2026) / 1 / 2};

  static Json answer(bool allowed, double remaining, int retry_after_ms) {
    return {{"allowed", allowed}, {"remaining", remaining}, {"retry_after_ms", retry_after_ms}};
  }

  Host host_;
};

TEST_F(RateLimiterTest, ABucketEmptiesAndFillsWithTime) {
  auto agent = host_.create<RateLimiter>("a", {{"capacity", 3}, {"per_second", 2}});
  EXPECT_EQ(agent.call("take"), answer(true, 2, 0));
  EXPECT_EQ(agent.call("take", 2), answer(true, 0, 0));
  EXPECT_EQ(agent.call("take"), answer(false, 0, 500));
  EXPECT_EQ(agent.call("peek", 3), answer(false, 0, 1500));
  host_.advance(std::chrono::milliseconds(500));
  EXPECT_EQ(agent.call("peek"), answer(true, 0, 0));
  EXPECT_EQ(agent.call("take"), answer(true, 0, 0));
  host_.advance(std::chrono::hours(1));
  EXPECT_EQ(agent.call("take"), answer(true, 2, 0)) << "a bucket holds no more than its capacity";
}

TEST_F(RateLimiterTest, AnEmptyBucketFillsAtItsRateAfterTheClockWasSetBack) {
  auto agent = host_.create<RateLimiter>("a", {{"capacity", 3}, {"per_second", 2}});
  agent.call("take", 3);
  host_.set_wall(kStart - std::chrono::hours(1));
  EXPECT_EQ(agent.call("peek"), answer(false, 0, 500)) << "none is added for the jump";
  EXPECT_EQ(agent.call("take"), answer(false, 0, 500));
  host_.advance(std::chrono::milliseconds(500));
  EXPECT_EQ(agent.call("take"), answer(true, 0, 0));
}

TEST_F(RateLimiterTest, WhatWasTakenSurvivesAnEviction) {
  auto agent = host_.create<RateLimiter>("a", {{"capacity", 2}});
  agent.call("take", 2);
  agent.evict();
  EXPECT_EQ(agent.call("take"), answer(false, 0, 1000));
  agent.call("reset");
  EXPECT_EQ(agent.call("take"), answer(true, 1, 0));
}

TEST_F(RateLimiterTest, ACostThatNoBucketHasIsRefused) {
  auto agent = host_.create<RateLimiter>("a");
  for (const double cost : {0.0, -1.0, 11.0}) EXPECT_THROW(agent.call("take", cost), CallError);
}

}  // namespace
