#include "durable/fiber_runs.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace hearth::durable {
namespace {

Job fiber(std::int64_t row, const char* id) {
  Job job;
  job.seq = row;
  job.id = id;
  return job;
}

TEST(FiberRunsTest, ARunHasAHandleThatIsNeverUsedAgain) {
  FiberRuns runs;
  const FiberHandle first = runs.add(fiber(7, "x"), 1'000);
  ASSERT_NE(runs.find_running(first), nullptr);
  EXPECT_EQ(runs.find_running(first)->id, "x");
  EXPECT_EQ(runs.row_of(first), 7);
  EXPECT_EQ(runs.row_of("x"), 7);
  runs.end("x");
  runs.end("x");
  EXPECT_EQ(runs.find_running(first), nullptr);
  EXPECT_EQ(runs.row_of(first), kNoFiber);
  EXPECT_EQ(runs.row_of("x"), kNoFiber);
  EXPECT_NE(runs.add(fiber(7, "x"), 2'000), first);
}

TEST(FiberRunsTest, TheOldestRunSaysSinceWhenFibersRun) {
  FiberRuns runs;
  EXPECT_EQ(runs.since_ms(), std::nullopt);
  runs.add(fiber(1, "a"), 3'000);
  runs.add(fiber(2, "b"), 2'000);
  EXPECT_EQ(runs.since_ms(), 2'000);
  EXPECT_EQ(runs.size(), 2U);
  runs.end("b");
  EXPECT_EQ(runs.since_ms(), 3'000);
}

}  // namespace
}  // namespace hearth::durable
