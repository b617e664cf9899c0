#include "../src/@FILE@.cpp"

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

TEST(@CLASS@Test, GreetsAndCounts) {
  hearth::testing::Host host;
  auto agent = host.create<::@CLASS@>("a", {{"greeting", "ahoy"}});
  auto client = agent.connect();
  EXPECT_EQ(client.call("greet"), "ahoy, world");
  EXPECT_EQ(client.call("greet", "Ann"), "ahoy, Ann");
  EXPECT_EQ(client.state(), hearth::Json({{"greetings", 2}}));
}

TEST(@CLASS@Test, KeepsItsStateWhenItLeavesMemory) {
  hearth::testing::Host host;
  auto agent = host.create<::@CLASS@>("a");
  agent.call("greet");
  agent.evict();
  agent.call("greet");
  EXPECT_EQ(agent.request("GET").body, R"({"greetings":2})");
}

TEST(@CLASS@Test, CountsDownOnceASecond) {
  hearth::testing::Host host;
  auto agent = host.create<::@CLASS@>("a");
  auto call = agent.start("count_down", 3);
  host.advance(std::chrono::seconds(1));
  EXPECT_EQ(call.parts(), (std::vector<hearth::Json>{3, 2}));
  EXPECT_FALSE(call.done());
  host.advance(std::chrono::seconds(2));
  EXPECT_TRUE(call.done());
}
