#include "server/egress_budget.hpp"

#include "support/manual_clock.hpp"
#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <string>

namespace hearth::server {
namespace {

using extensions::EgressLimits;

class EgressBudgetTest : public ::testing::Test {
 protected:
  void start() { budget_ = std::make_unique<EgressBudget>(file_, clock_, logger_); }
  // As kill -9: nothing more is written to the file.
  void kill() {
    std::filesystem::remove(copy_);
    if (std::filesystem::exists(file_)) std::filesystem::copy_file(file_, copy_);
    budget_.reset();
    std::filesystem::remove(file_);
    if (std::filesystem::exists(copy_)) std::filesystem::copy_file(copy_, file_);
    start();
  }
  // The answer, whether it comes at once or later.
  Result<void> ask(const EgressLimits& limits, const std::string& agent_class = "C",
                   std::uint64_t body = 0) {
    if (!budget_) start();
    const auto later = std::make_shared<std::promise<Result<void>>>();
    auto answer = budget_->ask(agent_class, limits, body,
                               [later](const Result<void>& it) { later->set_value(it); });
    return answer ? *std::move(answer) : later->get_future().get();
  }
  int granted(const EgressLimits& limits, int asked) {
    int count = 0;
    for (int i = 0; i < asked; ++i) count += ask(limits) ? 1 : 0;
    return count;
  }

