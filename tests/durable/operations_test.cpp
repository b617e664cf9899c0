// The ledger of an agent's operations, with kills, clocks that are set and code that changes.
#include "durable/operations.hpp"

#include "durable/charges_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::durable {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

TEST_F(OperationsTest, I7_ARunFindsWhatAnInterruptedRunHasCompleted) {
  const FiberHandle first = start_fiber();
  const OperationBegun one = complete(charge(first), R"({"receipt":1})");
  const OperationBegun two = complete(charge(first), R"({"receipt":2})");
  EXPECT_NE(one.id, two.id) << "equal arguments twice, on purpose";
  crash_all();
  const FiberHandle again = resume();
  const OperationBegun replayed = begin(charge(again));
  EXPECT_EQ(replayed.decision, OperationDecision::kCompleted);
  EXPECT_EQ(replayed.id, one.id);
  EXPECT_EQ(replayed.result, R"({"receipt":1})");
  EXPECT_EQ(begin(charge(again)).id, two.id);
  EXPECT_EQ(begin(charge(again)).decision, kRun) << "the third is new";
}

TEST_F(OperationsTest, I6_ArgumentsAreEqualAsValuesWhereverTheyStandInTheRun) {
  const FiberHandle first = start_fiber();
  arguments_ = R"({"a":1,"b":[2]})";
  const OperationBegun begun = complete(charge(first));
  arguments_ = R"({"cents":7})";
  complete(charge(first));
  crash_all();
  const FiberHandle again = resume();
  arguments_ = R"({"cents":8})";
  EXPECT_EQ(begin(charge(again)).decision, kRun) << "one that the first run had not";
  arguments_ = R"({ "b":[2], "a":1 })";
  EXPECT_EQ(begin(charge(again)).id, begun.id);
}

TEST_F(OperationsTest, ARunGoesOnCountingFromItsCheckpoint) {
  const FiberHandle first = start_fiber();
  const OperationBegun one = complete(charge(first));
  stash(first, "1");
  const OperationBegun two = complete(charge(first));
  crash_all();
  const FiberHandle again = resume();
  EXPECT_EQ(begin(charge(again)).id, two.id) << "the first is behind the checkpoint";
  EXPECT_EQ(begin(charge(again)).decision, kRun);
  EXPECT_NE(one.id, two.id);
}

TEST_F(OperationsTest, ACheckpointThatWasLostHidesNothing) {
  const FiberHandle first = start_fiber();
  const OperationBegun one = complete(charge(first));
  const auto id = fibers_->stash(first, "1").value();
  ledger_->checkpointed(id);  // and no commit
  crash_all();
  EXPECT_EQ(begin(charge(resume())).id, one.id);
}

TEST_F(OperationsTest, ARegeneratedRunWithAnotherCheckpointFindsItsOperations) {
  const FiberHandle first = start_fiber();
  const OperationBegun one = complete(charge(first));
  crash_all();
  const FiberHandle again = resume();
  stash(again, R"("what the second run says first")");
  EXPECT_EQ(begin(charge(again)).id, one.id);
}

TEST_F(OperationsTest, AFailedOneIsTheSameWhenItIsTriedAgain) {
  const FiberHandle fiber = start_fiber();
  const OperationBegun first = begin(charge(fiber, Effect::kKeyed));
  EXPECT_EQ(settle(first, kCutOff, "timeout"), OperationState::kInterrupted);
  EXPECT_EQ(text_member(record(first.id), "note"), "timeout");
  const OperationBegun second = begin(charge(fiber, Effect::kKeyed));
  EXPECT_EQ(second.decision, kRun);
  EXPECT_EQ(second.id, first.id);
  EXPECT_EQ(second.attempt, 2);
}

TEST_F(OperationsTest, OneThatRunsIsJoined) {
  const FiberHandle fiber = start_fiber();
  const OperationBegun first = begin(charge(fiber));
  OperationRequest joined = charge(fiber);
  EXPECT_EQ(begin(joined).decision, kJoin);
  EXPECT_EQ(begin(joined).id, first.id);
  settle(first, kCompleted, "7");
  joined.id = first.id;
  EXPECT_EQ(begin(joined).result, "7");
  EXPECT_EQ(begin(charge(fiber)).decision, kRun) << "without the id it is the next one";
}

