#include "server/span_queue.hpp"

#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::server {
namespace {

extensions::SpanRecord span_of(std::size_t bytes) {
  extensions::SpanRecord record;
  record.span = {.trace = {1, 2}, .id = 3};
  record.name = std::string(bytes, 'n');
  return record;
}

TEST(SpanQueueTest, ItIsBoundedAndCountsWhatItDrops) {
  hearth::testing::ManualClock clock;
  Metrics metrics;
  SpanQueue queue(clock, 1, metrics);
  int told = 0;
  queue.on_spans([&told] { ++told; }, 3);
  for (std::size_t i = 0; i < SpanQueue::kMostSpans + 5; ++i) queue.record(span_of(1));
  EXPECT_EQ(told, 2) << "the first one, and a batch";
  EXPECT_EQ(queue.waiting().spans, SpanQueue::kMostSpans);
  EXPECT_EQ(queue.take(SpanQueue::kMostSpans).size(), SpanQueue::kMostSpans);
  for (int i = 0; i < 9; ++i) queue.record(span_of(std::size_t{1} << 20));
  EXPECT_EQ(queue.waiting().spans, 7U) << "8 MiB with what is around the names";
  queue.close();
  queue.record(span_of(1));
  EXPECT_EQ(queue.waiting().spans, 0U);
  const std::string text = metrics.text();
  EXPECT_NE(text.find(R"(hearth_spans_dropped_total{reason="queue_full"} 7)"), std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(hearth_spans_dropped_total{reason="shutdown"} 8)"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace hearth::server
