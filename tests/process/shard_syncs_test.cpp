// Which threads of a server wait for the device: never a shard, at any durability.

#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <csignal>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

class ShardSyncsTest : public ProcessTest, public ::testing::WithParamInterface<std::string> {
 protected:
  ShardSyncsTest() {
    install(built::agent("probe-agent"), "probe-agent.so");
    install(bundled("worker-c"), "worker-c.so");
    for (const std::string name : {"probe-agent", "worker-c"})
      put("classes/" + name + ".yaml", "class: " + name + "\ndurability: " + GetParam() + "\n");
  }

  [[nodiscard]] std::unique_ptr<ServerProcess> serve_recorded() const {
    auto server = serve_under(
        {"env", "LD_PRELOAD=" + built::sync_recorder().string(), "SYNC_RECORD=" + record_.string()},
        {"--shards", "1", "--log-level", "debug"});
    server->wait_until_ready();
    return server;
  }
  // How often threads of this name have made each call.
  [[nodiscard]] std::map<std::string, int> calls_of(const std::string& thread) const {
    std::map<std::string, int> calls;
    std::ifstream file(record_);
    for (std::string name, call; file >> name >> call;) {
      if (name == thread) ++calls[call];
    }
    return calls;
  }

  const std::filesystem::path record_ = root_ / "syncs";
};

TEST_P(ShardSyncsTest, NoShardCallsWhatWaitsForTheDevice) {
  const auto server = serve_recorded();
  for (int i = 0; i < 3; ++i) {
    const std::string name = "a" + std::to_string(i);
    AgentClient client(*server, "/agents/probe-agent/" + name);
    (void)client.call("sql", R"-(["CREATE TABLE t(x)"])-");
    (void)client.call("set", R"([{"count":1}])");
    // Two checkpoints, each of more than a thousand pages.
    for (int n = 0; n < 2; ++n)
      (void)client.call(
          "sql",
          R"-(["INSERT INTO t SELECT zeroblob(1000000) FROM (VALUES(1),(2),(3),(4),(5))"])-");
    (void)client.call("sql", R"(["DELETE FROM t"])");
    (void)client.call(i == 0 ? "destroy" : "evict", "[]");
  }
  server->wait_for_log("agent.destroyed");
  server->wait_for_log("agent.evicted class=ProbeAgent", 3);
  (void)AgentClient(*server, "/agents/worker-c/w").call("run", "[3,1]");
  server->wait_for_log("run-1 is finished");
  // Enough agents for a checkpoint of the directory: two pages each, at least.
  for (int i = 0; i < 600; ++i)
    request(*server, "GET", "/agents/worker-c/many-" + std::to_string(i));
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(calls_of("hearth-shard"), (std::map<std::string, int>{}));
  EXPECT_FALSE(calls_of("hearth").empty()) << "the recorder sees the others";
}

// Agents with a WAL of their last life: they are started, read, written to, evicted and destroyed.
TEST_P(ShardSyncsTest, NoShardWaitsForWhatAKilledServerHasLeft) {
  const std::vector<std::string> names{"read", "written", "evicted", "destroyed"};
  {
    const auto server = serve_recorded();
    for (const std::string& name : names) {
      (void)AgentClient(*server, "/agents/probe-agent/" + name).call("set", R"([{"count":1}])");
    }
    EXPECT_EQ(server->kill(), kKilled);
  }
  std::filesystem::remove(record_);
  const auto server = serve_recorded();
  for (const std::string& name : names) {
    AgentClient client(*server, "/agents/probe-agent/" + name);
    EXPECT_EQ(client.call("get").at("count"), 1);
    if (name == "written") (void)client.call("set", R"([{"count":2}])");
    if (name == "evicted") (void)client.call("evict", "[]");
    if (name == "destroyed") (void)client.call("destroy", "[]");
  }
  server->wait_for_log("agent.destroyed");
  server->wait_for_log("agent.evicted class=ProbeAgent");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(calls_of("hearth-shard"), (std::map<std::string, int>{}));
  EXPECT_FALSE(calls_of("hearth").empty()) << "the recorder sees the others";
}

// Answers that wait for the device as their agents leave, and other clients that write meanwhile.
TEST_P(ShardSyncsTest, NoShardWaitsForAgentsThatLeaveUnderLoad) {
  const auto server = serve_recorded();
  constexpr int kWriters = 20;
  constexpr int kRounds = 5;
  std::vector<std::unique_ptr<AgentClient>> clients;
  for (int i = 0; i < kWriters; ++i)
    clients.push_back(
        std::make_unique<AgentClient>(*server, "/agents/probe-agent/a" + std::to_string(i)));
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& client : clients) {
      client->begin("set", "[{\"count\":" + std::to_string(round) + "}]");
      client->begin("evict");
    }
    for (const auto& client : clients) {
      EXPECT_EQ(client->answer().at("success"), true);
      (void)client->answer();
    }
  }
  server->wait_for_log("agent.evicted class=ProbeAgent", kWriters);
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(calls_of("hearth-shard"), (std::map<std::string, int>{}));
}

INSTANTIATE_TEST_SUITE_P(Durability, ShardSyncsTest, ::testing::Values("process", "power"));

}  // namespace
}  // namespace hearth::testing
