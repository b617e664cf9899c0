// A telling is claimed before it begins. If the process ends meanwhile, it is told again, a limited
// number of times.
#include "fibers_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace hearth::durable {
namespace {

using namespace std::chrono_literals;

class FibersTellingTest : public FibersFixture {
 protected:
  FibersTellingTest() { settle(start("a").fiber, FiberStatus::kCompleted, "1"); }

  // Tells, if there is something to tell, and kills the process. Returns whether it has told.
  bool tell_and_crash() {
    const bool told = fibers_->ends().next_untold().has_value();
    database_->commit();
    crash();
    return told;
  }
};

TEST_F(FibersTellingTest, P3_AfterTooManyCrashesItIsGivenUpAndTheRecordStays) {
  int times = 0;
  for (int i = 0; i < kMostInterruptions + 5; ++i) {
    times += tell_and_crash() ? 1 : 0;
    clock_.advance(1h);
  }
  EXPECT_EQ(times, kMostInterruptions);
  EXPECT_TRUE(fibers_->ends().tellings().wake().none());
  EXPECT_EQ(status("a"), "completed");
  clock_.advance(24h * 30);
  EXPECT_FALSE(fibers_->ends().sweep()) << "nobody has heard of it: it does not go by itself";
  EXPECT_EQ(*fibers_->records().remove({}), 1U);
}

TEST_F(FibersTellingTest, ATellingThatEndsBreaksTheRowOfCrashes) {
  for (int i = 0; i < kMostInterruptions * 2; ++i) {
    if (i % 5 == 4) {
      ASSERT_TRUE(fibers_->ends().next_untold());
      told("a", false);
      crash();
    } else {
      EXPECT_TRUE(tell_and_crash()) << i;
    }
    clock_.advance(1h);
  }
}

TEST_F(FibersTellingTest, AnInterruptionOnPurposeLeavesWhatWasSettledAgainAlone) {
  settle(start("b").fiber, FiberStatus::kCompleted, "1");
  ASSERT_TRUE(fibers_->ends().next_untold());
  ASSERT_TRUE(fibers_->ends().next_untold());
  ASSERT_EQ(*fibers_->records().remove({}), 2U);
  settle(start("a").fiber, FiberStatus::kError, "no");
  fibers_->ends().tellings().interrupt_on_purpose();
  database_->commit();
  crash();
  EXPECT_EQ(fibers_->ends().next_untold()->status, FiberStatus::kError);
}

// Without the fibers that run or recover.
class FiberEndsTest : public ::testing::Test {
 protected:
  Job add(const char* id, const char* type) {
    Job job;
    job.id = id;
    job.name = "report";
    job.type = type;
    job.created_at_ms = unix_millis(clock_.wall_now());
    jobs_.insert(job);
    ends_.added();
    return job;
  }

  hearth::testing::TempDirectory directory_;
  hearth::testing::ManualClock clock_;
  hearth::testing::SeededRandom random_{7};
  const FiberSettings settings_{.keep_completed = 1h, .max_records = 2};
  storage::AgentDatabase database_{directory_.path() / "a.db", storage::AgentKey{"Worker", "a"}};
  Jobs jobs_{database_};
  FiberTable table_{jobs_};
  FiberEnds ends_{database_, jobs_, table_, clock_, random_, settings_};
};

TEST_F(FiberEndsTest, P3_P10_AKeptRecordIsToldAndABriefOneGoes) {
  EXPECT_FALSE(ends_.take_settled());
  const FiberOutcome done{.status = FiberStatus::kCompleted, .result = "1"};
  EXPECT_EQ(ends_.settle(add("kept", "kept"), done).status, FiberStatus::kCompleted);
  (void)ends_.settle(add("brief", "brief"), done);
  EXPECT_TRUE(ends_.take_settled());
  EXPECT_FALSE(ends_.take_settled());
  EXPECT_TRUE(table_.find("kept"));
  EXPECT_FALSE(table_.find("brief"));
  const auto untold = ends_.next_untold().value();
  EXPECT_EQ(untold.id, "kept");
  EXPECT_FALSE(ends_.next_untold());
}

TEST_F(FiberEndsTest, RoomIsMadeOfWhatHasExpired) {
  (void)ends_.settle(add("old", "kept"), {.status = FiberStatus::kCompleted});
  (void)add("open", "kept");
  EXPECT_FALSE(ends_.make_room());
  ends_.told(ends_.next_untold().value_or(FiberChange()).id, true);
  EXPECT_FALSE(ends_.make_room()) << "it is kept for an hour";
  clock_.advance(1h);
  EXPECT_TRUE(ends_.make_room());
  EXPECT_FALSE(table_.find("old"));
}

}  // namespace
}  // namespace hearth::durable
