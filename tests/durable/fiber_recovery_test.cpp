// Fibers that were interrupted: what their hook is told, what the hook may do, and what
// becomes of the record.
#include "durable/fibers_fixture.hpp"
#include "support/counted_steps.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

using std::chrono::seconds;

class FibersRecoveryTest : public FibersFixture {};

TEST_F(FibersRecoveryTest, TheHookGetsTheRecordAndTheRecordKeepsTheSnapshot) {
  const FiberRequest wanted{
      .name = "report", .id = "x", .key = "k", .input = "[1]", .metadata = R"("m")"};
  stash(start(wanted).fiber, R"({"step":4})");
  crash();
  EXPECT_EQ(status("x"), "recovering") << "whatever the disk says";
  const Json offered = recover().value();
  EXPECT_EQ(offered.at("reason"), "interrupted");
  const Json& record = offered.at("record");
  EXPECT_TRUE(has(record, {{"id", "x"},
                           {"key", "k"},
                           {"input", Json::parse("[1]")},
                           {"metadata", "m"},
                           {"status", "recovering"},
                           {"attempts", 1}}));
  recovered("x");
  crash();
  EXPECT_EQ(status("x"), "interrupted") << "nobody went on";
  EXPECT_EQ(inspect("x")["snapshot"], Json::parse(R"({"step":4})"));
  EXPECT_EQ(inspect("x")["attempts"], 1);
  EXPECT_FALSE(recover());
}

TEST_F(FibersRecoveryTest, TheHooksOutcomeIsApplied) {
  start_interrupted(request("x"), "1");
  const auto change = fibers_->recovery().recovered(
      "x", R"({"status":"completed","result":[7],"snapshot":{"s":2},"metadata":"new"})");
  ASSERT_TRUE(change);
  EXPECT_EQ(change->status, FiberStatus::kCompleted);
  database_->commit();
  crash();
  const Json record = inspect("x");
  EXPECT_TRUE(has(record, {{"status", "completed"},
                           {"result", Json::parse("[7]")},
                           {"snapshot", Json::parse(R"({"s":2})")},
                           {"metadata", "new"}}));
  EXPECT_EQ(count("SELECT count(*) FROM cf_agents_runs"), 0);
}

TEST_F(FibersRecoveryTest, WhatIsNoOutcomeIsAFailureOfTheHook) {
  start_interrupted(request("x"));
  for (const char* body : {"[]", "{}", R"({"status":"running"})", R"({"status":1})",
                           R"({"status":"error","error":{}})"}) {
    EXPECT_EQ(fibers_->recovery().recovered("x", body).error().code, Errc::kInvalidArgument)
        << body;
  }
  EXPECT_EQ(status("x"), "recovering");
  hook_fails("x", "no outcome");
  EXPECT_EQ(status("x"), "recovering") << "it is offered again";
}

TEST_F(FibersRecoveryTest, AResumedFiberGoesOnUnderItsIdAndItsHookSettlesNothing) {
  stash(start("x").fiber, "1");
  crash();
  EXPECT_EQ(fibers_->resume("x").error().code, Errc::kNotFound) << "it is not being offered yet";
  ASSERT_TRUE(recover());
  resume("x");
  EXPECT_EQ(status("x"), "running");
  EXPECT_EQ(fibers_->resume("x").error().code, Errc::kNotFound);
  EXPECT_EQ(fibers_->recovery().recovered("x", "").error().code, Errc::kNotFound)
      << "the hook ends";
  EXPECT_EQ(status("x"), "running");
  crash();
  clock_.advance(seconds(10));
  const Json again = recover().value();
  EXPECT_EQ(again.at("record")["attempts"], 2) << "no progress since";
  EXPECT_EQ(again.at("record")["snapshot"], 1);
  const auto next = fibers_->resume("x");
  ASSERT_TRUE(fibers_->stash(*next, "2"));
  EXPECT_EQ(inspect("x")["attempts"], 0);
  settle(*next, FiberStatus::kCompleted);
  EXPECT_EQ(inspect("x")["snapshot"], 2);
}

