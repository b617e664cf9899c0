// Records of fibers that are removed at the end, parents, names that wait for another version, and
// runs that crash the process.
#include "durable/fibers_fixture.hpp"
#include "support/counted_steps.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kPoison =
    "its work has ended the process as often as fibers.max_crashes allows";

class BriefFibersTest : public FibersFixture {
 protected:
  static FiberRequest brief(std::string_view id, std::string_view key = "",
                            std::string_view parent = "") {
    return {
        .name = "report", .id = id, .key = key, .keeping = FiberKeeping::kBrief, .parent = parent};
  }
  Fibers::Started begin(std::string_view id, std::string_view key = "",
                        std::string_view parent = "") {
    return start(brief(id, key, parent));
  }
  std::int64_t rows() { return count("SELECT count(*) FROM cf_agents_jobs"); }
};

// ---- P5 -----------------------------------------------------------------------------------------

TEST_F(BriefFibersTest, P10_ItsRecordGoesWithItsEndHoweverThatComes) {
  for (const FiberStatus end :
       {FiberStatus::kCompleted, FiberStatus::kError, FiberStatus::kAborted}) {
    const auto fiber = begin("x", "k");
    EXPECT_TRUE(inspect("x").at("brief"));
    const auto change = settle(fiber.fiber, end);
    EXPECT_EQ(change.status, end) << "who has ended it learns what became of it";
    EXPECT_EQ(status("x"), "none");
    EXPECT_EQ(rows(), 0);
    EXPECT_FALSE(fibers_->ends().tellings().due()) << "there is no telling";
  }
  begin("x");
  cancel("x", "enough");
  crash();
  EXPECT_EQ(rows(), 0) << "a cancelled one does not come back";
}

TEST_F(BriefFibersTest, P10_ADeadOneIsToldAndKeptAsLongAsAFailedOne) {
  settings_.max_attempts = 1;
  start_interrupted(brief("x"));
  hook_fails("x", "no");
  EXPECT_EQ(status("x"), "error");
  ASSERT_TRUE(fibers_->ends().next_untold());
  told("x", true);
  clock_.advance(settings_.keep_failed - 1s);
  EXPECT_FALSE(fibers_->ends().sweep());
  clock_.advance(2s);
  EXPECT_TRUE(fibers_->ends().sweep());
  EXPECT_EQ(rows(), 0);
}

TEST_F(BriefFibersTest, P10_ADeadOneKeepsItsKeyUntilItIsReplaced) {
  settings_.max_attempts = 1;
  start_interrupted(brief("x", "k"));
  hook_fails("x", "no");
  const auto asked = begin("", "k");
  EXPECT_EQ(asked.fiber, 0U);
  EXPECT_EQ(parse_json(asked.record)->at("dead"), true);
  FiberRequest anew = brief("y", "k");
  anew.policy = SettledKey::kReplaceFailed;
  EXPECT_NE(start(anew).fiber, 0U);
}

// ---- P6 -----------------------------------------------------------------------------------------

TEST_F(BriefFibersTest, P11_AValueIsKeptUntilItsParentHasEnded) {
  const auto parent = begin("parent");
  const auto child = begin("child", "parent/child/1", "parent");
  settle(child.fiber, FiberStatus::kCompleted, "7");
  EXPECT_FALSE(fibers_->ends().tellings().due()) << "there is no telling";
  crash();
  FiberRequest again = brief("", "parent/child/1", "parent");
  again.take_up = true;
  again.policy = SettledKey::kReplaceFailed;
  const auto found = start(again);
  EXPECT_EQ(found.fiber, 0U);
  EXPECT_EQ(parse_json(found.record)->at("result"), 7);
  ASSERT_TRUE(recover());
  settle(resume("parent"), FiberStatus::kCompleted);
  EXPECT_EQ(rows(), 0);
  EXPECT_NE(parent.fiber, 0U);
}