// What becomes of an operation whose run was cut off by a kill.
struct CutOff {
  const char* name;
  Effect begun_as = Effect::kUnsafe;
  Effect asked_as = Effect::kUnsafe;
  bool can_probe = false;
  milliseconds later{0};
  OperationDecision decision = kUnknown;
  bool at_start = false;  // unknown already before a request
};
const std::vector<CutOff> kCutOffs = {
    {"Read", Effect::kRead, Effect::kRead, false, {}, kRun},
    {"Idempotent", Effect::kIdempotent, Effect::kIdempotent, false, {}, kRun},
    {"KeyedWithinItsHorizon", Effect::kKeyed, Effect::kKeyed, false, 23h, kRun},
    {"KeyedBehindItsHorizon", Effect::kKeyed, Effect::kKeyed, false, 25h, kUnknown, true},
    {"KeyedAndTheClockWasSetBackALittle", Effect::kKeyed, Effect::kKeyed, false, -5min, kRun},
    {"KeyedAndTheClockWasSetBack", Effect::kKeyed, Effect::kKeyed, false, -1h, kUnknown, true},
    {"ProbeThatCanBeAsked", Effect::kProbe, Effect::kProbe, true, {}, kProbe},
    {"ProbeThatCannotBeAsked", Effect::kProbe, Effect::kProbe, false, {}, kUnknown},
    {"Unsafe", Effect::kUnsafe, Effect::kUnsafe, true, {}, kUnknown, true},
    // A new version of the code says another class of the kind: the stricter one counts.
    {"UnsafeThatBecameIdempotent", Effect::kUnsafe, Effect::kIdempotent, false, {}, kUnknown, true},
    {"IdempotentThatBecameUnsafe", Effect::kIdempotent, Effect::kUnsafe, false, {}, kUnknown},
    {"KeyedThatBecameUnsafe", Effect::kKeyed, Effect::kUnsafe, false, {}, kUnknown},
    {"ReadThatBecameKeyed", Effect::kRead, Effect::kKeyed, false, {}, kRun},
    {"KeyedThatBecameProbe", Effect::kKeyed, Effect::kProbe, true, {}, kProbe},
};

TEST_F(OperationsTest, WhatAKillHasCutOffIsDecidedByTheStricterEffect) {
  int number = 0;
  for (const CutOff& each : kCutOffs) {
    SCOPED_TRACE(each.name);
    arguments_ = std::to_string(++number);
    const std::string fiber = "fiber " + arguments_;
    const OperationBegun begun = begin(charge(start_fiber(fiber), each.begun_as));
    const auto then = clock_.wall_now();
    clock_.set_wall(then + each.later);
    crash_all();
    EXPECT_EQ(state(begun.id), each.at_start ? "unknown" : "interrupted");
    const FiberHandle again = resume(fiber);
    OperationRequest request = charge(again, each.asked_as);
    request.can_probe = each.can_probe;
    const OperationBegun decided = begin(request);
    EXPECT_EQ(decided.decision, each.decision);
    EXPECT_EQ(decided.id, begun.id);
    if (each.decision == kUnknown) {
      EXPECT_EQ(state(begun.id), "unknown");
      EXPECT_EQ(begin(request).decision, kUnknown) << "it stays so";
    } else {
      EXPECT_EQ(state(begun.id), "running");
    }
    if (decided.operation != 0) settle(decided, kCompleted);
    fibers_->settle(again, FiberStatus::kCompleted, "");
    clock_.set_wall(then);
    database_->commit();
  }
}

