// The requests that operations send: what a second run may do with them, and with their answers.
#include "durable/operations_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

namespace hearth::durable {
namespace {

constexpr auto kRunIt = OperationDecision::kRun;
constexpr auto kWasCutOff = OperationOutcome::kCutOff;
constexpr auto kEffects = {Effect::kRead, Effect::kIdempotent, Effect::kKeyed, Effect::kProbe,
                           Effect::kUnsafe};
constexpr std::size_t kMaxBody = 20;

class OperationRequestsTest : public OperationsFixture {
 protected:
  OperationRequestsTest() : OperationsFixture({.max_result_bytes = kMaxBody, .kinds = {}}) {}

  OperationBegun begin(Effect effect, bool can_resume = false, bool can_probe = false) {
    OperationRequest request{.fiber = fiber_, .kind = "charge"};
    if (fiber_ == 0) request.key = "k";
    request.effect = effect;
    request.can_resume = can_resume;
    request.can_probe = can_probe;
    request.acts_by_request = acts_by_request_;
    if (effect == Effect::kKeyed) request.horizon_ms = 1000;
    OperationBegun begun = begin_request(request);
    id_ = begun.id;
    return begun;
  }
  OperationState cut_off(const OperationBegun& begun) { return settle(begun, kWasCutOff, "lost"); }
  OperationSending sending(std::string_view fingerprint) const {
    return {.id = id_, .fingerprint = fingerprint};
  }
  OperationSending resuming(std::uint64_t from) const {
    return {.id = id_, .resumes = true, .from = from};
  }
  // Sends if it may, and returns whether it has sent. No caller waits for the answer.
  bool send(const OperationSending& it) {
    const auto may = ledger_->requests().may_send(it);
    if (!may) EXPECT_EQ(may.error().code, Errc::kConflict);
    if (may) EXPECT_TRUE(ledger_->requests().dispatched(it));
    database_->commit();
    return may.has_value();
  }
  bool send(std::string_view fingerprint = "f") { return send(sending(fingerprint)); }
  void answer(std::int64_t status = 200, std::string_view piece = "one two ") {
    ledger_->requests().answered(id_, status, "req-1", R"({"status":200})");
    ledger_->requests().received(id_, piece);
    database_->commit();
  }
  // begin() and its request; in the second form also the beginning of an answer.
  OperationBegun begin_sent(Effect effect, bool can_resume = false) {
    OperationBegun begun = begin(effect, can_resume);
    EXPECT_TRUE(send());
    return begun;
  }
  OperationBegun begin_answered(Effect effect, bool can_resume = false) {
    OperationBegun begun = begin_sent(effect, can_resume);
    answer();
    return begun;
  }
  // An administrator says that the unknown one was not executed.
  void resolve() {
    ASSERT_TRUE(ledger_->resolve(id_, OperationOutcome::kNotExecuted, "", "", "ada"));
  }
  void set_not_executed(const OperationBegun& begun) {
    ASSERT_TRUE(ledger_->settle(begun.operation, OperationOutcome::kNotExecuted, ""));
  }
  std::string stored() {
    const auto answer = ledger_->requests().answer(id_);
    return answer ? answer->body : "none";
  }
  Json record() { return OperationsFixture::record(id_); }
  // What is known of its request.
  Json sent() { return record().at("request"); }
  std::string state() { return OperationsFixture::state(id_); }
  std::string state_after_crash() {
    crash_all();
    return state();
  }

