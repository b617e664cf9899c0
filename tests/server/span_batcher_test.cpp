#include "server/span_batcher.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace hearth::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Verdict = SpanBatcher::Verdict;

constexpr SteadyTime kMoment{std::chrono::hours(1)};

TEST(SpanBatcherTest, SpansLeaveTogether) {
  SpanBatcher batcher;
  EXPECT_FALSE(batcher.due({}));
  EXPECT_EQ(batcher.due({.spans = 1, .since = kMoment}), kMoment + SpanBatcher::kDelay);
  EXPECT_EQ(batcher.due({.spans = SpanBatcher::kBatch, .since = kMoment}), kMoment)
      << "a whole batch";
  batcher.sends();
  EXPECT_FALSE(batcher.due({.spans = 5'000, .since = kMoment}))
      << "one batch is on its way at most";
}

TEST(SpanBatcherTest, TheAnswerDecides) {
  struct Case {
    int status;
    std::optional<seconds> retry_after;
    Verdict verdict;
    milliseconds pause;  // of a batch that is sent again
  };
  const Case cases[] = {{200, {}, Verdict::kTaken, {}},
                        {202, {}, Verdict::kTaken, {}},
                        {301, {}, Verdict::kRefused, {}},
                        {400, {}, Verdict::kRefused, {}},
                        {401, seconds(9), Verdict::kRefused, {}},
                        {413, {}, Verdict::kRefused, {}},
                        {500, {}, Verdict::kRefused, {}},
                        {0, {}, Verdict::kAgain, seconds(1)},
                        {429, seconds(9), Verdict::kAgain, seconds(9)},
                        {502, {}, Verdict::kAgain, seconds(1)},
                        {503, seconds(0), Verdict::kAgain, seconds(0)},
                        {504, {}, Verdict::kAgain, seconds(1)},
                        {503, seconds(86'400), Verdict::kAgain, SpanBatcher::kLongestPause}};
  for (const Case& each : cases) {
    SpanBatcher batcher;
    batcher.sends();
    const SpanBatcher::Answer answer{.status = each.status, .retry_after = each.retry_after};
    EXPECT_EQ(batcher.answered(answer, 0, kMoment), each.verdict) << each.status;
    EXPECT_EQ(batcher.keeps_batch(), each.verdict == Verdict::kAgain) << each.status;
    if (each.verdict != Verdict::kAgain) continue;
    EXPECT_EQ(batcher.due({}), kMoment + each.pause) << each.status;
  }
}

TEST(SpanBatcherTest, ACollectorThatIsAwayIsAskedLessAndLess) {
  SpanBatcher batcher;
  milliseconds expected = SpanBatcher::kFirstPause;
  for (int attempt = 1; attempt <= 12; ++attempt) {
    batcher.sends();
    const Verdict verdict = batcher.answered({}, 0, kMoment);
    EXPECT_EQ(verdict,
              attempt % SpanBatcher::kMostTries == 0 ? Verdict::kGivenUp : Verdict::kAgain);
    EXPECT_EQ(batcher.due({.spans = SpanBatcher::kBatch, .since = {}}), kMoment + expected);
    expected = std::min(expected * 2, SpanBatcher::kLongestPause);
  }
  batcher.sends();
  EXPECT_EQ(batcher.answered({.status = 200, .retry_after = {}}, 0, kMoment), Verdict::kTaken);
  batcher.sends();
  EXPECT_EQ(batcher.answered({}, 1, kMoment), Verdict::kAgain);
  EXPECT_EQ(batcher.due({}), kMoment + SpanBatcher::kFirstPause / 2) << "as random as can be";
}

}  // namespace
}  // namespace hearth::server
