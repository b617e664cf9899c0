// Requests of unknown clients on a network, in a small form; tests/bench/run --only edge is the
// large form. How much memory they can take: memory_attack_test.cpp.
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hearth::testing {
namespace {

using Clients = std::vector<std::unique_ptr<RawClient>>;

class EdgeTest : public ProcessTest {
 protected:
  EdgeTest() { install(bundled("counter"), "counter.so"); }

  // `settings`: of address_limits, which hold for this machine too.
  void start(const std::string& settings, const std::string& limits = "{}") {
    put("hearth.yaml", "limits: " + limits + "\naddress_limits:\n  exempt: []\n" + settings);
    server_ = serve_ready({"--config", "hearth.yaml", "--log-level", "debug"});
  }
  void TearDown() override {
    if (server_) EXPECT_EQ(server_->stop(), kClean);
  }

  std::unique_ptr<RawClient> from(const char* address) const {
    auto client = std::make_unique<RawClient>(RawClient::Later{});
    client->bind_to(address);
    client->connect(server_->port());
    return client;
  }
  static int post(RawClient& client, const std::string& path) {
    return client
        .request("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        .status;
  }
  [[nodiscard]] bool has_metric(const std::string& line) const {
    return from("127.0.0.3")
               ->request("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
               .body.find(line) != std::string::npos;
  }

  std::unique_ptr<ServerProcess> server_;
};

TEST_F(EdgeTest, NewNamesAreCountedByAddressAndKnownOnesAreNot) {
  start("  new_agents: 3\n");
  const auto one = from("127.0.0.1");
  for (const char* name : {"a", "b", "c"})
    EXPECT_EQ(post(*one, std::string("/agents/counter/") + name), 200);
  EXPECT_EQ(post(*one, "/agents/counter/d"), 429);
  EXPECT_EQ(post(*one, "/agents/counter/a"), 200) << "it exists";
  auto socket = from("127.0.0.1");
  ASSERT_EQ(socket->upgrade("/agents/counter/e").status, 101);
  const Frame end = socket->read_frame();
  EXPECT_EQ(end.close_code(), 1013) << "its clients come back, later and later";
  EXPECT_EQ(end.close_reason(), "too many new agents: try again later");
  EXPECT_EQ(post(*from("127.0.0.2"), "/agents/counter/d"), 200);
  EXPECT_TRUE(has_metric("hearth_addresses_limited_total{limit=\"new_agents\"} 2\n"));
  EXPECT_TRUE(lacks(server_->log(), "127.0.0.1 "));
}

TEST_F(EdgeTest, AnAlarmThatMakesAnObjectCountsAsACallThatMakesOne) {
  put("classes/counter.yaml", "class: Counter\nobjects: true\n");
  start("  new_agents: 2\n");
  const std::string body = R"({"method":"reset","delay_seconds":3600})";
  const auto set = [&body](RawClient& client, const std::string& id) {
    return client
        .request("POST /objects/counter/" + id +
                 "/alarms HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                 std::to_string(body.size()) + "\r\n\r\n" + body)
        .status;
  };
  const auto one = from("127.0.0.1");
  EXPECT_EQ(set(*one, "a"), 201);
  EXPECT_EQ(post(*one, "/objects/counter/b/call/get"), 200);
  EXPECT_EQ(set(*one, "c"), 429);
  EXPECT_EQ(set(*one, "a"), 201) << "it exists";
  EXPECT_EQ(set(*one, "b"), 201) << "it exists";
  EXPECT_EQ(set(*from("127.0.0.2"), "d"), 201);
  EXPECT_TRUE(has_metric("hearth_addresses_limited_total{limit=\"new_agents\"} 1\n"));
}

TEST_F(EdgeTest, AFloodOfConnectionsFromOneAddressLeavesTheOthersAlone) {
  start("  connections: 20\n", "{handshake_timeout: 1h}");  // the first ones stay
  int refused = 0;
  Clients flood;
  for (int i = 0; i < 200; ++i) {
    flood.push_back(from("127.0.0.2"));
    if (i >= 20) refused += flood.back()->read_reply().status == 429 ? 1 : 0;
  }
  EXPECT_EQ(refused, 180);
  EXPECT_EQ(post(*from("127.0.0.1"), "/agents/counter/a"), 200);
  flood.clear();
  server_->wait_for_log("net.address_limited");
}

TEST_F(EdgeTest, SlowHeadsAndBodiesEndInTimeWhileOthersAreServed) {
  start("", "{handshake_timeout: 500ms}");
  Clients heads;
  Clients bodies;
  for (int i = 0; i < 100; ++i) {
    heads.push_back(from("127.0.0.2"));
    heads.back()->send("GET /agents/counter/a HTTP/1.1\r\nHost: local");
    bodies.push_back(from("127.0.0.2"));
    bodies.back()->send(
        "POST /agents/counter/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx");
  }
  EXPECT_EQ(post(*from("127.0.0.1"), "/agents/counter/a"), 200);
  for (const auto& client : heads) EXPECT_TRUE(client->at_end());
  EXPECT_EQ(post(*from("127.0.0.1"), "/agents/counter/a"), 200);
  EXPECT_TRUE(has_metric("hearth_clients_dropped_total{reason=\"silent\"} 100\n"));
}

TEST_F(EdgeTest, AgentsOfIdleSocketsLeaveAndTheSocketsStay) {
  put("classes/counter.yaml", "class: Counter\nidle_timeout: 50ms\n");
  start("");
  Clients idle;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(from("127.0.0.2"));
    ASSERT_EQ(idle.back()->upgrade("/agents/counter/idle" + std::to_string(i)).status, 101);
  }
  server_->wait_for_log("agent.evicted", 300);
  EXPECT_TRUE(has_metric("hearth_connections 300\n"));
  EXPECT_EQ(post(*from("127.0.0.1"), "/agents/counter/a"), 200);
  idle.front()->send(
      RawClient::text_frame(R"({"type":"rpc","id":"1","method":"increment","args":[]})"));
  while (idle.front()->read_text().find("\"rpc\"") == std::string::npos) {
  }
  idle.clear();
}

TEST_F(EdgeTest, AClassHasItsOwnLimitsOfAMessageAndACall) {
  install(built::agent("probe-agent"), "probe-agent.so");
  put("classes/probe.yaml", "class: ProbeAgent\nlimits: {max_frame: 1KiB, call_timeout: 100ms}\n");
  start("");
  {
    AgentClient probe(*server_, "/agents/probe-agent/a");
    EXPECT_EQ(probe.call("add", "[1,2]"), 3);
    probe.begin("slow", "[20000]");
    const Json answer = probe.answer();
    EXPECT_EQ(answer.at("success"), false) << dump_json(answer);
  }
  const std::string text(2000, 'x');
  for (const auto& [path, code] :
       {std::pair("/agents/probe-agent/b", 1009), std::pair("/agents/counter/b", 1000)}) {
    const auto client = from("127.0.0.1");
    ASSERT_EQ(client->upgrade(path).status, 101);
    client->send(RawClient::text_frame(text));
    client->send(RawClient::close_frame(1000));
    Frame frame = client->read_frame();
    while (frame.opcode != 8) frame = client->read_frame();
    EXPECT_EQ(frame.close_code(), code) << path;
  }
}

TEST_F(EdgeTest, CommandsReachAServerOfTheNetworkThatAllowsSomeHosts) {
  put("hearth.yaml", "listen: 0.0.0.0:0\nallowed_hosts: [app.example]\n");
  server_ = run({"serve", "--config", "hearth.yaml", "--log-format", "human"});
  server_->wait_until_ready();
  const auto command = run({"plugins", "--data", "data"});
  EXPECT_EQ(command->wait(), kClean) << command->log();
  EXPECT_EQ(request(*server_, "GET", "/readyz").status, 200);
  const auto other = from("127.0.0.1");
  EXPECT_EQ(other->request("GET /readyz HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 403);
}

// Commands send the address that the server has published. One of the network is as its own.
TEST_F(EdgeTest, AServerThatAllowsSomeHostsIsServedByTheAddressThatItListensOn) {
  put("hearth.yaml", "listen: 0.0.0.0:0\nallowed_hosts: [app.example]\n");
  server_ = run({"serve", "--config", "hearth.yaml", "--log-format", "human"});
  server_->wait_until_ready();
  for (const auto& [host, status] : {std::pair("0.0.0.0:" + std::to_string(server_->port()), 200),
                                     {"0.0.0.0", 200},
                                     {"10.0.0.1", 403}}) {
    const auto client = from("127.0.0.1");
    EXPECT_EQ(client->request("GET /readyz HTTP/1.1\r\nHost: " + host + "\r\n\r\n").status, status)
        << host;
  }
}

}  // namespace
}  // namespace hearth::testing
