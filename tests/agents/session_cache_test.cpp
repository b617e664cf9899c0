// The session cache on the mock host.

#include "session-cache/session_cache.cpp"  // NOLINT(bugprone-suspicious-include): as counter_test.cpp

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>

namespace {

using hearth::Json;
using hearth::testing::CallError;
using hearth::testing::Host;

class SessionCacheTest : public ::testing::Test {
 protected:
  // Of a mock host's clock.
  static constexpr std::chrono::sys_days kStart{std::chrono::year(2026) / 1 / 2};

  Host host_;
};

TEST_F(SessionCacheTest, AValueStaysUntilItExpires) {
  auto agent = host_.create<SessionCache>("a", {{"ttl_seconds", 10}});
  agent.call("set", "user", Json{{"id", 7}});
  agent.call("set", "short", "x", 1.5);
  EXPECT_EQ(agent.call("get", "user"), (Json{{"id", 7}}));
  EXPECT_EQ(agent.call("keys"), Json({"short", "user"}));
  host_.advance(std::chrono::milliseconds(1500));
  EXPECT_EQ(agent.call("get", "short"), nullptr);
  EXPECT_EQ(agent.call("remove", "short"), false);
  EXPECT_EQ(agent.call("keys"), Json({"user"}));
  agent.evict();
  EXPECT_EQ(agent.call("get", "user"), (Json{{"id", 7}}));
  EXPECT_EQ(agent.call("remove", "user"), true);
  EXPECT_EQ(agent.call("get", "user"), nullptr);
}

TEST_F(SessionCacheTest, NoValueOutlivesItsTimeByMoreThanAMinuteIfTheClockIsSetBack) {
  auto agent = host_.create<SessionCache>("a", {{"ttl_seconds", 10}, {"max_keys", 1}});
  agent.call("set", "user", 7);
  host_.set_wall(kStart - std::chrono::minutes(1));
  EXPECT_EQ(agent.call("get", "user"), 7) << "a correction of the clock";
  host_.set_wall(kStart - std::chrono::days(1));
  EXPECT_EQ(agent.call("get", "user"), nullptr);
  agent.call("set", "other", 8);
  EXPECT_EQ(agent.call("keys"), Json({"other"}));
}

TEST_F(SessionCacheTest, AFullCacheGivesUpWhatHasExpiredAndNothingElse) {
  auto agent = host_.create<SessionCache>("a", {{"max_keys", 2}});
  agent.call("set", "a", 1, 1);
  agent.call("set", "b", 2);
  EXPECT_THROW(agent.call("set", "c", 3), CallError);
  agent.call("set", "b", 4);  // a key that exists keeps its place
  host_.advance(std::chrono::seconds(1));
  agent.call("set", "c", 3);
  EXPECT_EQ(agent.call("keys"), Json({"b", "c"}));
  agent.call("clear");
  EXPECT_EQ(agent.call("keys"), Json::array());
}

TEST_F(SessionCacheTest, ATimeThatCannotBeIsRefused) {
  auto agent = host_.create<SessionCache>("a");
  for (const double ttl : {0.0, -1.0, 1e12})
    EXPECT_THROW(agent.call("set", "a", 1, ttl), CallError);
}

}  // namespace
