// Inner fibers end with the fiber that waits for them, if that is aborted.
#include "durable/fibers_fixture.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {
namespace {

using Ids = std::vector<std::string>;

class FibersInnerTest : public FibersFixture {
 protected:
  static FiberRequest below(std::string_view id, std::string_view parent,
                            FiberKeeping keeping = FiberKeeping::kBrief) {
    return {.name = "report", .id = id, .keeping = keeping, .parent = parent};
  }
  // "outer" waits for "middle" and "kept", "middle" for "leaf"; "other" belongs to none of them.
  void begin_family() {
    outer_ = start(below("outer", "", FiberKeeping::kKept)).fiber;
    middle_ = start(below("middle", "outer")).fiber;
    start(below("kept", "outer", FiberKeeping::kKept));
    start(below("leaf", "middle"));
    start(below("other", ""));
  }
  void expect_ended(const Result<FiberChange>& change) {
    ASSERT_TRUE(change);
    database_->commit();
    EXPECT_EQ(change->inner, (Ids{"middle", "kept", "leaf"}));
    EXPECT_EQ(parse_json(change->record)->at("inner"), Json(change->inner));
    EXPECT_EQ(status("middle") + status("leaf"), "nonenone");
    EXPECT_EQ(status("kept"), "aborted");
    EXPECT_EQ(inspect("kept").at("error"), "enough");
    crash();
    while (const auto offered = recover()) EXPECT_EQ(offered->at("record").at("id"), "other");
  }

  FiberHandle outer_ = 0;
  FiberHandle middle_ = 0;
};

TEST_F(FibersInnerTest, P15_ACancelEndsThemHoweverDeep) {
  begin_family();
  expect_ended(fibers_->records().cancel("outer", "", "enough"));
}

TEST_F(FibersInnerTest, P15_AlsoThoseThatDoNotRun) {
  begin_family();
  interrupt();
  ASSERT_TRUE(recover());  // two are being offered
  expect_ended(fibers_->records().cancel("outer", "", "enough"));
}

TEST_F(FibersInnerTest, P15_AlsoIfItsOwnWorkEndsItAsAborted) {
  begin_family();
  expect_ended(fibers_->settle(outer_, FiberStatus::kAborted, "enough"));
}

TEST_F(FibersInnerTest, P15_AlsoIfADeadOneIsResolvedAsAborted) {
  begin_family();
  die("outer", "too often");
  expect_ended(fibers_->records().resolve("outer", R"({"status":"aborted","error":"enough"})"));
}

TEST_F(FibersInnerTest, P15_AnyOtherEndLeavesThemAlone) {
  begin_family();
  const FiberChange change = settle(outer_, FiberStatus::kError, "no");
  EXPECT_EQ(change.inner, Ids{});
  EXPECT_FALSE(parse_json(change.record)->contains("inner"));
  EXPECT_EQ(status("middle"), "running");
  EXPECT_EQ(fibers_->records().cancel("leaf", "", "enough")->inner, Ids{}) << "not those above it";
  EXPECT_EQ(status("middle"), "running");
}

TEST_F(FibersInnerTest, P15_NoneBeginsBelowOneThatIsOver) {
  begin_family();
  EXPECT_TRUE(fibers_->records().cancel("middle", "", "enough"));
  settle(outer_, FiberStatus::kCompleted);
  for (const char* const parent : {"middle", "outer", "nobody"})
    EXPECT_EQ(refusal(below("late", parent)), Errc::kNotFound) << parent;
  EXPECT_EQ(status("late"), "none");
}

}  // namespace
}  // namespace hearth::durable