  FiberHandle fiber_ = 0;  // whose operations begin() begins
  bool acts_by_request_ = false;
  std::string id_;
};

TEST_F(OperationRequestsTest, WhatIsKnownOfARequestIsInItsRecord) {
  clock_.advance(std::chrono::milliseconds(5));
  begin(Effect::kUnsafe);
  EXPECT_TRUE(sent().is_null());
  EXPECT_EQ(ledger_->requests().answer(id_).error().code, Errc::kNotFound);
  EXPECT_EQ(*ledger_->requests().may_send(sending("f")), "Idempotency-Key");
  ASSERT_TRUE(send());
  crash_all();
  EXPECT_EQ(sent().at("fingerprint"), "f") << "before anything has left";
  EXPECT_TRUE(sent().at("status").is_null());
  EXPECT_EQ(state(), "unknown");
}

TEST_F(OperationRequestsTest, StatusAndRequestIdAreKnownBeforeTheEnd) {
  begin_sent(Effect::kUnsafe);
  answer(201);
  crash_all();
  EXPECT_TRUE(has(sent(), R"({"status":201,"request_id":"req-1","stored_bytes":8,"whole":false})"));
  EXPECT_EQ(state(), "unknown") << "the rest cannot be fetched";
  EXPECT_EQ(stored(), "one two ") << "what came is kept";
}

TEST_F(OperationRequestsTest, TheKindNamesTheHeader) {
  OperationRequest request{.kind = "charge", .key = "k", .key_header = "X-Once"};
  id_ = ledger_->begin(request)->id;
  EXPECT_EQ(*ledger_->requests().may_send(sending("f")), "X-Once");
  request.key = "other";
  request.key_header = "a b";
  EXPECT_EQ(ledger_->begin(request).error().code, Errc::kInvalidArgument);
}

TEST_F(OperationRequestsTest, P8_ASecondRequestIsNoSecondEffect) {
  struct Case {
    Effect effect;
    bool same;
    bool other;
  };
  for (const auto& [effect, same, other] :
       {Case{Effect::kRead, true, true}, Case{Effect::kIdempotent, true, true},
        Case{Effect::kKeyed, true, false}, Case{Effect::kProbe, false, false},
        Case{Effect::kUnsafe, false, false}}) {
    const OperationBegun begun = begin_sent(effect);
    EXPECT_EQ(send(), same) << static_cast<int>(effect);
    EXPECT_EQ(send("other"), other) << static_cast<int>(effect);
    set_not_executed(begun);
    const OperationBegun again = begin(effect);
    EXPECT_TRUE(send("other")) << "it was certainly not executed";
    set_not_executed(again);
  }
}

TEST_F(OperationRequestsTest, P8_OneIsInFlightAtATime) {
  for (const Effect effect : {Effect::kRead, Effect::kKeyed}) {
    const OperationBegun begun = begin(effect);
    ASSERT_TRUE(ledger_->requests().may_send(sending("f")));
    auto in_flight = ledger_->requests().dispatched(sending("f"));
    const auto second = ledger_->requests().may_send(sending("f"));
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::kConflict);
    EXPECT_NE(second.error().message.find("in flight"), std::string::npos);
    in_flight.reset();
    EXPECT_TRUE(send());
    set_not_executed(begun);
  }
}

TEST_F(OperationRequestsTest, P8_AKeyedRequestIsNotRepeatedBehindItsHorizon) {
  const auto horizon = std::chrono::milliseconds(1000);
  OperationBegun begun = begin(Effect::kKeyed);
  clock_.advance(horizon * 2);
  EXPECT_TRUE(send()) << "the other side has not had the key before";
  EXPECT_FALSE(send());
  EXPECT_NE(ledger_->requests().may_send(sending("f")).error().message.find("horizon"),
            std::string::npos);
  ledger_->requests().not_sent(id_);
  EXPECT_TRUE(send()) << "nothing came of the one before";
  EXPECT_EQ(cut_off(begun), OperationState::kInterrupted);
  EXPECT_EQ(begin(Effect::kKeyed).decision, OperationDecision::kUnknown);
  resolve();

  begin_sent(Effect::kKeyed);
  clock_.advance(horizon - std::chrono::milliseconds(1));
  EXPECT_TRUE(send());
  clock_.set_wall(clock_.wall_now() - horizon * 2);
  EXPECT_FALSE(send()) << "nobody knows how much time has gone";
  clock_.set_wall(clock_.wall_now() + horizon * 2);
  crash_all();
  EXPECT_EQ(begin(Effect::kKeyed).decision, kRunIt);
  EXPECT_TRUE(send());
  clock_.advance(horizon);
  EXPECT_FALSE(send()) << "it is counted from the first run";
}

TEST_F(OperationRequestsTest, P8_AnEarlierRunMayHaveSentItsKeyBehindTheLedgersBack) {
  begin(Effect::kKeyed);
  crash_all();
  EXPECT_EQ(begin(Effect::kKeyed).decision, kRunIt);
  clock_.advance(std::chrono::milliseconds(1000));
  EXPECT_FALSE(send());
}

TEST_F(OperationRequestsTest, AProbesRequestIsNoneOfTheOperation) {
  begin_sent(Effect::kProbe);
  crash_all();
  EXPECT_EQ(begin(Effect::kProbe, false, true).decision, OperationDecision::kProbe);
  EXPECT_EQ(ledger_->requests().may_send(sending("f")).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(ledger_->requests().may_send({.id = "none"}).error().code, Errc::kNotFound);
}

TEST_F(OperationRequestsTest, P9_WhatHasNotLeftWasNotExecuted) {
  OperationBegun begun = begin_sent(Effect::kUnsafe);
  ledger_->requests().not_sent(id_);
  EXPECT_TRUE(send("another")) << "nothing came of the first";
  ledger_->requests().not_sent(id_);
  EXPECT_EQ(cut_off(begun), OperationState::kNotExecuted);
  EXPECT_TRUE(sent().is_null());
  begun = begin(Effect::kUnsafe);
  EXPECT_EQ(begun.decision, kRunIt);
  ASSERT_TRUE(send());
  EXPECT_EQ(cut_off(begun), OperationState::kUnknown);
}

TEST_F(OperationRequestsTest, P9_WhatWasSentElsewhereMayHaveActed) {
  const OperationBegun begun = begin_sent(Effect::kKeyed);
  ledger_->running().sent_elsewhere();
  ledger_->requests().not_sent(id_);
  EXPECT_EQ(cut_off(begun), OperationState::kNotExecuted) << "that was before, and another's";

  const OperationBegun again = begin_sent(Effect::kUnsafe);
  ledger_->requests().not_sent(id_);
  ledger_->running().sent_elsewhere();
  ASSERT_TRUE(send());
  ledger_->requests().not_sent(id_);
  EXPECT_EQ(cut_off(again), OperationState::kUnknown) << "a third request changes nothing";
}

TEST_F(OperationRequestsTest, P8_WhatHasNotLeftIsNoRequestThoughOthersWereSent) {
  const OperationBegun begun = begin(Effect::kUnsafe);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(send()) << i;
    ledger_->requests().not_sent(id_);
    ledger_->running().sent_elsewhere();
    EXPECT_TRUE(sent().is_null()) << i;
  }
  EXPECT_EQ(cut_off(begun), OperationState::kUnknown);
}

TEST_F(OperationRequestsTest, P9_AnEarlierRunMayHaveActed) {
  begin_sent(Effect::kKeyed);
  crash_all();
  OperationBegun begun = begin_sent(Effect::kKeyed);
  ledger_->requests().not_sent(id_);
  EXPECT_EQ(cut_off(begun), OperationState::kInterrupted);
  EXPECT_FALSE(sent().is_null());
  // ... and so may an earlier request of the same run.
  begun = begin_sent(Effect::kIdempotent);
  ASSERT_TRUE(send());
  ledger_->requests().not_sent(id_);
  EXPECT_EQ(cut_off(begun), OperationState::kInterrupted);
}

TEST_F(OperationRequestsTest, P9_OneThatActsByItsRequestWasNotExecutedWithoutOne) {
  acts_by_request_ = true;
  for (const Effect effect : kEffects) {
    SCOPED_TRACE(static_cast<int>(effect));
    begin(effect);
    clock_.advance(std::chrono::hours(1));  // behind the horizon
    EXPECT_EQ(state_after_crash(), "not_executed") << "a kill before its request";
    OperationBegun begun = begin(effect, false, true);
    EXPECT_EQ(begun.decision, kRunIt);
    ledger_->running().sent_elsewhere();
    EXPECT_EQ(cut_off(begun), OperationState::kNotExecuted) << "what is sent elsewhere is not its";
    begun = begin_sent(effect);
    ledger_->requests().not_sent(id_);
    ledger_->running().sent_elsewhere();
    database_->commit();
    EXPECT_EQ(state_after_crash(), "not_executed") << "its request has not left";
    begin_sent(effect);
    EXPECT_EQ(state_after_crash(), effect == Effect::kUnsafe ? "unknown" : "interrupted");
    resolve();
  }
  EXPECT_FALSE(ledger_->unknown().next_untold()) << "they were resolved";
}

TEST_F(OperationRequestsTest, P9_WhatAnEarlierRunMayHaveDoneBesidesItsRequestStaysPossible) {
  begin(Effect::kProbe);
  crash_all();
  acts_by_request_ = true;
  EXPECT_EQ(begin(Effect::kProbe, false, true).decision, OperationDecision::kProbe);
  EXPECT_EQ(state_after_crash(), "interrupted");
  resolve();
  begin(Effect::kProbe);
  EXPECT_EQ(state_after_crash(), "not_executed") << "begun anew";
  acts_by_request_ = false;
  begin(Effect::kProbe);
  EXPECT_EQ(state_after_crash(), "interrupted");
}

TEST_F(OperationRequestsTest, OneThatCompletesWithoutTheRequestByWhichItActsIsUnknown) {
  acts_by_request_ = true;
  OperationBegun begun = begin(Effect::kUnsafe);
  const auto settled = ledger_->settle(begun.operation, OperationOutcome::kCompleted, "1");
  ASSERT_FALSE(settled);
  EXPECT_EQ(settled.error().code, Errc::kConflict);
  EXPECT_EQ(state(), "unknown") << "it may have acted in another way";
  resolve();
  begun = begin_sent(Effect::kUnsafe);
  ledger_->requests().not_sent(id_);
  EXPECT_EQ(settle(begun, OperationOutcome::kCompleted), OperationState::kCompleted)
      << "it has asked, and goes on without an answer";
}

TEST_F(OperationRequestsTest, P10_AnAnswerThatTheFunctionHasRefusedIsNotGivenAgain) {
  struct Case {
    Effect effect;
    OperationState state;
    OperationDecision next;
    bool is_kept;
  };
  constexpr auto kProbeIt = OperationDecision::kProbe;
  for (const auto& [effect, state, next, is_kept] :
       {Case{Effect::kRead, OperationState::kInterrupted, kRunIt, false},
        Case{Effect::kIdempotent, OperationState::kInterrupted, kRunIt, false},
        Case{Effect::kKeyed, OperationState::kInterrupted, kRunIt, false},
        Case{Effect::kProbe, OperationState::kInterrupted, kProbeIt, true},
        Case{Effect::kUnsafe, OperationState::kUnknown, OperationDecision::kUnknown, true}}) {
    for (const bool is_whole : {false, true}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(effect)) + (is_whole ? " whole" : " part"));
      OperationBegun begun = begin_answered(effect, true);
      if (is_whole) ledger_->requests().answer_ended(id_);
      EXPECT_EQ(settle(begun, OperationOutcome::kFailed, "no JSON"), state);
      EXPECT_EQ(stored(), is_kept ? "one two " : "");
      begun = begin(effect, true, true);
      EXPECT_EQ(begun.decision, next);
      EXPECT_FALSE(ledger_->requests().may_send(resuming(0)));
      if (next == kRunIt) EXPECT_TRUE(send()) << "it is asked for anew";
      if (next == OperationDecision::kUnknown) {
        resolve();
      } else {
        set_not_executed(begun);
      }
    }
  }
}

