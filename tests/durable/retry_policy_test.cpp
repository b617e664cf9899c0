#include "durable/retry_policy.hpp"

#include "support/seeded_random.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

namespace hearth::durable {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kLongestCap = 24ULL * 3600 * 1000;

std::string retry_refusal(std::uint32_t attempts, std::uint64_t base, std::uint64_t cap) {
  const auto policy = checked_retry(attempts, base, cap);
  if (policy.has_value()) return "";
  EXPECT_EQ(policy.error().code, Errc::kInvalidArgument);
  return policy.error().message;
}

TEST(RetryPolicyTest, ZeroTakesTheDefaultOfThatField) {
  EXPECT_EQ(*checked_retry(0, 0, 0), RetryPolicy{});
  EXPECT_EQ(*checked_retry(5, 0, 0), (RetryPolicy{5, milliseconds(100), milliseconds(3'000)}));
  EXPECT_EQ(*checked_retry(0, 7, 0), (RetryPolicy{3, milliseconds(7), milliseconds(3'000)}));
  EXPECT_EQ(*checked_retry(0, 0, 100), (RetryPolicy{3, milliseconds(100), milliseconds(100)}));
}

TEST(RetryPolicyTest, TheLimitsThemselvesAreAccepted) {
  EXPECT_EQ(*checked_retry(1'000, kLongestCap, kLongestCap),
            (RetryPolicy{1'000, milliseconds(kLongestCap), milliseconds(kLongestCap)}));
  EXPECT_EQ(*checked_retry(1, 1, 1), (RetryPolicy{1, milliseconds(1), milliseconds(1)}));
}

TEST(RetryPolicyTest, WhatIsPastALimitIsRefusedInWords) {
  constexpr auto kHuge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_NE(retry_refusal(1'001, 0, 0).find("1,000 attempts"), std::string::npos);
  EXPECT_NE(retry_refusal(0, 0, kLongestCap + 1).find("one day"), std::string::npos);
  EXPECT_NE(retry_refusal(0, 0, kHuge).find("one day"), std::string::npos);
  EXPECT_NE(retry_refusal(0, 11, 10).find("above the longest"), std::string::npos);
  EXPECT_NE(retry_refusal(0, kHuge, 0).find("above the longest"), std::string::npos);
}

TEST(RetryPolicyTest, AFieldIsComparedWithTheDefaultOfTheOther) {
  EXPECT_NE(retry_refusal(0, 3'001, 0), "") << "above the default cap";
  EXPECT_NE(retry_refusal(0, 0, 99), "") << "below the default base";
  EXPECT_EQ(retry_refusal(0, 3'000, 0), "");
}

TEST(RetryPolicyTest, AWaitIsAnythingFromZeroToBelowTheDoubledBase) {
  hearth::testing::SeededRandom random(3);
  const RetryPolicy policy{10, milliseconds(4), milliseconds(20)};
  for (int attempt = 1; attempt <= 4; ++attempt) {
    const std::int64_t bound = attempt == 1 ? 8 : attempt == 2 ? 16 : 20;
    std::set<std::int64_t> seen;
    for (int i = 0; i < 2'000; ++i) seen.insert(retry_wait(policy, attempt, random).count());
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(bound)) << attempt;
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), bound - 1);
  }
}

TEST(RetryPolicyTest, WaitsNeverOverflow) {
  hearth::testing::SeededRandom random(3);
  const RetryPolicy longest{1'000, milliseconds(kLongestCap), milliseconds(kLongestCap)};
  for (const int attempt : {1, 40, 1'000, std::numeric_limits<int>::max(), 0, -1}) {
    for (int i = 0; i < 100; ++i) {
      const milliseconds wait = retry_wait(longest, attempt, random);
      EXPECT_GE(wait.count(), 0);
      EXPECT_LT(wait, longest.cap);
    }
  }
}

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
