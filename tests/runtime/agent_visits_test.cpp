// What becomes of a visit. What it does to an agent: agent_slot_visits_test.cpp.
#include "runtime/agent_visits.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

namespace hearth::runtime {
namespace {

using testing::Answer;
using testing::FakeSink;

TEST(VisitStepTest, FollowsTheState) {
  using enum AgentState;
  struct Row {
    AgentState state;
    VisitStep with_work;
    VisitStep without_work;
  };
  for (const Row& row : {
           Row{kCold, VisitStep::kOpen, VisitStep::kTellCold},
           {kAwaitingRoom, VisitStep::kRefuse, VisitStep::kTellCold},
           {kAwaitingVersion, VisitStep::kRefuse, VisitStep::kTellCold},
           {kCondemned, VisitStep::kNotFound, VisitStep::kWait},
           {kOpened, VisitStep::kWait, VisitStep::kWait},
           {kWaking, VisitStep::kWait, VisitStep::kWait},
           {kLive, VisitStep::kReceive, VisitStep::kWait},
           {kLeaving, VisitStep::kWait, VisitStep::kWait},
           {kEnding, VisitStep::kWait, VisitStep::kWait},
       }) {
    for (const bool is_condemned : {false, true}) {
      EXPECT_EQ(visit_step(row.state, true, is_condemned), row.with_work) << int(row.state);
      const bool must_go = is_condemned && row.state == kCold;  // files of a destroyed agent
      EXPECT_EQ(visit_step(row.state, false, is_condemned),
                must_go ? VisitStep::kAwaitRemoval : row.without_work)
          << int(row.state);
    }
  }
}

class AgentVisitsTest : public ::testing::Test {
 protected:
  std::shared_ptr<Answer> wait(bool has_work) {
    auto answer = std::make_shared<Answer>();
    AgentVisit visit{.work = {}, .sink = std::make_shared<FakeSink>(answer)};
    if (has_work)
      visit.work = [](extensions::AgentContext&) { return Result<std::string>(std::string()); };
    visits_.push(std::move(visit));
    return answer;
  }

  AgentVisits visits_;
};

TEST_F(AgentVisitsTest, OneThatOnlyWaitedIsOverWhenTheAgentIsColdAndOthersAreStillToCome) {
  const auto waits = wait(false);
  const auto works = wait(true);
  visits_.became_cold(false);
  EXPECT_EQ(waits->end, "ok ");
  EXPECT_EQ(works->end, std::nullopt);
  EXPECT_EQ(visits_.take().size(), 1U);
  EXPECT_TRUE(visits_.empty());
}

TEST_F(AgentVisitsTest, ADestroyedAgentIsNotOpenedForThoseThatCameBefore) {
  const auto waits = wait(false);
  const auto works = wait(true);
  visits_.became_cold(true);
  EXPECT_EQ(waits->end, "ok ");
  EXPECT_EQ(works->end, "error not_found: the agent was destroyed");
  EXPECT_TRUE(visits_.empty());
}

}  // namespace
}  // namespace hearth::runtime
