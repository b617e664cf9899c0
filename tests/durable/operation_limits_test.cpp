// The limits of operations: how many of a kind begin on a day and what they cost, how many rows
// there are, and how long they are kept.
#include "durable/charges_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

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
  std::size_t rows() { return parse_json(*ledger_->records().list({}))->size(); }

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
  EXPECT_EQ(ledger_->set_cost(id, kMostOperationCost + 1).error().code, Errc::kInvalidArgument);
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

TEST_F(OperationsTest, RowsGoWithTheirTimeButNotWhileTheirFiberMayRunAgain) {
  const FiberHandle fiber = start_fiber();
  const OperationBegun of_fiber = complete(charge(fiber));
  OperationRequest keyed = charge(0);
  keyed.key = "k";
  const OperationBegun by_key = complete(keyed);
  keyed.key = "lost";
  const OperationBegun unknown = begin(keyed);
  settle(unknown, OperationOutcome::kUnknown, "?");
  clock_.set_wall(clock_.wall_now() + ledger_settings_.keep - hours(1));
  ledger_->sweep();
  EXPECT_EQ(state(by_key.id), "completed");
  clock_.set_wall(clock_.wall_now() + hours(2));
  ledger_->sweep();
  EXPECT_EQ(state(by_key.id), "none");
  EXPECT_EQ(state(of_fiber.id), "completed");
  EXPECT_EQ(state(unknown.id), "unknown");
  settle(fiber, FiberStatus::kCompleted);
  ledger_->sweep();
  EXPECT_EQ(state(of_fiber.id), "none");
  EXPECT_EQ(state(unknown.id), "unknown");
  database_->commit();
  EXPECT_EQ(count("SELECT count(*) FROM cf_agents_operation_documents"), 1) << "its arguments";
}

TEST_F(OperationsTest, WhenThereIsNoRoomTheSettledOnesOfEndedFibersGo) {
  ledger_.reset();
  ledger_settings_.most = 3;
  open_ledger();
  const FiberHandle ended = start_fiber("ended");
  const OperationBegun first = complete(charge(ended));
  const FiberHandle fiber = start_fiber("f");
  complete(charge(fiber));
  complete(charge(fiber));
  EXPECT_EQ(ledger_->begin(charge(fiber)).error().code, Errc::kLimitExceeded);
  settle(ended, FiberStatus::kCompleted);
  EXPECT_EQ(begin(charge(fiber)).decision, kRun);
  EXPECT_EQ(state(first.id), "none");
}

TEST_F(OperationsTest, EachKindHasItsOwnTimeToKeep) {
  ledger_settings_.kinds["refund"] = {.keep = hours(1)};
  ledger_settings_.kinds["charge"] = {.keep = hours(24 * 90)};
  const FiberHandle fiber = start_fiber();
  std::vector<std::string> ids;
  for (const char* const kind : {"refund", "charge", "mail"}) {
    OperationRequest request = charge(fiber);
    request.kind = kind;
    ids.push_back(complete(request).id);
  }
  fibers_->settle(fiber, FiberStatus::kCompleted, "");
  const auto there = [&] {
    ledger_->sweep();
    std::string all;
    for (const std::string& id : ids) all += ledger_->records().inspect(id) ? '1' : '0';
    return all;
  };
  EXPECT_EQ(there(), "111");
  clock_.set_wall(clock_.wall_now() + hours(2));
  EXPECT_EQ(there(), "011");
  clock_.set_wall(clock_.wall_now() + hours(24 * 31));
  EXPECT_EQ(there(), "010");
  clock_.set_wall(clock_.wall_now() + hours(24 * 60));
  EXPECT_EQ(there(), "000");
}

}  // namespace
}  // namespace hearth::durable
