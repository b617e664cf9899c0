// The records of managed fibers through every status, with restarts in between.
//
// The behaviours that users of such platforms rely on, by their numbers in the list of acceptance behaviours (section 4.3), and where
// each is tested. A waiter waits for the change that settle(), cancel() and recovered() return, or for next_untold(); it lives
// above this layer. "records": managed_fibers_records_test.cpp.
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
//   41      TheHookGetsTheRecordAndTheRecordKeepsTheSnapshot
//   42, 43  P1_AnOpenRecordWithoutARowIsRecovered
//   44      AJoinDuringRecoverySeesIt
//   45      P1_ARowOfASettledRecordGoesWithoutAHook
//   46, 50  TheHooksOutcomeIsApplied
//   47      AnInterruptedOneIsResolvedByHand
//   48      ours: tried again, then an error: AHookThatThrowsTooOftenMakesItDead;
//           with one attempt as elsewhere: WithOneAttemptAThrowingHookIsAnErrorAtOnce
//   49      what is reported is in the change that died() returns; the events are the runtime's
//   G3, G6  ACrashInTheHookIsOfferedAgain, ACrashLoopEndsAsADeadRecord
//   G16     P4_AnotherNameOrInputIsAConflict
#include "durable/managed_fibers_fixture.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class ManagedFibersTest : public ManagedFibersFixture {};

// ---- start ------------------------------------------------------------------------------------------------

TEST_F(ManagedFibersTest, AStartIsAnsweredWithAReceiptAndEndsWithAResult) {
  ManagedRequest wanted = request();
  wanted.key = "order 7";
  wanted.input = R"({"pages":3})";
  wanted.metadata = R"({"who":"Ada"})";
  const auto started = start(wanted);
  EXPECT_NE(started.fiber, 0U);
  EXPECT_EQ(started.id.size(), 36U);
  const Json receipt = *parse_json(started.record);
  EXPECT_EQ(receipt["status"], "pending");
  EXPECT_EQ(receipt["started_at"], nullptr);
  EXPECT_EQ(receipt["key"], "order 7");

  clock_.advance(seconds(2));
  ASSERT_TRUE(fibers_->stash(started.fiber, R"({"page":2})"));
  Json now = inspect(started.id);
  EXPECT_EQ(now["status"], "running");
  EXPECT_EQ(now["snapshot"], Json::parse(R"({"page":2})"));
  EXPECT_EQ(now["completed_at"], nullptr);

  const auto change = settle(started.fiber, FiberStatus::kCompleted, R"(["done"])");
  EXPECT_EQ(change.id, started.id);
  EXPECT_EQ(change.status, FiberStatus::kCompleted);
  crash();
  now = inspect(started.id);
  EXPECT_EQ(*parse_json(change.record), now);
  EXPECT_EQ(now["status"], "completed");
  EXPECT_EQ(now["result"], Json::parse(R"(["done"])"));
  EXPECT_EQ(now["input"], Json::parse(R"({"pages":3})"));
  EXPECT_EQ(now["metadata"], Json::parse(R"({"who":"Ada"})"));
  EXPECT_EQ(now["snapshot"], Json::parse(R"({"page":2})")) << "the record keeps the last one";
  EXPECT_EQ(now["error"], nullptr);
  EXPECT_EQ(now["completed_at"].get<std::int64_t>() - now["started_at"].get<std::int64_t>(), 2000);
  EXPECT_EQ(count("SELECT count(*) FROM cf_agents_runs"), 0);
  EXPECT_FALSE(recover());
}

TEST_F(ManagedFibersTest, TheSameKeyJoinsAndRunsNothing) {
  ManagedRequest wanted = request();
  wanted.key = "k";
  const auto first = start(wanted);
  auto again = start(wanted);
  EXPECT_EQ(again.fiber, 0U);
  EXPECT_EQ(again.id, first.id);
  EXPECT_EQ(parse_json(again.record)->at("status"), "running");
  settle(first.fiber, FiberStatus::kCompleted, "1");
  again = start(wanted);
  EXPECT_EQ(again.fiber, 0U);
  EXPECT_EQ(parse_json(again.record)->at("result"), 1);
  EXPECT_EQ(fibers_->running(), 0U);
}

