// Notifications of an agent through every state, with restarts in between.
#include "durable/notices.hpp"

#include "durable/database_fixture.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace hearth::durable {
namespace {

using namespace std::chrono_literals;

class NoticesTest : public DatabaseFixture {
 protected:
  NoticesTest() { open(); }

  // As after a kill of the process: only committed data is left.
  void crash() { open(); }
  void open() {
    notices_.reset();
    open_database();
    notices_.emplace(*database_, clock_, random_);
    notices_->load();
  }
  std::string push(const std::string& name, const std::string& method = "note") {
    const auto id = notices_->push({"ChatRoom", name, method, "[1]", ""});
    EXPECT_TRUE(id);
    database_->commit();
    return id ? *id : "";
  }
  // "name method" of the next one, claimed; empty: none.
  std::string begin() {
    const auto next = notices_->next_delivery();
    database_->commit();
    if (!next) return {};
    id_ = next->id;
    return next->notice.name + " " + next->notice.method;
  }
  TryEnd end(bool delivered) {
    const auto outcome = delivered ? TryOutcome::kDone : TryOutcome::kFailed;
    const TryEnd next = notices_->ended(id_, outcome, "away").next;
    database_->commit();
    return next;
  }

  std::optional<Notices> notices_;
  std::string id_;  // of the one that was begun last
};

TEST_F(NoticesTest, P1_EachCalleeHasItsOwnLine) {
  push("a", "1");
  push("a", "2");
  push("b", "1");
  EXPECT_EQ(begin(), "a 1");
  const std::string of_a = id_;
  EXPECT_EQ(begin(), "b 1");
  EXPECT_EQ(begin(), "") << "the second for a stands behind the first";
  id_ = of_a;
  EXPECT_EQ(end(true), TryEnd::kDone);
  EXPECT_EQ(begin(), "a 2");
}

TEST_F(NoticesTest, P1_OneThatWaitsForItsRetryHoldsBackThoseBehindIt) {
  push("a", "1");
  push("a", "2");
  begin();
  EXPECT_EQ(end(false), TryEnd::kRetry);
  EXPECT_EQ(begin(), "");
  EXPECT_FALSE(notices_->wake().working);
  EXPECT_TRUE(notices_->wake().at_ms);
  clock_.advance(2s);
  EXPECT_TRUE(notices_->due());
  EXPECT_EQ(begin(), "a 1");
}

TEST_F(NoticesTest, P2_WhatWasOnItsWayIsDeliveredAgainUnderItsId) {
  const std::string id = push("a");
  EXPECT_EQ(begin(), "a note");
  EXPECT_TRUE(notices_->wake().working);
  crash();
  EXPECT_TRUE(notices_->due());
  EXPECT_EQ(begin(), "a note");
  EXPECT_EQ(id_, id);
  EXPECT_EQ(end(true), TryEnd::kDone);
  crash();
  EXPECT_EQ(begin(), "");
  EXPECT_TRUE(notices_->wake().none());
}

TEST_F(NoticesTest, P3_OneThatEndsTheServerAgainAndAgainIsDead) {
  push("a", "1");
  push("a", "2");
  for (int kills = 0; kills < kMostInterruptions; ++kills) {
    clock_.advance(7min);
    EXPECT_EQ(begin(), "a 1");
    crash();
  }
  clock_.advance(7min);
  EXPECT_EQ(begin(), "a 2") << "it holds nothing back";
  EXPECT_EQ(notices_->take_given_up().size(), 1U);
}

TEST_F(NoticesTest, P4_AfterADayItIsGivenUp) {
  push("a");
  for (int hour = 0; hour < 24; ++hour) {
    ASSERT_EQ(begin(), "a note");
    ASSERT_EQ(end(false), TryEnd::kRetry);
    clock_.advance(1h);
  }
  ASSERT_EQ(begin(), "a note");
  EXPECT_EQ(end(false), TryEnd::kDead);
  const auto listed = notices_->list("", 100).value();
  EXPECT_NE(listed.find(R"("state":"dead")"), std::string::npos);
  EXPECT_NE(listed.find(R"("last_error":"away")"), std::string::npos);
  EXPECT_TRUE(notices_->wake().none());
}

TEST_F(NoticesTest, P4_NoMoreThanSixteenAreOnTheirWay) {
  for (std::size_t callee = 0; callee <= Notices::kMostRunning; ++callee)
    push("agent " + std::to_string(callee));
  for (std::size_t callee = 0; callee < Notices::kMostRunning; ++callee) EXPECT_NE(begin(), "");
  EXPECT_EQ(begin(), "");
  EXPECT_EQ(end(true), TryEnd::kDone);
  EXPECT_NE(begin(), "");
}

TEST_F(NoticesTest, OneThatIsRemovedOnItsWayLetsTheNextGo) {
  push("a", "1");
  push("a", "2");
  begin();
  EXPECT_TRUE(notices_->remove(id_));
  EXPECT_FALSE(notices_->remove(id_));
  EXPECT_EQ(end(false), TryEnd::kRemoved);
  EXPECT_EQ(begin(), "a 2");
}

TEST_F(NoticesTest, AListGoesOnBehindAnId) {
  const std::string one = push("a", "1");
  push("a", "2");
  EXPECT_NE(notices_->list("", 1)->find(one), std::string::npos);
  EXPECT_EQ(notices_->list("", 1)->find(R"("method":"2")"), std::string::npos);
  EXPECT_NE(notices_->list(one, 1)->find(R"("method":"2")"), std::string::npos);
  EXPECT_FALSE(notices_->list("nobody", 1));
}

// Which notification of the callee is removed while the first is in progress. The lane stays taken.
TEST_F(NoticesTest, P1_ARemovalStartsNoSecondOneBesideTheOneInProgress) {
  for (const std::size_t removed : {0U, 1U, 2U}) {
    SCOPED_TRACE(removed);
    const std::array ids{push("a", "1"), push("a", "2"), push("a", "3")};
    ASSERT_EQ(begin(), "a 1");
    ASSERT_TRUE(notices_->remove(ids.at(removed)));
    database_->commit();
    EXPECT_EQ(begin(), "") << "the first is in progress";
    id_ = ids[0];
    EXPECT_EQ(end(true), removed == 0 ? TryEnd::kRemoved : TryEnd::kDone);
    for (const char* next : {"a 2", "a 3"}) {
      if (next[2] - '1' == static_cast<int>(removed)) continue;
      EXPECT_EQ(begin(), next);
      EXPECT_EQ(end(true), TryEnd::kDone);
    }
    EXPECT_TRUE(notices_->wake().none());
  }
}

TEST_F(NoticesTest, P1_AnInterruptionOfOneThatWasRemovedLetsTheNextGo) {
  const std::string first = push("a", "1");
  push("a", "2");
  ASSERT_EQ(begin(), "a 1");
  ASSERT_TRUE(notices_->remove(first));
  notices_->interrupt_on_purpose();
  database_->commit();
  EXPECT_TRUE(notices_->wake().working);
  crash();
  EXPECT_EQ(begin(), "a 2");
}

TEST_F(NoticesTest, P1_ARetryIsPlannedWhileAnotherCalleesNoticeIsOnItsWay) {
  push("a");
  push("b");
  EXPECT_EQ(begin(), "a note");
  const std::string of_a = id_;
  EXPECT_EQ(begin(), "b note");
  id_ = of_a;
  EXPECT_EQ(end(false), TryEnd::kRetry);
  const Wake wake = notices_->wake();
  EXPECT_TRUE(wake.working);
  ASSERT_TRUE(wake.at_ms);
  clock_.advance(std::chrono::milliseconds(*wake.at_ms - now()));
  EXPECT_EQ(begin(), "a note");
}

}  // namespace
}  // namespace hearth::durable
