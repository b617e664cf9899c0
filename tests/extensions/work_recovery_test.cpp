#include "extensions/durable_work_fixture.hpp"

#include <algorithm>
#include <vector>

namespace hearth::extensions {
namespace {

class WorkRecoveryTest : public DurableWorkFixture {};

TEST_F(WorkRecoveryTest, P4_ThePlanIsAskedForOnceAndItsFirstAttemptIsOnDiskBefore) {
  begin("one");
  begin("two");
  crash();
  const DueWork plan = take(true);
  ASSERT_EQ(plan.kind, EventKind::kFibersRecovered);
  EXPECT_TRUE(work_->recovery().in_progress());
  EXPECT_FALSE(work_->dispatch().next(true)) << "nothing is offered before the plan";
  crash();  // the plan killed the process
  const DueWork alone = take(true);
  ASSERT_EQ(alone.kind, EventKind::kFibersRecovered);
  EXPECT_EQ(alone.id, "two") << "the other one waits";
  work_->dispatch().ended(alone, std::string_view());
  work_->dispatch().ended(take(true), Error{Errc::kPlugin, "no"});
  clock_.advance(std::chrono::minutes(10));
  EXPECT_EQ(take(true).kind, EventKind::kFiberRecovered) << "once in each instance";
}

// Those of these fibers that the plan asks about.
std::vector<std::string> asked_for(const DueWork& plan, const std::vector<std::string>& ids) {
  std::vector<std::string> named;
  for (const std::string& id : ids) {
    if (plan.body.find("\"" + id + "\"") != std::string::npos) named.push_back(id);
  }
  return named;
}

class PlannedWorkTest : public WorkRecoveryTest {
 protected:
  using Asked = std::vector<std::string>;

  // Fibers that are interrupted by a kill and then planned, the oldest first.
  PlannedWorkTest() {
    for (const std::string& id : ids_) {
      const durable::FiberRequest request{
          .name = "work", .id = id, .keeping = durable::FiberKeeping::kKept};
      EXPECT_TRUE(work_->fibers().start(request));
      clock_.advance(std::chrono::seconds(1));
    }
    crash();
  }

  // The process has ended in this plan, as the record of the crash says it.
  void crash_in(const DueWork& plan) {
    crash(durable::EndedProcess{plan.row});
    clock_.advance(std::chrono::minutes(10));
  }
  void ask_for_all() {
    const DueWork plan = take(true);
    ASSERT_EQ(plan.kind, EventKind::kFibersRecovered);
    ASSERT_EQ(asked_for(plan, ids_), ids_);
    EXPECT_EQ(plan.id, "") << "which of them a crash is about is not known";
    crash_in(plan);
  }
  // Each fiber is planned alone, and goes on, until the plan for `poison` comes, which is returned.
  // `went_on` gets the others.
  std::optional<DueWork> ask_for_each_until(std::string_view poison, Asked& went_on) {
    while (std::optional<DueWork> plan = work_->dispatch().next(true)) {
      if (plan->kind != EventKind::kFibersRecovered) {  // the telling of the dead fiber "poison"
        work_->dispatch().ended(*plan, std::string_view());
        continue;
      }
      EXPECT_EQ(asked_for(*plan, ids_), Asked({plan->id}));
      if (plan->id == poison) return plan;
      work_->dispatch().ended(*plan, R"({"order":["c","a"]})");
      const DueWork hook = take(true);
      EXPECT_EQ(hook.kind, EventKind::kFiberRecovered) << "each plan is followed by its fiber";
      EXPECT_EQ(hook.id, plan->id);
      EXPECT_TRUE(work_->fibers().resume(hook.id));
      work_->recovery().continued(hook.id);
      went_on.push_back(hook.id);
    }
    std::ranges::sort(went_on);
    return std::nullopt;
  }

  const Asked ids_ = {"a", "b", "c"};
};

TEST_F(PlannedWorkTest, P6_AfterACrashEachIsAskedForAloneUntilThePoisonIsDead) {
  ask_for_all();
  Asked went_on;
  for (int crashes = 0; crashes < settings_.fibers.max_crashes; ++crashes) {
    const auto plan = ask_for_each_until("b", went_on);
    ASSERT_TRUE(plan);
    crash_in(*plan);
  }
  went_on.clear();
  EXPECT_FALSE(ask_for_each_until("b", went_on));
  EXPECT_EQ(went_on, Asked({"a", "c"})) << "the others live";
  EXPECT_EQ(logger_.count("fiber:recovery:dead"), 1U);
}

TEST_F(PlannedWorkTest, P6_APlanOfSeveralThatCrashesCountsForNone) {
  for (int round = 0; round < 3; ++round) {
    ask_for_all();
    Asked went_on;
    EXPECT_FALSE(ask_for_each_until("nobody", went_on));
    EXPECT_EQ(went_on, ids_);
    crash();
    clock_.advance(std::chrono::minutes(10));
  }
  EXPECT_EQ(logger_.count("fiber:recovery:dead"), 0U);
}

TEST_F(WorkRecoveryTest, APlanIsBoundedInHowManyItLetsInAtOnce) {
  for (int i = 0; i < 120; ++i) begin(std::to_string(i));
  crash();
  const DueWork plan = take(true);
  work_->dispatch().ended(plan, R"({"parallel":1000000})");
  int offers = 0;
  while (work_->dispatch().next(true)) ++offers;
  EXPECT_EQ(offers, 100);
}

TEST_F(WorkRecoveryTest, PlansThatAreNoneChangeNothing) {
  for (const std::string_view answer :
       {"", "null", "[1]", "{", R"({"order":7,"parallel":"x"})", R"({"parallel":0})",
        R"({"parallel":-5,"order":[1,null,"nobody"]})"}) {
    begin("one");
    begin("two");
    crash();
    DueWork plan = take(true);
    ASSERT_EQ(plan.kind, EventKind::kFibersRecovered) << answer;
    work_->dispatch().ended(plan, answer);
    for (int i = 0; i < 2; ++i) {
      const DueWork hook = take(true);
      EXPECT_FALSE(work_->dispatch().next(true)) << "one at a time after " << answer;
      work_->dispatch().ended(hook, std::string_view());
    }
    EXPECT_FALSE(work_->dispatch().next(true));
  }
}

}  // namespace
}  // namespace hearth::extensions
