// The limits of a day: how many operations of a kind begin, and what they cost.
#include "durable/charges_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace hearth::durable {
namespace {

using std::chrono::hours;

class OperationBudgetTest : public OperationsTest {
 protected:
  void SetUp() override {
    clock_.set_wall(WallTime(hours(24 * 20'000 + 12)));  // noon
    fiber_ = start_fiber();
  }
  // Whether an operation with this cost may begin. Ends it with `outcome`.
  bool may_begin(std::uint64_t cost = 0, OperationOutcome outcome = kCompleted) {
    OperationRequest request = charge(fiber_);
    request.cost = cost;
    const auto begun = ledger_->begin(request);
    if (!begun) {
      EXPECT_EQ(begun.error().code, Errc::kLimitExceeded);
      return false;
    }
    settle(*begun, outcome);
    return true;
  }
  std::size_t rows() { return parse_json(*ledger_->list({}))->size(); }

  FiberHandle fiber_ = 0;
};

TEST_F(OperationBudgetTest, WhatWouldExceedTheDaysNumberDoesNotBegin) {
  ledger_settings_.kinds["charge"].per_day = 2;
  EXPECT_TRUE(may_begin());
  EXPECT_TRUE(may_begin());
  EXPECT_FALSE(may_begin());
  EXPECT_EQ(rows(), 2U) << "it leaves no row";
  crash_all();
  fiber_ = resume();
  // The two of before are found; they do not count again.
  EXPECT_EQ(begin(charge(fiber_)).decision, OperationDecision::kCompleted);
  EXPECT_EQ(begin(charge(fiber_)).decision, OperationDecision::kCompleted);
  EXPECT_FALSE(may_begin()) << "it is known after a restart";
  clock_.set_wall(clock_.wall_now() + hours(11));
  EXPECT_FALSE(may_begin());
  clock_.set_wall(clock_.wall_now() + hours(1));
  EXPECT_TRUE(may_begin()) << "it is midnight";
  EXPECT_TRUE(may_begin());
  clock_.set_wall(clock_.wall_now() - hours(2));
  EXPECT_FALSE(may_begin()) << "a clock that is set back gives no second budget";
}

TEST_F(OperationBudgetTest, WhatWouldExceedTheDaysCostDoesNotBegin) {
  ledger_settings_.kinds["charge"].cost_per_day = 100;
  EXPECT_TRUE(may_begin(60));
  EXPECT_FALSE(may_begin(41));
  EXPECT_TRUE(may_begin(30, kNotExecuted));
  EXPECT_TRUE(may_begin(40)) << "what was not executed has cost nothing";
  EXPECT_FALSE(may_begin(1));
  EXPECT_TRUE(may_begin(0));
}

TEST_F(OperationBudgetTest, ACostThatIsSetCountsInPlaceOfTheReservedOne) {
  ledger_settings_.kinds["charge"].cost_per_day = 100;
  OperationRequest request = charge(fiber_);
  request.cost = 90;
  const OperationBegun begun = begin(request);
  arguments_ = "2";
  EXPECT_FALSE(may_begin(30));
  ASSERT_TRUE(ledger_->set_cost(begun.id, 40));
  EXPECT_TRUE(may_begin(30));
  EXPECT_FALSE(may_begin(31)) << "40 and 30 are used";
  ASSERT_TRUE(ledger_->set_cost(begun.id, 500));
  EXPECT_FALSE(may_begin(0)) << "it has cost more than a day allows";
  settle(begun, kNotExecuted);
  EXPECT_TRUE(may_begin(70)) << "what was not executed has cost nothing";
  EXPECT_FALSE(may_begin(1));
  EXPECT_EQ(ledger_->set_cost(begun.id, 1).error().code, Errc::kNotFound) << "it is over";
}

TEST_F(OperationBudgetTest, AnOperationThatIsKilledBeforeItsCostIsSetKeepsTheReservedOne) {
  ledger_settings_.kinds["charge"].cost_per_day = 100;
  OperationRequest request = charge(fiber_);
  request.cost = 90;
  const std::string id = begin(request).id;
  database_->commit();
  ASSERT_TRUE(ledger_->set_cost(id, 10));
  EXPECT_EQ(count("SELECT cost FROM cf_agents_operation_days"), 10);
  EXPECT_EQ(ledger_->set_cost(id, Operations::kMostCost + 1).error().code, Errc::kInvalidArgument);
  crash_all();
  EXPECT_EQ(count("SELECT cost FROM cf_agents_operations"), 90);
  EXPECT_EQ(count("SELECT cost FROM cf_agents_operation_days"), 90);
}

TEST_F(OperationBudgetTest, AClockThatJumpsAheadAndBackGivesNoFreshBudget) {
  ledger_settings_.kinds["charge"].per_day = 1;
  const auto today = clock_.wall_now();
  EXPECT_TRUE(may_begin());
  for (const int days : {2, 400, 3}) {
    clock_.set_wall(today + hours(24 * days));
    EXPECT_TRUE(may_begin()) << days;
    clock_.set_wall(today);
    EXPECT_FALSE(may_begin()) << days;
  }
  for (int day = 10; day < 40; day += 2) {
    clock_.set_wall(today + hours(24 * day));
    EXPECT_TRUE(may_begin()) << day;
    EXPECT_FALSE(may_begin()) << day;
  }
  EXPECT_LE(count("SELECT count(*) FROM cf_agents_operation_days"), 10) << "old days go";
}

TEST_F(OperationBudgetTest, OnlyWhatWasCountedIsGivenBackAndToItsOwnDay) {
  const OperationBegun before = begin(charge(fiber_));  // its kind has no limit yet
  ledger_settings_.kinds["charge"].per_day = 1;
  arguments_ = "2";
  const OperationBegun counted = begin(charge(fiber_));
  settle(before, kNotExecuted, "refused");
  arguments_ = "3";
  EXPECT_FALSE(may_begin()) << "the first has not counted";
  clock_.set_wall(clock_.wall_now() + hours(24));
  EXPECT_TRUE(may_begin());
  settle(counted, kNotExecuted, "refused");
  EXPECT_FALSE(may_begin()) << "that was yesterday's";
  clock_.set_wall(clock_.wall_now() + hours(24));
  arguments_ = "4";
  EXPECT_TRUE(may_begin(0, kNotExecuted));
  EXPECT_TRUE(may_begin()) << "it was given back";
  EXPECT_FALSE(may_begin());
}

TEST_F(OperationBudgetTest, TheSumOfADaysCostsDoesNotOverflow) {
  ledger_settings_.kinds["charge"].per_day = 20'000;
  EXPECT_TRUE(may_begin(1));
  database_->begin_write();
  storage::Statement(database_->connection(),
                     "UPDATE cf_agents_operation_days SET cost = 9223372036854775807 - 5")
      .execute();
  database_->commit();
  EXPECT_TRUE(may_begin(1'000'000));
  EXPECT_EQ(count("SELECT cost = 9223372036854775807 FROM cf_agents_operation_days"), 1);
  ledger_settings_.kinds["charge"].cost_per_day = 100;
  EXPECT_FALSE(may_begin(1));
}

TEST_F(OperationBudgetTest, OtherKindsAndOtherDaysAreFree) {
  ledger_settings_.kinds["refund"].per_day = 1;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(may_begin(1'000'000));
  storage::Statement find(database_->connection(),
                          "SELECT 1 FROM sqlite_schema WHERE name = 'cf_agents_operation_days'");
  EXPECT_FALSE(find.query().next()) << "what has no limit costs no write";
}

}  // namespace
}  // namespace hearth::durable
