#include "runtime/room_line.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <vector>

namespace hearth::runtime {
namespace {

class RoomLanesTest : public ::testing::Test {
 protected:
  struct Agent final : RoomApplicant {
    [[nodiscard]] Need need() const override { return {}; }
    [[nodiscard]] bool may_leave_for_room() const override { return false; }
    void leave_for_room() override {}
    void take_turn(const Verdict& /*verdict*/) override {}
  };
  // `since`: when it first lacked room.
  Agent& joins(bool is_awaited, int since, bool is_first = false) {
    Agent& made = agents_.emplace_back();
    made.place().lacks_since = SteadyTime(std::chrono::seconds(since));
    line_.join(made, is_awaited, is_first);
    return made;
  }
  std::vector<RoomApplicant*> in_order(std::size_t lane) {
    std::vector<RoomApplicant*> all;
    while (RoomApplicant* const first = line_.first(lane)) {
      all.push_back(first);
      line_.leave(*first);
    }
    return all;
  }

  std::deque<Agent> agents_;
  RoomLine line_;
};

TEST_F(RoomLanesTest, ALaneIsInTheOrderInWhichItsAgentsFirstLackedRoom) {
  Agent& second = joins(true, 2);
  Agent& third = joins(true, 2);
  Agent& before_equals = joins(true, 2, true);
  Agent& first = joins(true, 1);
  Agent& work = joins(false, 0);
  EXPECT_EQ(line_.size(), 5U);
  EXPECT_EQ(in_order(0), (std::vector<RoomApplicant*>{&first, &before_equals, &second, &third}));
  EXPECT_EQ(in_order(1), (std::vector<RoomApplicant*>{&work}));
  EXPECT_EQ(line_.size(), 0U);
}

TEST_F(RoomLanesTest, AnAgentStandsInOneLaneOfOneLine) {
  RoomLine other;
  Agent& caller = joins(true, 1);
  Agent& work = joins(false, 1);
  EXPECT_TRUE(line_.contains(caller) && line_.contains(work));
  EXPECT_FALSE(other.contains(caller));
  EXPECT_TRUE(line_.is_for_work(work));
  EXPECT_FALSE(line_.is_for_work(caller));
  EXPECT_FALSE(line_.leave(caller));
  EXPECT_TRUE(line_.leave(work)) << "it says that the agent waited for work";
  EXPECT_FALSE(line_.contains(work) || work.stands_in_line());
  other.join(work, true);
  EXPECT_TRUE(other.contains(work));
  EXPECT_FALSE(line_.contains(work));
}

}  // namespace
}  // namespace hearth::runtime