TEST_F(OperationRequestsTest, P10_ARequestThatHasFailedLeavesAnAnswerWhoseRestIsMissing) {
  for (const auto fail : {&OperationRequests::broke_off, &OperationRequests::not_sent,
                          &OperationRequests::not_made}) {
    OperationBegun begun = begin_answered(Effect::kUnsafe, true);
    ledger_->requests().broke_off(id_);
    EXPECT_EQ(settle(begun, OperationOutcome::kFailed, "cut"), OperationState::kInterrupted);
    begun = begin(Effect::kUnsafe, true);
    EXPECT_EQ(begun.decision, kRunIt);
    ASSERT_TRUE(send(resuming(4)));
    (ledger_->requests().*fail)(id_);
    EXPECT_EQ(settle(begun, OperationOutcome::kFailed, "again"), OperationState::kInterrupted);
    begun = begin(Effect::kUnsafe, true);
    ASSERT_TRUE(send(resuming(4)));
    ledger_->requests().answered(id_, 206, std::nullopt, R"({"status":206})");
    EXPECT_EQ(settle(begun, OperationOutcome::kFailed, "of no use"), OperationState::kUnknown);
    resolve();
  }
}

TEST_F(OperationRequestsTest, P10_AnAnswerThatIsDroppedIsAskedForInTheSameRunToo) {
  EXPECT_EQ(ledger_->requests().drop_answer("none").error().code, Errc::kNotFound);
  for (const Effect effect : kEffects) {
    SCOPED_TRACE(static_cast<int>(effect));
    const OperationBegun begun = begin(effect, true);
    EXPECT_TRUE(ledger_->requests().drop_answer(id_)) << "there is none";
    ASSERT_TRUE(send());
    answer();
    EXPECT_TRUE(ledger_->requests().drop_answer(id_));
    ledger_->requests().received(id_, "three");
    ledger_->requests().answer_ended(id_);
    const bool is_strict = effect > Effect::kKeyed;
    EXPECT_EQ(stored(), is_strict ? "one two " : "") << "and nothing more of it";
    EXPECT_EQ(sent().at("whole"), false);
    EXPECT_EQ(send(), !is_strict);
    if (!is_strict) answer(200, "anew");
    EXPECT_EQ(stored(), is_strict ? "one two " : "anew");
    set_not_executed(begun);
  }
}

