// What complete(), emit() and submit() accept, on every host.
#include "extensions/call_rules.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace hearth::extensions {
namespace {

std::string text_of(const Result<std::string_view>& outcome) {
  return outcome ? "ok " + std::string(*outcome) : std::string(to_string(outcome.error().code));
}
std::string text_of(const Result<void>& result) {
  return result.has_error() ? std::string(to_string(result.error().code)) : "ok";
}
std::string number(std::uint64_t value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

TEST(CallRulesTest, AnAnswerIsWhatItsKindAsksFor) {
  struct Row {
    EventKind kind;
    Result<std::string_view> outcome;
    std::string event;
    std::string returned;
  };
  const Error unsupported{Errc::kUnsupported, "no"};
  const std::string long_text(9, 'x');  // of at most 8
  const std::vector<Row> rows = {
      {EventKind::kCall, std::string_view("[1]"), "ok [1]", "ok"},
      {EventKind::kCall, std::string_view(""), "ok ", "ok"},
      {EventKind::kCall, std::string_view("[1"), "plugin_error", "invalid_argument"},
      {EventKind::kRequest, std::string_view("[1"), "ok [1", "ok"},
      {EventKind::kRequest, std::string_view(long_text), "plugin_error", "limit_exceeded"},
      {EventKind::kCall, unsupported, "unsupported", "ok"},
      {EventKind::kStart, unsupported, "unsupported", "ok"},
      {EventKind::kFiberRecovered, unsupported, "plugin_error", "ok"},
      {EventKind::kMigrate, unsupported, "plugin_error", "ok"},
  };
  for (const Row& row : rows) {
    const Answer answer = judge_answer(row.kind, row.outcome, 8);
    EXPECT_EQ(text_of(answer.outcome), row.event) << rule_of(row.kind).name;
    EXPECT_EQ(text_of(answer.returned), row.returned) << rule_of(row.kind).name;
  }
  // Two bytes a character: none is cut in two.
  std::string accents;
  for (std::size_t i = 0; i < kMaxErrorBytes; ++i) accents += "\xC3\xA9";
  const Answer cut = judge_answer(EventKind::kCall, Error{Errc::kPlugin, "a" + accents});
  EXPECT_EQ(cut.outcome.error().message.size(), kMaxErrorBytes - 1);
}

TEST(CallRulesTest, PartsAreOfCallsAndRequests) {
  EXPECT_EQ(text_of(check_part(EventKind::kCall, "1")), "ok");
  EXPECT_EQ(text_of(check_part(EventKind::kCall, "")), "invalid_argument");
  EXPECT_EQ(text_of(check_part(EventKind::kRequest, "")), "ok");
  EXPECT_EQ(text_of(check_part(EventKind::kRequest, "123", 2)), "limit_exceeded");
  EXPECT_EQ(text_of(check_part(EventKind::kMessage, "1")), "unsupported");
}

TEST(CallRulesTest, EachOperationHasItsRequest) {
  const std::uint64_t year = std::uint64_t{366} * 24 * 60 * 60 * 1000;
  struct Row {
    std::uint32_t operation;
    std::string request;
    bool runs_jobs;
    std::string expected;
  };
  const std::vector<Row> rows = {
      {1, number(0), false, "ok"},
      {1, number(year), false, "ok"},
      {1, number(year + 1), false, "invalid_argument"},
      {1, "short", false, "invalid_argument"},
      {2, number(7), true, "ok"},
      {2, number(7), false, "unsupported"},
      {3, number(0), false, "ok"},
      {3, number(std::numeric_limits<std::uint64_t>::max()), false, "ok"},
      {3, number(1) + "x", false, "invalid_argument"},
      {6, number(5), false, "ok"},
      {6, "", false, "invalid_argument"},
      {0, number(1), true, "unsupported"},
      {99, "", true, "unsupported"},
  };
  for (const Row& row : rows) {
    const Result<OperationRequest> read = read_operation(row.operation, row.request, row.runs_jobs);
    EXPECT_EQ(read ? "ok" : std::string(to_string(read.error().code)), row.expected)
        << row.operation;
  }
  EXPECT_EQ(read_operation(2, number(7), true)->number, 7U);
}

TEST(CallRulesTest, AHandlerThatChangesTheStateForEverIsStopped) {
  StateCause cause{.changes = std::make_shared<unsigned>(0)};
  for (unsigned i = 0; i < kMaxOwnStateChanges; ++i) EXPECT_TRUE(count_own_change(cause));
  EXPECT_EQ(text_of(count_own_change(cause)), "limit_exceeded");
}

TEST(CallRulesTest, SoAreHandlersThatWaitButOneOfThemMayChangeItOften) {
  const auto changes = std::make_shared<unsigned>(0);
  for (unsigned handler = 0; handler < kMaxOwnStateChanges; ++handler) {
    StateCause cause{.changes = changes, .has_waited = true};
    for (unsigned i = 0; i < 3; ++i) EXPECT_TRUE(count_own_change(cause)) << handler;
  }
  StateCause last{.changes = changes, .has_waited = true};
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(text_of(count_own_change(last)), "limit_exceeded");
}

}  // namespace
}  // namespace hearth::extensions
