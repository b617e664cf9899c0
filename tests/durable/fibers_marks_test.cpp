// What a fiber does once, and turns: how often turns are recovered, and what clients hear of them.
#include "durable/fibers_fixture.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::durable {
namespace {

using Heard = std::vector<std::string>;

class FiberMarksTest : public FibersFixture {
 protected:
  static FiberRequest turn(std::string_view id = "t", std::uint32_t max_retries = 0) {
    FiberRequest wanted = request(id);
    wanted.is_turn = true;
    wanted.keeping = FiberKeeping::kBrief;
    wanted.max_retries = max_retries;
    return wanted;
  }
  FiberHandle start_turn(std::string_view id = "t") { return start(turn(id)).fiber; }
  void give_up(const std::string& id, std::string_view why = "no") { die(id, why); }
  // Another checkpoint than any before.
  void stash(FiberHandle fiber) { FibersFixture::stash(fiber, std::to_string(++stashed_)); }
  FiberHandle resume(std::string_view id = "t") { return FibersFixture::resume(id); }
  bool once(FiberHandle fiber, std::string_view mark) {
    const auto first = fibers_->once(fiber, mark);
    EXPECT_TRUE(first);
    return first && *first;
  }
  // "t 2": a second recovery begins.
  Heard heard() { return texts(fibers_->turns().take()); }
  Heard standing() { return texts(fibers_->turns().standing()); }
  static Heard texts(const std::vector<TurnNews>& news) {
    Heard all;
    for (const TurnNews& each : news)
      all.push_back(each.id + " " + (each.recovery > 0 ? std::to_string(each.recovery) : each.why));
    return all;
  }
  std::int64_t marks() {
    return count("SELECT count(*) FROM cf_agents_job_documents WHERE part >= 16");
  }