TEST_F(OperationRequestsTest, P10_AnAnswerThatHasBegunGoesOnWhateverTheEffect) {
  begin_answered(Effect::kUnsafe, true);
  crash_all();
  EXPECT_FALSE(ledger_->due()) << "it is not unknown";
  EXPECT_EQ(begin(Effect::kUnsafe, true).decision, kRunIt);
  EXPECT_FALSE(send()) << "the request itself";
  EXPECT_FALSE(send(resuming(9))) << "more than there is";
  ASSERT_TRUE(send(resuming(4)));
  ledger_->requests().answered(id_, 206, "req-2", R"({"status":206})");
  ledger_->requests().received(id_, "TWO ");
  EXPECT_EQ(stored(), "one TWO ");
  EXPECT_EQ(sent().at("request_id"), "req-1") << "of the first";
  ledger_->requests().answer_ended(id_);
  EXPECT_EQ(sent().at("whole"), true);
  database_->commit();
  crash_all();
  const OperationBegun begun = begin(Effect::kUnsafe, true);
  EXPECT_EQ(begun.decision, kRunIt);
  EXPECT_FALSE(send(resuming(4))) << "all of it is here";
  ASSERT_TRUE(ledger_->settle(begun.operation, OperationOutcome::kCompleted, "1"));
  EXPECT_EQ(stored(), "") << "the result is in its place";
  EXPECT_EQ(sent().at("status"), 200);
}

