// Operations of fibers that other fibers wait for, and what the ends of those fibers do to them.
#include "durable/operation_rules.hpp"
#include "durable/operations_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace hearth::durable {
namespace {

class OperationsOfFibersTest : public OperationsFixture {
 protected:
  // Its record is removed at its end. Its key is the key that its parent's code uses for it.
  FiberHandle start_brief(const std::string& id, const std::string& parent = "",
                          std::uint32_t retries = 0) {
    FiberRequest wanted{.name = "report",
                        .id = id,
                        .max_retries = retries,
                        .keeping = FiberKeeping::kBrief,
                        .parent = parent};
    const std::string key = parent + "/" + id + "/1";
    if (!parent.empty()) wanted.key = key;
    return start(wanted).fiber;
  }
  OperationBegun begin(FiberHandle fiber, Effect effect = Effect::kUnsafe, bool can_resume = false,
                       std::string_view key = {}) {
    OperationRequest wanted{.effect = effect,
                            .fiber = fiber,
                            .can_probe = true,
                            .can_resume = can_resume,
                            .kind = "charge",
                            .key = key};
    if (effect == Effect::kKeyed) wanted.horizon_ms = 1000;
    return begin_request(wanted);
  }
  OperationBegun begin_by_key(FiberHandle fiber, const std::string& key, Effect effect) {
    return begin(fiber, effect, false, key);
  }
  void cancel(std::string_view id) { OperationsFixture::cancel(id, "no more"); }
  void end_fibers() {
    ledger_->give_up_lost(true);
    database_->commit();
  }
  std::string state_after_ends(const OperationBegun& begun) {
    end_fibers();
    return state(begun.id);
  }
};

TEST_F(OperationsOfFibersTest, P2_ItIsTheSameThoughTheFibersAboveItsOwnHaveGone) {
  const FiberHandle outer = start_brief("outer");
  const FiberHandle middle = start_brief("middle", "outer");
  const FiberHandle inner = start_brief("inner", "middle", 1);
  const OperationBegun first = begin(inner);
  settle(first, OperationOutcome::kCompleted);
  settle(middle, FiberStatus::kCompleted);
  stash(outer);
  ASSERT_EQ(status("middle"), "none") << "else nothing is shown";
  settle(inner, FiberStatus::kError, "again");
  clock_.advance(std::chrono::minutes(10));
  FiberHandle again = resume("inner");
  OperationBegun found = begin(again);
  EXPECT_EQ(found.decision, OperationDecision::kCompleted);
  EXPECT_EQ(found.id, first.id);
  crash_all();
  clock_.advance(std::chrono::minutes(10));
  again = resume("inner");
  EXPECT_EQ(begin(again).id, first.id);
}

TEST_F(OperationsOfFibersTest, P2_ARunThatOnlyFindsRowsKeepsItsPlaceToo) {
  const FiberHandle outer = start_brief("outer");
  const FiberHandle middle = start_brief("middle", "outer");
  const OperationBegun first = begin(start_brief("inner", "middle"));
  settle(first, OperationOutcome::kCompleted);
  cancel("inner");
  // Another fiber in its place.
  const FiberRequest wanted{.policy = SettledKey::kReplaceFailed,
                            .name = "report",
                            .id = "other",
                            .key = "middle/inner/1",
                            .max_retries = 1,
                            .keeping = FiberKeeping::kBrief,
                            .parent = "middle"};
  const FiberHandle inner = start(wanted).fiber;
  EXPECT_EQ(begin(inner).id, first.id);
  settle(outer, FiberStatus::kCompleted);
  settle(middle, FiberStatus::kCompleted);
  settle(inner, FiberStatus::kError, "again");
  clock_.advance(std::chrono::minutes(10));
  EXPECT_EQ(begin(resume("other")).id, first.id);
}

TEST_F(OperationsOfFibersTest, P6_ARowStaysAsLongAsAFiberBelowItsOutermostOneGoesOn) {
  ledger_settings_.keep = std::chrono::hours(1);
  const FiberHandle outer = start_brief("outer");
  const FiberHandle middle = start_brief("middle", "outer");
  const FiberHandle inner = start_brief("inner", "middle");
  const OperationBegun begun = begin(inner);
  settle(begun, OperationOutcome::kCompleted);
  settle(outer, FiberStatus::kCompleted);
  settle(middle, FiberStatus::kCompleted);
  clock_.advance(std::chrono::hours(2));
  ledger_->sweep();
  EXPECT_EQ(state(begun.id), "completed");
  ledger_settings_.most = 1;
  const OperationRequest another{.kind = "charge", .key = "k"};
  EXPECT_EQ(ledger_->begin(another).error().code, Errc::kLimitExceeded) << "nor is it in the way";
  settle(inner, FiberStatus::kCompleted);
  clock_.advance(std::chrono::hours(2));
  ledger_->sweep();
  EXPECT_EQ(state(begun.id), "none");
}

TEST_F(OperationsOfFibersTest, P10_AnAnswerGoesOnAsLongAsItsFiberDoes) {
  const FiberHandle outer = start_brief("outer");
  const FiberHandle inner = start_brief("inner", "outer");
  OperationBegun begun = begin(inner, Effect::kUnsafe, true);
  EXPECT_TRUE(ledger_->requests().dispatched({.id = begun.id}));
  ledger_->requests().answered(begun.id, 200, std::nullopt, R"({"status":200})");
  settle(outer, FiberStatus::kCompleted);
  EXPECT_EQ(settle(begun, OperationOutcome::kCutOff), OperationState::kInterrupted);
  EXPECT_EQ(state_after_ends(begun), "interrupted");
  settle(inner, FiberStatus::kError, "no");
  EXPECT_EQ(state_after_ends(begun), "unknown");
}

TEST_F(OperationsOfFibersTest, WhatAFiberLeavesThatIsOverIsSettled) {
  const FiberHandle fiber = start_brief("f");
  const OperationBegun probe = begin(fiber, Effect::kProbe);
  const OperationBegun idempotent = begin(start_brief("g"), Effect::kIdempotent);
  const OperationBegun read = begin(start_brief("h"), Effect::kRead);
  const OperationBegun keyed = begin(start_brief("i"), Effect::kKeyed);
  for (const OperationBegun& each : {probe, idempotent, read, keyed})
    EXPECT_EQ(settle(each, OperationOutcome::kCutOff), OperationState::kInterrupted);
  end_fibers();
  for (const OperationBegun& each : {probe, idempotent, read, keyed})
    EXPECT_EQ(state(each.id), "interrupted") << "their fibers go on";
  settle(fiber, FiberStatus::kError, "no");
  for (const char* const id : {"g", "h", "i"}) cancel(id);
  EXPECT_EQ(state_after_ends(probe), "unknown");
  EXPECT_TRUE(ledger_->due()) << "the agent is told";
  EXPECT_EQ(state(idempotent.id), "none") << "nobody asks for it any more";
  EXPECT_EQ(state(read.id), "none");
  EXPECT_EQ(state(keyed.id), "unknown") << "nobody uses its key any more";
}

TEST_F(OperationsOfFibersTest, WhatAnEndedFiberHasLeftIsSettledByTheNextInstance) {
  const FiberHandle fiber = start_brief("f");
  const OperationBegun read = begin(fiber, Effect::kRead);
  cancel("f");
  EXPECT_EQ(state(read.id), "running");
  end_fibers();
  EXPECT_EQ(state(read.id), "running") << "its own end says what became of it";
  crash_all();
  EXPECT_EQ(state(read.id), "none");
  ledger_->close();
  EXPECT_FALSE(ledger_->wake().unknown_operations.has_value());
}

TEST_F(OperationsOfFibersTest, P12_OneWithAKeyWaitsForItsFiberAndNotLonger) {
  for (const Effect effect : {Effect::kRead, Effect::kIdempotent, Effect::kProbe}) {
    const std::string fiber = "f" + std::to_string(static_cast<int>(effect));
    SCOPED_TRACE(fiber);
    const OperationBegun begun = begin_by_key(start_brief(fiber), fiber, effect);
    clock_.advance(kLongestInterruption * 2);
    crash_all();
    EXPECT_EQ(state(begun.id), "interrupted") << "its fiber is about to be recovered";
    EXPECT_FALSE(ledger_->due());
    cancel(fiber);
    EXPECT_EQ(state_after_ends(begun), effect == Effect::kProbe ? "unknown" : "none");
  }
}

TEST_F(OperationsOfFibersTest, P12_OneWithAKeyIsTheWorkOfTheFiberThatHasBegunItLast) {
  const OperationBegun begun = begin_by_key(start_brief("a"), "k", Effect::kIdempotent);
  settle(begun, OperationOutcome::kCutOff);
  const OperationBegun again = begin_by_key(start_brief("b"), "k", Effect::kIdempotent);
  EXPECT_EQ(again.id, begun.id);
  settle(again, OperationOutcome::kCutOff);
  cancel("a");
  EXPECT_EQ(state_after_ends(begun), "interrupted") << "the other one goes on";
  settle(begin_by_key(0, "k", Effect::kIdempotent), OperationOutcome::kCutOff);
  cancel("b");
  EXPECT_EQ(state_after_ends(begun), "interrupted") << "it was begun outside of a fiber since";
  clock_.advance(kLongestInterruption);
  EXPECT_EQ(state_after_ends(begun), "none");
}

TEST_F(OperationsOfFibersTest, P12_OneWithAKeyGoesWithTheOutermostFiber) {
  const FiberHandle outer = start_brief("outer");
  const FiberHandle middle = start_brief("middle", "outer");
  const FiberHandle inner = start_brief("inner", "middle", 1);
  const OperationBegun begun = begin_by_key(inner, "k", Effect::kRead);
  settle(begun, OperationOutcome::kCutOff);
  settle(outer, FiberStatus::kCompleted);
  settle(middle, FiberStatus::kCompleted);
  EXPECT_EQ(state_after_ends(begun), "interrupted") << "one below it goes on";
  cancel("inner");
  EXPECT_EQ(state_after_ends(begun), "none");
}

TEST_F(OperationsOfFibersTest, P5_OneWithAKeyDoesNotMakeRoomWhenItsFiberIsOver) {
  const FiberHandle fiber = start_brief("f");
  const OperationBegun begun = begin_by_key(fiber, "k", Effect::kUnsafe);
  settle(begun, OperationOutcome::kCompleted);
  settle(fiber, FiberStatus::kCompleted);
  ledger_settings_.most = 1;
  OperationRequest another{.kind = "charge"};
  another.key = "another";
  EXPECT_EQ(ledger_->begin(another).error().code, Errc::kLimitExceeded);
  EXPECT_EQ(begin_by_key(0, "k", Effect::kUnsafe).decision, OperationDecision::kCompleted)
      << "it is found by its key";
}

struct LeftEffect {
  Effect effect;
  OperationDecision decision;  // for a caller that begins it all the same
};

TEST_F(OperationsOfFibersTest, P12_WhatWasGivenUpGoesOnIfThatIsSafe) {
  for (const LeftEffect& each : {LeftEffect{Effect::kKeyed, OperationDecision::kRun},
                                 LeftEffect{Effect::kProbe, OperationDecision::kProbe},
                                 LeftEffect{Effect::kUnsafe, OperationDecision::kUnknown}}) {
    const std::string key = std::to_string(static_cast<int>(each.effect));
    SCOPED_TRACE(key);
    const OperationBegun begun = begin_by_key(start_brief(key), key, each.effect);
    EXPECT_TRUE(ledger_->requests().dispatched({.id = begun.id, .fingerprint = "f"}));
    settle(begun, OperationOutcome::kCutOff);
    cancel(key);
    EXPECT_EQ(state_after_ends(begun), "unknown");
    EXPECT_EQ(record(begun.id).at("request").at("fingerprint"), "f");
    EXPECT_TRUE(ledger_->due()) << "the agent is told";
    const OperationBegun again = begin_by_key(0, key, each.effect);
    EXPECT_EQ(again.decision, each.decision);
    EXPECT_EQ(again.id, begun.id);
    if (again.operation == 0) continue;
    EXPECT_FALSE(ledger_->due()) << "it is not unknown any more";
    settle(again, OperationOutcome::kCompleted);
    EXPECT_EQ(state(begun.id), "completed");
  }
}

TEST_F(OperationsOfFibersTest, P12_WhatWasGivenUpStaysSoBehindTheHorizonOfItsKey) {
  const OperationBegun begun = begin_by_key(start_brief("f"), "k", Effect::kKeyed);
  settle(begun, OperationOutcome::kCutOff);
  cancel("f");
  end_fibers();
  clock_.advance(std::chrono::seconds(2));
  EXPECT_EQ(begin_by_key(0, "k", Effect::kKeyed).decision, OperationDecision::kUnknown);
  EXPECT_EQ(state(begun.id), "unknown");
}

TEST_F(OperationsOfFibersTest, WhatADeadFiberHasLeftIsUnknownAndAskedForIfItIsRevived) {
  settings_.max_attempts = 1;
  crash_all();
  const OperationBegun probe = begin(start("f").fiber, Effect::kProbe);
  crash_all();
  ASSERT_TRUE(recover());
  hook_fails("f", "no");
  crash_all();
  clock_.advance(std::chrono::hours(1));
  EXPECT_FALSE(recover()) << "it is dead";
  EXPECT_EQ(state_after_ends(probe), "unknown");
  EXPECT_TRUE(ledger_->due()) << "the agent is told";
  crash_all();
  EXPECT_EQ(state(probe.id), "unknown");
  retry("f");
  const FiberHandle revived = resume("f");
  const OperationBegun asked = begin(revived, Effect::kProbe);
  EXPECT_EQ(asked.decision, OperationDecision::kProbe);
  EXPECT_EQ(asked.id, probe.id);
  EXPECT_EQ(settle(asked, OperationOutcome::kUnknown), OperationState::kUnknown);
  EXPECT_EQ(begin(revived, Effect::kProbe).decision, OperationDecision::kUnknown)
      << "it was asked for, and nobody can know";
}

// Completed ones are kept for a fiber that may be revived.
TEST_F(OperationsOfFibersTest, P6_WhatADeadFiberHasDoneStaysForIt) {
  ledger_settings_.keep = std::chrono::hours(1);
  const FiberHandle fiber = start("f").fiber;
  const OperationBegun begun = begin(fiber);
  settle(begun, OperationOutcome::kCompleted);
  die("f", "no");
  end_fibers();
  clock_.advance(std::chrono::hours(2));
  ledger_->sweep();
  EXPECT_EQ(state(begun.id), "completed");
}

}  // namespace
}  // namespace hearth::durable
