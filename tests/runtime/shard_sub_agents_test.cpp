// Agents below agents: their shard, their list, and their end together with the agent above.
#include "runtime/fakes.hpp"
#include "runtime/shard.hpp"
#include "storage/directory.hpp"
#include "support/fake_sync_calls.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace hearth::runtime::testing {
namespace {

const storage::AgentKey kChild = kUsualAgent.child("Counter", "child");
const storage::AgentKey kGrandchild = kChild.child("Counter", "grandchild");

class ShardSubAgentsTest : public ::testing::Test {
 protected:
  // Requests do what their method says.
  void listen(ShardFixture& fixture) {
    fixture.script.on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kRequest) return on_request(host, event);
      return complete(host, event);
    };
  }
  Result<void> on_request(HostCalls& host, const AgentEvent& event) {
    if (event.name == "write") EXPECT_TRUE(host.set_state(0, "1"));
    if (event.name == "destroy") EXPECT_TRUE(host.destroy());
    if (event.name == "evict") EXPECT_TRUE(host.evict());
    if (event.name == "list") {
      std::string found;
      for (const auto& each : host.sub_agents().list(host.key(), {}, 10))
        found += each.key.own_name() + ";";
      return host.complete(event.call, found);
    }
    if (event.name == "destroy child") {
      const auto destroyed = host.sub_agents().destroy(kChild, host.handle());
      return host.complete(event.call, std::string_view(destroyed ? "destroyed" : "not there"));
    }
    return host.complete(event.call, std::string_view("done"));
  }
  static std::shared_ptr<Answer> ask(ShardFixture& fixture, const storage::AgentKey& key,
                                     const std::string& method) {
    auto answer = std::make_shared<Answer>();
    fixture.shard().request(key, "counter", method, "", std::make_unique<RequestHead>(),
                            std::make_unique<FakeSink>(answer));
    fixture.settle();
    return answer;
  }
  static std::size_t files(ShardFixture& fixture) {
    std::size_t count = 0;
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(fixture.data().path() / "agents"))
      count += file.is_regular_file() ? 1 : 0;
    return count;
  }
};

TEST_F(ShardSubAgentsTest, OneBelowAnotherLivesWhereThatLives) {
  for (unsigned count : {1U, 2U, 3U, 16U}) {
    for (const std::string name : {"a", "b", "c", "d"}) {
      const storage::AgentKey root{"Counter", name};
      const storage::AgentKey below = root.child("Other", "x");
      EXPECT_EQ(shard_index(below, count), shard_index(root, count));
      EXPECT_EQ(shard_index(below.child("Third", "y"), count), shard_index(root, count));
    }
  }
}

TEST_F(ShardSubAgentsTest, ItIsListedFromItsFirstStartOnAlsoIfItStoresNothing) {
  ShardFixture fixture;
  listen(fixture);
  EXPECT_EQ(ask(fixture, kUsualAgent, "list")->end, "ok ");
  ask(fixture, kChild, "look");
  ask(fixture, kGrandchild, "look");
  EXPECT_EQ(ask(fixture, kUsualAgent, "list")->end, "ok child;");
  EXPECT_EQ(ask(fixture, kChild, "list")->end, "ok grandchild;");
  fixture.restart();
  listen(fixture);
  EXPECT_EQ(ask(fixture, kUsualAgent, "list")->end, "ok child;");
}

TEST_F(ShardSubAgentsTest, TheEndOfOneIsTheEndOfAllBelowIt) {
  ShardFixture fixture;
  listen(fixture);
  for (const auto& key : {kUsualAgent, kChild, kGrandchild}) ask(fixture, key, "write");
  ask(fixture, kGrandchild, "evict");  // one is in memory, the other is not
  ASSERT_EQ(files(fixture), 5U) << "three, and the WALs of two";
  EXPECT_EQ(ask(fixture, kUsualAgent, "destroy")->end, "ok done");
  fixture.settle();
  EXPECT_EQ(files(fixture), 0U);
  EXPECT_EQ(fixture.shard().counts().live, 0U);
  storage::Directory rows(fixture.data().directory_path());
  EXPECT_EQ(rows.count(), 0);
  EXPECT_TRUE(rows.condemned().empty());
}

TEST_F(ShardSubAgentsTest, OneThatIsDestroyedFromAboveTakesThoseBelowItAlong) {
  ShardFixture fixture;
  listen(fixture);
  for (const auto& key : {kUsualAgent, kChild, kGrandchild}) ask(fixture, key, "write");
  EXPECT_EQ(ask(fixture, kUsualAgent, "destroy child")->end, "ok destroyed");
  EXPECT_EQ(ask(fixture, kUsualAgent, "destroy child")->end, "ok not there");
  EXPECT_EQ(ask(fixture, kUsualAgent, "list")->end, "ok ");
  storage::Directory rows(fixture.data().directory_path());
  EXPECT_EQ(rows.count(), 1);
  EXPECT_TRUE(rows.contains(kUsualAgent));
}

TEST_F(ShardSubAgentsTest, TheClientsOfOneThatGoesWithItsParentAreClosed) {
  ShardFixture fixture;
  listen(fixture);
  auto sight = std::make_shared<Sight>();
  fixture.shard().connect(kChild, "counter",
                          ConnectRequest{.id = "me", .target = {}, .headers = {}},
                          std::make_unique<FakePort>(sight));
  ask(fixture, kChild, "write");
  ask(fixture, kUsualAgent, "destroy");
  EXPECT_EQ(sight->back(), "close 4410 the agent was destroyed");
}

TEST_F(ShardSubAgentsTest, AnAdministratorDestroysAColdOneWithAllBelowIt) {
  ShardFixture fixture;
  listen(fixture);
  for (const auto& key : {kUsualAgent, kChild, kGrandchild}) ask(fixture, key, "write");
  ask(fixture, kUsualAgent, "evict");
  EXPECT_TRUE(fixture.shard().admin().destroy(kUsualAgent));
  fixture.settle();
  EXPECT_EQ(storage::Directory(fixture.data().directory_path()).count(), 0);
}

TEST_F(ShardSubAgentsTest, WithPowerTheAnswerWaitsUntilTheEndOfTheChildIsDurable) {
  hearth::testing::FakeSyncCalls calls;
  ShardFixture fixture({}, settings_with(&ClassSettings::durability, Durability::kPower), &calls,
                       1);  // a shard alone would wait for the device
  listen(fixture);
  const auto ready = ask(fixture, kChild, "look");
  EXPECT_TRUE(fixture.loop.settle_until([&] { return ready->end.has_value(); }));
  calls.hold();
  const auto answer = ask(fixture, kUsualAgent, "destroy child");
  calls.wait_until_somebody_waits();
  fixture.settle();
  EXPECT_EQ(answer->end, std::nullopt);
  calls.let_go();
  EXPECT_TRUE(fixture.loop.settle_until([&] { return answer->end.has_value(); }));
  EXPECT_EQ(answer->end, "ok destroyed");
}

}  // namespace
}  // namespace hearth::runtime::testing
