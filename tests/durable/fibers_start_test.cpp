// The records of fibers through every status, with restarts in between.
//
// The behaviours that users of such platforms rely on, by number in the list of acceptance
// behaviours (section 4.3), and the test of each. A waiter, which lives above this layer, waits for
// the change that settle(), cancel() and recovered() return, or for next_untold(). "records":
// fiber_records_test.cpp; "recovery": fiber_recovery_test.cpp.
//
//   28      AStartIsAnsweredWithAReceiptAndEndsWithAResult
//   29      TheSameKeyJoinsAndRunsNothing
//   30      TheSameIdJoinsAndRunsNothing
//   31      BlankNamesIdsAndKeysAreRefused
//   32      AFailureIsAnErrorWithItsMessage
//   33      ours: refused, and nothing is written: AStartThatCannotBeginWritesNothing
//   34, 37  records: EverySettledRecordIsToldOnce
//   35      TheSameKeyJoinsAndRunsNothing
//   36, 38  P2_ALateEndDoesNotUndoACancel
//   39      records: RecordsAreListedAndRemoved; OneIsNamedByItsIdOrByItsKey
//   40      records: CleanUpSparesInterruptedAndDeadOnesUnlessTheyAreNamed
//   41      recovery: TheHookGetsTheRecordAndTheRecordKeepsTheSnapshot
//   44      recovery: AJoinDuringRecoverySeesIt
//   46, 50  recovery: TheHooksOutcomeIsApplied
//   47      recovery: AnInterruptedOneIsResolvedByHand
//   48      ours: tried again, then an error: recovery: AHookThatThrowsTooOftenMakesItDead;
//           with one attempt as elsewhere: recovery: WithOneAttemptAThrowingHookIsAnErrorAtOnce
//   49      what is reported is in the change that died() returns; the events are the runtime's
//   G3, G6  fibers_test.cpp: P4_AnAttemptCountsAlsoIfTheHookTakesTheProcessWithIt,
//           AFiberThatDiesWithoutProgressGoesOnCounting
//   G16     P4_AnotherNameOrInputIsAConflict
#include "durable/fibers_fixture.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

class FibersStartTest : public FibersFixture {};

// ---- start --------------------------------------------------------------------------------------

TEST_F(FibersStartTest, AStartIsAnsweredWithAReceiptAndEndsWithAResult) {
  const FiberRequest wanted{.name = "report",
                            .key = "order 7",
                            .input = R"({"pages":3})",
                            .metadata = R"({"who":"Ada"})"};
  const auto started = start(wanted);
  EXPECT_NE(started.fiber, 0U);
  EXPECT_EQ(started.id.size(), 36U);
  const Json receipt = *parse_json(started.record);
  EXPECT_TRUE(has(receipt, {{"status", "pending"}, {"started_at", nullptr}, {"key", "order 7"}}));

  clock_.advance(2s);
  ASSERT_TRUE(fibers_->stash(started.fiber, R"({"page":2})"));
  Json now = inspect(started.id);
  EXPECT_TRUE(has(now, R"({"status":"running","snapshot":{"page":2},"completed_at":null})"));

  const auto change = settle(started.fiber, FiberStatus::kCompleted, R"(["done"])");
  EXPECT_EQ(change.id, started.id);
  EXPECT_EQ(change.status, FiberStatus::kCompleted);
  crash();
  now = inspect(started.id);
  EXPECT_EQ(*parse_json(change.record), now);
  EXPECT_TRUE(has(now, R"({"status":"completed","result":["done"],"input":{"pages":3},)"
                       R"("metadata":{"who":"Ada"}})"));
  EXPECT_EQ(now["snapshot"], Json::parse(R"({"page":2})")) << "the record keeps the last one";
  EXPECT_EQ(now["error"], nullptr);
  EXPECT_EQ(now["completed_at"].get<std::int64_t>() - now["started_at"].get<std::int64_t>(), 2000);
  EXPECT_EQ(count("SELECT count(*) FROM cf_agents_runs"), 0);
  EXPECT_FALSE(recover());
}

