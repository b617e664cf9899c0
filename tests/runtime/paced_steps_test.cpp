#include "runtime/paced_steps.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;

class PacedStepsTest : public ::testing::Test {
 protected:
  // A step that takes so long, and notes when it began.
  std::function<void()> step(milliseconds takes) {
    return [this, takes] {
      began_.push_back(std::chrono::duration_cast<milliseconds>(now() - start_));
      loop_.let_pass(takes);
    };
  }
  void add(std::function<void()> step) { steps_->add(StepKind::kWork, std::move(step)); }
  SteadyTime now() { return loop_.clock().steady_now(); }

  testing::ManualLoop loop_;
  const SteadyTime start_ = loop_.clock().steady_now();
  std::optional<PacedSteps> steps_{std::in_place, loop_, 20};
  std::vector<milliseconds> began_;
};

using Moments = std::vector<milliseconds>;

TEST_F(PacedStepsTest, WithoutClientsStepsFollowAtOnce) {
  for (int i = 0; i < 3; ++i) add(step(milliseconds(5)));
  EXPECT_EQ(began_, Moments{}) << "never from inside add()";
  loop_.settle();
  EXPECT_EQ(began_, (Moments{milliseconds(0), milliseconds(5), milliseconds(10)}));
}

TEST_F(PacedStepsTest, WhatIsReadyRunsBetweenTwoSteps) {
  std::string order;
  for (int i = 0; i < 3; ++i) {
    add([&order] { order += 's'; });
    loop_.post([&order] { order += 'o'; });
  }
  loop_.settle();
  EXPECT_EQ(order,
            "sooos"
            "s");
  order.clear();
  for (int i = 0; i < 3; ++i) {
    add([this, &order] {
      order += 's';
      loop_.post([&order] { order += 'o'; });
    });
  }
  loop_.settle();
  EXPECT_EQ(order, "sososo");
}

TEST_F(PacedStepsTest, WhileClientsComeStepsHaveTheirShareOfTheLoop) {
  for (int i = 0; i < 3; ++i) add(step(milliseconds(2)));
  steps_->client_came();
  loop_.advance(milliseconds(100));
  EXPECT_EQ(began_, (Moments{milliseconds(0), milliseconds(10), milliseconds(20)}));
}

TEST_F(PacedStepsTest, WithAShareOfAHundredClientsChangeNothing) {
  steps_.emplace(loop_, 100);
  steps_->client_came();
  for (int i = 0; i < 3; ++i) steps_->add(StepKind::kRecovery, step(milliseconds(2)));
  loop_.advance(milliseconds(100));
  EXPECT_EQ(began_, (Moments{milliseconds(0), milliseconds(2), milliseconds(4)}));
}

TEST_F(PacedStepsTest, EachKindHasItsOwnShare) {
  steps_->client_came();
  for (int i = 0; i < 2; ++i) {
    add(step(milliseconds(2)));
    steps_->add(StepKind::kWaking, step(milliseconds(2)));
  }
  loop_.advance(milliseconds(100));
  EXPECT_EQ(began_,
            (Moments{milliseconds(0), milliseconds(2), milliseconds(10), milliseconds(12)}));
}

// A kind whose steps are slow leaves the others their part of the loop.
TEST_F(PacedStepsTest, SlowStepsOfOneKindDoNotStopAnotherKind) {
  std::size_t recovered = 0;
  const auto slow = [this] {
    steps_->client_came();
    loop_.let_pass(milliseconds(200));
  };
  const auto quick = [this, &recovered] {
    steps_->client_came();
    loop_.let_pass(milliseconds(2));
    ++recovered;
  };
  steps_.emplace(loop_, 40);
  for (int i = 0; i < 50; ++i) add(slow);
  for (int i = 0; i < 500; ++i) steps_->add(StepKind::kRecovery, quick);
  steps_->client_came();
  loop_.advance(milliseconds(3000));
  EXPECT_GE(recovered, 100U) << "in ten pauses of a tenth of a second";
}

TEST_F(PacedStepsTest, AClientCountsForAWhileAndThenNoMore) {
  steps_->client_came();
  for (int i = 0; i < 25; ++i) add(step(milliseconds(2)));
  loop_.advance(milliseconds(1000));
  // 2 ms, then 8 ms for others, until 202 ms; from then on at once.
  EXPECT_EQ(began_.at(20), milliseconds(200));
  EXPECT_EQ(began_.at(21), milliseconds(202));
  EXPECT_EQ(began_.at(24), milliseconds(208));
}

TEST_F(PacedStepsTest, OneSlowStepDoesNotStopTheOthersForLong) {
  steps_->client_came();
  add(step(milliseconds(5000)));
  add(step(milliseconds(1)));
  loop_.advance(milliseconds(10'000));
  EXPECT_EQ(began_, (Moments{milliseconds(0), milliseconds(5100)}));
}

TEST_F(PacedStepsTest, StepsThatAreLeftAtItsEndAreDropped) {
  steps_->client_came();
  add(step(milliseconds(1)));
  add(step(milliseconds(1)));
  loop_.settle();
  EXPECT_EQ(steps_->waiting(), 1U);
  steps_.reset();
  loop_.advance(milliseconds(1000));
  EXPECT_EQ(began_.size(), 1U);
}

}  // namespace
}  // namespace hearth::runtime
