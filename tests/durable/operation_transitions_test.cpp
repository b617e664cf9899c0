// The writes by which operations change their state, without the ledger's decisions.
#include "durable/operation_transitions.hpp"

#include "durable/fibers_fixture.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace hearth::durable {
namespace {

class OperationTransitionsTest : public FibersFixture {
 protected:
  OperationTransitionsTest() { limits_.kinds["charge"].per_day = 10; }
  ~OperationTransitionsTest() override { database_->commit(); }

  OperationRow start(const std::string& id, Effect effect = Effect::kUnsafe) {
    OperationRow row;
    row.id = id;
    row.kind = "charge";
    row.effect = effect;
    row.day = *budgets_.spend(row.kind, 0);
    transitions_.start(row, "[1]");
    return row;
  }
  // The states since the last call.
  std::vector<OperationState> states() {
    std::vector<OperationState> all;
    for (const OperationChange& each : transitions_.take_changes()) all.push_back(each.state);
    return all;
  }
  std::string state(const OperationRow& row) {
    const auto found = table_.find(row.id);
    return found ? found->state : "none";
  }
  std::int64_t spent() { return table_.number("SELECT count FROM cf_agents_operation_days"); }

  using State = std::vector<OperationState>;
  OperationSettings limits_;
  OperationTable table_{*database_};
  OperationAnswers answers_{table_};
  OperationFibers of_fibers_{*database_, fibers_->runs()};
  RunningOperations running_;
  OperationBudgets budgets_{table_, clock_, limits_};
  OperationRecords records_{table_, answers_, of_fibers_, running_};
  UnknownOperations unknown_{table_, records_};
  OperationTransitions transitions_{table_, answers_, budgets_, unknown_, clock_};
};

TEST_F(OperationTransitionsTest, ANewRowHasItsArguments) {
  const OperationRow row = start("a");
  EXPECT_EQ(state(row), "started");
  EXPECT_EQ(table_.document(row.seq, OperationPart::kArguments), "[1]");
  EXPECT_EQ(states(), State{OperationState::kRunning});
  EXPECT_EQ(states(), State{}) << "they are taken";
}

TEST_F(OperationTransitionsTest, ACompletedOneKeepsItsResultAndItsRequest) {
  const OperationRow row = start("a");
  answers_.write(row.seq, {.fingerprint = "f"});
  answers_.append(row.seq, "body");
  transitions_.complete(row, "7");
  EXPECT_EQ(state(row), "completed");
  EXPECT_EQ(table_.document(row.seq, OperationPart::kResult), "7");
  ASSERT_TRUE(answers_.find(row.seq));
  EXPECT_EQ(answers_.body(row.seq), "");
  const OperationRow large = start("b");
  transitions_.complete(large, std::nullopt);
  EXPECT_EQ(table_.find("b")->note, "its result was too large to be kept");
  EXPECT_FALSE(table_.document(large.seq, OperationPart::kResult));
  EXPECT_EQ(spent(), 2);
}

TEST_F(OperationTransitionsTest, OneThatWasNotExecutedLeavesNoRequestAndCountsNotAtAll) {
  const OperationRow row = start("a");
  answers_.write(row.seq, {.fingerprint = "f"});
  transitions_.set_not_executed(row, "refused");
  EXPECT_EQ(state(row), "not_executed");
  EXPECT_FALSE(answers_.find(row.seq));
  EXPECT_EQ(spent(), 0);
  transitions_.start_again(*table_.find("a"));
  EXPECT_EQ(table_.find("a")->attempts, 2);
  EXPECT_EQ(states(), (State{OperationState::kRunning, OperationState::kNotExecuted,
                             OperationState::kRunning}));
}

TEST_F(OperationTransitionsTest, P12_WhatIsGivenUpIsUnknownOrGone) {
  const OperationRow read = start("read", Effect::kRead);
  transitions_.give_up(read);
  EXPECT_EQ(state(read), "none");
  for (const auto& [effect, may_come_back] :
       {std::pair{Effect::kProbe, true}, std::pair{Effect::kUnsafe, false}}) {
    const OperationRow row = start("row " + std::to_string(static_cast<int>(effect)), effect);
    transitions_.give_up(row);
    EXPECT_EQ(state(row), "unknown");
    EXPECT_EQ(table_.document(row.seq, OperationPart::kGivenUp).has_value(), may_come_back);
  }
  EXPECT_EQ(unknown_.count(), 2);
  EXPECT_TRUE(unknown_.has_untold());
}

TEST_F(OperationTransitionsTest, AnActorEndsWhatIsUnknown) {
  const OperationRow row = start("a");
  transitions_.make_unknown(row, "?");
  transitions_.resolve(*table_.find("a"), "9", "asked them", "ada");
  const auto found = table_.find("a");
  EXPECT_EQ(found->state, "completed");
  EXPECT_EQ(found->settled_by, "ada");
  EXPECT_EQ(found->note, "asked them");
  EXPECT_EQ(unknown_.count(), 0);
  EXPECT_FALSE(unknown_.has_untold()) << "there is nothing to tell any more";
  EXPECT_EQ(spent(), 1);
  transitions_.make_unknown(start("b"), "?");
  transitions_.resolve(*table_.find("b"), std::nullopt, "", "ada");
  EXPECT_EQ(table_.find("b")->state, "not_executed");
  EXPECT_EQ(spent(), 1) << "b does not count";
}

}  // namespace
}  // namespace hearth::durable
