// The ledger of an agent's operations, with kills, clocks that are set and code that changes.
#include "durable/operations.hpp"

#include "durable/operations_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::durable {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr auto kRun = OperationDecision::kRun;
constexpr auto kProbe = OperationDecision::kProbe;
constexpr auto kJoin = OperationDecision::kJoin;
constexpr auto kUnknown = OperationDecision::kUnknown;
constexpr auto kCompleted = OperationOutcome::kCompleted;
constexpr auto kNotExecuted = OperationOutcome::kNotExecuted;
constexpr auto kCutOff = OperationOutcome::kCutOff;

constexpr std::size_t kMaxResult = 100;

class OperationsTest : public OperationsFixture {
 protected:
  OperationsTest() : OperationsFixture({.max_result_bytes = kMaxResult, .kinds = {}}) {}

  OperationRequest charge(FiberHandle fiber, Effect effect = Effect::kUnsafe) const {
    OperationRequest request;
    request.kind = "charge";
    request.arguments = arguments_;
    request.fiber = fiber;
    request.effect = effect;
    if (effect == Effect::kKeyed)
      request.horizon_ms = static_cast<std::uint64_t>(milliseconds(hours(24)).count());
    return request;
  }
  OperationBegun begin(const OperationRequest& request) { return begin_request(request); }
  OperationBegun complete(const OperationRequest& request, std::string_view result = "1") {
    const OperationBegun begun = begin(request);
    EXPECT_EQ(begun.decision, kRun);
    settle(begun, kCompleted, result);
    return begun;
  }
  void stash(FiberHandle fiber, const char* checkpoint) {
    const auto id = fibers_->stash(fiber, checkpoint);
    ASSERT_TRUE(id);
    ledger_->checkpointed(*id);
    database_->commit();
  }
  FiberHandle start_fiber(std::string_view id = "f") { return start(id).fiber; }
  FiberHandle resume(const std::string& id = "f") { return OperationsFixture::resume(id); }

  std::string arguments_ = R"({"cents":500})";
};

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
  const auto id = fibers_->stash(first, "1");
  ASSERT_TRUE(id);
  ledger_->checkpointed(*id);  // and no commit
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
    {"KeyedWithinItsHorizon", Effect::kKeyed, Effect::kKeyed, false, hours(23), kRun},
    {"KeyedBehindItsHorizon", Effect::kKeyed, Effect::kKeyed, false, hours(25), kUnknown, true},
    {"KeyedAndTheClockWasSetBack", Effect::kKeyed, Effect::kKeyed, false, -hours(1), kUnknown,
     true},
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
    managed_->settle(again, FiberStatus::kCompleted, "");
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
  ManagedRequest child = request();
  child.key = "parent/step/0/1";
  child.parent = "parent";
  child.keeping = FiberKeeping::kBrief;
  child.policy = SettledKey::kReplaceFailed;
  const ManagedFibers::Started first = start(child);
  const OperationBegun begun = complete(charge(first.fiber));
  EXPECT_EQ(text_member(record(begun.id), "scope"), "parent/step/0/1");
  settle(first.fiber, FiberStatus::kError, "something else has failed");
  const ManagedFibers::Started second = start(child);
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
  for (int telling = 1; telling <= Operations::kMostTellings; ++telling) {
    ASSERT_TRUE(ledger_->due()) << telling;
    EXPECT_TRUE(ledger_->wake().working);
    const auto unknown = ledger_->next_untold();
    database_->commit();
    ASSERT_TRUE(unknown);
    EXPECT_EQ(unknown->id, begun.id);
    EXPECT_EQ(unknown->kind, "charge");
    if (telling % 2 == 0) ledger_->told(begun.id, false);
    EXPECT_FALSE(ledger_->next_untold()) << "once an instance";
    crash_all();
  }
  EXPECT_FALSE(ledger_->next_untold());
  EXPECT_FALSE(ledger_->wake().working);
  EXPECT_EQ(state(begun.id), "unknown");
  // One that is heard.
  const OperationBegun other = begin(charge(resume()));
  EXPECT_EQ(other.decision, kUnknown);
}

