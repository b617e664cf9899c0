// Which threads of a server wait for the device: never a shard, at any durability.

#include "process/process_fixture.hpp"

#include <algorithm>
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
    auto server = std::make_unique<ServerProcess>(
        std::vector<std::string>{"env", "LD_PRELOAD=" + built::sync_recorder().string(),
                                 "SYNC_RECORD=" + record_.string(), built::server().string(),
                                 "serve", "--listen", "127.0.0.1:0", "--log-format", "human",
                                 "--shards", "1", "--log-level", "debug"},
        root_);
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
  static void call(RawClient& client, const std::string& method, const std::string& arguments) {
    client.send(RawClient::text_frame(R"({"type":"rpc","id":"1","method":")" + method +
                                      R"(","args":)" + arguments + "}"));
    std::string text;
    while (text.find(R"("type":"rpc")") == std::string::npos) text = client.read_text();
    EXPECT_NE(text.find(R"("success":true)"), std::string::npos) << text;
  }

  const std::filesystem::path record_ = root_ / "syncs";
};

TEST_P(ShardSyncsTest, NoShardCallsWhatWaitsForTheDevice) {
  const auto server = serve_recorded();
  for (int i = 0; i < 3; ++i) {
    RawClient client(server->port());
    const std::string name = "a" + std::to_string(i);
    ASSERT_EQ(client.upgrade("/agents/probe-agent/" + name).status, 101);
    call(client, "sql", R"-(["CREATE TABLE t(x)"])-");
    call(client, "set", R"([{"count":1}])");
    // Two checkpoints, each of more than a thousand pages.
    for (int n = 0; n < 2; ++n)
      call(client, "sql",
           R"-(["INSERT INTO t SELECT zeroblob(1000000) FROM (VALUES(1),(2),(3),(4),(5))"])-");
    call(client, "sql", R"(["DELETE FROM t"])");
    call(client, i == 0 ? "destroy" : "evict", "[]");
  }
  server->wait_for_log("agent.destroyed");
  server->wait_for_log("agent.evicted class=ProbeAgent", 3);
  RawClient worker(server->port());
  ASSERT_EQ(worker.upgrade("/agents/worker-c/w").status, 101);
  call(worker, "run", "[3,1]");
  server->wait_for_log("run-1 is finished");
  worker.close();
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
      RawClient client(server->port());
      ASSERT_EQ(client.upgrade("/agents/probe-agent/" + name).status, 101);
      call(client, "set", R"([{"count":1}])");
    }
    EXPECT_EQ(server->kill(), (Ending{.status = -1, .signal = SIGKILL}));
  }
  std::filesystem::remove(record_);
  const auto server = serve_recorded();
  for (const std::string& name : names) {
    RawClient client(server->port());
    ASSERT_EQ(client.upgrade("/agents/probe-agent/" + name).status, 101);
    std::string state;
    while (state.find("cf_agent_state") == std::string::npos) state = client.read_text();
    EXPECT_NE(state.find(R"("count":1)"), std::string::npos) << state;
    if (name == "written") call(client, "set", R"([{"count":2}])");
    if (name == "evicted") call(client, "evict", "[]");
    if (name == "destroyed") call(client, "destroy", "[]");
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
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < kWriters; ++i) {
    clients.push_back(std::make_unique<RawClient>(server->port()));
    ASSERT_EQ(clients.back()->upgrade("/agents/probe-agent/a" + std::to_string(i)).status, 101);
  }
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& client : clients)
      client->send(
          RawClient::text_frame(R"({"type":"rpc","id":"s","method":"set","args":[{"count":)" +
                                std::to_string(round) + "}]}") +
          RawClient::text_frame(R"({"type":"rpc","id":"e","method":"evict","args":[]})"));
    for (const auto& client : clients) {
      std::string text;
      while (text.find(R"("id":"s")") == std::string::npos) text = client->read_text();
      EXPECT_NE(text.find(R"("success":true)"), std::string::npos) << text;
      while (text.find(R"("id":"e")") == std::string::npos) text = client->read_text();
    }
  }
  server->wait_for_log("agent.evicted class=ProbeAgent", kWriters);
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(calls_of("hearth-shard"), (std::map<std::string, int>{}));
}

INSTANTIATE_TEST_SUITE_P(Durability, ShardSyncsTest, ::testing::Values("process", "power"));

}  // namespace
}  // namespace hearth::testing
