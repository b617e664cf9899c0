// What an administrator asks of a shard.
#include "fakes.hpp"
#include "runtime/shard.hpp"
#include "storage/directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace hearth::runtime {
namespace {

using testing::kUsualAgent;
using testing::ShardFixture;

TEST(ShardAdminTest, AnAgentThatNobodyHasAskedForIsCold) {
  ShardFixture shard;
  const Shard::Standing standing = shard.shard().standing(kUsualAgent);
  EXPECT_EQ(standing.state, AgentState::kCold);
  EXPECT_EQ(standing.connections, 0U);
  EXPECT_EQ(standing.version, "");
  EXPECT_TRUE(standing.wake.none());
  EXPECT_EQ(shard.shard().evict(kUsualAgent), AgentState::kCold);
  EXPECT_TRUE(shard.shard().live_by_class().empty());
}

TEST(ShardAdminTest, ALiveOneIsSaidToBeWithItsClients) {
  ShardFixture shard;
  const auto client = shard.connect();
  shard.settle();
  const Shard::Standing standing = shard.shard().standing(kUsualAgent);
  EXPECT_EQ(standing.state, AgentState::kLive);
  EXPECT_EQ(standing.connections, 1U);
  EXPECT_NE(standing.version, "");
  EXPECT_EQ(shard.shard().live_by_class(), (std::map<std::string, std::size_t>{{"Counter", 1}}));
}

TEST(ShardAdminTest, AnEvictedOneLeavesMemoryAndItsClientsStay) {
  ShardFixture shard;
  const auto client = shard.connect();
  shard.settle();
  EXPECT_EQ(shard.shard().evict(kUsualAgent), AgentState::kLive);
  shard.settle();
  EXPECT_EQ(shard.script.alive, 0);
  const Shard::Standing standing = shard.shard().standing(kUsualAgent);
  EXPECT_EQ(standing.state, AgentState::kCold);
  EXPECT_EQ(standing.connections, 1U);
  EXPECT_TRUE(shard.logger.contains("agent.evicted"));
}

TEST(ShardAdminTest, OneThatIsStartingLeavesWhenItHasStarted) {
  ShardFixture shard;
  CallId start = 0;
  shard.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kStart && start == 0) {
      start = event.call;
      return {};
    }
    return host.complete(event.call, std::string_view());
  };
  shard.request("GET");
  shard.settle();
  EXPECT_EQ(shard.shard().evict(kUsualAgent), AgentState::kWaking);
  EXPECT_EQ(shard.script.alive, 1);
  EXPECT_EQ(shard.shard().standing(kUsualAgent).state, AgentState::kWaking);
  // As an operation's result would: from the loop, then the turn ends.
  shard.script.on_result = [&](HostCalls& host, const OperationResult&) {
    (void)host.complete(start, std::string_view());
  };
  shard.runtime().post(shard.script.host->handle(), 1);
  shard.settle();
  EXPECT_TRUE(shard.logger.contains("agent.evicted"));
}

TEST(ShardAdminTest, NamesWhoIsInMemoryInOrder) {
  ShardFixture shard;
  const auto client = shard.connect("c");
  for (const char* name : {"d", "a", "b"}) shard.request("GET", "", name);
  shard.settle();
  const auto names = [&](std::string_view after, std::size_t at_most) {
    return shard.shard().names_in_memory("Counter", after, at_most);
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("", 10), (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(names("", 2), (Names{"a", "b"}));
  EXPECT_EQ(names("b", 10), (Names{"c", "d"}));
  EXPECT_TRUE(shard.shard().names_in_memory("Other", "", 10).empty());
  shard.shard().evict({"Counter", "a"});
  shard.shard().evict({"Counter", "c"});
  shard.settle();
  EXPECT_EQ(names("", 10), (Names{"b", "c", "d"})) << "c has a client";
}

class ShardDestroyTest : public ::testing::Test {
 protected:
  ShardDestroyTest() {
    shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
      // An agent that has stored nothing has no file.
      if (event.kind == EventKind::kRequest || event.kind == EventKind::kConnect)
        EXPECT_TRUE(host.set_state(0, "1"));
      if (event.call == 0) return {};
      return host.complete(event.call, std::string_view());
    };
  }

  [[nodiscard]] bool is_recorded() {
    storage::Directory directory(shard_.data().directory_path());
    return directory.contains(kUsualAgent);
  }
  [[nodiscard]] bool has_file() {
    return std::filesystem::exists(shard_.data().agent_path(kUsualAgent));
  }

  ShardFixture shard_;
};

TEST_F(ShardDestroyTest, NothingOfALiveAgentIsLeft) {
  shard_.request("GET");
  shard_.settle();
  ASSERT_TRUE(is_recorded());
  ASSERT_TRUE(has_file());
  EXPECT_TRUE(shard_.shard().destroy(kUsualAgent));
  shard_.settle();
  EXPECT_EQ(shard_.script.alive, 0);
  EXPECT_FALSE(is_recorded());
  EXPECT_FALSE(has_file());
}

TEST_F(ShardDestroyTest, NothingOfAColdAgentIsLeftAndItsClientsAreClosed) {
  const auto client = shard_.connect();
  shard_.settle();
  shard_.shard().evict(kUsualAgent);
  shard_.settle();
  ASSERT_TRUE(has_file());
  EXPECT_TRUE(shard_.shard().destroy(kUsualAgent));
  shard_.settle();
  EXPECT_FALSE(is_recorded());
  EXPECT_FALSE(has_file());
  ASSERT_FALSE(client.sight->empty());
  EXPECT_EQ(client.sight->back(), "close 4410 the agent was destroyed");
}

TEST_F(ShardDestroyTest, ANewAgentOfTheNameIsEmpty) {
  shard_.request("GET");
  shard_.settle();
  ASSERT_TRUE(shard_.shard().destroy(kUsualAgent));
  shard_.settle();
  const auto answer = shard_.request("GET");
  shard_.settle();
  EXPECT_TRUE(answer->end);
  EXPECT_TRUE(is_recorded());
}

TEST_F(ShardDestroyTest, OneThatIsLeavingIsToBeAskedForAgain) {
  shard_.request("GET");
  shard_.settle();
  shard_.shard().evict(kUsualAgent);  // its end comes from the loop
  const auto refused = shard_.shard().destroy(kUsualAgent);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kUnavailable);
  shard_.settle();
  EXPECT_TRUE(has_file());
  EXPECT_TRUE(shard_.shard().destroy(kUsualAgent));
  EXPECT_FALSE(has_file());
}

}  // namespace
}  // namespace hearth::runtime
