#include "runtime/agent_handles.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace hearth::runtime {
namespace {

using testing::kUsualAgent;
using testing::ShardFixture;

TEST(AgentHandlesTest, R11_AHandleNamesOneStayInMemory) {
  ShardFixture shard;
  shard.request("GET");
  shard.settle();
  const AgentHandle first = shard.script.host->handle();
  EXPECT_NE(shard.shard().find_agent(first), nullptr);
  shard.shard().evict(kUsualAgent);
  shard.settle();
  EXPECT_EQ(shard.shard().find_agent(first), nullptr);

  shard.request("GET");
  shard.settle();
  const AgentHandle second = shard.script.host->handle();
  EXPECT_NE(second, first);
  EXPECT_NE(shard.shard().find_agent(second), nullptr);
  EXPECT_EQ(shard.shard().find_agent(first), nullptr) << "for ever";
}

TEST(AgentHandlesTest, TwoAgentsHaveTwo) {
  ShardFixture shard;
  shard.request("GET");
  shard.settle();
  const AgentHandle first = shard.script.host->handle();
  shard.request("GET", "", "b");
  shard.settle();
  const AgentHandle second = shard.script.host->handle();
  EXPECT_NE(shard.shard().find_agent(first), shard.shard().find_agent(second));
}

TEST(AgentHandlesTest, AHandleSaysItsShard) {
  ShardFixture shard;
  shard.request("GET");
  shard.settle();
  const AgentHandle handle = shard.script.host->handle();
  EXPECT_EQ(AgentHandles::shard_of(handle), 0U);
  EXPECT_EQ(AgentHandles::shard_of(handle | AgentHandle{3} << 56U), 3U);
}

TEST(AgentHandlesTest, ZeroNamesNone) {
  ShardFixture shard;
  shard.request("GET");
  shard.settle();
  EXPECT_EQ(shard.shard().find_agent(0), nullptr);
}

}  // namespace
}  // namespace hearth::runtime