TEST_F(FibersStartTest, TheSameKeyJoinsAndRunsNothing) {
  const FiberRequest wanted{.name = "report", .key = "k"};
  const auto first = start(wanted);
  auto again = start(wanted);
  EXPECT_EQ(again.fiber, 0U);
  EXPECT_EQ(again.id, first.id);
  EXPECT_EQ(parse_json(again.record)->at("status"), "running");
  settle(first.fiber, FiberStatus::kCompleted, "1");
  again = start(wanted);
  EXPECT_EQ(again.fiber, 0U);
  EXPECT_EQ(parse_json(again.record)->at("result"), 1);
  EXPECT_EQ(fibers_->runs().size(), 0U);
}

TEST_F(FibersStartTest, TheSameIdJoinsAndRunsNothing) {
  const auto first = start("mine");
  EXPECT_EQ(first.id, "mine");
  EXPECT_EQ(start("mine").fiber, 0U);
  crash();
  EXPECT_EQ(start("mine").fiber, 0U);
  EXPECT_EQ(fibers_->recovery().due_list().size(), 1U);
}

TEST_F(FibersStartTest, P9_AnIdWithAnotherKeyIsAConflict) {
  const auto by_id = start("mine");
  FiberRequest both{.name = "report", .id = "mine", .key = "k"};
  EXPECT_EQ(refusal(both), Errc::kConflict);
  const auto by_key = start({.name = "report", .key = "k"});
  EXPECT_NE(by_key.fiber, 0U) << "nothing of that key was accepted before";
  both.id = by_key.id;
  EXPECT_EQ(start(both).fiber, 0U);
  settle(by_id.fiber, FiberStatus::kCompleted, "1");
  both.id = "mine";
  both.key = "new";
  EXPECT_EQ(refusal(both), Errc::kConflict);
  both.policy = SettledKey::kReplace;
  EXPECT_NE(start(both).fiber, 0U);
}

TEST_F(FibersStartTest, BlankNamesIdsAndKeysAreRefused) {
  for (const std::string_view bad :
       {std::string_view(" \t "), std::string_view("\xff"), std::string_view("a\0b", 3)}) {
    EXPECT_EQ(refusal(request(bad)), Errc::kInvalidArgument);
    EXPECT_EQ(refusal({.name = "report", .key = bad}), Errc::kInvalidArgument);
    EXPECT_EQ(refusal({.name = bad}), Errc::kInvalidArgument);
  }
  EXPECT_EQ(refusal({.name = ""}), Errc::kInvalidArgument);
  EXPECT_EQ(refusal(request(std::string(257, 'i'))), Errc::kInvalidArgument);
  EXPECT_FALSE(database_->exists());
}

