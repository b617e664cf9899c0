// Commands of administrators to a shard.
#include "fakes.hpp"
#include "runtime/shard.hpp"
#include "storage/directory.hpp"
#include "support/fake_sync_calls.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

namespace hearth::runtime {
namespace {

using testing::kUsualAgent;
using testing::ShardFixture;

TEST(ShardAdminTest, AnAgentThatNobodyHasAskedForIsCold) {
  ShardFixture shard;
  const ShardAdmin::Standing standing = shard.admin().standing(kUsualAgent);
  EXPECT_EQ(standing.state, AgentState::kCold);
  EXPECT_EQ(standing.connections, 0U);
  EXPECT_EQ(standing.version, "");
  EXPECT_TRUE(standing.wake.none());
  EXPECT_EQ(shard.admin().evict(kUsualAgent), AgentState::kCold);
  EXPECT_TRUE(shard.admin().live_by_class().empty());
}

TEST(ShardAdminTest, ALiveOneIsSaidToBeWithItsClients) {
  ShardFixture shard;
  const auto client = shard.join();
  const ShardAdmin::Standing standing = shard.admin().standing(kUsualAgent);
  EXPECT_EQ(standing.state, AgentState::kLive);
  EXPECT_EQ(standing.connections, 1U);
  EXPECT_NE(standing.version, "");
  EXPECT_EQ(shard.admin().live_by_class(), (std::map<std::string, std::size_t>{{"Counter", 1}}));
}

TEST(ShardAdminTest, AnEvictedOneLeavesMemoryAndItsClientsStay) {
  ShardFixture shard;
  const auto client = shard.join();
  EXPECT_EQ(shard.evict(), AgentState::kLive);
  EXPECT_EQ(shard.script.alive, 0);
  const ShardAdmin::Standing standing = shard.admin().standing(kUsualAgent);
  EXPECT_EQ(standing.state, AgentState::kCold);
  EXPECT_EQ(standing.connections, 1U);
  EXPECT_TRUE(shard.logger.contains("agent.evicted"));
}

TEST(ShardAdminTest, OneThatIsStartingLeavesWhenItHasStarted) {
  ShardFixture shard;
  shard.script.on_event = on(EventKind::kStart, testing::keep_open(shard.script));
  shard.ask("GET");
  EXPECT_EQ(shard.admin().evict(kUsualAgent), AgentState::kWaking);
  EXPECT_EQ(shard.script.alive, 1);
  EXPECT_EQ(shard.admin().standing(kUsualAgent).state, AgentState::kWaking);
  shard.act([&](HostCalls& host) {
    (void)host.complete(shard.script.open_calls[0], std::string_view());
  });
  EXPECT_TRUE(shard.logger.contains("agent.evicted"));
}

TEST(ShardAdminTest, NamesWhoIsInMemoryInOrder) {
  ShardFixture shard;
  const auto client = shard.connect("c");
  for (const char* name : {"d", "a", "b"}) shard.request("GET", "", name);
  shard.settle();
  const auto names = [&](std::string_view after, std::size_t at_most) {
    return shard.admin().names_in_memory("Counter", after, at_most);
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("", 10), (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(names("", 2), (Names{"a", "b"}));
  EXPECT_EQ(names("b", 10), (Names{"c", "d"}));
  EXPECT_TRUE(shard.admin().names_in_memory("Other", "", 10).empty());
  shard.admin().evict({"Counter", "a"});
  shard.evict("c");
  EXPECT_EQ(names("", 10), (Names{"b", "c", "d"})) << "c has a client";
}

class ShardDestroyTest : public ::testing::Test {
 protected:
  explicit ShardDestroyTest(std::size_t closing_threads = 0)
      : shard_({}, {}, &syncs_, closing_threads) {
    shard_.script.on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kStart) found_state_ = host.state().has_value();
      // An agent that has stored nothing has no file.
      if (event.kind == EventKind::kRequest || event.kind == EventKind::kConnect)
        EXPECT_TRUE(host.set_state(0, "1"));
      return complete(host, event);
    };
  }

  [[nodiscard]] bool is_recorded() {
    storage::Directory directory(shard_.data().directory_path());
    return directory.contains(kUsualAgent);
  }
  [[nodiscard]] bool has_file() {
    return std::filesystem::exists(shard_.data().agent_path(kUsualAgent));
  }

  bool found_state_ = false;  // when it last started
  hearth::testing::FakeSyncCalls syncs_;
  ShardFixture shard_;
};

TEST_F(ShardDestroyTest, NothingOfALiveAgentIsLeft) {
  shard_.ask("GET");
  ASSERT_TRUE(is_recorded());
  ASSERT_TRUE(has_file());
  EXPECT_TRUE(shard_.admin().destroy(kUsualAgent));
  shard_.settle();
  EXPECT_EQ(shard_.script.alive, 0);
  EXPECT_FALSE(is_recorded());
  EXPECT_FALSE(has_file());
}

TEST_F(ShardDestroyTest, NothingOfAColdAgentIsLeftAndItsClientsAreClosed) {
  const auto client = shard_.join();
  shard_.evict();
  ASSERT_TRUE(has_file());
  EXPECT_TRUE(shard_.admin().destroy(kUsualAgent));
  shard_.settle();
  EXPECT_FALSE(is_recorded());
  EXPECT_FALSE(has_file());
  ASSERT_FALSE(client.sight->empty());
  EXPECT_EQ(client.sight->back(), "close 4410 the agent was destroyed");
}

TEST_F(ShardDestroyTest, OneThatIsLeavingIsToBeAskedForAgain) {
  shard_.ask("GET");
  shard_.admin().evict(kUsualAgent);  // its end comes from the loop
  const auto refused = shard_.admin().destroy(kUsualAgent);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kUnavailable);
  shard_.settle();
  EXPECT_TRUE(has_file());
  EXPECT_TRUE(shard_.admin().destroy(kUsualAgent));
  EXPECT_FALSE(has_file());
}

// The files of a cold agent go on another thread, which waits for the device.
class SlowRemovalTest : public ShardDestroyTest {
 protected:
  SlowRemovalTest() : ShardDestroyTest(1) {}
  ~SlowRemovalTest() override { syncs_.let_go(); }

