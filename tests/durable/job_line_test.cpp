// The engine of a line with a policy that keeps its rows in memory.
#include "durable/job_line.hpp"

#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>

namespace hearth::durable {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct FakeRow {
  std::string id;
  std::int64_t due_ms = 0;
  bool claimed = false;
  int tries = 0;
  int puts_off = 0;  // so often admit() says no
  int interruptions = 0;
  int fatal_attempts = 0;
};

// At most two tries a row. A row that is not admitted is due a second later.
class FakePolicy final : public LinePolicy<FakeRow> {
 public:
  explicit FakePolicy(const Clock& clock) : clock_(clock) {}

  std::optional<std::int64_t> first_moment() override {
    ++looks_;
    const auto row = next_due();
    return row ? std::optional(row->due_ms) : std::nullopt;
  }
  std::optional<FakeRow> next_due() override {
    std::optional<FakeRow> first;
    for (const FakeRow& row : rows_) {
      if (!row.claimed && (!first || row.due_ms < first->due_ms)) first = row;
    }
    return first;
  }
  [[nodiscard]] std::string_view why_given_up(const FakeRow& row) const override {
    return row.tries >= 2 ? "tried twice" : "";
  }
  void give_up(FakeRow& row, std::string_view /*why*/) override {
    std::erase_if(rows_, [&](const FakeRow& each) { return each.id == row.id; });
  }
  bool admit(FakeRow& row) override {
    FakeRow& kept = find(row.id);
    if (kept.puts_off == 0) return true;
    --kept.puts_off;
    kept.due_ms = unix_millis(clock_.wall_now()) + 1'000;
    return false;
  }
  void claim(FakeRow& row) override {
    row.claimed = true;
    ++row.tries;
    find(row.id) = row;
  }
  void give_back(FakeRow& row) override {
    row.claimed = false;
    --row.tries;
    find(row.id) = row;
  }
  void follow(std::int64_t jump_ms) override {
    for (FakeRow& row : rows_) row.due_ms += jump_ms;
  }

  FakeRow& find(const std::string& id) { return *std::ranges::find(rows_, id, &FakeRow::id); }

  std::deque<FakeRow> rows_;
  int looks_ = 0;

 private:
  const Clock& clock_;
};

class JobLineTest : public ::testing::Test {
 protected:
  void add(const std::string& id, milliseconds in, int puts_off = 0) {
    policy_.rows_.push_back({id, now() + in.count(), false, 0, puts_off});
    line_.changed();
  }
  std::string claim() {
    const auto row = line_.claim();
    return row ? row->id : "";
  }
  // The instance crashes: its claims are gone, and the rows wait as load() leaves them.
  void crash() {
    while (!line_.claimed().empty()) line_.take(std::string(line_.claimed().begin()->first));
    for (FakeRow& row : policy_.rows_) row.claimed = false;
    line_.changed();
  }
  [[nodiscard]] std::int64_t now() const { return unix_millis(clock_.wall_now()); }

  hearth::testing::ManualClock clock_;
  FakePolicy policy_{clock_};
  JobLine<FakeRow> line_{clock_, policy_, 2};
};

TEST_F(JobLineTest, P1_ATryIsCountedBeforeItBegins) {
  add("a", seconds(0));
  EXPECT_EQ(claim(), "a");
  EXPECT_EQ(policy_.find("a").tries, 1);
  EXPECT_TRUE(line_.is_claimed("a"));
}

TEST_F(JobLineTest, RowsBeginInTheOrderOfTheirTimesAndAtMostSoManyAtOnce) {
  add("late", milliseconds(-1));
  add("early", milliseconds(-2));
  add("third", milliseconds(0));
  EXPECT_EQ(claim(), "early");
  EXPECT_EQ(claim(), "late");
  EXPECT_FALSE(line_.due());
  EXPECT_EQ(claim(), "");
  EXPECT_TRUE(line_.take("early"));
  EXPECT_FALSE(line_.take("early")) << "its try has ended before";
  EXPECT_EQ(claim(), "third");
}

TEST_F(JobLineTest, P2_WhatThePolicyGivesUpIsNamedOnceAndHoldsNothingBack) {
  add("poison", milliseconds(-1));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(claim(), "poison");
    crash();
  }
  add("good", seconds(0));
  EXPECT_EQ(claim(), "good");
  EXPECT_EQ(line_.take_given_up(), (std::vector<GivenUp>{{"poison", "tried twice"}}));
  EXPECT_TRUE(line_.take_given_up().empty());
}

TEST_F(JobLineTest, P3_ATryThatIsInterruptedOnPurposeCountsForNothing) {
  add("a", seconds(0));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(claim(), "a");
    line_.give_back_all();
    EXPECT_TRUE(line_.claimed().empty());
  }
  EXPECT_EQ(policy_.find("a").tries, 0);
}