TEST_F(ManagedFibersTest, TheSameIdJoinsAndRunsNothing) {
  const auto first = start("mine");
  EXPECT_EQ(first.id, "mine");
  EXPECT_EQ(start("mine").fiber, 0U);
  crash();
  EXPECT_EQ(start("mine").fiber, 0U);
  EXPECT_EQ(fibers_->counts().interrupted, 1U);
}

TEST_F(ManagedFibersTest, BlankNamesIdsAndKeysAreRefused) {
  for (const std::string_view bad :
       {std::string_view(" \t "), std::string_view("\xff"), std::string_view("a\0b", 3)}) {
    ManagedRequest wanted = request(bad);
    EXPECT_EQ(managed_->start(wanted).error().code, Errc::kInvalidArgument);
    wanted = request();
    wanted.key = bad;
    EXPECT_EQ(managed_->start(wanted).error().code, Errc::kInvalidArgument);
    wanted = request();
    wanted.name = bad;
    EXPECT_EQ(managed_->start(wanted).error().code, Errc::kInvalidArgument);
  }
  ManagedRequest nameless = request();
  nameless.name = "";
  EXPECT_EQ(managed_->start(nameless).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(managed_->start(request(std::string(257, 'i'))).error().code, Errc::kInvalidArgument);
  EXPECT_FALSE(database_->exists());
}

TEST_F(ManagedFibersTest, WhatIsNoJsonAndWaitsThatCannotBeKeptAreRefused) {
  ManagedRequest wanted = request();
  wanted.input = "{";
  EXPECT_EQ(managed_->start(wanted).error().code, Errc::kInvalidArgument);
  wanted = request();
  wanted.metadata = "nope";
  EXPECT_EQ(managed_->start(wanted).error().code, Errc::kInvalidArgument);
  const std::string large(settings_.max_json_bytes + 1, '1');
  wanted.metadata = large;
  EXPECT_EQ(managed_->start(wanted).error().code, Errc::kLimitExceeded);
  wanted = request();
  wanted.max_retries = 1001;
  EXPECT_EQ(managed_->start(wanted).error().code, Errc::kInvalidArgument);
  wanted = request();
  wanted.retry_base_ms = 300'001;  // above the longest wait that is meant when none is given
  EXPECT_EQ(managed_->start(wanted).error().code, Errc::kInvalidArgument);
  wanted = request();
  wanted.retry_max_ms = UINT64_MAX;
  EXPECT_EQ(managed_->start(wanted).error().code, Errc::kInvalidArgument);
  wanted = request();
  wanted.policy = static_cast<SettledKey>(3);
  EXPECT_EQ(managed_->start(wanted).error().code, Errc::kInvalidArgument);
}

TEST_F(ManagedFibersTest, P4_AnotherNameOrInputIsAConflict) {
  ManagedRequest wanted = request();
  wanted.key = "k";
  wanted.input = R"({"a":1,"b":[2]})";
  const auto first = start(wanted);
  ManagedRequest same = wanted;
  same.input = R"( {"b": [2], "a": 1} )";
  EXPECT_EQ(start(same).id, first.id) << "spelled in another way";
  ManagedRequest other = wanted;
  other.input = R"({"a":1,"b":[3]})";
  EXPECT_EQ(managed_->start(other).error().code, Errc::kConflict);
  other.policy = SettledKey::kReplace;
  EXPECT_EQ(managed_->start(other).error().code, Errc::kConflict) << "it is not settled";
  ManagedRequest renamed = wanted;
  renamed.name = "other";
  EXPECT_EQ(managed_->start(renamed).error().code, Errc::kConflict);
  settle(first.fiber, FiberStatus::kCompleted);
  EXPECT_EQ(managed_->start(renamed).error().code, Errc::kConflict);
  EXPECT_NE(start(other).fiber, 0U) << "a settled one may be replaced";
}

TEST_F(ManagedFibersTest, AnIdAndAKeyOfDifferentRecordsAreRefused) {
  ManagedRequest keyed = request();
  keyed.key = "k";
  const auto first = start(keyed);
  start("i");
  ManagedRequest both = request("i");
  both.key = "k";
  EXPECT_EQ(managed_->start(both).error().code, Errc::kInvalidArgument);
  both.id = "a new one";  // callers that make an id for each try
  EXPECT_EQ(start(both).id, first.id);
}

TEST_F(ManagedFibersTest, ThePolicySaysWhatASettledKeyMeans) {
  ManagedRequest wanted = request("i");
  wanted.key = "k";
  wanted.policy = SettledKey::kReject;
  const auto first = start(wanted);
  EXPECT_EQ(start(wanted).fiber, 0U) << "what is not settled is joined";
  settle(first.fiber, FiberStatus::kError, "no");
  EXPECT_EQ(managed_->start(wanted).error().code, Errc::kConflict);
  wanted.policy = SettledKey::kReplace;
  const auto second = start(wanted);
  EXPECT_NE(second.fiber, 0U);
  EXPECT_EQ(status("i"), "running");
  EXPECT_EQ(inspect("i")["error"], nullptr);
  EXPECT_FALSE(managed_->next_untold()) << "the old one is gone";
  crash();
  EXPECT_EQ(status("i"), "recovering");
}

TEST_F(ManagedFibersTest, AStartThatCannotBeginWritesNothing) {
  fiber_settings_.max_running = 1;
  crash();
  const auto first = start("settled");
  settle(first.fiber, FiberStatus::kCompleted, "1");
  const auto plain = fibers_->start("unmanaged", "");
  ManagedRequest wanted = request("settled");
  wanted.policy = SettledKey::kReplace;
  EXPECT_EQ(managed_->start(wanted).error().code, Errc::kLimitExceeded);
  EXPECT_EQ(managed_->start(request("new")).error().code, Errc::kLimitExceeded);
  database_->commit();
  EXPECT_EQ(status("settled"), "completed");
  EXPECT_EQ(status("new"), "none");
  fiber_settings_.max_running = 10;
  crash();
  EXPECT_EQ(managed_->start(request(plain->id)).error().code, Errc::kConflict)
      << "an unmanaged fiber has this id";
}

TEST_F(ManagedFibersTest, RecordsAreBoundedInNumber) {
  settings_.max_records = 3;
  crash();
  for (const char* id : {"a", "b", "c"}) settle(start(id).fiber, FiberStatus::kCompleted);
  EXPECT_EQ(managed_->start(request("d")).error().code, Errc::kLimitExceeded);
  crash();
  EXPECT_EQ(managed_->start(request("d")).error().code, Errc::kLimitExceeded);
  ManagedFilter one;
  one.limit = 1;
  ASSERT_EQ(*managed_->remove(one), 1U);
  start("d");
  while (const auto change = managed_->next_untold()) managed_->told(change->id, true);
  clock_.advance(settings_.keep_completed);
  start("e");  // what has had its time goes
  EXPECT_EQ(ids(listed({})), "e d ");
}

// ---- the end ----------------------------------------------------------------------------------------------

TEST_F(ManagedFibersTest, AFailureIsAnErrorWithItsMessage) {
  const auto started = start("x");
  const auto change = settle(started.fiber, FiberStatus::kError, "out of \"paper\"");
  EXPECT_EQ(change.status, FiberStatus::kError);
  crash();
  const Json record = inspect("x");
  EXPECT_EQ(record["status"], "error");
  EXPECT_EQ(record["error"], "out of \"paper\"");
  EXPECT_EQ(record["failures"], 1);
  EXPECT_EQ(record["dead"], false);
  EXPECT_FALSE(recover());
}

TEST_F(ManagedFibersTest, AnEndThatWasNotCommittedIsNoEnd) {
  const auto started = start("x");
  ASSERT_TRUE(managed_->settle(started.fiber, FiberStatus::kCompleted, "1"));
  crash();
  EXPECT_EQ(status("x"), "recovering");
  EXPECT_TRUE(recover());
}

TEST_F(ManagedFibersTest, WorkEndsOnlyInAWayThatThereIs) {
  const auto started = start("x");
  EXPECT_EQ(managed_->settle(started.fiber, FiberStatus::kInterrupted, "").error().code,
            Errc::kInvalidArgument);
  EXPECT_EQ(managed_->settle(started.fiber, FiberStatus::kCompleted, "{").error().code,
            Errc::kInvalidArgument);
  EXPECT_EQ(managed_
                ->settle(started.fiber, FiberStatus::kCompleted,
                         std::string(settings_.max_json_bytes + 1, '1'))
                .error()
                .code,
            Errc::kLimitExceeded);
  EXPECT_EQ(status("x"), "running") << "it can still end in another way";
  EXPECT_EQ(fibers_->finish(started.fiber).error().code, Errc::kInvalidArgument)
      << "that would leave a record without a row";
  const auto plain = fibers_->start("unmanaged", "");
  EXPECT_EQ(managed_->settle(plain->handle, FiberStatus::kCompleted, "").error().code,
            Errc::kNotFound);
}

TEST_F(ManagedFibersTest, P2_ALateEndDoesNotUndoACancel) {
  ManagedRequest wanted = request("x");
  wanted.key = "k";
  const auto started = start(wanted);
  ASSERT_TRUE(fibers_->stash(started.fiber, "1"));
  const auto change = managed_->cancel("", "k", "not wanted");
  ASSERT_TRUE(change);
  EXPECT_EQ(change->status, FiberStatus::kAborted);
  EXPECT_EQ(parse_json(change->record)->at("error"), "not wanted");
  database_->commit();
  EXPECT_EQ(fibers_->running(), 0U);
  EXPECT_EQ(fibers_->stash(started.fiber, "2").error().code, Errc::kNotFound);
  EXPECT_EQ(managed_->settle(started.fiber, FiberStatus::kCompleted, "3").error().code,
            Errc::kNotFound);
  EXPECT_EQ(managed_->cancel("x", "", "again").error().code, Errc::kNotFound);
  crash();
  const Json record = inspect("x");
  EXPECT_EQ(record["status"], "aborted");
  EXPECT_EQ(record["error"], "not wanted");
  EXPECT_EQ(record["snapshot"], 1);
  EXPECT_EQ(record["result"], nullptr);
  EXPECT_FALSE(recover());
}

TEST_F(ManagedFibersTest, OneIsNamedByItsIdOrByItsKey) {
  EXPECT_EQ(managed_->inspect("x", "").error().code, Errc::kNotFound);
  EXPECT_EQ(managed_->inspect("", "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(managed_->inspect("x", "k").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(managed_->cancel("", "k", "").error().code, Errc::kNotFound);
  ManagedRequest wanted = request("x");
  wanted.key = "k";
  start(wanted);
  EXPECT_EQ(*managed_->inspect("", "k"), *managed_->inspect("x", ""));
}

// ---- retries ----------------------------------------------------------------------------------------------

TEST_F(ManagedFibersTest, AFailureWithRetriesLeftBeginsAgainAfterGrowingWaitsThatSurviveARestart) {
  ManagedRequest wanted = request("x");
  wanted.max_retries = 3;
  wanted.retry_base_ms = 1'000'000;  // longer than any wait of a recovery
  wanted.retry_max_ms = 3'000'000;
  FiberHandle fiber = start(wanted).fiber;
  for (const std::int64_t least : {1'000'000, 2'000'000, 3'000'000}) {
    const auto change = settle(fiber, FiberStatus::kError, "busy");
    EXPECT_EQ(change.status, FiberStatus::kPending);
    EXPECT_EQ(parse_json(change.record)->at("error"), "busy");
    EXPECT_EQ(managed_->settle(fiber, FiberStatus::kCompleted, "").error().code, Errc::kNotFound);
    crash();
    EXPECT_EQ(status("x"), "pending");
    const std::int64_t now = unix_millis(clock_.wall_now());
    const auto next = inspect("x")["next_at"].get<std::int64_t>();
    EXPECT_GE(next, now + least);
    EXPECT_LE(next, now + least + least / 4);
    EXPECT_EQ(fibers_->wake().at_ms, next);
    EXPECT_FALSE(fibers_->due());
    clock_.advance(milliseconds(next - now));
    const auto offered = recover();
    ASSERT_TRUE(offered);
    EXPECT_EQ(offered->at("reason"), "retry");
    EXPECT_EQ(offered->at("managed")["status"], "recovering");
    EXPECT_EQ(offered->at("managed")["attempts"], 1) << "a failure of the work is no crash";
    fiber = *managed_->resume("x");
    database_->commit();
    EXPECT_EQ(status("x"), "running");
  }
  EXPECT_EQ(settle(fiber, FiberStatus::kError, "still busy").status, FiberStatus::kError);
  EXPECT_EQ(inspect("x")["failures"], 4);
}

TEST_F(ManagedFibersTest, ARetryThatCrashesIsInterruptedWork) {
  ManagedRequest wanted = request("x");
  wanted.max_retries = 1;
  settle(start(wanted).fiber, FiberStatus::kError, "busy");
  clock_.advance(seconds(2));
  EXPECT_EQ(recover()->at("reason"), "retry");
  crash();  // in the hook
  clock_.advance(seconds(2));
  EXPECT_EQ(recover()->at("reason"), "retry");
  ASSERT_TRUE(managed_->resume("x"));
  database_->commit();
  crash();  // in the work
  EXPECT_EQ(status("x"), "recovering");
  clock_.advance(seconds(10));
  EXPECT_EQ(recover()->at("reason"), "interrupted");
}

TEST_F(ManagedFibersTest, AClockThatWasAheadPostponesARetryByNoMoreThanItsLongestWait) {
  const WallTime right = clock_.wall_now();
  clock_.set_wall(right + hours(24 * 365));
  ManagedRequest wanted = request("x");
  wanted.max_retries = 1;
  settle(start(wanted).fiber, FiberStatus::kError, "busy");
  clock_.set_wall(right);
  crash();
  clock_.advance(seconds(375));
  EXPECT_TRUE(fibers_->due());
}

TEST_F(ManagedFibersTest, WhatWaitsForItsRetryCanBeCancelled) {
  ManagedRequest wanted = request("x");
  wanted.max_retries = 1;
  settle(start(wanted).fiber, FiberStatus::kError, "busy");
  ASSERT_TRUE(managed_->cancel("x", "", "enough"));
  database_->commit();
  crash();
  EXPECT_EQ(status("x"), "aborted");
  EXPECT_TRUE(fibers_->wake().none());
}

// ---- recovery ---------------------------------------------------------------------------------------------

TEST_F(ManagedFibersTest, TheHookGetsTheRecordAndTheRecordKeepsTheSnapshot) {
  ManagedRequest wanted = request("x");
  wanted.key = "k";
  wanted.input = "[1]";
  wanted.metadata = R"("m")";
  ASSERT_TRUE(fibers_->stash(start(wanted).fiber, R"({"step":4})"));
  database_->commit();
  crash();
  EXPECT_EQ(status("x"), "recovering") << "whatever the disk says";
  const auto offered = recover();
  ASSERT_TRUE(offered);
  EXPECT_EQ(offered->at("reason"), "interrupted");
  const Json& record = offered->at("managed");
  EXPECT_EQ(record["id"], "x");
  EXPECT_EQ(record["key"], "k");
  EXPECT_EQ(record["input"], Json::parse("[1]"));
  EXPECT_EQ(record["metadata"], "m");
  EXPECT_EQ(record["status"], "recovering");
  EXPECT_EQ(record["attempts"], 1);
  ASSERT_TRUE(managed_->recovered("x", ""));
  database_->commit();
  crash();
  EXPECT_EQ(status("x"), "interrupted") << "nobody went on";
  EXPECT_EQ(inspect("x")["snapshot"], Json::parse(R"({"step":4})"));
  EXPECT_EQ(inspect("x")["attempts"], 1);
  EXPECT_FALSE(recover());
}

TEST_F(ManagedFibersTest, TheHooksOutcomeIsApplied) {
  ASSERT_TRUE(fibers_->stash(start("x").fiber, "1"));
  database_->commit();
  crash();
  ASSERT_TRUE(recover());
  const auto change = managed_->recovered(
      "x", R"({"status":"completed","result":[7],"snapshot":{"s":2},"metadata":"new"})");
  ASSERT_TRUE(change);
  EXPECT_EQ(change->status, FiberStatus::kCompleted);
  database_->commit();
  crash();
  const Json record = inspect("x");
  EXPECT_EQ(record["status"], "completed");
  EXPECT_EQ(record["result"], Json::parse("[7]"));
  EXPECT_EQ(record["snapshot"], Json::parse(R"({"s":2})"));
  EXPECT_EQ(record["metadata"], "new");
  EXPECT_EQ(count("SELECT count(*) FROM cf_agents_runs"), 0);
}

TEST_F(ManagedFibersTest, WhatIsNoOutcomeIsAFailureOfTheHook) {
  start("x");
  crash();
  ASSERT_TRUE(recover());
  for (const char* body : {"[]", "{}", R"({"status":"running"})", R"({"status":1})",
                           R"({"status":"error","error":{}})"}) {
    EXPECT_EQ(managed_->recovered("x", body).error().code, Errc::kInvalidArgument) << body;
  }
  EXPECT_EQ(status("x"), "recovering");
  hook_fails("x", "no outcome");
  EXPECT_EQ(status("x"), "recovering") << "it is offered again";
}

TEST_F(ManagedFibersTest, AResumedFiberGoesOnUnderItsIdAndItsHookSettlesNothing) {
  ASSERT_TRUE(fibers_->stash(start("x").fiber, "1"));
  database_->commit();
  crash();
  EXPECT_EQ(managed_->resume("x").error().code, Errc::kNotFound) << "it is not being offered yet";
  ASSERT_TRUE(recover());
  const auto fiber = managed_->resume("x");
  ASSERT_TRUE(fiber);
  database_->commit();
  EXPECT_EQ(status("x"), "running");
  EXPECT_EQ(managed_->resume("x").error().code, Errc::kNotFound);
  EXPECT_EQ(managed_->recovered("x", "").error().code, Errc::kNotFound) << "the hook ends";
  EXPECT_EQ(status("x"), "running");
  crash();
  clock_.advance(seconds(10));
  const auto again = recover();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->at("managed")["attempts"], 2) << "no progress since";
  EXPECT_EQ(again->at("managed")["snapshot"], 1);
  const auto next = managed_->resume("x");
  ASSERT_TRUE(fibers_->stash(*next, "2"));
  EXPECT_EQ(inspect("x")["attempts"], 0);
  settle(*next, FiberStatus::kCompleted);
  EXPECT_EQ(inspect("x")["snapshot"], 2);
}

TEST_F(ManagedFibersTest, AManagedFiberIsNotReplacedByAnUnmanagedOne) {
  start("x");
  crash();
  ASSERT_TRUE(recover());
  EXPECT_EQ(fibers_->start("report", "x").error().code, Errc::kInvalidArgument);
}

TEST_F(ManagedFibersTest, ACrashInTheHookIsOfferedAgain) {
  start("x");
  for (int attempt = 1; attempt <= 3; ++attempt) {
    crash();
    clock_.advance(seconds(400));
    const auto offered = recover();
    ASSERT_TRUE(offered);
    EXPECT_EQ(offered->at("managed")["attempts"], attempt);
  }
}

TEST_F(ManagedFibersTest, AHookThatThrowsTooOftenMakesItDead) {
  fiber_settings_.max_attempts = 3;
  ASSERT_TRUE(fibers_->stash(start("x").fiber, "5"));
  database_->commit();
  crash();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    clock_.advance(seconds(400));
    ASSERT_TRUE(recover()) << attempt;
    hook_fails("x", "cannot");
    EXPECT_EQ(status("x"), attempt < 3 ? "recovering" : "error");
  }
  crash();
  const Json record = inspect("x");
  EXPECT_EQ(record["status"], "error");
  EXPECT_EQ(record["error"], "cannot");
  EXPECT_EQ(record["dead"], true);
  EXPECT_EQ(record["snapshot"], 5);
  EXPECT_EQ(record["attempts"], 3);
  EXPECT_EQ(*fibers_->list_dead("", 0), "[]") << "it is listed once, among the managed ones";

  ASSERT_TRUE(managed_->retry("x"));
  database_->commit();
  EXPECT_EQ(status("x"), "recovering");
  crash();
  const auto offered = recover();
  ASSERT_TRUE(offered);
  EXPECT_EQ(offered->at("managed")["attempts"], 1);
  EXPECT_EQ(offered->at("managed")["snapshot"], 5);
  EXPECT_EQ(offered->at("managed")["dead"], false);
}

TEST_F(ManagedFibersTest, WithOneAttemptAThrowingHookIsAnErrorAtOnce) {
  fiber_settings_.max_attempts = 1;
  ASSERT_TRUE(fibers_->stash(start("x").fiber, "5"));
  database_->commit();
  crash();
  ASSERT_TRUE(recover());
  hook_fails("x", "cannot");
  EXPECT_EQ(status("x"), "error");
  EXPECT_EQ(inspect("x")["error"], "cannot");
  EXPECT_EQ(inspect("x")["snapshot"], 5);
}

TEST_F(ManagedFibersTest, ACrashLoopEndsAsADeadRecord) {
  fiber_settings_.max_attempts = 2;
  start("x");
  for (int attempt = 1; attempt <= 2; ++attempt) {
    crash();
    clock_.advance(seconds(400));
    ASSERT_TRUE(recover());
    ASSERT_TRUE(managed_->resume("x"));
    database_->commit();
  }
  crash();
  clock_.advance(seconds(400));
  EXPECT_FALSE(recover());
  EXPECT_EQ(status("x"), "error");
  EXPECT_EQ(inspect("x")["dead"], true);
  EXPECT_FALSE(recover());
}

TEST_F(ManagedFibersTest, ADeadRowWhoseRecordWasNotSettledIsSettledAtTheNextLoad) {
  fiber_settings_.max_attempts = 1;
  start("x");
  crash();
  ASSERT_TRUE(recover());
  EXPECT_TRUE(fibers_->failed("x", "cannot").dead);
  database_->commit();
  crash();
  EXPECT_EQ(status("x"), "error");
  EXPECT_EQ(inspect("x")["error"], "cannot");
  EXPECT_EQ(fibers_->counts().dead, 0U);
}

TEST_F(ManagedFibersTest, AHookThatGoesOnAfterItsWorkHasEndedDoesNotSpeakForTheNextOne) {
  ManagedRequest wanted = request("x");
  wanted.max_retries = 1;
  start(wanted);
  crash();
  ASSERT_TRUE(recover());
  settle(*managed_->resume("x"), FiberStatus::kError, "busy");
  clock_.advance(seconds(100));
  EXPECT_FALSE(fibers_->due()) << "not before the hook has ended";
  EXPECT_TRUE(fibers_->wake().working);
  EXPECT_EQ(managed_->recovered("x", R"({"status":"completed"})").error().code, Errc::kNotFound);
  EXPECT_EQ(status("x"), "pending");
  EXPECT_TRUE(fibers_->due());
}

TEST_F(ManagedFibersTest, WhatIsCancelledDuringItsHookIsNotResumed) {
  start("x");
  crash();
  ASSERT_TRUE(recover());
  ASSERT_TRUE(managed_->cancel("x", "", "stop"));
  EXPECT_EQ(managed_->resume("x").error().code, Errc::kNotFound);
  EXPECT_TRUE(managed_->is_managed("x"));
  EXPECT_EQ(managed_->recovered("x", R"({"status":"completed"})").error().code, Errc::kNotFound);
  EXPECT_FALSE(fibers_->failed("x", "too late").dead);
  EXPECT_EQ(status("x"), "aborted");
}

TEST_F(ManagedFibersTest, WhatIsCancelledBeforeItsHookBeginsCannotBeResumedThere) {
  start("x");
  crash();
  ASSERT_TRUE(fibers_->begin_recovery());
  ASSERT_TRUE(managed_->cancel("x", "", "stop"));
  EXPECT_EQ(parse_json("{" + managed_->begin_recovery("x") + "}")->at("managed")["status"],
            "aborted");
  EXPECT_EQ(managed_->resume("x").error().code, Errc::kNotFound);
  EXPECT_EQ(managed_->recovered("x", "").error().code, Errc::kNotFound);
  EXPECT_EQ(status("x"), "aborted");
}

TEST_F(ManagedFibersTest, AJoinDuringRecoverySeesIt) {
  start("x");
  crash();
  ASSERT_TRUE(recover());
  const auto joined = start("x");
  EXPECT_EQ(joined.fiber, 0U);
  EXPECT_EQ(parse_json(joined.record)->at("status"), "recovering");
}

TEST_F(ManagedFibersTest, P1_AnOpenRecordWithoutARowIsRecovered) {
  start("ran");
  start("waits");
  sql("UPDATE cf_agents_fibers SET status = 'pending' WHERE fiber_id = 'waits'");
  sql("DELETE FROM cf_agents_runs");
  crash();
  EXPECT_EQ(status("ran"), "recovering");
  EXPECT_EQ(status("waits"), "recovering");
  const auto first = recover();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->at("reason"), "interrupted");
  ASSERT_TRUE(recover());
  ASSERT_TRUE(managed_->recovered("ran", R"({"status":"completed","result":1})"));
  ASSERT_TRUE(managed_->recovered("waits", R"({"status":"aborted","error":"late"})"));
  EXPECT_EQ(inspect("ran")["result"], 1);
  EXPECT_EQ(inspect("waits")["error"], "late");
}

