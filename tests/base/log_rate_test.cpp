#include "base/log_rate.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace hearth {
namespace {

constexpr LogLimit kLimit{.burst = 3, .per_second = 1};
constexpr SteadyTime kStart{std::chrono::hours(1)};

SteadyTime after_ms(int ms) {
  return kStart + std::chrono::milliseconds(ms);
}

TEST(LogRateTest, ABurstAndThenSoManyASecondWithTheCountOfThoseBetween) {
  LogRate rate;
  struct Step {
    int ms;
    std::optional<std::uint64_t> admitted;
  };
  constexpr auto kNo = std::nullopt;
  for (const Step& step : {Step{0, 0}, Step{0, 0}, Step{0, 0}, Step{0, kNo}, Step{500, kNo},
                           Step{1'000, 2}, Step{1'001, kNo}, Step{2'100, 1}, Step{60'000, 0},
                           Step{60'000, 0}, Step{60'000, 0}, Step{60'000, kNo}}) {
    EXPECT_EQ(rate.admit("a", kLimit, after_ms(step.ms)), step.admitted) << "at " << step.ms;
  }
}

TEST(LogRateTest, KindsAreCountedApartUntilThereAreTooMany) {
  LogRate rate;
  for (std::size_t i = 0; i < LogRate::kMaxKinds; ++i)
    EXPECT_EQ(rate.admit(std::to_string(i), kLimit, kStart), 0U);
  std::size_t admitted = 0;
  for (std::size_t i = 0; i < 1'000; ++i)
    admitted += rate.admit("more " + std::to_string(i), kLimit, kStart) ? 1 : 0;
  EXPECT_EQ(admitted, 3U);
  EXPECT_EQ(rate.admit("0", kLimit, kStart), 0U) << "known before";
}

}  // namespace
}  // namespace hearth
