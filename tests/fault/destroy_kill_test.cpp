// destroy() with the real server and real files: nothing is left, wherever the process is killed.

#include "fault/fault_fixture.hpp"
#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "support/built.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

using Lines = std::vector<std::string>;

// A WebSocket to one ProbeAgent (tests/agents/probe_agent.cpp).
class Probe : public AgentClient {
 public:
  Probe(const ServerProcess& server, const std::string& name)
      : AgentClient(server, "/agents/probe-agent/" + name) {}

  // "4410 why", after all earlier frames.
  std::string close() {
    Frame frame = read_frame();
    while (frame.opcode != 8) frame = read_frame();
    return std::to_string(frame.close_code()) + " " + frame.close_reason();
  }
};

const std::string kClosed = "4410 the agent was destroyed";

class DestroyKillTest : public FaultTest {
 protected:
  DestroyKillTest() {
    std::filesystem::copy_file(built::agent("probe-agent"), root_ / "plugins/probe-agent.so");
  }

  static Reply http(const ServerProcess& server, const std::string& method,
                    const std::string& name_and_query) {
    RawClient client(server.port());
    client.send(method + " /agents/probe-agent/" + name_and_query +
                " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    return client.read_reply();
  }
  // One with a state, tables, and a fiber that works.
  static void make(const ServerProcess& server, const std::string& name) {
    Probe probe(server, name);
    probe.call("set", R"([{"secret":1}])");
    probe.call("work");
    EXPECT_EQ(probe.call("get"), Json({{"secret", 1}}));
  }

  // All of the agent's data in the data directory: files, and rows of the directory of agents.
  [[nodiscard]] Lines files_of(const std::string& name) const {
    const std::string hash = sha256_hex(name).substr(0, 32);
    Lines found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_ / "data")) {
      const std::string file = entry.path().filename().string();
      if (file.find(hash) != std::string::npos || file.find(name) != std::string::npos)
        found.push_back(file.substr(file.find('.')));
    }
    std::ranges::sort(found);
    return found;
  }
  [[nodiscard]] Lines rows_about(const std::string& name) const {
    Lines found;
    for (const std::string table : {"agents", "wakes", "condemned"}) {
      for (const std::string& row :
           rows_of(root_ / "data/host.db",
                   "SELECT class FROM " + table + " WHERE name = '" + name + "'"))
        found.push_back(table + " " + row);
    }
    return found;
  }
  void expect_nothing_left_of(const std::string& name) const {
    EXPECT_EQ(files_of(name), Lines());
    EXPECT_EQ(rows_about(name), Lines());
  }
  // All files of agents.
  [[nodiscard]] std::size_t files_of_all() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_ / "data/agents"))
      count += entry.is_regular_file() ? 1 : 0;
    return count;
  }
  // A request for the name gets an agent, and it is a new one.
  static void expect_a_new_one(const ServerProcess& server, const std::string& name) {
    Probe probe(server, name);
    EXPECT_EQ(probe.call("get"), Json());
    EXPECT_EQ(probe.call("rows"), Json(0));
    probe.call("set", "[1]");
    EXPECT_EQ(probe.call("get"), Json(1));
  }
};

TEST_F(DestroyKillTest, B133_NothingIsLeftAndTheClientsAreClosedWith4410AfterTheAnswer) {
  const auto server = serve_ledgers();
  make(*server, "victim");
  make(*server, "bystander");
  ASSERT_NE(files_of("victim"), Lines());
  {
    Probe caller(*server, "victim");
    Probe other(*server, "victim");
    Probe elsewhere(*server, "bystander");
    EXPECT_EQ(other.call("get"), Json({{"secret", 1}}));
    EXPECT_EQ(caller.call("destroy"), "destroyed");
    EXPECT_EQ(caller.close(), kClosed);
    EXPECT_EQ(other.close(), kClosed);
    EXPECT_EQ(elsewhere.call("get"), Json({{"secret", 1}}));
  }
  server->wait_for_log("agent.destroyed class=ProbeAgent agent=victim");
  expect_nothing_left_of("victim");

  expect_a_new_one(*server, "victim");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(files_of("victim"), Lines{".db"});
  EXPECT_EQ(rows_about("victim"), Lines{"agents ProbeAgent"});
}