  int stashed_ = 0;
};

TEST_F(FiberMarksTest, P13_ATurnIsRecoveredFiveTimesOverItsCheckpoints) {
  FiberHandle fiber = start_turn();
  EXPECT_EQ(heard(), Heard{});
  int recoveries = 0;
  for (; recoveries < 20; ++recoveries) {
    stash(fiber);
    crash();
    if (!recover()) break;
    const Heard news = {"t " + std::to_string(recoveries + 1)};
    EXPECT_EQ(heard(), news);
    EXPECT_EQ(standing(), news);
    fiber = resume();
    EXPECT_EQ(standing(), news) << "it still holds";
  }
  EXPECT_EQ(recoveries, 5);
  const Heard given_up = {
      "t recovered as often as fibers.max_turn_recoveries allows, and interrupted once more"};
  EXPECT_EQ(heard(), given_up);
  EXPECT_EQ(standing(), given_up);
  crash();
  EXPECT_EQ(standing(), given_up);
  EXPECT_TRUE(has(inspect("t"), {{"dead", true}, {"turn", true}, {"brief", true}}));
}

TEST_F(FiberMarksTest, WhatIsOverWithoutATroubleDoesNotStand) {
  start_turn();
  EXPECT_EQ(standing(), Heard{});
  interrupt();
  const FiberHandle fiber = resume();
  EXPECT_EQ(standing(), Heard{"t 1"});
  settle(fiber, FiberStatus::kCompleted);
  EXPECT_EQ(standing(), Heard{});
}

TEST_F(FiberMarksTest, TheNewestTurnsThatWereGivenUpStand) {
  EXPECT_EQ(standing(), Heard{});
  Heard newest;
  const int all = static_cast<int>(FiberTurns::kMostStanding) + 2;
  for (int i = 0; i < all; ++i) {
    start_turn("t" + std::to_string(i));
    if (i >= 2) newest.push_back("t" + std::to_string(i) + " no");
  }
  for (int i = all; i-- > 0;) give_up("t" + std::to_string(i));
  EXPECT_EQ(standing(), newest);
  crash();
  EXPECT_EQ(standing(), newest);
}

TEST_F(FiberMarksTest, ATurnThatWasGivenUpStandsUntilALaterOneBegins) {
  start_turn("t");
  give_up("t");
  crash();
  start("no turn");
  EXPECT_EQ(standing(), Heard{"t no"});
  start_turn("u");
  EXPECT_EQ(standing(), Heard{});
  cancel("no turn", "");
  crash();
  EXPECT_EQ(standing(), Heard{});
  while (recover()) {
  }
  EXPECT_EQ(standing(), Heard{"u 1"});
  settle(resume("u"), FiberStatus::kCompleted);
  EXPECT_EQ(standing(), Heard{});
  crash();
  EXPECT_EQ(standing(), Heard{}) << "though nothing is left of the later one";
  retry("t");
  ASSERT_TRUE(recover());
  give_up("t", "again");
  EXPECT_EQ(standing(), Heard{"t again"});
}

TEST_F(FiberMarksTest, ATurnThatIsGivenUpWhileALaterOneRunsDoesNotStand) {
  start_turn("t");
  const FiberHandle later = start_turn("u");
  give_up("t");
  EXPECT_EQ(heard(), Heard{"t no"}) << "who is there hears of it";
  EXPECT_EQ(standing(), Heard{});
  settle(later, FiberStatus::kCompleted);
  crash();
  EXPECT_EQ(standing(), Heard{});
}

TEST_F(FiberMarksTest, P13_TheNumberIsASettingAndOtherFibersHaveNone) {
  settings_.max_turn_recoveries = 2;
  crash();
  start({.name = "report", .id = "t", .is_turn = true});
  start("other");
  for (int i = 0; i < 3; ++i) {
    crash();
    while (recover()) {
    }
    clock_.advance(std::chrono::hours(1));
  }
  EXPECT_EQ(inspect("t")["dead"], true);
  EXPECT_FALSE(inspect("t").contains("brief"));
  EXPECT_EQ(inspect("other")["dead"], false);
  EXPECT_FALSE(inspect("other").contains("turn"));
}

TEST_F(FiberMarksTest, P13_WhatIsTakenUpIsARecovery) {
  start_turn();
  crash();
  FiberRequest again = turn();
  again.take_up = true;
  EXPECT_NE(start(again).fiber, 0U);
  EXPECT_EQ(heard(), Heard{"t 1"});
}

TEST_F(FiberMarksTest, P13_AnotherTryOfFailedWorkIsNoRecovery) {
  const FiberHandle fiber = start(turn("t", 3)).fiber;
  settle(fiber, FiberStatus::kError, "no");
  clock_.advance(std::chrono::hours(1));
  ASSERT_TRUE(recover());
  EXPECT_EQ(heard(), Heard{});
}

// A failure before the first recovery, one after each, and a kill in the middle of each retry.
TEST_F(FiberMarksTest, P13_RetriesNeitherRaiseNorLowerTheCountOfRecoveries) {
  FiberHandle fiber = start(turn("t", 100)).fiber;
  const auto fail_and_begin_again = [&] {
    settle(fiber, FiberStatus::kError, "no");
    clock_.advance(std::chrono::hours(1));
    const auto body = recover();
    if (!body) return false;
    EXPECT_EQ((*body)["reason"], "retry");
    fiber = resume();
    EXPECT_EQ(heard(), Heard{}) << "a retry is no recovery";
    return true;
  };
  ASSERT_TRUE(fail_and_begin_again());
  int recoveries = 0;
  for (; recoveries < 20; ++recoveries) {
    crash();
    clock_.advance(std::chrono::hours(1));
    if (!recover()) break;
    EXPECT_EQ(heard(), Heard{"t " + std::to_string(recoveries + 1)});
    fiber = resume();
    ASSERT_TRUE(fail_and_begin_again()) << recoveries;
    ASSERT_TRUE(fail_and_begin_again()) << recoveries;
  }
  EXPECT_EQ(recoveries, 5);
  EXPECT_EQ(inspect("t")["dead"], true);
}

TEST_F(FiberMarksTest, P13_ARetryThatEndsOnPurposeCountsForNothing) {
  FiberHandle fiber = start(turn("t", 100)).fiber;
  interrupt();
  EXPECT_EQ(heard(), Heard{"t 1"});
  fiber = resume();
  settle(fiber, FiberStatus::kError, "no");
  for (const bool runs : {false, true}) {
    clock_.advance(std::chrono::hours(1));
    ASSERT_TRUE(recover());
    if (runs) resume();
    leave_on_purpose();
    EXPECT_EQ(heard(), Heard{});
  }
  ASSERT_TRUE(recover());
  EXPECT_EQ(heard(), Heard{"t 1"});
  fiber = resume();
  crash();
  clock_.advance(std::chrono::hours(1));
  ASSERT_TRUE(recover());
  EXPECT_EQ(heard(), Heard{"t 2"});
}

TEST_F(FiberMarksTest, P13_ARetryThatIsTakenUpIsNoRecovery) {
  FiberRequest wanted = turn("t", 1);
  settle(start(wanted).fiber, FiberStatus::kError, "no");
  clock_.advance(std::chrono::hours(1));
  wanted.take_up = true;
  EXPECT_NE(start(wanted).fiber, 0U);
  EXPECT_EQ(heard(), Heard{});
}

TEST_F(FiberMarksTest, AFiberThatAnotherOneWaitsForIsNoTurn) {
  start("parent");
  FiberRequest wanted = turn("child");
  wanted.parent = "parent";
  EXPECT_EQ(refusal(wanted), Errc::kInvalidArgument);
}

TEST_F(FiberMarksTest, P14_AMarkIsNewOnceOverAllRecoveries) {
  FiberHandle fiber = start_turn();
  EXPECT_TRUE(once(fiber, "a"));
  EXPECT_FALSE(once(fiber, "a"));
  EXPECT_TRUE(once(fiber, "b"));
  database_->commit();
  EXPECT_TRUE(once(fiber, "of a turn that is lost"));
  interrupt();
  fiber = resume();
  EXPECT_FALSE(once(fiber, "a"));
  EXPECT_FALSE(once(fiber, "b"));
  EXPECT_TRUE(once(fiber, "of a turn that is lost"));
  EXPECT_TRUE(once(start("other").fiber, "a")) << "each fiber has its own";
}

TEST_F(FiberMarksTest, P14_MarksAreBoundedAndGoWithTheirFiber) {
  const FiberHandle fiber = start_turn();
  EXPECT_EQ(fibers_->once(fiber, "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(fibers_->once(fiber, std::string(257, 'x')).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(fibers_->once(fiber, "\xff").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(fibers_->once(fiber + 1, "a").error().code, Errc::kNotFound);
  EXPECT_TRUE(once(fiber, "a"));
  EXPECT_EQ(marks(), 1);
  // As many as there may be, but one.
  sql("WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 10097) "
      "INSERT INTO cf_agents_job_documents(job, part, body) SELECT 1, i, 'x' FROM n");
  EXPECT_EQ(marks(), 9999);
  EXPECT_TRUE(once(fiber, "b"));
  EXPECT_EQ(fibers_->once(fiber, "c").error().code, Errc::kLimitExceeded);
  EXPECT_FALSE(once(fiber, "b")) << "what is there is found";
  EXPECT_EQ(inspect("t")["input"], Json()) << "a mark is no part of the record";
  settle(fiber, FiberStatus::kCompleted, "1");
  EXPECT_EQ(marks(), 0);
}

}  // namespace
}  // namespace hearth::durable