TEST_F(OperationsTest, AnUnsafeOneThatFailsIsUnknownAtOnce) {
  const OperationBegun begun = begin(charge(start_fiber()));
  EXPECT_EQ(settle(begun, kCutOff, "the connection was lost"), OperationState::kUnknown);
  const auto changes = ledger_->take_changes();
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].state, OperationState::kRunning);
  EXPECT_EQ(changes[1].id, begun.id);
  EXPECT_EQ(changes[1].kind, "charge");
  EXPECT_EQ(changes[1].state, OperationState::kUnknown);
  EXPECT_EQ(text_member(record(begun.id), "note"), "the connection was lost");
}

TEST_F(OperationsTest, ANoteIsUtf8AndNotLong) {
  const FiberHandle fiber = start_fiber();
  for (const auto& [given, kept] :
       {std::pair(std::string(5'000, 'x'), std::string(1'024, 'x')), {"a\xff b", "a\ufffd b"}}) {
    OperationRequest request = charge(fiber);
    request.key = std::string_view(kept).substr(0, 1);
    const OperationBegun begun = begin(request);
    settle(begun, kCutOff, given);
    EXPECT_EQ(text_member(record(begun.id), "note"), kept);
  }
}

TEST_F(OperationsTest, WhatWasCertainlyNotExecutedIsRunAgain) {
  const FiberHandle fiber = start_fiber();
  const OperationBegun begun = begin(charge(fiber));
  EXPECT_EQ(settle(begun, kNotExecuted, "refused"), OperationState::kNotExecuted);
  crash_all();
  EXPECT_EQ(state(begun.id), "not_executed");
  const OperationBegun again = begin(charge(resume()));
  EXPECT_EQ(again.decision, kRun);
  EXPECT_EQ(again.id, begun.id);
}

TEST_F(OperationsTest, AKeyNamesItInTheWholeAgentAndNotWithOtherArguments) {
  OperationRequest request = charge(0, Effect::kKeyed);
  EXPECT_EQ(ledger_->begin(request).error().code, Errc::kInvalidArgument)
      << "neither key nor fiber";
  request.key = "order 7";
  const OperationBegun begun = complete(request, "1");
  EXPECT_EQ(begin(request).decision, OperationDecision::kCompleted);
  OperationRequest in_fiber = charge(start_fiber(), Effect::kKeyed);
  in_fiber.key = "order 7";
  EXPECT_EQ(begin(in_fiber).id, begun.id);
  in_fiber.arguments = "501";
  EXPECT_EQ(ledger_->begin(in_fiber).error().code, Errc::kConflict);
  in_fiber.kind = "refund";
  EXPECT_EQ(begin(in_fiber).decision, kRun) << "another kind is another operation";
}

TEST_F(OperationsTest, AFiberThatIsReplacedKeepsTheScopeThatItHasInItsParent) {
  ASSERT_NE(start_fiber("parent"), 0U);
  FiberRequest child{.policy = SettledKey::kReplaceFailed,
                     .name = "report",
                     .key = "parent/step/0/1",
                     .keeping = FiberKeeping::kBrief,
                     .parent = "parent"};
  const Fibers::Started first = start(child);
  const OperationBegun begun = complete(charge(first.fiber));
  EXPECT_EQ(text_member(record(begun.id), "scope"), "parent/step/0/1");
  settle(first.fiber, FiberStatus::kError, "something else has failed");
  const Fibers::Started second = start(child);
  ASSERT_NE(second.id, first.id);
  EXPECT_EQ(begin(charge(second.fiber)).id, begun.id) << "the charge is not made again";
  child.key = "parent/step/0/2";
  EXPECT_NE(begin(charge(start(child).fiber)).id, begun.id) << "that is another one's";
}