  void make_and_evict() {
    shard_.ask("GET");
    shard_.admin().evict(kUsualAgent);
    EXPECT_TRUE(shard_.loop.settle_until([&] { return is_in(AgentState::kCold); }));
    ASSERT_TRUE(has_file());
  }
  [[nodiscard]] bool is_in(AgentState state) {
    return shard_.admin().standing(kUsualAgent).state == state;
  }
};

TEST_F(SlowRemovalTest, WhoComesMeanwhileWaitsAndMeetsANewAgent) {
  make_and_evict();
  syncs_.hold();
  ASSERT_TRUE(shard_.admin().destroy(kUsualAgent));
  const auto client = shard_.connect();
  const auto answer = shard_.ask("GET");
  EXPECT_TRUE(is_in(AgentState::kCondemned));
  EXPECT_TRUE(client.sight->empty());
  EXPECT_FALSE(answer->end);

  syncs_.let_go();
  EXPECT_TRUE(shard_.loop.settle_until([&] { return answer->end.has_value(); }));
  EXPECT_EQ(answer->end, "ok ");
  EXPECT_EQ(client.sight->front(), "handshake counter/a -") << "nothing is left of its state";
  EXPECT_FALSE(found_state_);
  EXPECT_TRUE(has_file()) << "of the new one";
  EXPECT_TRUE(is_recorded());
}

TEST_F(SlowRemovalTest, WhoWaitsIsToldIfTheFilesCannotGoAndWaitsForTheNextAttempt) {
  make_and_evict();
  const std::string obstacle = shard_.data().agent_path(kUsualAgent).string() + "-journal";
  std::filesystem::create_directory(obstacle);
  syncs_.hold();
  ASSERT_TRUE(shard_.admin().destroy(kUsualAgent));
  const auto client = shard_.connect();
  const auto waits = shard_.request("GET");
  syncs_.let_go();
  EXPECT_TRUE(shard_.loop.settle_until([&] { return waits->end.has_value(); }));
  const std::string why = "the agent is being destroyed; try again later";
  EXPECT_EQ(waits->end, "error unavailable: " + why);
  EXPECT_EQ(client.sight->back(), "close 1013 " + why);
  EXPECT_EQ(shard_.request("GET")->end, "error unavailable: " + why) << "no attempt is under way";

  std::filesystem::remove(obstacle);
  syncs_.hold();
  shard_.loop.advance(std::chrono::minutes(1));
  const auto answer = shard_.request("GET");
  EXPECT_FALSE(answer->end);
  syncs_.let_go();
  EXPECT_TRUE(shard_.loop.settle_until([&] { return answer->end.has_value(); }));
  EXPECT_EQ(answer->end, "ok ");
  EXPECT_FALSE(found_state_);
}

TEST_F(SlowRemovalTest, AStopOfTheServerTellsWhoWaits) {
  make_and_evict();
  syncs_.hold();
  ASSERT_TRUE(shard_.admin().destroy(kUsualAgent));
  const auto answer = shard_.request("GET");
  shard_.shard().stop(SteadyTime::max(), [] {});
  EXPECT_EQ(answer->end, "error closing: the server is shutting down");
  syncs_.let_go();
  shard_.restart();
  EXPECT_FALSE(is_recorded());
}

}  // namespace
}  // namespace hearth::runtime
