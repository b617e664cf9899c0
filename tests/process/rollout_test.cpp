// Rollouts of a library to its agents: draining, taken back, overtaken by the next version.
#include "json/json.hpp"
#include "process/versioned_fixture.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

class RolloutTest : public VersionedTest {
 protected:
  // The versions that have agents in memory.
  [[nodiscard]] std::set<std::string> versions_in_memory() const {
    const Json page = parse_json(ask({"agents", "versioned", "--json"})).value();
    std::set<std::string> versions;
    for (const Json& agent : page.at("agents")) {
      const std::string version = agent.value("version", "");
      if (!version.empty()) versions.insert(version);
    }
    return versions;
  }
};

// How many agents try a version first.
class RolloutDrainTest : public RolloutTest, public ::testing::WithParamInterface<int> {
 protected:
  void start_draining(const std::string& deadline) {
    start("reload: {quiet_time: 50ms, policy: drain, drain_deadline: " + deadline +
          ", trial_agents: " + std::to_string(GetParam()) + "}\n");
  }
};
INSTANTIATE_TEST_SUITE_P(Trials, RolloutDrainTest, ::testing::Values(0, 1, 5));

TEST_P(RolloutDrainTest, IdleAgentsMoveAtOnceAndABusyOneWhenItsCallHasEnded) {
  start_draining("1h");
  Client busy(*server_, "busy");
  Client asking(*server_, "busy");
  Client idle(*server_, "idle");
  Client another(*server_, "another");
  for (Client* client : {&busy, &asking, &idle, &another})
    EXPECT_EQ(client->call("version"), "1.0.0");
  busy.begin("hold", arguments(gate("held")));
  wait_for_attempt(asking, "hold");
  replace("2");
  wait_for_version(idle, "2.0.0");
  wait_for_version(another, "2.0.0");
  EXPECT_EQ(asking.call("version"), "1.0.0") << "the other call is still in progress";
  EXPECT_EQ(versions_in_memory(), (std::set<std::string>{"1.0.0", "2.0.0"}));
  open("held");
  EXPECT_EQ(busy.result(), "1.0.0");
  EXPECT_EQ(busy.call("version"), "2.0.0");
  EXPECT_EQ(busy.call("attempts", arguments("hold")), 1);
  server_->wait_for_log("reload.done class=Versioned version=2.0.0");
}

TEST_P(RolloutDrainTest, CallsThatNeverEndAreEndedAtTheDeadline) {
  start_draining("300ms");
  Client caller(*server_, "a");
  Client repeated(*server_, "a");
  Client asking(*server_, "a");
  caller.begin("hold", arguments(gate("never")));
  repeated.begin("hold_get", arguments(gate("held")));
  wait_for_attempt(asking, "hold");
  wait_for_attempt(asking, "hold_get");
  const auto began = std::chrono::steady_clock::now();
  replace("2");
  const Json answer = caller.answer();
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(300));
  EXPECT_EQ(answer.at("success"), false);
  EXPECT_EQ(answer.value("error", ""), "the agent was evicted (code_update); try again");
  EXPECT_EQ(asking.call("version"), "2.0.0");
  wait_for_attempt(asking, "hold_get", 2);
  open("held");
  EXPECT_EQ(repeated.result(), "2.0.0");
  server_->wait_for_log("reload.done class=Versioned version=2.0.0");
}

TEST_F(RolloutTest, ClientsThatSendAllTheTimeMeetTheVersionBeforeOneThatFails) {
  start("reload: {quiet_time: 50ms}\n");
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 8; ++i)
    clients.push_back(std::make_unique<Client>(*server_, "a" + std::to_string(i)));
  int next = 0;
  const auto talk = [&] {
    for (const auto& client : clients) {
      for (int i = 0; i < 4; ++i) client->send(std::to_string(next + i));
    }
    for (const auto& client : clients) {
      for (int i = 0; i < 4; ++i) ASSERT_EQ(client->read(), "1.0.0 " + std::to_string(next + i));
    }
    next += 4;
  };
  ASSERT_NO_FATAL_FAILURE(talk());
  replace("bad");
  const auto taken_back =
      std::async(std::launch::async, [this] { server_->wait_for_log("reload.taken_back"); });
  while (taken_back.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    ASSERT_NO_FATAL_FAILURE(talk());
  ASSERT_NO_FATAL_FAILURE(talk());
}

TEST_F(RolloutTest, WhatAFailingVersionHasInterruptedGoesOnOnTheVersionBefore) {
  start("reload: {quiet_time: 50ms}\n");
  Client other(*server_, "a");
  Client connecting(*server_, "a?wait=60000");
  connecting.send("hello");
  Client calling(*server_, "a");
  calling.begin("slow_get", "[60000]");
  for (const char* what : {"slow_get", "connect"}) wait_for_attempt(other, what);
  replace("bad");
  server_->wait_for_log("reload.taken_back");
  EXPECT_EQ(calling.result(), "1.0.0");
  EXPECT_EQ(connecting.read(), "connected 1.0.0");
  EXPECT_EQ(connecting.read(), "1.0.0 hello");
  EXPECT_EQ(other.call("version"), "1.0.0");
}

TEST_F(RolloutTest, AThirdVersionFindsAgentsOfOneOtherOnly) {
  put("classes/versioned.yaml", "class: Versioned\nevict_grace: 60s\noptions: {evict_ms: 60000}\n");
  start("reload: {quiet_time: 50ms}\nlimits: {shutdown_grace: 100ms}\n");
  Client first(*server_, "first", "1.0.0");
  replace("2");
  server_->wait_for_log("reload.begun class=Versioned version=2.0.0");
  Client second(*server_, "second", "2.0.0");
  EXPECT_EQ(versions_in_memory(), (std::set<std::string>{"1.0.0", "2.0.0"}));
  replace("3");
  server_->wait_for_log("reload.begun class=Versioned version=3.0.0");
  Client third(*server_, "third", "3.0.0");
  EXPECT_EQ(versions_in_memory(), (std::set<std::string>{"2.0.0", "3.0.0"}));
  replace("1");
  server_->wait_for_log("reload.begun class=Versioned version=1.0.0");
  EXPECT_EQ(versions_in_memory().count("2.0.0"), 0U);
}

}  // namespace
}  // namespace hearth::testing