TEST_F(BriefFibersTest, P11_WhatHasFailedBeginsAnewAndWhatOutlivesItsParentGoesByItself) {
  const auto parent = begin("parent");
  settle(begin("a", "parent/a/1", "parent").fiber, FiberStatus::kError, "no");
  EXPECT_EQ(status("a"), "error");
  FiberRequest again = brief("", "parent/a/1", "parent");
  again.policy = SettledKey::kReplaceFailed;
  const auto anew = start(again);
  EXPECT_NE(anew.fiber, 0U);
  EXPECT_EQ(status("a"), "none");
  settle(parent.fiber, FiberStatus::kCompleted);
  EXPECT_EQ(rows(), 1);
  settle(anew.fiber, FiberStatus::kCompleted);
  EXPECT_EQ(rows(), 0);
}

TEST_F(BriefFibersTest, P11_ADeadParentKeepsTheValuesForItsRevival) {
  settings_.max_attempts = 1;
  settings_.max_records = 2;
  crash();
  begin("parent");
  settle(begin("child", "parent/child/1", "parent").fiber, FiberStatus::kCompleted, "7");
  interrupt();
  hook_fails("parent", "no");
  EXPECT_EQ(status("child"), "completed");
  EXPECT_FALSE(fibers_->start(brief("third"))) << "both count";
  retry("parent");
  ASSERT_TRUE(recover());
  settle(resume("parent"), FiberStatus::kCompleted);
  EXPECT_EQ(rows(), 0);
  EXPECT_NE(begin("third").fiber, 0U);
}

TEST_F(BriefFibersTest, P11_AnotherCheckpointOfTheParentFreesWhatItHasWaitedFor) {
  const auto parent = begin("parent");
  settle(begin("child", "parent/child/1", "parent").fiber, FiberStatus::kCompleted, "7");
  stash(parent.fiber, "1");
  EXPECT_EQ(status("child"), "none");
  EXPECT_EQ(status("parent"), "running");
}

TEST_F(BriefFibersTest, P11_ADeadChildOutlivesItsParentAndAnInterruptedParentKeepsItsValues) {
  settings_.max_attempts = 1;
  crash();
  auto parent = begin("parent");
  begin("dead", "parent/dead/1", "parent");
  settle(begin("child", "parent/child/1", "parent").fiber, FiberStatus::kCompleted, "7");
  crash();
  for (int offered = 0; offered < 2; ++offered) {
    const Json body = recover().value();
    const std::string id = body.at("record").at("id").get<std::string>();
    if (id == "dead")
      hook_fails(id, "no");
    else
      parent.fiber = resume(id);
  }
  EXPECT_TRUE(inspect("dead").at("dead"));
  settle(parent.fiber, FiberStatus::kCompleted);
  EXPECT_TRUE(inspect("dead").at("dead"));
  EXPECT_EQ(status("child"), "none");

  FiberRequest kept = brief("kept");
  kept.keeping = FiberKeeping::kKept;
  start(kept);
  settle(begin("value", "kept/value/1", "kept").fiber, FiberStatus::kCompleted, "7");
  interrupt();
  recovered("kept");
  EXPECT_EQ(status("kept"), "interrupted");
  EXPECT_EQ(status("value"), "completed");
}

TEST_F(BriefFibersTest, P11_ACheckpointFreesTheKeyThatOnlyTheParentKnows) {
  const auto parent = begin("parent");
  for (const std::string_view key : {"parent/child/1", "order 1", "parent 1"}) {
    FiberRequest child = brief(key, key, "parent");
    child.keeping = FiberKeeping::kKept;
    settle(start(child).fiber, FiberStatus::kCompleted, "7");
  }
  const auto open = begin("open", "parent/open/1", "parent");
  stash(parent.fiber, "1");
  EXPECT_TRUE(has(inspect("parent/child/1"), {{"key", nullptr}, {"result", 7}}));
  EXPECT_EQ(inspect("order 1").at("key"), "order 1");
  EXPECT_EQ(inspect("open").at("key"), "parent/open/1");
  settle(open.fiber, FiberStatus::kCompleted, "8");
  EXPECT_TRUE(fibers_->stash(parent.fiber, "2"));
  EXPECT_EQ(status("open"), "none") << "it ended after the checkpoint before";
}

