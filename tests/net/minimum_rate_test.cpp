#include "net/minimum_rate.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hearth::net {
namespace {

using namespace std::chrono_literals;

struct RateCase {
  std::string name;
  // What was moved after so many seconds, and whether something was pending then.
  std::function<std::uint64_t(int)> moved;
  std::function<bool(int)> pending;
  int slow_after = 0;  // seconds; 0: never
};

class MinimumRateTest : public ::testing::TestWithParam<RateCase> {};

TEST_P(MinimumRateTest, IsToldAtTheRightMoment) {
  NetOptions options;
  options.min_rate = 1000;
  options.rate_window = 10s;
  MinimumRate rate;
  const SocketTime begin{1000s};
  int slow_after = 0;
  for (int second = 0; second <= 120 && slow_after == 0; ++second) {
    const auto& [name, moved, pending, expected] = GetParam();
    const bool slow = rate.too_slow(options, pending(second), moved(second), begin + second * 1s);
    if (slow) slow_after = second;
  }
  EXPECT_EQ(slow_after, GetParam().slow_after);
}

constexpr auto kAlways = [](int) { return true; };

INSTANTIATE_TEST_SUITE_P(
    , MinimumRateTest,
    ::testing::Values(
        RateCase{"Nothing", [](int) { return 0U; }, kAlways, 10},
        RateCase{"OneByteASecond", [](int s) { return static_cast<unsigned>(s); }, kAlways, 10},
        RateCase{"JustEnough", [](int s) { return static_cast<unsigned>(s) * 1000U; }, kAlways, 0},
        RateCase{"JustTooLittle", [](int s) { return static_cast<unsigned>(s) * 999U; }, kAlways,
                 10},
        RateCase{"MuchAtFirstSavesNothingForLater",
                 [](int s) { return s == 0 ? 0U : 100'000'000U; }, kAlways, 20},
        RateCase{"InGulps", [](int s) { return static_cast<unsigned>(s / 9) * 20'000U; }, kAlways,
                 0},
        RateCase{"NothingIsPending", [](int) { return 0U; }, [](int) { return false; }, 0},
        RateCase{"NowAndThenNothingIsPending", [](int) { return 0U; },
                 [](int s) { return s % 9 != 0; }, 0},
        RateCase{"PendingFromLaterOn", [](int) { return 0U; }, [](int s) { return s >= 30; }, 40}),
    [](const ::testing::TestParamInfo<RateCase>& each) { return each.param.name; });

TEST(MinimumRateAfterAPauseTest, TimeInWhichNobodyLookedDoesNotCount) {
  const NetOptions options;
  MinimumRate rate;
  const SocketTime begin{1000s};
  EXPECT_FALSE(rate.too_slow(options, true, 0, begin));
  EXPECT_FALSE(rate.too_slow(options, true, 0, begin + 60s)) << "the loop stood still";
  for (int second = 61; second < 70; ++second) {
    EXPECT_FALSE(rate.too_slow(options, true, 0, begin + second * 1s));
  }
  EXPECT_TRUE(rate.too_slow(options, true, 0, begin + 70s));
}

}  // namespace
}  // namespace hearth::net