TEST_F(FibersRecoveryTest, AHookThatThrowsTooOftenMakesItDead) {
  settings_.max_attempts = 3;
  stash(start("x").fiber, "5");
  crash();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    clock_.advance(seconds(400));
    ASSERT_TRUE(recover()) << attempt;
    hook_fails("x", "cannot");
    EXPECT_EQ(status("x"), attempt < 3 ? "recovering" : "error");
  }
  crash();
  const Json record = inspect("x");
  EXPECT_TRUE(has(record, R"({"status":"error","error":"cannot","dead":true,"snapshot":5,)"
                          R"("attempts":3})"));
  clock_.advance(std::chrono::hours(24));
  EXPECT_FALSE(fibers_->due());
  EXPECT_TRUE(fibers_->wake().none()) << "a dead fiber does not wake its agent";

  retry("x");
  EXPECT_EQ(status("x"), "recovering");
  crash();
  const Json offered = recover().value();
  EXPECT_TRUE(has(offered.at("record"), {{"attempts", 1}, {"snapshot", 5}, {"dead", false}}));
}

TEST_F(FibersRecoveryTest, WithOneAttemptAThrowingHookIsAnErrorAtOnce) {
  settings_.max_attempts = 1;
  start_interrupted(request("x"), "5");
  EXPECT_TRUE(fibers_->recovery().failed("x", "cannot").dead);
  EXPECT_EQ(status("x"), "error");
  database_->commit();
  crash();
  EXPECT_TRUE(has(inspect("x"), {{"status", "error"}, {"error", "cannot"}, {"snapshot", 5}}));
}

TEST_F(FibersRecoveryTest, WorkThatFailsBeginsAgainThoughTheHookThatWentOnWithItHasNotEnded) {
  start_interrupted({.name = "report", .id = "x", .max_retries = 1});
  settle(*fibers_->resume("x"), FiberStatus::kError, "busy");
  clock_.advance(seconds(100));
  EXPECT_EQ(fibers_->recovery().recovered("x", R"({"status":"completed"})").error().code,
            Errc::kNotFound)
      << "it is not being recovered";
  EXPECT_EQ(status("x"), "pending");
  EXPECT_TRUE(fibers_->due());
}

TEST_F(FibersRecoveryTest, WhatIsCancelledDuringItsHookIsNotResumed) {
  start_interrupted(request("x"));
  ASSERT_TRUE(fibers_->records().cancel("x", "", "stop"));
  EXPECT_EQ(fibers_->resume("x").error().code, Errc::kNotFound);
  EXPECT_EQ(fibers_->recovery().recovered("x", R"({"status":"completed"})").error().code,
            Errc::kNotFound);
  EXPECT_FALSE(fibers_->recovery().failed("x", "too late").dead);
  EXPECT_EQ(status("x"), "aborted");
}

TEST_F(FibersRecoveryTest, WhatIsCancelledBeforeItsHookBeginsCannotBeResumedThere) {
  start("x");
  crash();
  const auto begun = fibers_->recovery().begin();
  ASSERT_TRUE(begun);
  ASSERT_TRUE(fibers_->records().cancel("x", "", "stop"));
  EXPECT_EQ((*parse_json(fibers_->recovery().offer(begun->row).record))["status"], "aborted");
  EXPECT_EQ(fibers_->resume("x").error().code, Errc::kNotFound);
  EXPECT_EQ(fibers_->recovery().recovered("x", "").error().code, Errc::kNotFound);
  EXPECT_EQ(status("x"), "aborted");
}

TEST_F(FibersRecoveryTest, AJoinDuringRecoverySeesIt) {
  start_interrupted(request("x"));
  const auto joined = start("x");
  EXPECT_EQ(joined.fiber, 0U);
  EXPECT_EQ(parse_json(joined.record)->at("status"), "recovering");
}

