#include "extensions/work_spans.hpp"

#include "extensions/test_agent.hpp"
#include "json/json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace hearth::extensions {
namespace {

class EndedSpans final : public SpanLog {
 public:
  using SpanLog::SpanLog;
  void record(SpanRecord record) override { records.push_back(std::move(record)); }
  std::vector<SpanRecord> records;
};

class WorkSpansTest : public ::testing::Test {
 protected:
  WorkSpansTest() {
    agent_.its_origin.trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    spans_.begin(SpannedWork::kOperation, "op", "charge");
  }
  Errc described(std::string_view name, const Json& attributes) {
    const auto done = spans_.describe("op", name, dump_json(attributes));
    return done ? Errc{} : done.error().code;
  }

  hearth::testing::ManualClock clock_;
  hearth::testing::SeededRandom random_{1};
  EndedSpans log_{clock_, 1};
  SpanSource source_{random_, &log_};
  hearth::testing::TestAgent agent_{AgentHandle{1}, {}, {.spans = &source_}};
  WorkSpans spans_{agent_};
};

TEST_F(WorkSpansTest, ADescriptionAtItsBoundsIsTakenAndOneBeyondChangesNothing) {
  Json full = Json::object();
  for (std::size_t i = 0; i < WorkSpans::kMostAttributes; ++i) full["k" + std::to_string(i)] = i;
  Json more = full;
  more["one more"] = 1;
  const std::string longest(WorkSpans::kMostTextBytes, 'x');
  const std::string longest_key(WorkSpans::kMostKeyBytes, 'k');
  struct Row {
    const char* what;
    std::string name;
    Json attributes;
    bool is_taken;
  };
  const std::vector<Row> rows = {
      {"as many as may be", "", full, true},
      {"one more", "", more, false},
      {"the longest text", "", {{"t", longest}}, true},
      {"a longer text", "", {{"t", longest + "x"}}, false},
      {"the longest key", "", {{longest_key, true}}, true},
      {"a longer key", "", {{longest_key + "k", true}}, false},
      {"an empty key", "", {{"", 1}}, false},
      {"an object", "", {{"o", Json::object()}}, false},
      {"a list", "", {{"l", Json::array({1})}}, false},
      {"null", "", {{"n", nullptr}}, false},
      {"no object", "", Json::array(), false},
      {"the longest name", longest, Json::object(), true},
      {"a longer name", longest + "x", Json::object(), false},
  };
  for (const Row& row : rows)
    EXPECT_EQ(described(row.name, row.attributes) == Errc::kInvalidArgument, !row.is_taken)
        << row.what;
  EXPECT_TRUE(spans_.describe("op", "", "{").has_error());
  EXPECT_TRUE(spans_.describe("another", "n", "{}")) << "in vain";
  spans_.end(SpannedWork::kOperation, "op", "completed", false);
  ASSERT_EQ(log_.records.size(), 1U);
  const SpanRecord& record = log_.records.front();
  EXPECT_EQ(record.name, longest);
  const auto has = [&](const std::string& key) {
    return std::ranges::count(record.attributes, key, &std::pair<std::string, SpanValue>::first);
  };
  EXPECT_EQ(has("k31"), 1);
  EXPECT_EQ(has(longest_key), 1);
  for (const char* const absent : {"one more", "", "o", "l", "n"})
    EXPECT_EQ(has(absent), 0) << absent;
}

TEST_F(WorkSpansTest, ValuesKeepTheirTypesAndALaterOneWins) {
  EXPECT_EQ(described("first", {{"n", 1}, {"share", 0.5}, {"is", true}, {"t", "old"}}), Errc{});
  EXPECT_EQ(described("", {{"t", "new"}}), Errc{});
  spans_.end(SpannedWork::kOperation, "op", "unknown", true);
  ASSERT_EQ(log_.records.size(), 1U);
  const SpanRecord& record = log_.records.front();
  EXPECT_EQ(record.name, "first") << "an empty name changes nothing";
  EXPECT_EQ(record.error, "unknown");
  const auto value = [&](const std::string& key) {
    return std::ranges::find(record.attributes, key, &std::pair<std::string, SpanValue>::first)
        ->second;
  };
  EXPECT_EQ(value("n"), SpanValue(std::int64_t{1}));
  EXPECT_EQ(value("share"), SpanValue(0.5));
  EXPECT_EQ(value("is"), SpanValue(true));
  EXPECT_EQ(value("t"), SpanValue(std::string("new")));
}

TEST_F(WorkSpansTest, ARunOfAFiberIsTheParentOfWhatItDoesAndEndsWithTheInstanceAtTheLatest) {
  {
    WorkSpans spans(agent_);
    spans.begin(SpannedWork::kFiber, "op", "charge all");  // as the operation: not the same thing
    spans.begin(SpannedWork::kFiber, "cut", "long");
    EXPECT_EQ(spans.span_of(SpannedWork::kFiber, "op").parent, 0xb7ad6b7169203331U);
    EXPECT_TRUE(spans.span_of(SpannedWork::kOperation, "op").is_none());
    spans.end(SpannedWork::kFiber, "op", "completed", false);
    spans.end(SpannedWork::kFiber, "op", "aborted", true);
    EXPECT_TRUE(spans.span_of(SpannedWork::kFiber, "op").is_none());
    ASSERT_EQ(log_.records.size(), 1U) << "it ends once";
    EXPECT_EQ(log_.records[0].name, "charge all");
    EXPECT_EQ(log_.records[0].kind, SpanKind::kInternal);
    EXPECT_EQ(log_.records[0].error, "");
  }
  ASSERT_EQ(log_.records.size(), 2U);
  EXPECT_EQ(log_.records[1].name, "long");
  EXPECT_EQ(log_.records[1].error, "interrupted");
}

TEST_F(WorkSpansTest, ARunEndsWhenItsFiberWasAbortedWithItsOuterOne) {
  const durable::FiberRequest request{.name = "runs", .keeping = durable::FiberKeeping::kKept};
  const auto started = agent_.work().fibers().start(request).value();
  const std::string runs = agent_.work().fibers().runs().find_running(started.fiber)->id;
  spans_.begin(SpannedWork::kFiber, runs, "runs");
  spans_.begin(SpannedWork::kFiber, "inner", "inner");
  spans_.end_aborted();
  ASSERT_EQ(log_.records.size(), 1U);
  EXPECT_EQ(log_.records[0].name, "inner");
  EXPECT_EQ(log_.records[0].error, "aborted");
  EXPECT_FALSE(spans_.span_of(SpannedWork::kFiber, runs).is_none());
}

}  // namespace
}  // namespace hearth::extensions
