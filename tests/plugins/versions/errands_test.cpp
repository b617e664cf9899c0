#include "plugins/versions/errands.hpp"

#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace hearth::plugins {
namespace {

using std::chrono::milliseconds;

class ErrandsTest : public ::testing::Test {
 protected:
  ErrandsTest() { (void)next(); }  // at the beginning everything is looked at once

  std::optional<Errand> next() { return errands_.next(clock_.steady_now()); }
  static Errand asked(const std::string& segment = {}) {
    return {.all = true, .segment = segment, .answer = [](const Result<ReloadOutcomes>&) {}};
  }
  static FileChanges change_of(const char* file) { return {.changed = {file}, .gone = {}}; }

  hearth::testing::ManualClock clock_;
  Errands errands_{clock_};
};

TEST_F(ErrandsTest, ComeInTheirOrder) {
  EXPECT_TRUE(errands_.add(asked("a")));
  EXPECT_TRUE(errands_.add(asked("b")));
  EXPECT_EQ(next()->segment, "a");
  EXPECT_EQ(next()->segment, "b");
}

TEST_F(ErrandsTest, ADeadlineGivesAnEmptyOne) {
  const auto errand = next();
  ASSERT_TRUE(errand);
  EXPECT_FALSE(errand->all);
  EXPECT_TRUE(errand->changes.none());
}

TEST_F(ErrandsTest, P1_ChangesGatherAndGoWithTheNextThatMayTakeThem) {
  errands_.notice(change_of("a.so"));
  errands_.notice(change_of("b.so"));
  EXPECT_TRUE(errands_.add(asked("one")));
  EXPECT_TRUE(next()->changes.none()) << "it is about one class";
  EXPECT_TRUE(errands_.add(asked()));
  EXPECT_EQ(next()->changes.changed.size(), 2U) << "it sees them by itself";
  EXPECT_TRUE(next()->changes.none());
  errands_.notice(change_of("c.so"));
  EXPECT_EQ(next()->changes.changed.size(), 1U);
}

TEST_F(ErrandsTest, P1_WhatNobodyWaitsForIsLookedAtOnce) {
  EXPECT_TRUE(errands_.add({.all = true}));
  EXPECT_TRUE(errands_.add({.all = true}));
  EXPECT_TRUE(next()->all);
  EXPECT_FALSE(next()->all);
}

TEST_F(ErrandsTest, P2_OnlySoManyWait) {
  for (std::size_t i = 0; i < Errands::kMost; ++i) EXPECT_TRUE(errands_.add(asked("x")));
  EXPECT_FALSE(errands_.add(asked("x")));
  EXPECT_EQ(errands_.stop().size(), Errands::kMost);
  EXPECT_EQ(next(), std::nullopt);
}

TEST_F(ErrandsTest, P3_WhoWaitsWithoutADeadlineIsWokenByWhatComes) {
  using Come = std::function<void()>;
  for (const Come& come :
       {Come([this] { errands_.stir(); }), Come([this] { errands_.notice(change_of("a.so")); }),
        Come([this] { (void)errands_.add(asked()); })}) {
    std::thread other(come);
    EXPECT_TRUE(errands_.next(std::nullopt));
    other.join();
  }
  std::thread other([this] { (void)errands_.stop(); });
  EXPECT_FALSE(errands_.next(std::nullopt));
  other.join();
}

TEST_F(ErrandsTest, NewsAreWaitedForUntilATime) {
  EXPECT_FALSE(errands_.wait_for_news(clock_.steady_now()));
  std::thread other([this] { errands_.stir(); });
  EXPECT_TRUE(errands_.wait_for_news(clock_.steady_now() + milliseconds(60'000)));
  other.join();
}

}  // namespace
}  // namespace hearth::plugins
