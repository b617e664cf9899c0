// Fibers whose recovery is given up, and what becomes of them, through the whole runtime.
#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::runtime {
namespace {

using std::chrono::hours;

class DurableWorkDeadTest : public testing::WorkTest {
 protected:
  std::string start_one() {
    std::string id;
    visit([&](HostCalls& host) { id = host.start_fiber("work").value().id; });
    return id;
  }

  ClassSettings settings_;
};

TEST_F(DurableWorkDeadTest, WhatStashesAnotherTimeAndBreaksItsAgentIsGivenUpAndTheLogSaysWhy) {
  settings_.fibers.max_recoveries = 15;
  int stashed = 0;
  on_work = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kFiberRecovered) return complete(host, event);
    std::string id = member(std::string(event.body), "id");
    const auto next = host.start_fiber("work", id.substr(1, id.size() - 2));
    EXPECT_TRUE(next);
    EXPECT_TRUE(host.stash(next->handle, std::to_string(++stashed)));
    host.storage_failed("as a crash would");
    return {};
  };
  start_one();
  shard_.restart({}, settings_);
  shard_.loop.advance(hours(24));
  EXPECT_EQ(recovered().size(), 15U);
  EXPECT_EQ(shard_.logger.count("fiber:recovery:dead"), 1U);
  EXPECT_EQ(shard_.logger.count("fibers.max_recoveries"), 1U);
  shard_.loop.advance(hours(24));
  EXPECT_EQ(recovered().size(), 15U);
}

TEST_F(DurableWorkDeadTest, AnAgentThatHasNothingButADeadFiberRemovesItInTimeAndSaysSo) {
  settings_.fibers.max_attempts = 1;
  on_work = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kFiberRecovered) return Error{Errc::kPlugin, "no"};
    return complete(host, event);
  };
  const std::string id = start_one();
  shard_.restart_and_settle({}, settings_);
  ASSERT_EQ(shard_.logger.count("fiber:recovery:dead"), 1U);
  shard_.loop.advance(hours(24 * 7 - 1));
  visit([](HostCalls&) {});
  shard_.settle();
  EXPECT_EQ(shard_.logger.count("fiber:expired"), 0U);
  shard_.restart({}, settings_);
  shard_.loop.advance(hours(1));
  ASSERT_TRUE(wake_of() && wake_of()->needs_person) << "administrators find it";
  EXPECT_FALSE(wake_of()->at_ms || wake_of()->working) << "for this alone it is not woken";
  visit([](HostCalls&) {});
  shard_.settle();
  EXPECT_EQ(shard_.logger.count("fiber:expired"), 1U);
  EXPECT_EQ(shard_.logger.count("fiber=" + id + " detail=\"dead for as long as"), 1U);
  shard_.restart({}, settings_);
  visit([&](HostCalls& host) { EXPECT_EQ(host.retry_fiber(id).error().code, Errc::kNotFound); });
  shard_.settle();
  EXPECT_EQ(shard_.logger.count("fiber:expired"), 1U);
}

}  // namespace
}  // namespace hearth::runtime