TEST_F(FibersStartTest, WhatIsNoJsonAndWaitsThatCannotBeKeptAreRefused) {
  EXPECT_EQ(refusal({.name = "report", .input = "{"}), Errc::kInvalidArgument);
  EXPECT_EQ(refusal({.name = "report", .metadata = "nope"}), Errc::kInvalidArgument);
  const std::string large(settings_.max_json_bytes + 1, '1');
  EXPECT_EQ(refusal({.name = "report", .metadata = large}), Errc::kLimitExceeded);
  EXPECT_EQ(refusal({.name = "report", .max_retries = 1001}), Errc::kInvalidArgument);
  // Above the longest wait that is meant when none is given.
  EXPECT_EQ(refusal({.name = "report", .retry_base_ms = 300'001}), Errc::kInvalidArgument);
  EXPECT_EQ(refusal({.name = "report", .retry_max_ms = UINT64_MAX}), Errc::kInvalidArgument);
  EXPECT_EQ(refusal({.policy = static_cast<SettledKey>(4), .name = "report"}),
            Errc::kInvalidArgument);
}

TEST_F(FibersStartTest, P9_AnotherNameOrInputIsAConflict) {
  const FiberRequest wanted{.name = "report", .key = "k", .input = R"({"a":1,"b":[2]})"};
  const auto first = start(wanted);
  FiberRequest same = wanted;
  same.input = R"( {"b": [2], "a": 1} )";
  EXPECT_EQ(start(same).id, first.id) << "spelled in another way";
  FiberRequest other = wanted;
  other.input = R"({"a":1,"b":[3]})";
  EXPECT_EQ(refusal(other), Errc::kConflict);
  other.policy = SettledKey::kReplace;
  EXPECT_EQ(refusal(other), Errc::kConflict) << "it is not settled";
  FiberRequest renamed = wanted;
  renamed.name = "other";
  EXPECT_EQ(refusal(renamed), Errc::kConflict);
  settle(first.fiber, FiberStatus::kCompleted);
  EXPECT_EQ(refusal(renamed), Errc::kConflict);
  EXPECT_NE(start(other).fiber, 0U) << "a settled one may be replaced";
}

TEST_F(FibersStartTest, AnIdAndAKeyOfDifferentRecordsAreRefused) {
  const auto first = start({.name = "report", .key = "k"});
  start("i");
  FiberRequest both{.name = "report", .id = "i", .key = "k"};
  EXPECT_EQ(refusal(both), Errc::kInvalidArgument);
  both.id = "a new one";  // callers that make an id for each try
  EXPECT_EQ(start(both).id, first.id);
}

TEST_F(FibersStartTest, ThePolicySaysWhatASettledKeyMeans) {
  FiberRequest wanted{.policy = SettledKey::kReject, .name = "report", .id = "i", .key = "k"};
  const auto first = start(wanted);
  EXPECT_EQ(start(wanted).fiber, 0U) << "what is not settled is joined";
  settle(first.fiber, FiberStatus::kError, "no");
  EXPECT_EQ(refusal(wanted), Errc::kConflict);
  wanted.policy = SettledKey::kReplace;
  const auto second = start(wanted);
  EXPECT_NE(second.fiber, 0U);
  EXPECT_EQ(status("i"), "running");
  EXPECT_EQ(inspect("i")["error"], nullptr);
  EXPECT_FALSE(fibers_->ends().next_untold()) << "the old one is gone";
  crash();
  EXPECT_EQ(status("i"), "recovering");
}

TEST_F(FibersStartTest, AStartThatCannotBeginWritesNothing) {
  settings_.max_running = 1;
  crash();
  const auto first = start("settled");
  settle(first.fiber, FiberStatus::kCompleted, "1");
  start("running");
  const FiberRequest wanted{.policy = SettledKey::kReplace, .name = "report", .id = "settled"};
  EXPECT_EQ(refusal(wanted), Errc::kLimitExceeded);
  EXPECT_EQ(refusal(request("new")), Errc::kLimitExceeded);
  database_->commit();
  EXPECT_EQ(status("settled"), "completed");
  EXPECT_EQ(status("new"), "none");
}

TEST_F(FibersStartTest, RecordsAreBoundedInNumber) {
  settings_.max_records = 3;
  crash();
  for (const char* id : {"a", "b", "c"}) settle(start(id).fiber, FiberStatus::kCompleted);
  EXPECT_EQ(refusal(request("d")), Errc::kLimitExceeded);
  crash();
  EXPECT_EQ(refusal(request("d")), Errc::kLimitExceeded);
  FiberFilter one;
  one.limit = 1;
  ASSERT_EQ(*fibers_->records().remove(one), 1U);
  start("d");
  while (const auto change = fibers_->ends().next_untold()) fibers_->ends().told(change->id, true);
  clock_.advance(settings_.keep_completed);
  start("e");  // records whose time is over are removed
  EXPECT_EQ(ids(listed({})), "e d ");
}

// ---- the end ------------------------------------------------------------------------------------

TEST_F(FibersStartTest, AFailureIsAnErrorWithItsMessage) {
  const auto started = start("x");
  const auto change = settle(started.fiber, FiberStatus::kError, "out of \"paper\"");
  EXPECT_EQ(change.status, FiberStatus::kError);
  crash();
  const Json record = inspect("x");
  EXPECT_TRUE(has(record, R"({"status":"error","error":"out of \"paper\"","failures":1,)"
                          R"("dead":false})"));
  EXPECT_FALSE(recover());
}

TEST_F(FibersStartTest, AnEndThatWasNotCommittedIsNoEnd) {
  const auto started = start("x");
  ASSERT_TRUE(fibers_->settle(started.fiber, FiberStatus::kCompleted, "1"));
  crash();
  EXPECT_EQ(status("x"), "recovering");
  EXPECT_TRUE(recover());
}

TEST_F(FibersStartTest, WorkEndsOnlyInAWayThatThereIs) {
  const auto started = start("x");
  EXPECT_EQ(fibers_->settle(started.fiber, FiberStatus::kInterrupted, "").error().code,
            Errc::kInvalidArgument);
  EXPECT_EQ(fibers_->settle(started.fiber, FiberStatus::kCompleted, "{").error().code,
            Errc::kInvalidArgument);
  EXPECT_EQ(fibers_
                ->settle(started.fiber, FiberStatus::kCompleted,
                         std::string(settings_.max_json_bytes + 1, '1'))
                .error()
                .code,
            Errc::kLimitExceeded);
  EXPECT_EQ(status("x"), "running") << "it can still end in another way";
}

TEST_F(FibersStartTest, P2_ALateEndDoesNotUndoACancel) {
  const FiberRequest wanted{.name = "report", .id = "x", .key = "k"};
  const auto started = start(wanted);
  ASSERT_TRUE(fibers_->stash(started.fiber, "1"));
  const auto change = fibers_->records().cancel("", "k", "not wanted").value();
  EXPECT_EQ(change.status, FiberStatus::kAborted);
  EXPECT_EQ(parse_json(change.record)->at("error"), "not wanted");
  database_->commit();
  EXPECT_EQ(fibers_->runs().size(), 0U);
  EXPECT_EQ(fibers_->stash(started.fiber, "2").error().code, Errc::kNotFound);
  EXPECT_EQ(fibers_->settle(started.fiber, FiberStatus::kCompleted, "3").error().code,
            Errc::kNotFound);
  EXPECT_EQ(fibers_->records().cancel("x", "", "again").error().code, Errc::kNotFound);
  crash();
  const Json record = inspect("x");
  EXPECT_TRUE(has(record, R"({"status":"aborted","error":"not wanted","snapshot":1,)"
                          R"("result":null})"));
  EXPECT_FALSE(recover());
}

TEST_F(FibersStartTest, OneIsNamedByItsIdOrByItsKey) {
  EXPECT_EQ(fibers_->records().inspect("x", "").error().code, Errc::kNotFound);
  EXPECT_EQ(fibers_->records().inspect("", "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(fibers_->records().inspect("x", "k").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(fibers_->records().cancel("", "k", "").error().code, Errc::kNotFound);
  start({.name = "report", .id = "x", .key = "k"});
  EXPECT_EQ(*fibers_->records().inspect("", "k"), *fibers_->records().inspect("x", ""));
}

// ---- retries ------------------------------------------------------------------------------------

TEST_F(FibersStartTest, AFailureWithRetriesLeftBeginsAgainAfterGrowingWaitsThatSurviveARestart) {
  FiberRequest wanted{.name = "report", .id = "x", .max_retries = 3};
  wanted.retry_base_ms = 1'000'000;  // longer than any wait of a recovery
  wanted.retry_max_ms = 3'000'000;
  FiberHandle fiber = start(wanted).fiber;
  for (const std::int64_t least : {1'000'000, 2'000'000, 3'000'000}) {
    const auto change = settle(fiber, FiberStatus::kError, "busy");
    EXPECT_EQ(change.status, FiberStatus::kPending);
    EXPECT_EQ(parse_json(change.record)->at("error"), "busy");
    EXPECT_EQ(fibers_->settle(fiber, FiberStatus::kCompleted, "").error().code, Errc::kNotFound);
    crash();
    EXPECT_EQ(status("x"), "pending");
    const auto next = inspect("x")["next_at"].get<std::int64_t>();
    EXPECT_GE(next, now() + least);
    EXPECT_LE(next, now() + least + least / 4);
    EXPECT_EQ(fibers_->wake().at_ms, next);
    EXPECT_FALSE(fibers_->due());
    clock_.advance(milliseconds(next - now()));
    const Json offered = recover().value();
    EXPECT_EQ(offered.at("reason"), "retry");
    EXPECT_EQ(offered.at("record")["status"], "recovering");
    EXPECT_EQ(offered.at("record")["attempts"], 1) << "a failure of the work is no crash";
    fiber = resume("x");
    EXPECT_EQ(status("x"), "running");
  }
  EXPECT_EQ(settle(fiber, FiberStatus::kError, "still busy").status, FiberStatus::kError);
  EXPECT_EQ(inspect("x")["failures"], 4);
}

TEST_F(FibersStartTest, ARetryThatCrashesIsInterruptedWork) {
  settle(start({.name = "report", .id = "x", .max_retries = 1}).fiber, FiberStatus::kError, "busy");
  clock_.advance(2s);
  EXPECT_EQ(recover()->at("reason"), "retry");
  crash();  // in the hook
  clock_.advance(2s);
  EXPECT_EQ(recover()->at("reason"), "retry");
  resume("x");
  crash();  // in the work
  EXPECT_EQ(status("x"), "recovering");
  clock_.advance(10s);
  EXPECT_EQ(recover()->at("reason"), "interrupted");
}

TEST_F(FibersStartTest, ARetryKeepsItsWaitIfTheClockWasAheadWhenItBegan) {
  const WallTime right = clock_.wall_now();
  clock_.set_wall(right + 24h * 365);
  settle(start({.name = "report", .id = "x", .max_retries = 1}).fiber, FiberStatus::kError, "busy");
  const std::int64_t wait = *fibers_->wake().at_ms - now();
  clock_.set_wall(right);
  crash();
  EXPECT_EQ(fibers_->wake().at_ms, unix_millis(right) + wait);
}

TEST_F(FibersStartTest, WhatWaitsForItsRetryCanBeCancelled) {
  settle(start({.name = "report", .id = "x", .max_retries = 1}).fiber, FiberStatus::kError, "busy");
  cancel("x", "enough");
  crash();
  EXPECT_EQ(status("x"), "aborted");
  EXPECT_TRUE(fibers_->wake().none());
}

TEST_F(FibersStartTest, WorkMayEndWithAnOutcomeThatHasAReason) {
  const FiberHandle fiber = start({.name = "report", .id = "x", .max_retries = 3}).fiber;
  for (const char* const bad : {R"({"status":"interrupted"})", R"({"status":"error","reason":""})",
                                R"({"status":"error","reason":7})", "{", ""})
    EXPECT_EQ(fibers_->settle(fiber, bad).error().code, Errc::kInvalidArgument) << bad;
  const std::string too_long = R"({"status":"error","reason":")" + std::string(257, 'x') + "\"}";
  EXPECT_EQ(fibers_->settle(fiber, too_long).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(status("x"), "running");
  ASSERT_TRUE(fibers_->settle(
      fiber, R"({"status":"error","error":"no tokens are left today","reason":"budget"})"));
  EXPECT_EQ(fibers_->settle(fiber, R"({"status":"error"})").error().code, Errc::kNotFound);
  database_->commit();
  crash();
  const Json record = inspect("x");
  EXPECT_EQ(record["status"], "error") << "it is final";
  EXPECT_TRUE(has(record, R"({"error":"no tokens are left today","reason":"budget",)"
                          R"("failures":1})"));
  const auto told = fibers_->ends().next_untold().value();
  EXPECT_EQ(parse_json(told.record)->at("reason"), "budget");
  settle(start("y").fiber, FiberStatus::kError, "no");
  EXPECT_FALSE(inspect("y").contains("reason"));
}

}  // namespace
}  // namespace hearth::durable
