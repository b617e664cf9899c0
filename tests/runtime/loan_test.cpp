#include "runtime/loan.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::runtime {
namespace {

TEST(LoanTest, StepsWaitInOrderWhileItIsOutAndNeverElse) {
  Loan loan;
  std::string done;
  const auto postpone = [&](char step) { return loan.postpone([&, step] { done += step; }); };
  EXPECT_FALSE(postpone('x')) << "it is not out";
  loan.begin(SteadyTime{});
  EXPECT_TRUE(postpone('a') && postpone('b'));
  EXPECT_EQ(done, "");
  for (const auto& step : loan.end()) {
    step();
    EXPECT_FALSE(loan.is_out() || postpone('y')) << "it is back before the first step";
  }
  EXPECT_EQ(done, "ab");
  loan.begin(SteadyTime{});
  EXPECT_TRUE(loan.end().empty());
}

}  // namespace
}  // namespace hearth::runtime