TEST_F(FibersRecoveryTest, AnInterruptedOneIsResolvedByHand) {
  start("x");
  EXPECT_EQ(fibers_->records().resolve("x", R"({"status":"completed"})").error().code,
            Errc::kNotFound);
  interrupt();
  ASSERT_TRUE(fibers_->recovery().recovered("x", ""));
  EXPECT_EQ(fibers_->records().resolve("x", "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(fibers_->records().resolve("x", "{}").error().code, Errc::kInvalidArgument);
  const auto change =
      fibers_->records().resolve("x", R"({"status":"completed","result":"by hand"})");
  ASSERT_TRUE(change);
  EXPECT_EQ(change->status, FiberStatus::kCompleted);
  EXPECT_EQ(inspect("x")["result"], "by hand");
  EXPECT_EQ(fibers_->records().resolve("x", R"({"status":"aborted"})").error().code,
            Errc::kNotFound);
  EXPECT_EQ(fibers_->records().retry("x").error().code, Errc::kNotFound);
  EXPECT_EQ(fibers_->records().retry("absent").error().code, Errc::kNotFound);
}

TEST_F(FibersRecoveryTest, AnInterruptedOneIsOfferedAgainWhenItIsRetried) {
  start_interrupted(request("x"), "9");
  ASSERT_TRUE(fibers_->recovery().recovered("x", ""));
  retry("x");
  EXPECT_FALSE(fibers_->ends().next_untold()) << "it is not settled any more";
  const Json offered = recover().value();
  EXPECT_EQ(offered.at("record")["snapshot"], 9);
  settle(*fibers_->resume("x"), FiberStatus::kCompleted);
  EXPECT_EQ(status("x"), "completed");
}

// ---- counts that progress resets ----------------------------------------------------------------

TEST_F(FibersRecoveryTest, ProgressResetsTheRetriesOnlyIfAskedTo) {
  for (const bool resets : {true, false}) {
    const std::string id = resets ? "resets" : "counts";
    const FiberRequest wanted{
        .name = "report", .id = id, .max_retries = 2, .resets_by_progress = resets};
    FiberHandle fiber = start(wanted).fiber;
    int runs = 1;
    for (; runs < 6; ++runs) {  // each run gets a step further
      ASSERT_TRUE(fibers_->stash(fiber, std::to_string(runs)));
      if (settle(fiber, FiberStatus::kError, "no").status != FiberStatus::kPending) break;
      if (runs == 4) crash();
      clock_.advance(std::chrono::hours(1));
      ASSERT_TRUE(recover());
      fiber = *fibers_->resume(id);
    }
    EXPECT_EQ(runs, resets ? 6 : 3);
    if (!resets) continue;
    // The checkpoint that it began with is no progress.
    ASSERT_TRUE(fibers_->stash(fiber, "5"));
    EXPECT_EQ(settle(fiber, FiberStatus::kError, "no").status, FiberStatus::kPending);
    clock_.advance(std::chrono::hours(1));
    ASSERT_TRUE(recover());
    fiber = *fibers_->resume(id);
    ASSERT_TRUE(fibers_->stash(fiber, "5"));
    EXPECT_EQ(settle(fiber, FiberStatus::kError, "no").status, FiberStatus::kError);
  }
}

TEST_F(FibersRecoveryTest, ProgressResetsTheRecoveriesOfATurnOnlyIfAskedTo) {
  for (const bool resets : {true, false}) {
    const std::string id = resets ? "resets" : "counts";
    const FiberRequest wanted{
        .name = "report", .id = id, .is_turn = true, .resets_by_progress = resets};
    FiberHandle fiber = start(wanted).fiber;
    int recoveries = 0;
    for (; recoveries < 12; ++recoveries) {
      stash(fiber, std::to_string(recoveries));
      crash();
      clock_.advance(std::chrono::hours(1));
      if (!recover()) break;
      fiber = resume(id);
    }
    EXPECT_EQ(recoveries, resets ? 12 : 5);
    if (resets) settle(fiber, FiberStatus::kCompleted);
  }
}

TEST_F(FibersRecoveryTest, TheRecoveryOfASingleFiberNeedsFewStatements) {
  stash(start("x").fiber, R"({"step":1})");
  crash();
  EXPECT_EQ(fibers_->recovery().take_left_over().size(), 1U);
  EXPECT_TRUE(recover());
  EXPECT_TRUE(fibers_->recovery().due_list().empty());
  stash(resume("x"), R"({"step":2})");
  EXPECT_FALSE(fibers_->ends().sweep());
  EXPECT_LE(hearth::testing::kept_statements(*database_), 13);
}

}  // namespace
}  // namespace hearth::durable
