// The reminders plugin on the mock host.

#include "reminders/reminders.cpp"  // NOLINT(bugprone-suspicious-include): an agent class needs no header

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using hearth::Json;
using hearth::testing::Host;

class RemindersTest : public ::testing::Test {
 protected:
  template <class... Arguments>
  std::string make(const char* method, const Arguments&... arguments) {
    return agent_.call(method, arguments...).template get<std::string>();
  }
  std::int64_t now() { return agent_.as<Reminders>().now().time_since_epoch().count(); }

  Host host_;
  hearth::testing::AgentHandle agent_ = host_.create<Reminders>("a");
};

TEST_F(RemindersTest, ADelayedOneComesInTimeToEveryoneAndIsKept) {
  auto client = agent_.connect();
  const std::int64_t due = now() + 1'500;
  const std::string id = make("remind_in", "tea", 1.5);
  host_.advance(milliseconds(1'499));
  EXPECT_TRUE(client.take_received().empty());
  host_.advance(milliseconds(1));
  const auto frames = client.take_received();
  ASSERT_EQ(frames.size(), 1U);
  const Json fired = {{"text", "tea"}, {"due", due}, {"at", due}};
  Json frame = fired;
  frame.update({{"type", "reminder"}, {"id", id}});
  EXPECT_EQ(hearth::parse_json(frames[0].payload), frame);
  EXPECT_EQ(agent_.call("fired"), Json::array({fired}));
  EXPECT_EQ(agent_.call("list"), Json::array());
}

TEST_F(RemindersTest, ADateIsKeptOverAKill) {
  make("remind_at", "anniversary", now() + 3'600'000);
  agent_.kill();
  host_.advance(hours(1));
  EXPECT_EQ(agent_.call("fired").at(0).at("text"), "anniversary");
}

TEST_F(RemindersTest, WhenTheClockIsSetBackCronFollowsItAndADelayKeepsItsLength) {
  make("remind_in", "tea", 4);
  make("remind_when", "tick", "*/2 * * * * *");
  agent_.kill();
  const auto start = std::chrono::sys_days(std::chrono::year(2026) / 1 / 2);  // the host's clock
  host_.set_wall(start - hours(1));
  host_.advance(seconds(5));
  std::multiset<std::string> fired;
  for (const Json& each : agent_.call("fired")) fired.insert(each.at("text").get<std::string>());
  EXPECT_EQ(fired, (std::multiset<std::string>{"tea", "tick", "tick"}));
}

TEST_F(RemindersTest, CronComesAgainAndIsMadeOnce) {
  const std::string id = make("remind_when", "stand up", "0 9 * * mon-fri", "Europe/Berlin");
  EXPECT_EQ(make("remind_when", "stand up", "0 9 * * mon-fri", "Europe/Berlin"), id);
  EXPECT_NE(make("remind_when", "stand up", "0 9 * * mon-fri"), id);
  host_.fire(id);
  host_.fire(id);
  EXPECT_EQ(agent_.call("fired").size(), 3U);  // between the two nine o'clock has come in UTC
  EXPECT_EQ(agent_.schedules().at(1).at("time_zone"), "Europe/Berlin");
}

TEST_F(RemindersTest, TheyAreListedPausedAndCancelled) {
  const std::string id = make("remind_in", "tea", 60);
  Json expected = {
      {"id", id}, {"text", "tea"}, {"type", "delay"}, {"next", now() + 60'000}, {"paused", false}};
  EXPECT_EQ(agent_.call("list"), Json::array({expected}));
  EXPECT_EQ(agent_.call("pause", id), true);
  expected["paused"] = true;
  EXPECT_EQ(agent_.call("list"), Json::array({expected}));
  host_.advance(hours(1));
  EXPECT_EQ(agent_.call("fired"), Json::array());
  EXPECT_EQ(agent_.call("resume", id), true);
  host_.advance(seconds(0));
  EXPECT_EQ(agent_.call("fired").size(), 1U);

  const std::string other = make("remind_in", "coffee", 60);
  EXPECT_EQ(agent_.call("cancel", other), true);
  for (const char* const method : {"cancel", "pause", "resume"})
    EXPECT_EQ(agent_.call(method, other), false);
}

TEST_F(RemindersTest, WhatMakesNoSenseIsRefusedAndClientsCannotRemindByHand) {
  EXPECT_EQ(agent_.start("remind_in", "", 1).error(), "text: 1 to 1000 bytes");
  EXPECT_EQ(agent_.start("remind_in", std::string(1'001, 'x'), 1).status(), HEARTH_E_INVALID);
  EXPECT_TRUE(agent_.start("remind_in", "x", -1).failed());
  EXPECT_TRUE(agent_.start("remind_in", "x", 1e300).failed());
  EXPECT_TRUE(agent_.start("remind_when", "x", "nonsense").failed());
  EXPECT_EQ(agent_.start("remind", "x").error(), "Method remind is not callable");
  EXPECT_EQ(agent_.call("list"), Json::array());
}

}  // namespace