TEST_F(BriefFibersTest, P11_TheNextInstanceFreesWhatAnEarlierOneHasKept) {
  begin("parent");
  settle(begin("child", "parent/child/1", "parent").fiber, FiberStatus::kCompleted, "7");
  interrupt();
  const FiberHandle again = resume("parent");  // and asks for other work this time
  EXPECT_TRUE(fibers_->stash(again, "1"));
  EXPECT_EQ(status("child"), "none");
}

TEST_F(BriefFibersTest, P11_AParentIsForgottenWithItsEnd) {
  const auto parent = begin("parent");
  settle(begin("child", "parent/child/1", "parent").fiber, FiberStatus::kCompleted, "7");
  settle(parent.fiber, FiberStatus::kCompleted);
  const auto again = begin("parent");
  const hearth::testing::CountedSteps steps(*database_);
  EXPECT_TRUE(fibers_->stash(again.fiber, "1"));
  EXPECT_LT(steps.count(), 60U) << "values were looked for";
}

// ---- taking up ----------------------------------------------------------------------------------

TEST_F(BriefFibersTest, WhoCanDoTheWorkTakesItUpCountedAsARecovery) {
  settings_.max_crashes = 0;
  const auto first = begin("x", "k");
  stash(first.fiber, "1");
  FiberRequest again = brief("", "k");
  EXPECT_EQ(start(again).fiber, 0U) << "it runs";
  again.take_up = true;
  EXPECT_EQ(start(again).fiber, 0U) << "it still runs";
  for (int attempt = 1; attempt <= settings_.max_attempts; ++attempt) {
    crash_in_its_code();
    clock_.advance(1h);  // an attempt that took the process with it is followed by a wait
    const auto taken = start(again);
    ASSERT_NE(taken.fiber, 0U) << attempt;
    EXPECT_EQ(parse_json(taken.record)->at("attempts"), attempt);
    EXPECT_EQ(parse_json(taken.record)->at("snapshot"), 1);
    EXPECT_EQ(status("x"), "running");
  }
  crash_in_its_code();
  clock_.advance(1h);
  EXPECT_EQ(start(again).fiber, 0U) << "it has used up its attempts";
  EXPECT_FALSE(recover());
  EXPECT_TRUE(inspect("x").at("dead"));
}

TEST_F(BriefFibersTest, WhatHasToWaitIsNotTakenUp) {
  start_interrupted(brief("x", "k"));
  hook_fails("x", "not now");
  FiberRequest again = brief("", "k");
  again.take_up = true;
  EXPECT_EQ(start(again).fiber, 0U);
  clock_.advance(1h);
  EXPECT_NE(start(again).fiber, 0U);
}

TEST_F(BriefFibersTest, WhatIsBeingOfferedIsTakenUpAndItsHookDecidesNothing) {
  start_interrupted(brief("x", "k"));
  FiberRequest again = brief("", "k");
  again.take_up = true;
  const auto taken = start(again);
  EXPECT_NE(taken.fiber, 0U);
  EXPECT_TRUE(taken.was_offered);
  EXPECT_EQ(fibers_->recovery().recovered("x", "").error().code, Errc::kNotFound);
  EXPECT_EQ(status("x"), "running");
}

// ---- names that no function has -----------------------------------------------------------------

TEST_F(BriefFibersTest, AnUnknownNameWaitsForAnotherInstanceAtNoCost) {
  begin("x");
  crash();
  for (int life = 0; life < 30; ++life) {
    ASSERT_TRUE(recover()) << life;
    unknown("x");
    EXPECT_TRUE(has(inspect("x"), {{"waits_for_code", true}, {"attempts", 0}}));
    EXPECT_FALSE(fibers_->due());
    EXPECT_FALSE(fibers_->wake().working);
    EXPECT_TRUE(is_next_version(*fibers_->wake().at_ms));
    clock_.advance(1000h);
    EXPECT_FALSE(fibers_->due()) << "no time brings it";
    crash();
  }
}

