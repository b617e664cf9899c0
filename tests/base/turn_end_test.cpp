#include "base/turn_end.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <utility>

namespace hearth {
namespace {

class TurnEndTest : public ::testing::Test {
 protected:
  // Ends this turn. Work that is posted meanwhile belongs to the next turn.
  void end_turn() {
    for (const auto& task : std::exchange(tasks_, {})) task();
  }
  // Gathers for so many turns, then leaves.
  TurnEnd::Step step(const char* name, int gathers = 0) {
    return [this, name, left = gathers](bool is_last) mutable {
      if (left-- > 0 && !is_last) return false;
      left_ += name;
      return true;
    };
  }

  std::deque<std::function<void()>> tasks_;
  std::string left_;
  TurnEnd end_{[this](std::function<void()> task) { tasks_.push_back(std::move(task)); }};
};

TEST_F(TurnEndTest, EverythingOfATurnSharesOneTask) {
  for (const char* name : {"a", "b", "c"}) end_.add(TurnEnd::Phase::kSend, step(name));
  EXPECT_EQ(tasks_.size(), 1U);
  EXPECT_EQ(left_, "") << "the turn is not over";
  end_turn();
  EXPECT_EQ(left_, "abc");
  EXPECT_TRUE(tasks_.empty()) << "nothing is left to do";
}

TEST_F(TurnEndTest, P1_CommitsComeBeforeSendsAndWhatTheyLetOutLeavesInTheSameEnd) {
  end_.add(TurnEnd::Phase::kSend, step("send "));
  end_.add(TurnEnd::Phase::kCommit, [this](bool) {
    left_ += "commit ";
    end_.add(TurnEnd::Phase::kSend, step("answer "));
    return true;
  });
  end_turn();
  EXPECT_EQ(left_, "commit send answer ");
  EXPECT_TRUE(tasks_.empty()) << "nothing is left for another turn";
}

TEST_F(TurnEndTest, WhatIsAddedToAPhaseThatRunsBelongsToTheNextTurn) {
  end_.add(TurnEnd::Phase::kCommit, [this](bool) {
    end_.add(TurnEnd::Phase::kCommit, step("next"));
    return true;
  });
  end_turn();
  EXPECT_EQ(left_, "");
  end_turn();
  EXPECT_EQ(left_, "next");
}

TEST_F(TurnEndTest, WhatGathersMoreWaitsAndTheOthersDoNot) {
  end_.add(TurnEnd::Phase::kSend, step("late", 2));
  end_.add(TurnEnd::Phase::kSend, step("now "));
  end_turn();
  EXPECT_EQ(left_, "now ");
  end_turn();
  end_turn();
  EXPECT_EQ(left_, "now late");
}

TEST_F(TurnEndTest, P2_NothingGathersForEver) {
  end_.add(TurnEnd::Phase::kCommit, step("x", 1'000));
  for (int turn = 1; turn < TurnEnd::kMostTurns; ++turn) end_turn();
  EXPECT_EQ(left_, "");
  end_turn();
  EXPECT_EQ(left_, "x");
  EXPECT_TRUE(tasks_.empty());
}

}  // namespace
}  // namespace hearth
