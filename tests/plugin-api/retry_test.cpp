// retry() on the mock host.

#include "one_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using hearth::RetryOptions;
using hearth::Task;

class Trier : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Trier>& m) {
    m.add("succeed_at", &Trier::succeed_at);
    m.add("slowly", &Trier::slowly);
    m.add("until_permanent", &Trier::until_permanent);
    m.add("odd", &Trier::odd);
    m.add("options", &Trier::check_options);
  }

  // A plain function, told the number of its attempt.
  Task<int> succeed_at(int attempt) {
    auto work = [this, attempt](int number) {
      tried.push_back(number);
      if (number < attempt) throw std::runtime_error("attempt " + std::to_string(number));
      return number;
    };
    co_return co_await retry(work);
  }
  // A coroutine without a parameter.
  Task<std::string> slowly(int failures) {
    auto work = [this, failures] { return sleep_and_fail(failures); };
    RetryOptions options;
    options.max_attempts = 10;
    options.base_delay = options.max_delay = milliseconds(100);
    co_return co_await retry(work, options);
  }
  Task<void> until_permanent() {
    auto work = [this](int number) {
      tried.push_back(number);
      throw std::runtime_error(number == 3 ? "permanent" : "temporary");
    };
    RetryOptions options;
    options.max_attempts = 9;
    options.should_retry = [this](const std::exception& failure, int next) {
      asked.push_back(next);
      return std::string(failure.what()) != "permanent";
    };
    co_await retry(work, options);
  }
  Task<void> odd() {
    auto work = [this](int number) {
      tried.push_back(number);
      throw 5;  // NOLINT: authors do
    };
    co_await retry(work);
  }
  // Refused by the call itself, not by the wait for it.
  Task<void> check_options(int attempts, int base, int most) {
    RetryOptions options;
    options.max_attempts = attempts;
    options.base_delay = milliseconds(base);
    options.max_delay = milliseconds(most);
    return retry([] {}, options);
  }

  std::vector<int> tried;
  std::vector<int> asked;

 private:
  Task<std::string> sleep_and_fail(int failures) {
    co_await sleep(milliseconds(1));
    tried.push_back(0);
    if (std::cmp_less_equal(tried.size(), failures)) throw std::runtime_error("not yet");
    co_return "done";
  }
};

class RetryTest : public OneAgent<Trier> {};

TEST_F(RetryTest, TheFirstSuccessIsTheResult) {
  EXPECT_EQ(agent_.call("succeed_at", 1), 1);
  EXPECT_EQ(agent_.as<Trier>().tried, std::vector<int>({1}));
}

TEST_F(RetryTest, FailuresAreTriedAgainAfterAWait) {
  auto call = agent_.start("succeed_at", 3);
  EXPECT_EQ(agent_.as<Trier>().tried, std::vector<int>({1}));
  host_.advance(seconds(3));
  EXPECT_EQ(call.value(), 3);
  EXPECT_EQ(agent_.as<Trier>().tried, std::vector<int>({1, 2, 3}));
}

TEST_F(RetryTest, TheLastFailureReachesTheCaller) {
  auto call = agent_.start("succeed_at", 9);
  host_.advance(seconds(10));
  EXPECT_EQ(call.error(), "attempt 3");
  EXPECT_EQ(agent_.as<Trier>().tried.size(), 3U);
}

TEST_F(RetryTest, CoroutinesAreRetriedAndNoWaitIsLongerThanTheMaximum) {
  auto call = agent_.start("slowly", 5);
  host_.advance(milliseconds(5 * 100 + 6));
  EXPECT_EQ(call.value(), "done");
  EXPECT_EQ(agent_.as<Trier>().tried.size(), 6U);
}

TEST_F(RetryTest, ThePredicateGetsTheNextAttemptAndCanStop) {
  auto call = agent_.start("until_permanent");
  host_.advance(seconds(10));
  EXPECT_EQ(call.error(), "permanent");
  EXPECT_EQ(agent_.as<Trier>().tried, std::vector<int>({1, 2, 3}));
  EXPECT_EQ(agent_.as<Trier>().asked, std::vector<int>({2, 3, 4}));
}

TEST_F(RetryTest, WhatIsNoExceptionIsNotTriedAgain) {
  EXPECT_TRUE(agent_.start("odd").failed());
  EXPECT_EQ(agent_.as<Trier>().tried.size(), 1U);
}

TEST_F(RetryTest, BadOptionsAreRefusedByTheCallItself) {
  EXPECT_EQ(agent_.start("options", 0, 1, 1).error(), "retry.maxAttempts must be >= 1");
  EXPECT_EQ(agent_.start("options", 1, 0, 1).error(), "retry.baseDelayMs must be > 0");
  EXPECT_EQ(agent_.start("options", 1, 1, -1).error(), "retry.maxDelayMs must be > 0");
  EXPECT_EQ(agent_.start("options", 1, 3, 2).error(),
            "retry.baseDelayMs must be <= retry.maxDelayMs");
  EXPECT_FALSE(agent_.start("options", 1, 2, 2).failed());
  EXPECT_EQ(agent_.start("options", 0, 1, 1).status(), HEARTH_E_INVALID);
}

TEST_F(RetryTest, TheClassMayHaveDefaultsOfItsOwn) {
  class Patient : public Trier {
   public:
    RetryOptions retry_defaults() override {
      RetryOptions options;
      options.max_attempts = 5;
      return options;
    }
  };
  auto agent = host_.create<Patient>("b");
  auto call = agent.start("succeed_at", 5);
  host_.advance(seconds(20));
  EXPECT_EQ(call.value(), 5);
}

TEST(RetryDelayTest, IsFromNothingUpToTheDoubledBaseOrTheMaximum) {
  RetryOptions options;
  options.base_delay = milliseconds(100);
  options.max_delay = milliseconds(1'000);
  const auto most = [&](int attempt) {
    return hearth::detail::retry_delay(options, attempt, ~std::uint64_t{0}).count();
  };
  EXPECT_EQ(hearth::detail::retry_delay(options, 1, 0).count(), 0);
  EXPECT_EQ(most(1), 199);
  EXPECT_EQ(most(2), 399);
  EXPECT_EQ(most(3), 799);
  EXPECT_EQ(most(4), 999);
  EXPECT_EQ(most(1'000'000), 999);
}

}  // namespace