TEST_F(OperationsTest, ResolvingDecidesWhatIsUnknown) {
  const FiberHandle fiber = start_fiber();
  const OperationBegun begun = begin(charge(fiber));
  const auto resolve = [&](OperationOutcome outcome, std::string_view result = "") {
    const auto done = ledger_->resolve(begun.id, outcome, result, "I have looked", "ada");
    database_->commit();
    return done ? 0 : static_cast<int>(done.error().code);
  };
  EXPECT_EQ(resolve(kCompleted), static_cast<int>(Errc::kConflict)) << "it runs";
  settle(begun, OperationOutcome::kUnknown, "?");
  EXPECT_EQ(resolve(OperationOutcome::kUnknown), static_cast<int>(Errc::kInvalidArgument));
  EXPECT_EQ(resolve(kCompleted, "no json"), static_cast<int>(Errc::kInvalidArgument));
  EXPECT_EQ(resolve(kNotExecuted), 0);
  EXPECT_EQ(resolve(kCompleted), static_cast<int>(Errc::kConflict)) << "it is settled";
  EXPECT_EQ(text_member(record(begun.id), "settled_by"), "ada");
  EXPECT_EQ(text_member(record(begun.id), "note"), "I have looked");
  const OperationBegun again = begin(charge(fiber));
  EXPECT_EQ(again.decision, kRun);
  settle(again, OperationOutcome::kUnknown, "?");
  EXPECT_EQ(resolve(kCompleted, R"({"receipt":9})"), 0);
  EXPECT_EQ(begin(charge(fiber)).result, R"({"receipt":9})");
  EXPECT_EQ(ledger_->resolve("none", kCompleted, "", "", "ada").error().code, Errc::kNotFound);
  EXPECT_FALSE(ledger_->due()) << "nobody is told of what is resolved";
}

TEST_F(OperationsTest, TheAgentIsToldUntilItHasHeardTenTimesAtMost) {
  const OperationBegun begun = begin(charge(start_fiber()));
  settle(begun, OperationOutcome::kUnknown, "?");
  for (int telling = 1; telling <= UnknownOperations::kMostTellings; ++telling) {
    ASSERT_TRUE(ledger_->due()) << telling;
    EXPECT_TRUE(ledger_->wake().working);
    const auto unknown = ledger_->unknown().next_untold();
    database_->commit();
    ASSERT_TRUE(unknown);
    EXPECT_EQ(unknown->id, begun.id);
    EXPECT_EQ(unknown->kind, "charge");
    if (telling % 2 == 0) ledger_->unknown().told(begun.id, false);
    EXPECT_FALSE(ledger_->unknown().next_untold()) << "once an instance";
    crash_all();
  }
  EXPECT_FALSE(ledger_->unknown().next_untold());
  EXPECT_FALSE(ledger_->wake().working);
  EXPECT_EQ(state(begun.id), "unknown");
  // An operation whose telling is heard.
  const OperationBegun other = begin(charge(resume()));
  EXPECT_EQ(other.decision, kUnknown);
}

TEST_F(OperationsTest, ATellingThatCrashesTheProcessTwiceIsGivenUp) {
  const OperationBegun begun = begin(charge(start_fiber()));
  settle(begun, OperationOutcome::kUnknown, "?");
  for (int crash = 0; crash < 2; ++crash) {
    const auto unknown = ledger_->unknown().next_untold();
    ASSERT_TRUE(unknown) << crash;
    database_->commit();
    crash_all();
    OperationTable table(*database_);
    count_crash(table, {kOperationRows + unknown->row});
  }
  EXPECT_FALSE(ledger_->unknown().next_untold());
  EXPECT_EQ(state(begun.id), "unknown") << "it stays listed";
}

TEST_F(OperationsTest, WhatWasHeardIsNotToldAgain) {
  const OperationBegun begun = begin(charge(start_fiber()));
  crash_all();
  const auto unknown = ledger_->unknown().next_untold().value();
  ledger_->unknown().told(unknown.id, true);
  database_->commit();
  crash_all();
  EXPECT_FALSE(ledger_->due());
  EXPECT_EQ(state(begun.id), "unknown");
}

TEST_F(OperationsTest, WhoOnlyAsksLeavesNothing) {
  EXPECT_EQ(*ledger_->records().list({}), "[]");
  EXPECT_FALSE(ledger_->records().inspect("x"));
  ledger_->sweep();
  ledger_->checkpointed("f");
  EXPECT_FALSE(database_->exists());
}

}  // namespace
}  // namespace hearth::durable
