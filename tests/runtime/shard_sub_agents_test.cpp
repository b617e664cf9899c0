// Agents below agents: their shard, their list, and their end together with the agent above.
#include "runtime/fakes.hpp"
#include "runtime/shard.hpp"
#include "storage/directory.hpp"
#include "support/fake_sync_calls.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace hearth::runtime::testing {
namespace {

const storage::AgentKey kChild = kUsualAgent.child("Counter", "child");
const storage::AgentKey kGrandchild = kChild.child("Counter", "grandchild");

class ShardSubAgentsTest : public ::testing::Test {
 protected:
  // Requests do what their method says.
  explicit ShardSubAgentsTest(ClassSettings settings = {}, std::size_t closing_threads = 0)
      : fixture_({}, std::move(settings), &calls_, closing_threads) {
    fixture_.script.on_event = on(EventKind::kRequest, on_request);
  }
  static Result<void> on_request(HostCalls& host, const AgentEvent& event) {
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
  std::shared_ptr<Answer> ask(const storage::AgentKey& key, const std::string& method) {
    auto answer = std::make_shared<Answer>();
    fixture_.shard().request(key, "counter", method, "", std::make_unique<RequestHead>(),
                             std::make_unique<FakeSink>(answer));
    fixture_.settle();
    return answer;
  }
  void write_in_each() {
    for (const auto& key : {kUsualAgent, kChild, kGrandchild}) ask(key, "write");
  }
  std::size_t files() {
    std::size_t count = 0;
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(fixture_.data().path() / "agents"))
      count += file.is_regular_file() ? 1 : 0;
    return count;
  }

  hearth::testing::FakeSyncCalls calls_;
  ShardFixture fixture_;
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
  EXPECT_EQ(ask(kUsualAgent, "list")->end, "ok ");
  ask(kChild, "look");
  ask(kGrandchild, "look");
  EXPECT_EQ(ask(kUsualAgent, "list")->end, "ok child;");
  EXPECT_EQ(ask(kChild, "list")->end, "ok grandchild;");
  fixture_.restart();
  EXPECT_EQ(ask(kUsualAgent, "list")->end, "ok child;");
}

TEST_F(ShardSubAgentsTest, TheEndOfOneIsTheEndOfAllBelowIt) {
  write_in_each();
  ask(kGrandchild, "evict");  // one is in memory, the other is not
  ASSERT_EQ(files(), 5U) << "three, and the WALs of two";
  EXPECT_EQ(ask(kUsualAgent, "destroy")->end, "ok done");
  fixture_.settle();
  EXPECT_EQ(files(), 0U);
  EXPECT_EQ(fixture_.shard().counts().live, 0U);
  storage::Directory rows(fixture_.data().directory_path());
  EXPECT_EQ(rows.count(), 0);
  EXPECT_TRUE(rows.condemned().empty());
}

TEST_F(ShardSubAgentsTest, OneThatIsDestroyedFromAboveTakesThoseBelowItAlong) {
  write_in_each();
  EXPECT_EQ(ask(kUsualAgent, "destroy child")->end, "ok destroyed");
  EXPECT_EQ(ask(kUsualAgent, "destroy child")->end, "ok not there");
  EXPECT_EQ(ask(kUsualAgent, "list")->end, "ok ");
  storage::Directory rows(fixture_.data().directory_path());
  EXPECT_EQ(rows.count(), 1);
  EXPECT_TRUE(rows.contains(kUsualAgent));
}

TEST_F(ShardSubAgentsTest, TheClientsOfOneThatGoesWithItsParentAreClosed) {
  const auto client =
      fixture_.connect(kChild, ConnectRequest{.id = "me", .target = {}, .headers = {}});
  ask(kChild, "write");
  ask(kUsualAgent, "destroy");
  EXPECT_EQ(client.sight->back(), "close 4410 the agent was destroyed");
}

TEST_F(ShardSubAgentsTest, AnAdministratorDestroysAColdOneWithAllBelowIt) {
  write_in_each();
  ask(kUsualAgent, "evict");
  EXPECT_TRUE(fixture_.shard().admin().destroy(kUsualAgent));
  fixture_.settle();
  EXPECT_EQ(storage::Directory(fixture_.data().directory_path()).count(), 0);
}

// With another thread that closes: the shard alone would wait for the device.
class ShardSubAgentsPowerTest : public ShardSubAgentsTest {
 protected:
  ShardSubAgentsPowerTest() : ShardSubAgentsTest(power(), 1) {}
};

TEST_F(ShardSubAgentsPowerTest, WithPowerTheAnswerWaitsUntilTheEndOfTheChildIsDurable) {
  const auto ready = ask(kChild, "look");
  EXPECT_TRUE(fixture_.loop.settle_until([&] { return ready->end.has_value(); }));
  calls_.hold();
  const auto answer = ask(kUsualAgent, "destroy child");
  calls_.wait_until_somebody_waits();
  fixture_.settle();
  EXPECT_EQ(answer->end, std::nullopt);
  calls_.let_go();
  EXPECT_TRUE(fixture_.loop.settle_until([&] { return answer->end.has_value(); }));
  EXPECT_EQ(answer->end, "ok destroyed");
}

}  // namespace
}  // namespace hearth::runtime::testing