TEST_F(BriefFibersTest, P12_WhatWaitsForCodeWaitsForAsLongAsItTakes) {
  start_interrupted(brief("x", "k"));
  unknown("x");
  for (int life = 0; life < 3; ++life) {
    clock_.advance(10 * settings_.keep_failed);
    EXPECT_FALSE(fibers_->ends().sweep());
    EXPECT_FALSE(fibers_->due());
    EXPECT_TRUE(inspect("x").at("waits_for_code"));
    crash();
    ASSERT_TRUE(recover()) << "each instance is asked";
    unknown("x");
  }
  interrupt();
  settle(resume("x"), FiberStatus::kCompleted);
  EXPECT_EQ(rows(), 0);
}

TEST_F(BriefFibersTest, P12_ItCountsAmongTheRecordsAndACancelEndsIt) {
  settings_.max_records = 1;
  start_interrupted(brief("x", "k"));
  unknown("x");
  EXPECT_EQ(refusal(brief("y")), Errc::kLimitExceeded);
  EXPECT_TRUE(fibers_->records().cancel("x", "", "the shop is closed"));
  EXPECT_EQ(rows(), 0);
  EXPECT_NE(begin("y").fiber, 0U);
}

TEST_F(BriefFibersTest, WorkThatCannotReadItsCheckpointWaitsForCode) {
  const auto begun = begin("x", "k");
  stash(begun.fiber, "5");
  for (int life = 0; life < 20; ++life) {
    crash();
    ASSERT_TRUE(recover()) << "each instance is asked";
    const FiberHandle handle = resume("x");
    EXPECT_TRUE(fibers_->wait_for_code(handle));
    database_->commit();
    EXPECT_EQ(fibers_->settle(handle, FiberStatus::kError, "late").error().code, Errc::kNotFound);
    EXPECT_TRUE(has(inspect("x"), {{"waits_for_code", true}, {"attempts", 0}, {"snapshot", 5}}));
    EXPECT_FALSE(fibers_->wake().working) << "it keeps nothing awake";
    EXPECT_TRUE(is_next_version(*fibers_->wake().at_ms));
  }
  interrupt();
  settle(resume("x"), FiberStatus::kCompleted);
}

TEST_F(BriefFibersTest, AFinalFailureIsNotTriedAgain) {
  FiberRequest wanted = brief("x");
  wanted.max_retries = 20;
  const auto begun = start(wanted);
  const auto change = fibers_->settle(begun.fiber, FiberStatus::kError, "refused", true).value();
  EXPECT_EQ(change.status, FiberStatus::kError);
  EXPECT_EQ(rows(), 0);
}

TEST_F(BriefFibersTest, AFinalFailureOfTheHookIsTheLast) {
  start_interrupted(brief("x"));
  EXPECT_TRUE(fibers_->recovery().failed("x", "no", true).dead);
}

// ---- poison -------------------------------------------------------------------------------------

TEST_F(BriefFibersTest, P8_RunsThatEndTheProcessAreCountedUntilTheNextCheckpoint) {
  begin("x");
  crash_in_its_code();  // the first
  ASSERT_TRUE(recover());
  const FiberHandle again = resume("x");
  clock_.advance(5min);
  stash(again, "1");
  crash_in_its_code();  // the first since that
  ASSERT_TRUE(recover());
  resume("x");
  crash_in_its_code();  // the second
  clock_.advance(1min);
  EXPECT_FALSE(recover());
  EXPECT_TRUE(inspect("x").at("dead"));
}

TEST_F(BriefFibersTest, P8_ACheckpointSoonAfterARecoveryForgivesNothing) {
  begin("x");
  for (int run = 0; run < 2; ++run) {
    crash_in_its_code();
    if (run == 1) break;
    ASSERT_TRUE(recover());
    EXPECT_TRUE(fibers_->stash(resume("x"), std::to_string(run)));
    clock_.advance(5min);  // without a checkpoint behind it
    database_->commit();
  }
  EXPECT_FALSE(recover());
  EXPECT_TRUE(inspect("x").at("dead"));
}