TEST_F(ManagedFibersTest, P1_ARowOfASettledRecordGoesWithoutAHook) {
  settle(start("x").fiber, FiberStatus::kCompleted, "1");
  sql("INSERT INTO cf_agents_runs(id, name, created_at) VALUES('x', 'report', 1)");
  crash();
  EXPECT_TRUE(fibers_->take_left_over().empty());
  EXPECT_FALSE(fibers_->due());
  database_->commit();
  EXPECT_EQ(count("SELECT count(*) FROM cf_agents_runs"), 0);
  EXPECT_EQ(status("x"), "completed");
}

TEST_F(ManagedFibersTest, UnmanagedFibersBesideThemAreLeftAlone) {
  const auto plain = fibers_->start("plain", "");
  database_->commit();
  start("x");
  crash();
  EXPECT_FALSE(managed_->is_managed(plain->id));
  EXPECT_TRUE(managed_->is_managed("x"));
  EXPECT_EQ(fibers_->counts().interrupted, 2U);
  EXPECT_FALSE(recover()) << "the unmanaged one is the older: nothing is said for its event";
  EXPECT_TRUE(recover());
  fibers_->recovered(plain->id);
  EXPECT_EQ(fibers_->counts().interrupted, 1U);
}

TEST_F(ManagedFibersTest, AnInterruptedOneIsResolvedByHand) {
  start("x");
  EXPECT_EQ(managed_->resolve("x", R"({"status":"completed"})").error().code, Errc::kNotFound);
  crash();
  ASSERT_TRUE(recover());
  ASSERT_TRUE(managed_->recovered("x", ""));
  EXPECT_EQ(managed_->resolve("x", "").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(managed_->resolve("x", "{}").error().code, Errc::kInvalidArgument);
  const auto change = managed_->resolve("x", R"({"status":"completed","result":"by hand"})");
  ASSERT_TRUE(change);
  EXPECT_EQ(change->status, FiberStatus::kCompleted);
  EXPECT_EQ(inspect("x")["result"], "by hand");
  EXPECT_EQ(managed_->resolve("x", R"({"status":"aborted"})").error().code, Errc::kNotFound);
  EXPECT_EQ(managed_->retry("x").error().code, Errc::kNotFound);
  EXPECT_EQ(managed_->retry("absent").error().code, Errc::kNotFound);
}

TEST_F(ManagedFibersTest, AnInterruptedOneIsOfferedAgainWhenItIsRetried) {
  ASSERT_TRUE(fibers_->stash(start("x").fiber, "9"));
  database_->commit();
  crash();
  ASSERT_TRUE(recover());
  ASSERT_TRUE(managed_->recovered("x", ""));
  ASSERT_TRUE(managed_->retry("x"));
  database_->commit();
  EXPECT_FALSE(managed_->next_untold()) << "it is not settled any more";
  const auto offered = recover();
  ASSERT_TRUE(offered);
  EXPECT_EQ(offered->at("managed")["snapshot"], 9);
  settle(*managed_->resume("x"), FiberStatus::kCompleted);
  EXPECT_EQ(status("x"), "completed");
}

}  // namespace
}  // namespace hearth::durable