TEST_F(DestroyKillTest, B134_ARequestThatDestroysIsAnsweredFirst) {
  const auto server = serve_ledgers();
  make(*server, "victim");
  EXPECT_EQ(http(*server, "DELETE", "victim?destroy=1&status=202").status, 202);
  server->wait_for_log("agent.destroyed class=ProbeAgent agent=victim");
  expect_nothing_left_of("victim");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(DestroyKillTest, AMethodThatWaitsAfterwardsIsCutShortWithAClearError) {
  const auto server = serve_ledgers();
  {
    Probe caller(*server, "victim");
    caller.begin("destroy_and_wait");
    EXPECT_EQ(caller.answer().at("error"), "the agent was destroyed");
    EXPECT_EQ(caller.close(), kClosed);
  }
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(DestroyKillTest, WhatWasAnsweredIsCertain) {
  for (int i = 0; i < 5; ++i) {
    auto server = serve_ledgers();
    make(*server, "victim");
    Probe caller(*server, "victim");
    EXPECT_EQ(caller.call("destroy"), "destroyed");
    EXPECT_EQ(server->kill(), kKilled);
    server = serve_ledgers();
    expect_nothing_left_of("victim");
    EXPECT_EQ(server->stop(), kClean);
    EXPECT_EQ(count(server->log(), "agent.started class=ProbeAgent"), 0U) << server->log();
  }
}

struct Step {
  const char* name;
  const char* stop_at;
  Lines files;
};

class DestroyStepTest : public DestroyKillTest, public ::testing::WithParamInterface<Step> {};

TEST_P(DestroyStepTest, B129_B130_KilledThereItIsFinishedAtTheNextStartBeforeAnythingElse) {
  auto server = serve_until(GetParam().stop_at);
  server->wait_until_ready();
  make(*server, "victim");
  Probe caller(*server, "victim");
  caller.begin("destroy");
  kill_where_it_stops(*server, GetParam().stop_at);
  EXPECT_EQ(files_of("victim"), GetParam().files);
  EXPECT_EQ(rows_about("victim"),
            (Lines{"agents ProbeAgent", "wakes ProbeAgent", "condemned ProbeAgent"}));

  server = serve_ledgers();
  expect_nothing_left_of("victim");
  let_one_come_and_go(*server);  // due work has begun
  EXPECT_EQ(count(server->log(), "agent.destroyed class=ProbeAgent agent=victim"), 1U);
  EXPECT_EQ(count(server->log(), "agent.started class=ProbeAgent"), 0U) << server->log();
  EXPECT_EQ(count(server->log(), "fiber"), 0U) << server->log();
  expect_a_new_one(*server, "victim");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_P(DestroyStepTest, KilledAgainWhileItIsFinishedTheStartAfterThatDoesIt) {
  auto server = serve_until(GetParam().stop_at);
  server->wait_until_ready();
  make(*server, "victim");
  Probe(*server, "victim").begin("destroy");
  kill_where_it_stops(*server, GetParam().stop_at);
  for (int i = 0; i < 2; ++i)
    kill_where_it_stops(*serve_until("destroy.files_removed"), "destroy.files_removed");
  server = serve_ledgers();
  expect_nothing_left_of("victim");
  expect_a_new_one(*server, "victim");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_P(DestroyStepTest, KilledThereTheAgentsBelowGoAtTheNextStartToo) {
  auto server = serve_until(GetParam().stop_at);
  server->wait_until_ready();
  const std::string child = "victim/sub/probe-agent/child";
  for (const std::string& name : {std::string("victim"), child, child + "/sub/probe-agent/deep"})
    make(*server, name);
  Probe(*server, "victim").begin("destroy");
  kill_where_it_stops(*server, GetParam().stop_at);
  EXPECT_EQ(rows_of(root_ / "data/host.db", "SELECT class FROM condemned").size(), 3U)
      << "all at once";
  server = serve_ledgers();
  EXPECT_EQ(files_of_all(), 0U);
  EXPECT_EQ(rows_of(root_ / "data/host.db", "SELECT class FROM agents"), Lines());
  EXPECT_EQ(count(server->log(), "agent.started class=ProbeAgent"), 0U) << server->log();
  expect_a_new_one(*server, child);
  EXPECT_EQ(server->stop(), kClean);
}

INSTANTIATE_TEST_SUITE_P(
    Steps, DestroyStepTest,
    ::testing::Values(Step{"Condemned", "destroy.condemned", {".db", ".db-wal"}},
                      Step{"FilesRemoved", "destroy.files_removed", {}}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace hearth::testing
