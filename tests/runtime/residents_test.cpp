#include "runtime/residents.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>

namespace hearth::runtime {
namespace {

class ResidentsTest : public ::testing::Test {
 protected:
  struct Agent final : RoomApplicant {
    [[nodiscard]] Need need() const override { return {}; }
    [[nodiscard]] bool may_leave_for_room() const override { return is_idle && times_sent == 0; }
    void leave_for_room() override { ++times_sent; }
    void take_turn(const Verdict& /*verdict*/) override {}
    bool is_idle = false;
    int times_sent = 0;
  };
  Agent& resident(bool is_idle, bool is_object = false) {
    Agent& made = agents_.emplace_back();
    made.is_idle = is_idle;
    made.place().has_object_place = is_object;
    residents_.enter(made);
    return made;
  }

  const SteadyTime now_{std::chrono::hours(1)};
  const SteadyTime later_ = now_ + Residents::kNoneIdleFor;
  std::deque<Agent> agents_;
  Residents residents_;
};

TEST_F(ResidentsTest, TheLeastRecentlyUsedIdleOneIsSentAway) {
  Agent& busy = resident(false);
  Agent& used = resident(true);
  Agent& idle = resident(true);
  residents_.used(used, now_);
  EXPECT_TRUE(residents_.send_idle_away(now_));
  EXPECT_EQ(idle.times_sent, 1);
  EXPECT_EQ(used.times_sent + busy.times_sent, 0);
  EXPECT_EQ(residents_.count_sent_away(), 1U);
}

TEST_F(ResidentsTest, OneThatLeavesCountsUntilItHasLeft) {
  Agent& goes = resident(true);
  residents_.send_away(goes);
  residents_.send_away(goes);  // it counts once
  EXPECT_EQ(residents_.count_sent_away(), 1U);
  residents_.leaving();
  residents_.ending();
  EXPECT_EQ(residents_.size(), 1U);
  EXPECT_EQ(residents_.count_leaving(), 1U);
  EXPECT_EQ(residents_.count_ending(), 1U);
  residents_.left(goes);
  EXPECT_FALSE(goes.is_resident());
  EXPECT_EQ(residents_.size(), 0U);
  EXPECT_EQ(residents_.count_leaving() + residents_.count_ending(), 0U);
  EXPECT_EQ(residents_.count_sent_away(), 0U);
}

TEST_F(ResidentsTest, AnIdleObjectIsFoundAmongObjectsAlone) {
  (void)resident(true);
  Agent& busy = resident(false, true);
  EXPECT_EQ(residents_.idle_object(now_), nullptr);
  busy.is_idle = true;
  EXPECT_EQ(residents_.idle_object(now_), nullptr) << "they are not looked at again so soon";
  EXPECT_EQ(residents_.idle_object(later_), &busy);
}

TEST_F(ResidentsTest, WithNoneIdleTheyAreLookedAtOnceOneIsOrAfterAWhile) {
  Agent& agent = resident(false);
  EXPECT_FALSE(residents_.send_idle_away(now_));
  residents_.may_be_idle(agent);  // it is not
  agent.is_idle = true;
  EXPECT_FALSE(residents_.send_idle_away(now_));
  residents_.may_be_idle(agent);
  EXPECT_TRUE(residents_.send_idle_away(now_));
  agent.is_idle = false;
  EXPECT_FALSE(residents_.send_idle_away(now_));
  agent.is_idle = true;
  agent.times_sent = 0;
  EXPECT_TRUE(residents_.send_idle_away(later_));
}

}  // namespace
}  // namespace hearth::runtime