  testing::TempDirectory directory_;
  const std::filesystem::path file_ = directory_.path() / "server.db";
  const std::filesystem::path copy_ = directory_.path() / "copy.db";
  testing::ManualClock clock_;
  testing::RecordingLogger logger_;
  std::unique_ptr<EgressBudget> budget_;
};

TEST_F(EgressBudgetTest, WithoutLimitsEachRequestIsGrantedAndNothingIsKept) {
  start();
  for (int i = 0; i < 100; ++i) {
    const auto answer = budget_->ask("C", {}, 1U << 30U, [](const Result<void>&) { FAIL(); });
    ASSERT_TRUE(answer && *answer);
    ASSERT_TRUE(budget_->spend("C", {}, 1U << 30U));
  }
  budget_->stop();
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(EgressBudgetTest, AMinuteHasAsManyRequestsAsTheLimitSays) {
  for (const std::uint32_t limit : {1U, 2U, 15U, 100U}) {
    const EgressLimits limits{.requests_per_minute = limit};
    EXPECT_EQ(granted(limits, 120), static_cast<int>(limit));
    clock_.advance(std::chrono::minutes(1));
  }
}

TEST_F(EgressBudgetTest, ARefusalSaysWhichLimitAndWhenThereIsMore) {
  const EgressLimits limits{.requests_per_minute = 1, .bytes_per_day = 10};
  clock_.advance(std::chrono::milliseconds(15'500));
  EXPECT_TRUE(ask(limits));
  auto refused = ask(limits);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kLimitExceeded);
  EXPECT_EQ(refused.error().message,
            "the class has reached its limit, egress.limits.requests_per_minute is 1; there is "
            "more in 45 s");
  EXPECT_TRUE(budget_->spend("C", limits, 10));
  clock_.advance(std::chrono::hours(1));
  refused = ask(limits);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the class has reached its limit, egress.limits.bytes_per_day is 10; there is more in "
            "82785 s");
  clock_.advance(std::chrono::hours(23));
  EXPECT_TRUE(ask(limits));
}

TEST_F(EgressBudgetTest, ClassesHaveLimitsOfTheirOwn) {
  const EgressLimits limits{.requests_per_minute = 1};
  EXPECT_TRUE(ask(limits, "A"));
  EXPECT_TRUE(ask(limits, "B"));
  EXPECT_FALSE(ask(limits, "A"));
}

TEST_F(EgressBudgetTest, BytesPastTheLimitAreRefusedAsTheyCome) {
  const EgressLimits limits{.bytes_per_day = 100};
  EXPECT_TRUE(ask(limits));
  EXPECT_TRUE(budget_->spend("C", limits, 60));
  EXPECT_TRUE(budget_->spend("C", limits, 40)) << "exactly";
  EXPECT_FALSE(ask(limits));
  EXPECT_FALSE(budget_->spend("C", limits, 1));
}

TEST_F(EgressBudgetTest, P3_ABodyThatDoesNotFitIsRefusedAndDoesNotCount) {
  const EgressLimits limits{.requests_per_minute = 2, .bytes_per_day = 100};
  const auto refused = ask(limits, "C", 101);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kTooLarge) << "a limit of the day";
  EXPECT_TRUE(refused.error().message.starts_with(
      "the body has more bytes than the class has left, egress.limits.bytes_per_day is 100"))
      << refused.error().message;
  EXPECT_TRUE(ask(limits, "C", 60));
  EXPECT_FALSE(ask(limits, "C", 41));
  EXPECT_TRUE(ask(limits, "C", 40)) << "exactly; and no refused one was a request";
}

TEST_F(EgressBudgetTest, WhatIsGivenBackCanBeUsed) {
  const EgressLimits limits{.bytes_per_day = 100};
  EXPECT_TRUE(ask(limits, "C", 100));
  EXPECT_FALSE(ask(limits));
  budget_->give_back("C", limits, 100, clock_.wall_now());
  EXPECT_TRUE(ask(limits, "C", 100));
  EXPECT_FALSE(ask(limits));
}

TEST_F(EgressBudgetTest, P3_ARequestThatIsGivenBackDoesNotCount) {
  const EgressLimits limits{.requests_per_minute = 2};
  EXPECT_EQ(granted(limits, 3), 2);
  budget_->give_back("C", limits, 5, clock_.wall_now());
  EXPECT_EQ(granted(limits, 2), 1);
}

TEST_F(EgressBudgetTest, P1_WhatAnEarlierWindowGaveIsNoPartOfThisOne) {
  const EgressLimits limits{.requests_per_minute = 1, .bytes_per_day = 100};
  EXPECT_TRUE(ask(limits, "C", 60));
  const WallTime asked = clock_.wall_now();
  clock_.advance(std::chrono::hours(24));
  EXPECT_TRUE(ask(limits, "C", 60));
  budget_->give_back("C", limits, 60, asked);
  EXPECT_FALSE(ask(limits));
  clock_.advance(std::chrono::minutes(1));
  EXPECT_FALSE(ask(limits, "C", 41));
}

TEST_F(EgressBudgetTest, P2_ABodyIsReservedBeforeItIsSent) {
  const EgressLimits limits{.bytes_per_day = 160};
  EXPECT_TRUE(ask(limits, "C", 100));
  kill();
  EXPECT_FALSE(ask(limits, "C", 61));
}

TEST_F(EgressBudgetTest, AsManyAreInProgressAsTheLimitSays) {
  const EgressLimits limits{.concurrent = 2};
  start();
  EXPECT_TRUE(budget_->enter("C", limits));
  EXPECT_TRUE(budget_->enter("C", limits));
  const auto refused = budget_->enter("C", limits);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "egress.limits.concurrent is 2: so many requests of the class are in progress; there "
            "is room when one of them ends");
  EXPECT_TRUE(budget_->enter("D", limits)) << "another class";
  budget_->leave("C");
  EXPECT_TRUE(budget_->enter("C", limits));
}

TEST_F(EgressBudgetTest, WhatWasGrantedCountsAfterAKill) {
  const EgressLimits limits{.requests_per_minute = 8};
  int all = 0;
  for (int life = 0; life < 10; ++life) {
    all += granted(limits, 1);
    kill();
  }
  EXPECT_LE(all, 8);
  EXPECT_GE(all, 4) << "a kill costs one that was reserved at most";
}

TEST_F(EgressBudgetTest, AnOrderlyStopGivesBackWhatWasNotUsed) {
  const EgressLimits limits{.requests_per_minute = 8};
  int all = 0;
  for (int life = 0; life < 10; ++life) {
    all += granted(limits, 1);
    budget_.reset();
  }
  EXPECT_EQ(all, 8);
}

TEST_F(EgressBudgetTest, BytesAreReservedAheadOfTheFirstRequest) {
  const EgressLimits limits{.bytes_per_day = 160};
  EXPECT_TRUE(ask(limits));
  kill();
  EXPECT_TRUE(ask(limits));
  EXPECT_FALSE(budget_->spend("C", limits, 151)) << "ten were reserved by the life before";
}

TEST_F(EgressBudgetTest, WhatCannotBeRecordedIsNotGranted) {
  const EgressLimits limits{.requests_per_minute = 5};
  start();
  std::filesystem::create_directory(file_);
  const auto refused = ask(limits);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kUnavailable);
  EXPECT_TRUE(logger_.contains("fetch.limits_unwritten"));
  std::filesystem::remove(file_);
  EXPECT_TRUE(ask(limits)) << "it is tried again";
}

TEST_F(EgressBudgetTest, ALimitThatIsRaisedCountsAtOnce) {
  EXPECT_EQ(granted({.requests_per_minute = 2}, 5), 2);
  EXPECT_EQ(granted({.requests_per_minute = 6}, 10), 4);
  EXPECT_EQ(granted({.requests_per_minute = 3}, 10), 0);
}

}  // namespace
}  // namespace hearth::server
