// A class that is loaded and may not run: its agents are not woken, and lose no data.
#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace hearth::runtime {
namespace {

using std::chrono::minutes;

class RefusedClassTest : public testing::WorkTest {
 protected:
  void set_refusal(const std::string& why) {
    auto next = std::make_shared<ServedClass>(*shard_.runtime().classes().find("counter"));
    next->refusal = why;
    shard_.runtime().classes().put(std::move(next));
  }
};

TEST_F(RefusedClassTest, AnAlarmWaitsUntilTheClassMayRun) {
  visit([](HostCalls& host) { EXPECT_TRUE(host.create_schedule(after(600'000, "tick"))); });
  shard_.loop.advance(minutes(5));
  ASSERT_EQ(shard_.script.alive, 0);
  set_refusal("in quarantine");
  shard_.loop.advance(minutes(60));
  EXPECT_EQ(shard_.script.alive, 0);
  EXPECT_TRUE(runs().empty());
  EXPECT_TRUE(wake_of());
  set_refusal("");
  shard_.loop.advance(minutes(2));
  EXPECT_EQ(runs().size(), 1U);
}

TEST_F(RefusedClassTest, ARequestAndAClientAreToldWhy) {
  set_refusal("in quarantine");
  const auto answer = visit([](HostCalls&) { FAIL() << "it was woken"; });
  EXPECT_EQ(answer->end, "error unavailable: in quarantine");
  const auto client = shard_.join();
  EXPECT_EQ(client.sight->back(), "close 1013 in quarantine");
  EXPECT_EQ(shard_.script.alive, 0);
}

}  // namespace
}  // namespace hearth::runtime
