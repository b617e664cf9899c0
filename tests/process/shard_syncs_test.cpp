// Which threads of a server wait for the device: no shard, with durability `process`. (With `power` a shard still makes new files
// and takes up WALs that were left.)

#include "process/process_fixture.hpp"

#include <algorithm>
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
  // How often threads of this name have called what.
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

INSTANTIATE_TEST_SUITE_P(Durability, ShardSyncsTest, ::testing::Values("process"));

}  // namespace
}  // namespace hearth::testing