TEST_F(OperationRequestsTest, P10_ACutStreamOfTheSameInstanceGoesOnToo) {
  OperationBegun begun = begin_answered(Effect::kUnsafe, true);
  EXPECT_EQ(cut_off(begun), OperationState::kInterrupted);
  begun = begin(Effect::kUnsafe, true);
  EXPECT_EQ(begun.decision, kRunIt);
  ASSERT_TRUE(send(resuming(8)));
  ledger_->requests().not_sent(id_);
  EXPECT_EQ(stored(), "one two ");
  EXPECT_EQ(cut_off(begun), OperationState::kInterrupted) << "the first one was executed";
}

TEST_F(OperationRequestsTest, P10_WhatHasBegunIsUnknownWhenItsFiberIsOver) {
  fiber_ = start("f").fiber;
  begin_answered(Effect::kUnsafe, true);
  crash_all();
  EXPECT_FALSE(ledger_->due()) << "the fiber's recovery decides";
  EXPECT_EQ(state(), "interrupted");
  cancel("f", "no more");
  EXPECT_EQ(state_after_crash(), "unknown");
  EXPECT_EQ(stored(), "one two ") << "what came is kept";
  const auto untold = ledger_->unknown().next_untold().value();
  EXPECT_EQ(untold.id, id_);
}