TEST_F(JobLineTest, ARowThatIsNotAdmittedIsLookedAtWhenThePolicySays) {
  add("a", seconds(0), 1);
  EXPECT_EQ(claim(), "");
  EXPECT_EQ(line_.moment(), now() + 1'000);
  clock_.advance(seconds(1));
  EXPECT_EQ(claim(), "a");
}

TEST_F(JobLineTest, P4_ItDoesNotLookAgainBeforeAChange) {
  add("a", seconds(5));
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(line_.due());
    EXPECT_EQ(line_.wake().at_ms, now() + 5'000);
  }
  EXPECT_EQ(policy_.looks_, 1);
  line_.changed();
  EXPECT_FALSE(line_.due());
  EXPECT_EQ(policy_.looks_, 2);
}

TEST_F(JobLineTest, ItWorksWhileATryIsInProgressOrDue) {
  EXPECT_TRUE(line_.wake().none());
  add("a", seconds(0));
  add("b", seconds(5));
  EXPECT_TRUE(line_.wake().working);
  EXPECT_EQ(claim(), "a");
  EXPECT_TRUE(line_.wake().working);
  EXPECT_EQ(line_.wake().at_ms, now() + 5'000) << "the next one begins beside it";
  line_.take("a");
  policy_.rows_.pop_front();
  line_.changed();
  EXPECT_FALSE(line_.wake().working);
}

TEST_F(JobLineTest, AfterCloseItSaysWhatItSaidBefore) {
  add("a", seconds(5));
  line_.close();
  policy_.rows_.clear();
  EXPECT_EQ(line_.wake().at_ms, now() + 5'000);
  EXPECT_EQ(policy_.looks_, 1);
}

TEST_F(JobLineTest, P5_TheMomentAfterAJumpIsTheSameFromLookToLook) {
  add("a", hours(24));
  clock_.set_wall(clock_.wall_now() - hours(1) - std::chrono::microseconds(500));
  const auto moment = line_.moment();
  for (int i = 0; i < 1'000; ++i) {
    clock_.advance(std::chrono::microseconds(12'345));
    ASSERT_EQ(line_.moment(), moment);
  }
  clock_.set_wall(clock_.wall_now() + hours(1));
  EXPECT_EQ(line_.jump(), 0) << "the clock is right again";
}

// A millisecond passes at one of the looks at the clock.
class TickingClock final : public Clock {
 public:
  explicit TickingClock(int at) : at_(at) {}
  [[nodiscard]] SteadyTime steady_now() const override { return base.steady_now(); }
  [[nodiscard]] WallTime wall_now() const override {
    if (++looks_ == at_) base.advance(milliseconds(1));
    return base.wall_now();
  }
  mutable hearth::testing::ManualClock base;

 private:
  mutable int looks_ = 0;
  const int at_;
};

TEST(JobLineWakeTest, AMomentThatComesDuringTheLookIsNotMissed) {
  for (int at = 1; at < 10; ++at) {
    const TickingClock clock(at);
    FakePolicy policy(clock);
    JobLine<FakeRow> line(clock, policy);
    policy.rows_.push_back({"a", unix_millis(clock.base.wall_now()) + 1});
    EXPECT_FALSE(line.wake().none()) << at;
  }
}

TEST(ClockJumpTest, ItSaysByHowMuchTheWallsClockWasSet) {
  hearth::testing::ManualClock clock;
  ClockJump jump(clock);
  clock.advance(milliseconds(500));
  EXPECT_EQ(jump.ms(), 0);
  clock.set_wall(clock.wall_now() - milliseconds(3'000));
  EXPECT_EQ(jump.ms(), -3'000);
  jump.followed();
  EXPECT_EQ(jump.ms(), 0);
}

struct JumpRow {
  const char* name;
  ClockRule rule;
  milliseconds jump;
  std::int64_t wait_left_ms;  // of ten seconds, after the jump
  std::int64_t counts_ms;
};

class JobLineClockTest : public ::testing::TestWithParam<JumpRow> {};

TEST_P(JobLineClockTest, P5_AJumpThatCountsChangesNoWait) {
  const JumpRow& row = GetParam();
  hearth::testing::ManualClock clock;
  FakePolicy policy(clock);
  JobLine<FakeRow> line(clock, policy, 1, row.rule);
  policy.rows_.push_back({"a", unix_millis(clock.wall_now()) + 10'000});
  line.changed();
  clock.set_wall(clock.wall_now() + row.jump);
  EXPECT_EQ(line.jump(), row.counts_ms);
  line.follow_clock();
  EXPECT_EQ(line.jump(), 0);
  EXPECT_EQ(*line.moment() - unix_millis(clock.wall_now()), row.wait_left_ms);
}

INSTANTIATE_TEST_SUITE_P(
    Jumps, JobLineClockTest,
    ::testing::Values(JumpRow{"Back", ClockRule::kSetBack, -hours(1), 10'000, -3'600'000},
                      JumpRow{"BackByADrift", ClockRule::kSetBack, -milliseconds(999), 10'999, 0},
                      JumpRow{"Ahead", ClockRule::kSetBack, hours(1), 10'000 - 3'600'000, 0},
                      JumpRow{"BothBack", ClockRule::kBoth, -hours(1), 10'000, -3'600'000},
                      JumpRow{"BothAhead", ClockRule::kBoth, hours(1), 10'000, 3'600'000},
                      JumpRow{"BothByADrift", ClockRule::kBoth, seconds(4), 6'000, 0}),
    [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace hearth::durable