TEST_F(OperationsTest, WhatWasHeardIsNotToldAgain) {
  const OperationBegun begun = begin(charge(start_fiber()));
  crash_all();
  const auto unknown = ledger_->next_untold();
  ASSERT_TRUE(unknown);
  ledger_->told(unknown->id, true);
  database_->commit();
  crash_all();
  EXPECT_FALSE(ledger_->due());
  EXPECT_EQ(state(begun.id), "unknown");
}

TEST_F(OperationsTest, SizesAreBounded) {
  const FiberHandle fiber = start_fiber();
  OperationRequest request = charge(fiber);
  const std::string large = '"' + std::string(Operations::kMaxArgumentBytes, 'x') + '"';
  request.arguments = large;
  EXPECT_EQ(ledger_->begin(request).error().code, Errc::kLimitExceeded);
  request.arguments = "{";
  EXPECT_EQ(ledger_->begin(request).error().code, Errc::kInvalidArgument);
  request.arguments = "1";
  const std::string long_kind(65, 'k');
  request.kind = long_kind;
  EXPECT_EQ(ledger_->begin(request).error().code, Errc::kInvalidArgument);
  request.kind = "";
  EXPECT_EQ(ledger_->begin(request).error().code, Errc::kInvalidArgument);
  request.kind = "charge";
  request.horizon_ms = 1;
  EXPECT_EQ(ledger_->begin(request).error().code, Errc::kInvalidArgument) << "it is not keyed";

  const OperationBegun begun = begin(charge(fiber));
  EXPECT_EQ(ledger_->settle(begun.operation, kCompleted, "{").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(ledger_->settle(begun.operation, kCompleted, '"' + std::string(kMaxResult, 'x') + '"')
                .error()
                .code,
            Errc::kLimitExceeded);
  EXPECT_EQ(state(begun.id), "completed") << "the effect has happened";
  EXPECT_EQ(ledger_->settle(begun.operation, kCompleted, "1").error().code, Errc::kNotFound);
  database_->commit();
  crash_all();
  const OperationBegun again = begin(charge(resume()));
  EXPECT_EQ(again.decision, OperationDecision::kCompleted);
  EXPECT_EQ(again.result, "");
}

TEST_F(OperationsTest, RowsGoWithTheirTimeButNotWhileTheirFiberMayRunAgain) {
  const FiberHandle fiber = start_fiber();
  const OperationBegun of_fiber = complete(charge(fiber));
  OperationRequest keyed = charge(0);
  keyed.key = "k";
  const OperationBegun by_key = complete(keyed);
  keyed.key = "lost";
  const OperationBegun unknown = begin(keyed);
  settle(unknown, OperationOutcome::kUnknown, "?");
  clock_.set_wall(clock_.wall_now() + ledger_settings_.keep - hours(1));
  ledger_->sweep();
  EXPECT_EQ(state(by_key.id), "completed");
  clock_.set_wall(clock_.wall_now() + hours(2));
  ledger_->sweep();
  EXPECT_EQ(state(by_key.id), "none");
  EXPECT_EQ(state(of_fiber.id), "completed");
  EXPECT_EQ(state(unknown.id), "unknown");
  settle(fiber, FiberStatus::kCompleted);
  ledger_->sweep();
  EXPECT_EQ(state(of_fiber.id), "none");
  EXPECT_EQ(state(unknown.id), "unknown");
  database_->commit();
  EXPECT_EQ(count("SELECT count(*) FROM cf_agents_operation_documents"), 1) << "its arguments";
}

TEST_F(OperationsTest, WhenThereIsNoRoomTheSettledOnesOfEndedFibersGo) {
  ledger_.reset();
  ledger_settings_.most = 3;
  open_ledger();
  const FiberHandle ended = start_fiber("ended");
  const OperationBegun first = complete(charge(ended));
  const FiberHandle fiber = start_fiber("f");
  complete(charge(fiber));
  complete(charge(fiber));
  EXPECT_EQ(ledger_->begin(charge(fiber)).error().code, Errc::kLimitExceeded);
  settle(ended, FiberStatus::kCompleted);
  EXPECT_EQ(begin(charge(fiber)).decision, kRun);
  EXPECT_EQ(state(first.id), "none");
}

TEST_F(OperationsTest, TheyAreListedByStateKindAndFiber) {
  EXPECT_EQ(*ledger_->list({}), "[]");
  const FiberHandle fiber = start_fiber();
  const OperationBegun one = complete(charge(fiber));
  OperationRequest other = charge(0, Effect::kRead);
  other.kind = "look";
  other.key = "k";
  const OperationBegun two = begin(other);
  const auto ids = [&](const OperationFilter& filter) {
    std::vector<std::string> found;
    for (const Json& each : *parse_json(*ledger_->list(filter)))
      found.push_back(text_member(each, "id"));
    return found;
  };
  using Ids = std::vector<std::string>;
  EXPECT_EQ(ids({}), (Ids{one.id, two.id}));
  EXPECT_EQ(ids({.states = 1}), Ids{two.id}) << "running";
  EXPECT_EQ(ids({.states = 2 | 4}), Ids{one.id});
  EXPECT_EQ(ids({.kind = "look"}), Ids{two.id});
  EXPECT_EQ(ids({.fiber = "f"}), Ids{one.id});
  EXPECT_EQ(ids({.after = one.id}), Ids{two.id});
  EXPECT_EQ(ids({.limit = 1}), Ids{one.id});
  EXPECT_EQ(ledger_->list({.after = "none"}).error().code, Errc::kNotFound);
  const Json json = record(one.id);
  EXPECT_EQ(json.at("effect"), "unsafe");
  EXPECT_EQ(json.at("args"), (Json{{"cents", 500}}));
  EXPECT_EQ(json.at("result"), 1);
  EXPECT_EQ(json.at("attempts"), 1);
  EXPECT_EQ(ledger_->inspect("none").error().code, Errc::kNotFound);
}

TEST_F(OperationsTest, AListThatGetsTooLongSaysThatItWasCutShort) {
  const FiberHandle fiber = start_fiber();
  constexpr std::size_t kMany = 80;
  const std::string large(Operations::kMaxArgumentBytes - 100, 'x');
  for (std::size_t i = 0; i < kMany; ++i) {
    arguments_ = '"' + std::to_string(i) + large + '"';
    (void)begin(charge(fiber));
  }
  std::size_t found = 0;
  OperationFilter filter{.limit = kMany};
  std::string last;
  bool is_more = true;
  for (int asked = 0; is_more && asked < 3; ++asked) {
    filter.after = last;
    const auto page = ledger_->list(filter);
    ASSERT_TRUE(page) << page.error().message;
    is_more = Operations::is_cut_short(*page);
    EXPECT_EQ(is_more, asked == 0);
    const Json records = *parse_json(*page);
    ASSERT_FALSE(records.empty());
    found += records.size();
    last = text_member(records.back(), "id");
  }
  EXPECT_EQ(found, kMany);
}

TEST_F(OperationsTest, WhoOnlyAsksLeavesNothing) {
  EXPECT_EQ(*ledger_->list({}), "[]");
  EXPECT_FALSE(ledger_->inspect("x"));
  ledger_->sweep();
  ledger_->checkpointed("f");
  EXPECT_FALSE(database_->exists());
}

// ---- the index entry of the agent ----

TEST_F(OperationsTest, TheIndexIsToldOfWhatIsNotSettledAndOfWhatIsUnknown) {
  EXPECT_FALSE(ledger_->wake().unknown_operations);
  const FiberHandle fiber = start_fiber();
  const OperationBegun paid = begin(charge(fiber));
  EXPECT_EQ(ledger_->wake().unknown_operations, 0);
  settle(paid, kCompleted);
  EXPECT_EQ(ledger_->wake().unknown_operations, 0) << "no write for each operation";
  ledger_->close();
  EXPECT_FALSE(ledger_->wake().unknown_operations) << "the agent has left with nothing open";

  open_ledger();
  arguments_ = "2";
  const OperationBegun lost = begin(charge(fiber));
  settle(lost, kCutOff, "cut off");
  EXPECT_EQ(ledger_->wake().unknown_operations, 1);
  ledger_->close();
  open_ledger();
  EXPECT_EQ(ledger_->wake().unknown_operations, 1);
  ASSERT_TRUE(ledger_->resolve(lost.id, kNotExecuted, "", "asked them", "anna"));
  EXPECT_EQ(ledger_->wake().unknown_operations, 0);
}

TEST_F(OperationsTest, TheOpenOnesAreListedByAgeAndWithoutTheirDocuments) {
  const FiberHandle fiber = start_fiber();
  complete(charge(fiber));
  const OperationBegun first = begin(charge(fiber));
  clock_.set_wall(clock_.wall_now() + hours(1));
  arguments_ = "2";
  const OperationBegun second = begin(charge(fiber));
  OperationFilter filter{.states = static_cast<std::uint32_t>(OperationState::kRunning)};
  filter.without_documents = true;
  const Json both = *parse_json(*ledger_->list(filter));
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(text_member(both[0], "id"), first.id);
  EXPECT_EQ(text_member(both[1], "id"), second.id);
  EXPECT_FALSE(both[0].contains("args") || both[0].contains("result"));
  filter.begun_before_ms = unix_millis(clock_.wall_now());
  const Json older = *parse_json(*ledger_->list(filter));
  ASSERT_EQ(older.size(), 1U);
  EXPECT_EQ(text_member(older[0], "id"), first.id);
}

// ---- limits of the operator ----

TEST_F(OperationsTest, EachKindHasItsOwnTimeToKeep) {
  ledger_settings_.kinds["refund"] = {.keep = hours(1)};
  ledger_settings_.kinds["charge"] = {.keep = hours(24 * 90)};
  const FiberHandle fiber = start_fiber();
  std::vector<std::string> ids;
  for (const char* const kind : {"refund", "charge", "mail"}) {
    OperationRequest request = charge(fiber);
    request.kind = kind;
    ids.push_back(complete(request).id);
  }
  managed_->settle(fiber, FiberStatus::kCompleted, "");
  const auto there = [&] {
    ledger_->sweep();
    std::string all;
    for (const std::string& id : ids) all += ledger_->inspect(id) ? '1' : '0';
    return all;
  };
  EXPECT_EQ(there(), "111");
  clock_.set_wall(clock_.wall_now() + hours(2));
  EXPECT_EQ(there(), "011");
  clock_.set_wall(clock_.wall_now() + hours(24 * 31));
  EXPECT_EQ(there(), "010");
  clock_.set_wall(clock_.wall_now() + hours(24 * 60));
  EXPECT_EQ(there(), "000");
}

class OperationBudgetTest : public OperationsTest {
 protected:
  void SetUp() override {
    clock_.set_wall(WallTime(hours(24 * 20'000 + 12)));  // noon
    fiber_ = start_fiber();
  }
  // Whether one that costs this may begin, and its end.
  bool may_begin(std::uint64_t cost = 0, OperationOutcome outcome = kCompleted) {
    OperationRequest request = charge(fiber_);
    request.cost = cost;
    const auto begun = ledger_->begin(request);
    if (!begun) {
      EXPECT_EQ(begun.error().code, Errc::kLimitExceeded);
      return false;
    }
    settle(*begun, outcome);
    return true;
  }
  std::size_t rows() { return parse_json(*ledger_->list({}))->size(); }

  FiberHandle fiber_ = 0;
};

TEST_F(OperationBudgetTest, WhatWouldExceedTheDaysNumberDoesNotBegin) {
  ledger_settings_.kinds["charge"].per_day = 2;
  EXPECT_TRUE(may_begin());
  EXPECT_TRUE(may_begin());
  EXPECT_FALSE(may_begin());
  EXPECT_EQ(rows(), 2U) << "it leaves no row";
  crash_all();
  fiber_ = resume();
  // The two of before are found; they do not count again.
  EXPECT_EQ(begin(charge(fiber_)).decision, OperationDecision::kCompleted);
  EXPECT_EQ(begin(charge(fiber_)).decision, OperationDecision::kCompleted);
  EXPECT_FALSE(may_begin()) << "it is known after a restart";
  clock_.set_wall(clock_.wall_now() + hours(11));
  EXPECT_FALSE(may_begin());
  clock_.set_wall(clock_.wall_now() + hours(1));
  EXPECT_TRUE(may_begin()) << "it is midnight";
  EXPECT_TRUE(may_begin());
  clock_.set_wall(clock_.wall_now() - hours(2));
  EXPECT_FALSE(may_begin()) << "a clock that is set back gives no second budget";
}

TEST_F(OperationBudgetTest, WhatWouldExceedTheDaysCostDoesNotBegin) {
  ledger_settings_.kinds["charge"].cost_per_day = 100;
  EXPECT_TRUE(may_begin(60));
  EXPECT_FALSE(may_begin(41));
  EXPECT_TRUE(may_begin(30, kNotExecuted));
  EXPECT_TRUE(may_begin(40)) << "what was not executed has cost nothing";
  EXPECT_FALSE(may_begin(1));
  EXPECT_TRUE(may_begin(0));
}

TEST_F(OperationBudgetTest, AClockThatJumpsAheadAndBackGivesNoFreshBudget) {
  ledger_settings_.kinds["charge"].per_day = 1;
  const auto today = clock_.wall_now();
  EXPECT_TRUE(may_begin());
  for (const int days : {2, 400, 3}) {
    clock_.set_wall(today + hours(24 * days));
    EXPECT_TRUE(may_begin()) << days;
    clock_.set_wall(today);
    EXPECT_FALSE(may_begin()) << days;
  }
  for (int day = 10; day < 40; day += 2) {
    clock_.set_wall(today + hours(24 * day));
    EXPECT_TRUE(may_begin()) << day;
    EXPECT_FALSE(may_begin()) << day;
  }
  EXPECT_LE(count("SELECT count(*) FROM cf_agents_operation_days"), 10) << "old days go";
}

TEST_F(OperationBudgetTest, OnlyWhatWasCountedIsGivenBackAndToItsOwnDay) {
  const OperationBegun before = begin(charge(fiber_));  // its kind has no limit yet
  ledger_settings_.kinds["charge"].per_day = 1;
  arguments_ = "2";
  const OperationBegun counted = begin(charge(fiber_));
  settle(before, kNotExecuted, "refused");
  arguments_ = "3";
  EXPECT_FALSE(may_begin()) << "the first has not counted";
  clock_.set_wall(clock_.wall_now() + hours(24));
  EXPECT_TRUE(may_begin());
  settle(counted, kNotExecuted, "refused");
  EXPECT_FALSE(may_begin()) << "that was yesterday's";
  clock_.set_wall(clock_.wall_now() + hours(24));
  arguments_ = "4";
  EXPECT_TRUE(may_begin(0, kNotExecuted));
  EXPECT_TRUE(may_begin()) << "it was given back";
  EXPECT_FALSE(may_begin());
}

TEST_F(OperationBudgetTest, TheSumOfADaysCostsDoesNotOverflow) {
  ledger_settings_.kinds["charge"].per_day = 20'000;
  EXPECT_TRUE(may_begin(1));
  database_->begin_write();
  storage::Statement(database_->connection(),
                     "UPDATE cf_agents_operation_days SET cost = 9223372036854775807 - 5")
      .execute();
  database_->commit();
  EXPECT_TRUE(may_begin(1'000'000));
  EXPECT_EQ(count("SELECT cost = 9223372036854775807 FROM cf_agents_operation_days"), 1);
  ledger_settings_.kinds["charge"].cost_per_day = 100;
  EXPECT_FALSE(may_begin(1));
}

TEST_F(OperationBudgetTest, OtherKindsAndOtherDaysAreFree) {
  ledger_settings_.kinds["refund"].per_day = 1;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(may_begin(1'000'000));
  storage::Statement find(database_->connection(),
                          "SELECT 1 FROM sqlite_schema WHERE name = 'cf_agents_operation_days'");
  EXPECT_FALSE(find.query().next()) << "what has no limit costs no write";
}

}  // namespace
}  // namespace hearth::durable
