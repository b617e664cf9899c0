// An agent that crashes when it is told that a fiber is settled.
#include "json/json.hpp"
#include "work_fixture.hpp"

#include <gtest/gtest.h>

namespace hearth::runtime {
namespace {

using durable::FiberStatus;
using std::chrono::hours;

class DurableWorkTellingTest : public testing::WorkTest {
 protected:
  void settle_one() {
    visit([](HostCalls& host) {
      const auto started = host.start_managed(managed("work", "i"));
      EXPECT_TRUE(host.settle_managed(started->fiber, FiberStatus::kCompleted, "1"));
    });
  }
};

TEST_F(DurableWorkTellingTest, WhatBreaksItsAgentIsToldAfterGrowingWaitsAndGivenUp) {
  on_work = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kFiberSettled) return complete(host, event);
    host.storage_failed("as a crash would");
    return {};
  };
  settle_one();
  for (int i = 0; i < 20; ++i) {
    shard_.restart_and_settle();
  }
  EXPECT_LE(told().size(), 3U) << "without any time passing";
  shard_.loop.advance(hours(24));
  EXPECT_EQ(told().size(), static_cast<std::size_t>(durable::kMostInterruptions));
  EXPECT_EQ(shard_.logger.count("fiber:never_told"), 1U);
  shard_.restart();
  shard_.loop.advance(hours(24 * 30));
  EXPECT_EQ(told().size(), static_cast<std::size_t>(durable::kMostInterruptions));
  std::string record;
  visit([&](HostCalls& host) { record = host.inspect_managed("i", "").value(); });
  EXPECT_EQ(member(record, "status"), "\"completed\"") << "kept, until somebody removes it";
}

TEST_F(DurableWorkTellingTest, TheNameIsFoundHoweverDeepTheRecordIs) {
  const std::string deepest = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  visit([&](HostCalls& host) {
    durable::FiberRequest request = managed("work", "i");
    request.input = deepest;
    const auto started = host.start_managed(request);
    EXPECT_TRUE(host.settle_managed(started->fiber, FiberStatus::kCompleted, deepest));
  });
  ASSERT_EQ(told().size(), 1U);
  EXPECT_TRUE(told().front().starts_with("work ")) << told().front().substr(0, 20);
}

TEST_F(DurableWorkTellingTest, AnEvictionOnPurposeCountsForNothing) {
  on_work = hang;
  settle_one();
  for (int i = 0; i < 20; ++i) {
    shard_.restart_and_settle();
  }
  EXPECT_EQ(told().size(), 21U) << "each time at once";
  EXPECT_EQ(shard_.logger.count("fiber:never_told"), 0U);
}

}  // namespace
}  // namespace hearth::runtime
