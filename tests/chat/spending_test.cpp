#include "rows.hpp"

#include <hearth/chat/spending.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace hearth::chat {
namespace {

const Time kMorning = Time(std::chrono::hours(24 * 20'000 + 9));
constexpr std::chrono::hours kDay{24};

class SpendingTest : public ::testing::Test {
 protected:
  Reserved ask(std::int64_t input, std::int64_t output) {
    return reserve(turn, day, budget, {.input_tokens = input, .output_tokens = output}, now);
  }
  void next_turn() { turn = {}; }

  Budget budget;
  Spent turn;
  DaySpent day;
  Time now = kMorning;
};

TEST_F(SpendingTest, WithoutLimitsEveryCallIsCounted) {
  ASSERT_TRUE(ask(100, 50).reservation);
  ASSERT_TRUE(ask(100, 50).reservation);
  EXPECT_EQ(Json(turn), json(R"({"calls":2,"tokens":300,"cost":0.0})"));
  EXPECT_EQ(Json(day.spent), Json(turn));
}

TEST_F(SpendingTest, C45_TheCallThatWouldExceedALimitIsRefusedWithItsName) {
  struct Row {
    const char* budget;
    const char* refusal;
  };
  const Row rows[] = {
      {R"({"turn":{"calls":1}})", "This answer has reached its limit of calls to the model (1)."},
      {R"({"turn":{"tokens":299}})", "This answer has reached its limit of tokens (299)."},
      {R"({"turn":{"tokens":300}})", ""},
      {R"({"day":{"calls":1}})",
       "This chat has reached its daily limit of calls to the model (1)."},
      {R"({"day":{"tokens":299}})", "This chat has reached its daily limit of tokens (299)."},
      {R"({"turn":{"cost":0.39},"price":{"input":1000,"output":2000}})",
       "This answer has reached its limit of cost (0.39)."},
      {R"({"turn":{"cost":0.5},"price":{"input":1000,"output":2000}})", ""},
      {R"({"day":{"cost":0.39},"price":{"input":1000,"output":2000}})",
       "This chat has reached its daily limit of cost (0.39)."},
      {R"({"turn":{"calls":5},"day":{"tokens":0}})",
       "This chat has reached its daily limit of tokens (0)."},
  };
  for (const Row& row : rows) {
    turn = {};
    day = {};
    budget = read_json<Budget>(json(row.budget), "budget");
    Reserved last;
    for (int i = 0; i < 2; ++i) last = ask(100, 50);
    EXPECT_EQ(last.refusal, row.refusal) << row.budget;
    EXPECT_EQ(last.reservation.has_value(), last.refusal.empty());
  }
}

TEST_F(SpendingTest, ARefusalChangesNothing) {
  budget.day.tokens = 150;
  ASSERT_TRUE(ask(100, 50).reservation);
  const Json before{turn, day};
  EXPECT_FALSE(ask(1, 0).reservation);
  now += kDay;
  EXPECT_FALSE(ask(151, 0).reservation);
  EXPECT_EQ((Json{turn, day}), before);
}

TEST_F(SpendingTest, WhatTheProviderReportsTakesThePlaceOfTheUpperBound) {
  budget.price = {.input = 1000, .cached = 100, .output = 2000};
  const auto call = ask(500, 1000).reservation;
  EXPECT_DOUBLE_EQ(turn.cost, 2.5);
  settle(turn, day, budget.price, *call,
         {.input_tokens = 400, .cached_tokens = 100, .output_tokens = 10});
  EXPECT_EQ(turn.tokens, 410);
  EXPECT_EQ(turn.calls, 1);
  EXPECT_DOUBLE_EQ(turn.cost, 0.33);
  EXPECT_EQ(Json(day.spent), Json(turn));
}

TEST_F(SpendingTest, C45_ACallWhoseUseIsUnknownStaysReserved) {
  budget.day.tokens = 2000;
  const auto call = ask(500, 1000).reservation;
  settle(turn, day, budget.price, *call, {.input_tokens = 400});
  EXPECT_EQ(day.spent.tokens, 1500);
  EXPECT_FALSE(ask(501, 0).reservation);
}

TEST_F(SpendingTest, ACallThatHasNotLeftIsTakenBack) {
  const auto call = ask(500, 1000).reservation;
  release(turn, day, *call);
  EXPECT_EQ(Json(turn), Json(Spent{}));
  EXPECT_EQ(Json(day.spent), Json(Spent{}));
}

TEST_F(SpendingTest, C45_ADayBeginsAgainAndKeepsItsOwnCalls) {
  budget.day.tokens = 1000;
  const auto late = ask(900, 0).reservation;
  EXPECT_FALSE(ask(200, 0).reservation);
  now += kDay;
  next_turn();
  ASSERT_TRUE(ask(200, 0).reservation);
  EXPECT_EQ(day.spent.tokens, 200);
  settle(turn, day, budget.price, *late, {.input_tokens = 900, .output_tokens = 700});
  EXPECT_EQ(day.spent.tokens, 200) << "the late call belongs to the day before";
}

TEST_F(SpendingTest, CountsThatCannotBeAddedAreRefusedAndNotOverflown) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  budget.turn.tokens = kMost - 1;
  EXPECT_FALSE(ask(kMost, kMost).reservation);
  budget.turn.tokens.reset();
  const auto call = ask(kMost, kMost).reservation;
  ASSERT_TRUE(call);
  ASSERT_TRUE(ask(kMost, 1).reservation);
  settle(turn, day, budget.price, *call, {.input_tokens = -5, .output_tokens = kMost});
  EXPECT_GE(turn.tokens, 0);
}

TEST(UsageTest, C48_APromptThatHasFilledNineTenthsOfTheWindowIsSeen) {
  const auto fills = [](const char* usage, double headroom) {
    return read_json<Usage>(json(usage), "usage").fills(1000, headroom);
  };
  EXPECT_FALSE(fills(R"({"input_tokens":899,"total_tokens":2000})", 0.9));
  EXPECT_TRUE(fills(R"({"input_tokens":900})", 0.9));
  EXPECT_TRUE(fills(R"({"total_tokens":900})", 0.9));
  EXPECT_TRUE(fills(R"({"output_tokens":900})", 0.9));
  EXPECT_FALSE(fills(R"({"input_tokens":900})", 0.95));
  EXPECT_FALSE(fills("{}", 0.0));
}

}  // namespace
}  // namespace hearth::chat
