// What may become of an operation: tables of values, without a database.
#include "durable/operation_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::durable {
namespace {

constexpr std::int64_t kBegan = 1'000'000'000;
constexpr std::int64_t kHorizon = 1'000'000;
constexpr std::int64_t kLongest = kLongestInterruption.count();

OperationRow row_with(Effect effect, bool has_root = false) {
  OperationRow row;
  row.seq = 1;
  row.effect = effect;
  row.state = "started";
  row.started_at_ms = kBegan;
  if (effect == Effect::kKeyed) row.horizon_at_ms = kBegan + kHorizon;
  if (has_root) row.root = "f";
  return row;
}

TEST(OperationRulesTest, AKeyIsKnownUntilItsHorizonAndALittleBefore) {
  const OperationRow row = row_with(Effect::kKeyed);
  EXPECT_TRUE(is_key_known(row, kBegan));
  EXPECT_TRUE(is_key_known(row, kBegan + kHorizon - 1));
  EXPECT_FALSE(is_key_known(row, kBegan + kHorizon));
  EXPECT_TRUE(is_key_known(row, kBegan - kHorizon / 10)) << "a tenth of the horizon";
  EXPECT_FALSE(is_key_known(row, kBegan - kHorizon / 10 - 1));
  OperationRow for_long = row;
  for_long.horizon_at_ms = kBegan + kLongest;
  EXPECT_TRUE(is_key_known(for_long, kBegan - kMostClockSkew.count()));
  EXPECT_FALSE(is_key_known(for_long, kBegan - kMostClockSkew.count() - 1));
  EXPECT_FALSE(is_key_known(row_with(Effect::kProbe), kBegan)) << "it has no key";
}

struct Decided {
  const char* name;
  Effect begun_as;
  Effect asked_as;
  OperationState state;
  OperationDecision decision;
  bool can_probe = false;
  bool was_given_up = false;
  bool goes_on = false;
  std::int64_t later = 0;
};

TEST(OperationRulesTest, P1_TheStricterEffectDecides) {
  using enum Effect;
  using To = OperationDecision;
  constexpr auto kCutOff = OperationState::kInterrupted;
  constexpr auto kWasUnknown = OperationState::kUnknown;
  for (const Decided& each : {
           Decided{"running", kUnsafe, kUnsafe, OperationState::kRunning, To::kJoin},
           Decided{"completed", kUnsafe, kUnsafe, OperationState::kCompleted, To::kCompleted},
           Decided{"not executed", kUnsafe, kUnsafe, OperationState::kNotExecuted, To::kRun},
           Decided{"read", kRead, kRead, kCutOff, To::kRun},
           Decided{"idempotent", kIdempotent, kIdempotent, kCutOff, To::kRun},
           Decided{"keyed", kKeyed, kKeyed, kCutOff, To::kRun},
           Decided{"behind its horizon", kKeyed, kKeyed, kCutOff, To::kUnknown, false, false, false,
                   kHorizon},
           Decided{"probe", kProbe, kProbe, kCutOff, To::kProbe, true},
           Decided{"probe without code", kProbe, kProbe, kCutOff, To::kUnknown},
           Decided{"unsafe", kUnsafe, kUnsafe, kCutOff, To::kUnknown, true},
           Decided{"unsafe with an answer", kUnsafe, kUnsafe, kCutOff, To::kRun, false, false,
                   true},
           Decided{"milder now", kUnsafe, kRead, kCutOff, To::kUnknown},
           Decided{"stricter now", kRead, kUnsafe, kCutOff, To::kUnknown},
           Decided{"unknown", kRead, kRead, kWasUnknown, To::kUnknown},
           Decided{"given up", kKeyed, kKeyed, kWasUnknown, To::kRun, false, true},
           Decided{"given up, with a probe", kProbe, kProbe, kWasUnknown, To::kProbe, true, true},
           Decided{"given up for good", kKeyed, kKeyed, kWasUnknown, To::kUnknown, false, true,
                   false, kHorizon},
       }) {
    SCOPED_TRACE(each.name);
    const OperationRequest request{.effect = each.asked_as, .can_probe = each.can_probe};
    const auto decided = decide(row_with(each.begun_as), each.state, request, each.was_given_up,
                                each.goes_on, kBegan + each.later);
    EXPECT_EQ(decided.decision, each.decision);
    if (each.state == kCutOff)
      EXPECT_EQ(decided.row.effect, std::max(each.begun_as, each.asked_as));
  }
}

TEST(OperationRulesTest, OneThatCertainlyHadNoEffectBeginsAsTheRequestSays) {
  const OperationRequest request{
      .effect = Effect::kKeyed, .horizon_ms = 7, .acts_by_request = true, .cost = 3};
  const auto decided = decide(row_with(Effect::kUnsafe), OperationState::kNotExecuted, request,
                              false, false, kBegan + 5);
  EXPECT_EQ(decided.row.effect, Effect::kKeyed);
  EXPECT_EQ(decided.row.cost, 3);
  EXPECT_TRUE(decided.row.acts_by_request);
  EXPECT_EQ(decided.row.started_at_ms, kBegan + 5);
  EXPECT_EQ(decided.row.horizon_at_ms, kBegan + 12);
}

struct Sent {
  const char* name;
  Effect effect;
  bool has_sent;  // "f"
  const char* fingerprint;
  bool may;
  std::int64_t later = 0;
  bool is_anew = true;
};

TEST(OperationRulesTest, P8_ASecondRequestIsAllowedIfItCannotActASecondTime) {
  for (const Sent& each : {
           Sent{"the first", Effect::kUnsafe, false, "f", true},
           Sent{"read", Effect::kRead, true, "g", true},
           Sent{"idempotent", Effect::kIdempotent, true, "g", true},
           Sent{"keyed", Effect::kKeyed, true, "f", true},
           Sent{"keyed, another", Effect::kKeyed, true, "g", false},
           Sent{"keyed, too late", Effect::kKeyed, true, "f", false, kHorizon},
           Sent{"keyed, the first and late", Effect::kKeyed, false, "f", true, kHorizon},
           Sent{"keyed, late in a second run", Effect::kKeyed, false, "f", false, kHorizon, false},
           Sent{"probe", Effect::kProbe, true, "f", false},
           Sent{"unsafe", Effect::kUnsafe, true, "f", false},
       }) {
    SCOPED_TRACE(each.name);
    const RunningOperation running{.is_anew = each.is_anew};
    RunningOperation it = running;
    static_cast<OperationRow&>(it) = row_with(each.effect);
    std::optional<DispatchedRequest> before;
    if (each.has_sent) before = DispatchedRequest{.fingerprint = "f"};
    const OperationSending sending{.fingerprint = each.fingerprint};
    EXPECT_EQ(check_sending(it, sending, before, kBegan + each.later).has_value(), each.may);
    const auto in_flight = std::make_shared<const char>();
    it.in_flight = in_flight;
    EXPECT_EQ(check_sending(it, sending, before, kBegan).error().code, Errc::kConflict);
    it.is_probe = true;
    EXPECT_EQ(check_sending(it, sending, before, kBegan).error().code, Errc::kInvalidArgument);
  }
}

TEST(OperationRulesTest, P10_OnlyTheRestOfAGoodAnswerIsAskedFor) {
  RunningOperation running;
  running.effect = Effect::kUnsafe;
  running.can_resume = true;
  const DispatchedRequest good{
      .fingerprint = "f", .status = 200, .can_resume = true, .whole = false, .bytes = 8};
  OperationSending sending{.resumes = true, .from = 8};
  const auto may = [&](const std::optional<DispatchedRequest>& before) {
    return check_sending(running, sending, before, kBegan).has_value();
  };
  EXPECT_TRUE(may(good));
  EXPECT_FALSE(may(std::nullopt));
  DispatchedRequest other = good;
  other.whole = true;
  EXPECT_FALSE(may(other));
  other = good;
  other.status = 404;
  EXPECT_FALSE(may(other));
  sending.from = 9;
  EXPECT_FALSE(may(good)) << "so much is not stored";
  sending.from = 0;
  running.can_resume = false;
  EXPECT_FALSE(may(good));
}

TEST(OperationRulesTest, P9_ARunThatWasCutOffEndsAsItsEffectSays) {
  RunningOperation running;
  for (const Effect effect : {Effect::kRead, Effect::kKeyed, Effect::kProbe}) {
    running.effect = effect;
    EXPECT_EQ(outcome_of_cut(running, true, false), OperationOutcome::kCutOff);
  }
  running.effect = Effect::kUnsafe;
  EXPECT_EQ(outcome_of_cut(running, true, false), OperationOutcome::kUnknown);
  EXPECT_EQ(outcome_of_cut(running, true, true), OperationOutcome::kUnknown);
  running.can_resume = true;
  EXPECT_EQ(outcome_of_cut(running, true, true), OperationOutcome::kCutOff);
  running.acts_by_request = true;
  EXPECT_EQ(outcome_of_cut(running, true, false), OperationOutcome::kUnknown);
  EXPECT_EQ(outcome_of_cut(running, false, false), OperationOutcome::kNotExecuted);
  running.acts_by_request = false;
  running.unsent = true;
  EXPECT_EQ(outcome_of_cut(running, false, false), OperationOutcome::kUnknown)
      << "an earlier run may have acted";
  running.is_anew = true;
  EXPECT_EQ(outcome_of_cut(running, false, false), OperationOutcome::kNotExecuted);
}

struct Loss {
  const char* name;
  Effect effect;
  bool has_root;
  bool goes_on;
  std::optional<std::int64_t> at;  // after it began
  bool at_once = false;
};

TEST(OperationRulesTest, P12_TheMomentAtWhichItIsGivenUp) {
  for (const Loss& each : {
           Loss{"read", Effect::kRead, false, false, kLongest},
           Loss{"read of a fiber", Effect::kRead, true, false, std::nullopt},
           Loss{"probe", Effect::kProbe, false, false, kLongest},
           Loss{"keyed", Effect::kKeyed, false, false, kHorizon},
           Loss{"keyed of a fiber", Effect::kKeyed, true, false, kHorizon},
           Loss{"keyed with an answer", Effect::kKeyed, false, true, kLongest},
           Loss{"keyed of a fiber, with one", Effect::kKeyed, true, true, std::nullopt},
           Loss{"unsafe", Effect::kUnsafe, true, false, std::nullopt, true},
           Loss{"unsafe with an answer", Effect::kUnsafe, true, true, std::nullopt},
       }) {
    SCOPED_TRACE(each.name);
    const OperationRow row = row_with(each.effect, each.has_root);
    const auto loss = loss_ms(row, each.goes_on);
    EXPECT_EQ(loss, each.at ? std::optional(kBegan + *each.at) : std::nullopt);
    EXPECT_EQ(is_lost(row, each.goes_on, kBegan), each.at_once);
    if (!each.at) continue;
    EXPECT_FALSE(is_lost(row, each.goes_on, kBegan + *each.at - 1));
    EXPECT_TRUE(is_lost(row, each.goes_on, kBegan + *each.at));
  }
}

TEST(OperationRulesTest, P12_AClockThatWasSetBackTooFar) {
  const OperationRow keyed = row_with(Effect::kKeyed, true);
  EXPECT_FALSE(is_lost(keyed, false, kBegan - kHorizon / 10));
  EXPECT_TRUE(is_lost(keyed, false, kBegan - kHorizon / 10 - 1));
  EXPECT_FALSE(is_lost(keyed, true, kBegan - kHorizon)) << "it needs no key";
  EXPECT_FALSE(is_lost(row_with(Effect::kProbe), false, kBegan - kLongest));
  EXPECT_TRUE(is_lost(row_with(Effect::kProbe), false, kBegan - kLongest - 1));
  EXPECT_FALSE(is_lost(row_with(Effect::kProbe, true), false, kBegan - kLongest - 1));
}

TEST(OperationRulesTest, AResolutionSaysWhoAndWhat) {
  const auto code = [](OperationOutcome outcome, std::string_view result, std::string_view note,
                       std::string_view actor) {
    const auto checked = check_resolution(outcome, result, note, actor, 10);
    return checked ? std::optional<Errc>() : std::optional(checked.error().code);
  };
  constexpr auto kDone = OperationOutcome::kCompleted;
  EXPECT_EQ(code(kDone, "", "", "ada"), std::nullopt);
  EXPECT_EQ(code(OperationOutcome::kNotExecuted, "", "", "ada"), std::nullopt);
  EXPECT_EQ(code(OperationOutcome::kUnknown, "", "", "ada"), Errc::kInvalidArgument);
  EXPECT_EQ(code(kDone, "{", "", "ada"), Errc::kInvalidArgument);
  EXPECT_EQ(code(kDone, "[1,2,3,4,5]", "", "ada"), Errc::kLimitExceeded);
  EXPECT_EQ(code(kDone, "1", "", ""), Errc::kInvalidArgument);
  EXPECT_EQ(code(kDone, "1", std::string(1025, 'x'), "ada"), Errc::kInvalidArgument);
}

TEST(OperationRulesTest, AHorizonOfForEverIsAHundredYears) {
  constexpr std::int64_t kHundredYears = 3'155'695'200'000;
  for (const std::uint64_t horizon : {std::uint64_t{INT64_MAX}, UINT64_MAX}) {
    OperationRequest request;
    request.effect = Effect::kKeyed;
    request.horizon_ms = horizon;
    auto first = decide(row_with(Effect::kKeyed), OperationState::kNotExecuted, request, false,
                        false, kBegan);
    EXPECT_EQ(first.row.horizon_at_ms, kBegan + kHundredYears);
    first.row.started_at_ms = kBegan;
    EXPECT_EQ(
        decide(first.row, OperationState::kInterrupted, request, false, false, kBegan + 1).decision,
        OperationDecision::kRun);
  }
}

}  // namespace
}  // namespace hearth::durable