TEST_F(OperationRequestsTest, P10_AFiberThatEndsInThisInstanceIsOverToo) {
  fiber_ = start("f").fiber;
  OperationBegun begun = begin_answered(Effect::kUnsafe, true);
  EXPECT_EQ(cut_off(begun), OperationState::kInterrupted);
  ledger_->give_up_lost(true);
  EXPECT_EQ(state(), "interrupted") << "the fiber may go on";
  begun = begin(Effect::kUnsafe, true);
  EXPECT_EQ(begun.decision, kRunIt);
  settle(fiber_, FiberStatus::kError, "no");
  ledger_->give_up_lost(true);
  EXPECT_EQ(state(), "running") << "its end says what became of it";
  EXPECT_EQ(cut_off(begun), OperationState::kUnknown);

  fiber_ = start("g").fiber;
  begun = begin_answered(Effect::kUnsafe, true);
  EXPECT_EQ(cut_off(begun), OperationState::kInterrupted);
  settle(fiber_, FiberStatus::kError, "no");
  ledger_->give_up_lost(true);
  EXPECT_EQ(state(), "unknown");
}

TEST_F(OperationRequestsTest, P10_ADeadFiberIsOver) {
  settings_.max_attempts = 1;
  crash_all();
  fiber_ = start("f").fiber;
  begin_answered(Effect::kUnsafe, true);
  crash_all();
  ASSERT_TRUE(recover());
  EXPECT_EQ(state(), "interrupted");
  hook_fails("f", "no");
  clock_.advance(std::chrono::hours(1));
  EXPECT_FALSE(recover()) << "it is dead";
  EXPECT_EQ(state_after_crash(), "unknown");
  EXPECT_TRUE(ledger_->due());
}

TEST_F(OperationRequestsTest, WithoutAnAnswerOrANameForItsRestItIsUnknown) {
  begin_sent(Effect::kUnsafe, true);
  crash_all();
  EXPECT_EQ(begin(Effect::kUnsafe, true).decision, OperationDecision::kUnknown) << "no head";
  resolve();
  begin_sent(Effect::kUnsafe, true);
  answer(500);
  crash_all();
  EXPECT_EQ(begin(Effect::kUnsafe, true).decision, OperationDecision::kUnknown) << "an error";
  resolve();
  EXPECT_EQ(stored(), "none");
  begin_answered(Effect::kUnsafe, true);
  crash_all();
  EXPECT_EQ(begin(Effect::kUnsafe, false).decision, OperationDecision::kUnknown)
      << "this version does not know how";
  EXPECT_EQ(stored(), "one two ");
}

TEST_F(OperationRequestsTest, AResumeThatIsRefusedIsNotTriedAgain) {
  for (const Effect effect : {Effect::kUnsafe, Effect::kKeyed}) {
    begin_answered(effect, true);
    crash_all();
    const OperationBegun begun = begin(effect, true);
    ASSERT_TRUE(send(resuming(8)));
    ledger_->requests().answered(id_, 404, std::nullopt, R"({"status":404})");
    ledger_->requests().received(id_, "no such poem");
    ledger_->requests().answer_ended(id_);
    EXPECT_EQ(sent().at("whole"), false);
    const bool is_unsafe = effect == Effect::kUnsafe;
    EXPECT_EQ(stored(), is_unsafe ? "one two " : "");
    EXPECT_EQ(cut_off(begun), is_unsafe ? OperationState::kUnknown : OperationState::kInterrupted);
    EXPECT_EQ(begin(effect, true).decision, is_unsafe ? OperationDecision::kUnknown : kRunIt);
    if (is_unsafe) resolve();
    if (!is_unsafe) EXPECT_TRUE(send()) << "from its beginning";
  }
}