TEST_F(BriefFibersTest, P8_TheReasonIsNamedAndARevivalBeginsAnew) {
  settings_.max_crashes = 1;
  begin("x");
  crash_in_its_code();
  EXPECT_FALSE(fibers_->recovery().begin());
  const auto dead = fibers_->recovery().line().take_given_up();
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0].why, kPoison);
  retry("x");
  EXPECT_TRUE(recover());
}

TEST_F(BriefFibersTest, P8_WhatDidNotRunIsNotToBlame) {
  start_interrupted(brief("waits"));
  hook_fails("waits", "not now");  // it waits for its next attempt
  for (int i = 0; i < 3; ++i) crash_in_its_code();
  clock_.advance(1h);
  EXPECT_TRUE(recover());
}

TEST_F(BriefFibersTest, P8_OnlyTheFiberWhoseWorkItWasCounts) {
  begin("poison");
  begin("patient");
  for (int run = 0; run < 2; ++run) {
    const FiberRow poison = fibers_->runs().row_of("poison");
    EXPECT_NE(poison, kNoFiber);
    EXPECT_NE(poison, fibers_->runs().row_of("patient"));
    crash_in_its_code(poison);
    clock_.advance(1h);
    if (run == 1) break;
    for (int i = 0; i < 2; ++i) {
      const auto offered = fibers_->recovery().begin().value();
      (void)fibers_->recovery().offer(offered.row);
      resume(offered.id);
    }
  }
  const auto offered = fibers_->recovery().begin().value();
  EXPECT_EQ(offered.id, "patient");
  const auto dead = fibers_->recovery().line().take_given_up();
  EXPECT_EQ(dead, (std::vector<GivenUp>{{"poison", kPoison}}));
  EXPECT_EQ(count("SELECT sum(fatal_attempts) FROM cf_agents_jobs WHERE id = 'patient'"), 0);
}

TEST_F(BriefFibersTest, P8_WhatWasNoFibersWorkCountsForNone) {
  begin("x");
  for (int i = 0; i < 3; ++i) {
    crash_in_its_code(kNoFiber);
    clock_.advance(1h);
    ASSERT_TRUE(recover());
    resume("x");
  }
}

TEST_F(BriefFibersTest, ARowIsThatOfAFiberThatRunsOrIsBeingRecovered) {
  const FiberHandle first = begin("x").fiber;
  const FiberRow row = fibers_->runs().row_of(first);
  EXPECT_NE(row, kNoFiber);
  EXPECT_EQ(fibers_->runs().row_of("x"), row);
  EXPECT_EQ(fibers_->runs().row_of(first + 1), kNoFiber);
  crash();
  EXPECT_EQ(fibers_->runs().row_of("x"), kNoFiber) << "it waits";
  ASSERT_EQ(fibers_->recovery().begin().value_or(Interrupted()).row, row);
  EXPECT_EQ(fibers_->runs().row_of("x"), kNoFiber) << "it does not run yet";
  EXPECT_EQ(fibers_->recovery().now_of("x"), FiberNow::kRecovers);
  const FiberHandle again = resume("x");
  EXPECT_EQ(fibers_->runs().row_of(again), row);
  EXPECT_TRUE(fibers_->settle(again, FiberStatus::kCompleted, ""));
  EXPECT_EQ(fibers_->runs().row_of(again), kNoFiber);
  EXPECT_EQ(fibers_->runs().row_of("x"), kNoFiber);
}

TEST_F(BriefFibersTest, P8_NoughtIsNoBound) {
  settings_.max_crashes = 0;
  begin("x");
  for (int i = 0; i < 5; ++i) {
    crash_in_its_code();
    clock_.advance(1h);
    ASSERT_TRUE(recover());
    resume("x");
  }
}

}  // namespace
}  // namespace hearth::durable
