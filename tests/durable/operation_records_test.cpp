// The records of operations: how large they are, and how they are listed.
#include "durable/charges_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hearth::durable {
namespace {

using std::chrono::hours;

TEST_F(OperationsTest, SizesAreBounded) {
  const FiberHandle fiber = start_fiber();
  OperationRequest request = charge(fiber);
  const std::string large = '"' + std::string(kMaxOperationArgumentBytes, 'x') + '"';
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

TEST_F(OperationsTest, TheyAreListedByStateKindAndFiber) {
  EXPECT_EQ(*ledger_->records().list({}), "[]");
  const FiberHandle fiber = start_fiber();
  const OperationBegun one = complete(charge(fiber));
  OperationRequest other = charge(0, Effect::kRead);
  other.kind = "look";
  other.key = "k";
  const OperationBegun two = begin(other);
  const auto ids = [&](const OperationFilter& filter) {
    std::vector<std::string> found;
    for (const Json& each : *parse_json(*ledger_->records().list(filter)))
      found.push_back(text_member(each, "id"));
    return found;
  };
  using OperationIds = std::vector<std::string>;
  EXPECT_EQ(ids({}), (OperationIds{one.id, two.id}));
  EXPECT_EQ(ids({.states = 1}), OperationIds{two.id}) << "running";
  EXPECT_EQ(ids({.states = 2 | 4}), OperationIds{one.id});
  EXPECT_EQ(ids({.kind = "look"}), OperationIds{two.id});
  EXPECT_EQ(ids({.fiber = "f"}), OperationIds{one.id});
  EXPECT_EQ(ids({.after = one.id}), OperationIds{two.id});
  EXPECT_EQ(ids({.limit = 1}), OperationIds{one.id});
  EXPECT_EQ(ledger_->records().list({.after = "none"}).error().code, Errc::kNotFound);
  const Json json = record(one.id);
  EXPECT_TRUE(has(json, R"({"effect":"unsafe","args":{"cents":500},"result":1,"attempts":1})"));
  EXPECT_EQ(ledger_->records().inspect("none").error().code, Errc::kNotFound);
}

TEST_F(OperationsTest, AListThatGetsTooLongSaysThatItWasCutShort) {
  const FiberHandle fiber = start_fiber();
  constexpr std::size_t kMany = 80;
  const std::string large(kMaxOperationArgumentBytes - 100, 'x');
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
    const auto page = ledger_->records().list(filter);
    ASSERT_TRUE(page) << page.error().message;
    is_more = OperationRecords::is_cut_short(*page);
    EXPECT_EQ(is_more, asked == 0);
    const Json records = *parse_json(*page);
    ASSERT_FALSE(records.empty());
    found += records.size();
    last = text_member(records.back(), "id");
  }
  EXPECT_EQ(found, kMany);
}

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
  const Json both = *parse_json(*ledger_->records().list(filter));
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(text_member(both[0], "id"), first.id);
  EXPECT_EQ(text_member(both[1], "id"), second.id);
  EXPECT_FALSE(both[0].contains("args") || both[0].contains("result"));
  filter.begun_before_ms = now();
  const Json older = *parse_json(*ledger_->records().list(filter));
  ASSERT_EQ(older.size(), 1U);
  EXPECT_EQ(text_member(older[0], "id"), first.id);
}

}  // namespace
}  // namespace hearth::durable
