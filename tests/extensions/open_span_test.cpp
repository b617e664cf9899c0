#include "extensions/open_span.hpp"

#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

namespace hearth::extensions {
namespace {

class KeptSpans final : public SpanLog {
 public:
  using SpanLog::SpanLog;
  void record(SpanRecord record) override { records.push_back(std::move(record)); }
  std::vector<SpanRecord> records;
};

TEST(OpenSpanTest, AShareOfTheTracesIsSampledByTheirIds) {
  struct Case {
    std::uint64_t low;
    double ratio;
    bool is_sampled;
  };
  constexpr std::uint64_t kAll = (std::uint64_t{1} << 56) - 1;
  const Case cases[] = {
      {0, 0, false},
      {0, 0.001, true},
      {kAll, 1, true},
      {kAll, 0.999, false},
      {kAll / 2 + 1, 0.5, false},
      {kAll / 2, 0.5, true},
      {kAll / 2, 0.6, true},
      {std::uint64_t{0xff} << 56, 0.001, true},
  };
  for (const Case& each : cases)
    EXPECT_EQ(is_sampled({7, each.low}, each.ratio), each.is_sampled)
        << each.low << " of " << each.ratio;
}

TEST(OpenSpanTest, ItIsRecordedOnceWithItsLength) {
  hearth::testing::ManualClock clock;
  KeptSpans log(clock, 1);
  const Span span{.trace = {1, 2}, .id = 3, .parent = 4};
  {
    OpenSpan open(&log, span, SpanKind::kServer);
    open.name("a");
    open.set("key", "old");
    open.set("key", std::int64_t{1});
    clock.advance(std::chrono::milliseconds(5));
    clock.set_wall({});  // does not count
    OpenSpan moved = std::move(open);
    moved.end();
    OpenSpan cancelled(&log, span, SpanKind::kClient);
  }
  EXPECT_FALSE(OpenSpan(nullptr, span, SpanKind::kClient).is_open());
  EXPECT_FALSE(OpenSpan(&log, {.trace = {1, 2}, .id = 3, .flags = 0}, SpanKind::kClient).is_open());
  ASSERT_EQ(log.records.size(), 2U);
  const SpanRecord& record = log.records.front();
  EXPECT_EQ(record.name, "a");
  EXPECT_EQ(record.length, std::chrono::milliseconds(5));
  EXPECT_EQ(record.error, "");
  ASSERT_EQ(record.attributes.size(), 1U);
  EXPECT_EQ(std::get<std::int64_t>(record.attributes.front().second), 1);
  EXPECT_EQ(log.records.back().error, "cancelled");
  EXPECT_GT(record.bytes(), record.name.size());
}

}  // namespace
}  // namespace hearth::extensions