TEST_F(OperationRequestsTest, AnotherPartThanTheOneThatWasAskedForIsARefusal) {
  begin_answered(Effect::kUnsafe, true);
  crash_all();
  const OperationBegun begun = begin(Effect::kUnsafe, true);
  ASSERT_TRUE(send(resuming(8)));
  ledger_->requests().answered(id_, 200, std::nullopt, R"({"status":200})", false);
  ledger_->requests().received(id_, "one two three");
  EXPECT_EQ(stored(), "one two ");
  EXPECT_EQ(cut_off(begun), OperationState::kUnknown);
}

TEST_F(OperationRequestsTest, P10_TheBeginningOfALongAnswerIsKept) {
  begin_sent(Effect::kUnsafe, true);
  answer(200, "0123456789");
  ledger_->requests().received(id_, "abcdefghijKLM");
  ledger_->requests().received(id_, "more");
  ledger_->requests().answer_ended(id_);
  EXPECT_EQ(stored(), "0123456789abcdefghij");
  EXPECT_EQ(sent().at("whole"), false);
  ASSERT_TRUE(send(resuming(kMaxBody))) << "its rest can be asked for";
}

TEST_F(OperationRequestsTest, AHeadThatIsTooLargeIsKeptWithoutItsHeaders) {
  begin_sent(Effect::kUnsafe);
  ledger_->requests().answered(id_, 200, std::string(300, 'x'),
                               std::string(OperationAnswers::kMaxHeadBytes + 1, ' '));
  EXPECT_EQ(ledger_->requests().answer(id_)->head, R"({"status":200,"url":"","headers":[]})");
  EXPECT_TRUE(sent().at("request_id").is_null()) << "longer than any";
}

TEST_F(OperationRequestsTest, WhatComesAfterTheEndIsIgnored) {
  const OperationBegun begun = begin_answered(Effect::kRead);
  ASSERT_TRUE(ledger_->settle(begun.operation, OperationOutcome::kCompleted, "1"));
  answer(500, "late");
  ledger_->requests().answer_ended(id_);
  ledger_->requests().not_sent(id_);
  EXPECT_EQ(stored(), "");
  EXPECT_EQ(sent().at("status"), 200);
}

TEST(RunningOperationsTest, OneIsKnownByItsRunAndByItsIdUntilItIsTaken) {
  RunningOperations running;
  OperationRow row;
  row.id = "a";
  row.state = "unknown";
  EXPECT_EQ(running.state_of(row), OperationState::kUnknown);
  const auto first = running.add({row});
  EXPECT_EQ(running.state_of(row), OperationState::kRunning) << "whatever its row says";
  EXPECT_EQ(running.id_of(first), "a");
  ASSERT_NE(running.find("a"), nullptr);
  EXPECT_EQ(running.take(first).id, "a");
  EXPECT_EQ(running.id_of(first), "");
  EXPECT_EQ(running.find("a"), nullptr);
  EXPECT_TRUE(running.all().empty());
  EXPECT_NE(running.add({row}), first) << "the number of a run is not used again";
}

TEST(RunningOperationsTest, P9_ARunWhoseWaitIsCancelledHasSentNothing) {
  RunningOperations running;
  const auto add = [&](const char* id) {
    OperationRow row;
    row.id = id;
    RunningOperation it{row};
    it.is_anew = true;
    return running.add(std::move(it));
  };
  running.waits_for(add("a"), 7);
  const auto never = add("b");
  add("c");
  running.cancelled(0);
  EXPECT_FALSE(running.find("b")->unsent) << "it waits for nothing";
  running.cancelled(7);
  running.never_begins(never);
  EXPECT_TRUE(running.find("a")->unsent && running.find("b")->unsent);
  EXPECT_FALSE(running.find("c")->unsent);
  running.sent_elsewhere();
  EXPECT_FALSE(running.find("a")->unsent || running.find("a")->is_anew);
  EXPECT_TRUE(running.find("c")->is_anew) << "its own request will show it";
}

}  // namespace
}  // namespace hearth::durable
