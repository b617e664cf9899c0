// Fibers of one lane: they run one after the other.
#include "durable/fibers_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {
namespace {

using std::chrono::hours;

class FiberLanesTest : public FibersFixture {
 protected:
  static FiberRequest in_lane(std::string_view id, std::string_view lane = "chat") {
    return {.name = "report", .id = id, .lane = lane};
  }
  Fibers::Started start_in_lane(std::string_view id) { return start(in_lane(id)); }
  // The id and the reason of the next fiber that is offered; empty: none.
  std::string offered() {
    const auto body = recover();
    if (!body) return "";
    return body->at("record").at("id").get<std::string>() + " " +
           body->at("reason").get<std::string>();
  }
};

TEST_F(FiberLanesTest, P16_OneRunsAtATimeInTheOrderOfTheirStarts) {
  const auto a = start_in_lane("a");
  ASSERT_NE(a.fiber, 0U);
  const auto b = start_in_lane("b");
  EXPECT_EQ(b.fiber, 0U);
  EXPECT_EQ(parse_json(b.record)->at("accepted"), true);
  start_in_lane("c");
  EXPECT_NE(start(in_lane("d", "other")).fiber, 0U);
  EXPECT_EQ(status("b"), "pending");
  EXPECT_TRUE(has(inspect("b"), {{"started_at", nullptr}, {"lane", "chat"}}));
  clock_.advance(hours(24 * 400));
  EXPECT_EQ(offered(), "");
  settle(a.fiber, FiberStatus::kCompleted);
  EXPECT_EQ(offered(), "b lane");
  EXPECT_EQ(offered(), "");
  const FiberHandle again = resume("b");
  EXPECT_EQ(status("b"), "running");
  EXPECT_EQ(inspect("b")["attempts"], 0) << "it begins for the first time";
  EXPECT_EQ(count("SELECT claims FROM cf_agents_jobs WHERE id = 'b'"), 0);
  EXPECT_NE(inspect("b")["started_at"], nullptr);
  settle(again, FiberStatus::kCompleted);
  EXPECT_EQ(offered(), "c lane");
  settle(resume("c"), FiberStatus::kCompleted);
  EXPECT_NE(start_in_lane("e").fiber, 0U) << "the lane is free";
}

TEST_F(FiberLanesTest, P16_TheOrderSurvivesRestarts) {
  start_in_lane("a");
  start_in_lane("b");
  start_in_lane("c");
  crash();
  EXPECT_EQ(fibers_->recovery().take_left_over().size(), 1U) << "the others were not interrupted";
  EXPECT_EQ(offered(), "a interrupted");
  EXPECT_EQ(offered(), "");
  settle(resume("a"), FiberStatus::kCompleted);
  crash();
  EXPECT_TRUE(fibers_->recovery().take_left_over().empty());
  EXPECT_EQ(offered(), "b lane");
  crash();  // before it has begun
  clock_.advance(hours(1));
  EXPECT_EQ(offered(), "b lane");
  resume("b");
  crash();
  EXPECT_EQ(offered(), "b interrupted");
  EXPECT_EQ(inspect("b")["attempts"], 1);
  settle(resume("b"), FiberStatus::kCompleted);
  EXPECT_EQ(offered(), "c lane");
}

TEST_F(FiberLanesTest, P16_AFiberHoldsItsLaneUntilItIsSettled) {
  settings_.max_attempts = 2;
  crash();
  FiberRequest retried = in_lane("a");
  retried.max_retries = 1;
  const FiberHandle a = start(retried).fiber;
  start_in_lane("b");
  settle(a, FiberStatus::kError, "no");
  EXPECT_EQ(offered(), "") << "it waits for its retry";
  clock_.advance(hours(1));
  EXPECT_EQ(offered(), "a retry");
  unknown("a");
  EXPECT_EQ(offered(), "") << "it waits for code";
  crash();
  EXPECT_EQ(offered(), "a retry");
  hook_fails("a", "no");
  EXPECT_EQ(offered(), "") << "its hook is tried again";
  clock_.advance(hours(1));
  EXPECT_EQ(offered(), "a retry");
  hook_fails("a", "no");
  EXPECT_EQ(inspect("a")["dead"], true);
  EXPECT_EQ(offered(), "b lane");
  resume("b");
  start_in_lane("c");

  retry("a");
  EXPECT_EQ(offered(), "") << "a revived fiber waits for its lane";
  ASSERT_TRUE(fibers_->records().cancel("b", "", "enough"));
  EXPECT_EQ(offered(), "a interrupted") << "it was started first";
  ASSERT_TRUE(fibers_->records().cancel("c", "", "enough"));
  EXPECT_EQ(status("c"), "aborted") << "without having begun";
  ASSERT_TRUE(fibers_->records().cancel("a", "", "enough"));
  EXPECT_EQ(offered(), "");
}

TEST_F(FiberLanesTest, NothingElseBeginsAParkedFiber) {
  start_in_lane("a");
  FiberRequest second = in_lane("b");
  second.key = "k";
  second.take_up = true;
  start(second);
  const auto joined = start(second);
  EXPECT_EQ(joined.fiber, 0U) << "the caller has its code";
  EXPECT_FALSE(joined.is_parked) << "it was there";
  EXPECT_EQ(joined.id, "b");
  crash();
  fibers_->recovery().plan(std::vector<std::string>{"b", "a"});
  EXPECT_FALSE(fibers_->recovery().claim_uncounted("b"));
  EXPECT_EQ(offered(), "a interrupted");
  settle(resume("a"), FiberStatus::kCompleted);
  const auto taken = start(second);
  EXPECT_NE(taken.fiber, 0U) << "its lane is free";
  EXPECT_EQ(inspect("b")["attempts"], 0);
}

TEST_F(FiberLanesTest, ATurnThatBeginsIsNoNews) {
  for (const char* const id : {"a", "b"}) {
    FiberRequest turn = in_lane(id);
    turn.is_turn = true;
    start(turn);
  }
  ASSERT_TRUE(fibers_->records().cancel("a", "", "enough"));
  EXPECT_EQ(offered(), "b lane");
  resume("b");
  EXPECT_TRUE(fibers_->turns().take().empty());
  crash();
  EXPECT_EQ(offered(), "b interrupted");
  ASSERT_EQ(fibers_->turns().take().size(), 1U);
}

TEST_F(FiberLanesTest, ALaneHasALabelAndNoParent) {
  const std::string long_lane(257, 'x');
  EXPECT_EQ(refusal(in_lane("a", long_lane)), Errc::kInvalidArgument);
  start("outer");
  FiberRequest inner = in_lane("b");
  inner.parent = "outer";
  EXPECT_EQ(refusal(inner), Errc::kInvalidArgument);
}

}  // namespace
}  // namespace hearth::durable
