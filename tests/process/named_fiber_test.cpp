// Fibers that the server calls again: the agents of the first documents after `kill -9`, fibers
// that crash the server, and fibers that only some versions of a library know.
#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

class NamedFiberProcessTest : public ProcessTest {
 protected:
  NamedFiberProcessTest() { put("hearth.yaml", "log:\n  level: debug\n"); }

  [[nodiscard]] std::unique_ptr<ServerProcess> serve_agents() const {
    return serve_ready({"--config", "hearth.yaml"});
  }
  void give(const std::string& agent_class, const std::string& more) {
    put("classes/" + agent_class + ".yaml", "class: " + agent_class + "\n" + more);
  }
  // Asks until the answer is as wanted.
  static Json ask_until(AgentClient& agent, const std::string& method, const std::string& arguments,
                        const std::function<bool(const Json&)>& wanted) {
    return soon([&] { return agent.call(method, arguments); }, wanted);
  }
};

// ---- the agents of the first documents ----------------------------------------------------------

TEST_F(NamedFiberProcessTest, TheResearchAgentGoesOnFromItsCheckpointAfterAKill) {
  replace(built::agent("seed-agents"), "seed-agents.so");
  give("research-agent", "options:\n  step_ms: 50\n");
  for (int kills = 0; kills < 3; ++kills) {
    auto server = serve_agents();
    AgentClient agent(*server, "/agents/research-agent/a");
    if (kills == 0) agent.call("startResearch", R"(["moss"])");
    ask_until(agent, "steps", "[]", [kills](const Json& steps) {
      return steps.size() > static_cast<std::size_t>(kills);
    });
    EXPECT_EQ(server->kill(), kKilled);
  }
  auto server = serve_agents();
  EXPECT_EQ(AgentClient(*server, "/agents/research-agent/a").call("steps"),
            Json({"search", "analyze", "synthesize"}));
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(NamedFiberProcessTest, TheResearchAgentLetsGoWhatWasKilledBeforeItsFirstCheckpoint) {
  replace(built::agent("seed-agents"), "seed-agents.so");
  give("research-agent", "options:\n  step_ms: 60000\n");
  {
    auto server = serve_agents();
    AgentClient agent(*server, "/agents/research-agent/a");
    agent.call("startResearch", R"(["moss"])");
    EXPECT_EQ(agent.call("fibers"), 1);
    EXPECT_EQ(server->kill(), kKilled);
  }
  auto server = serve_agents();
  {
    AgentClient agent(*server, "/agents/research-agent/a");
    ask_until(agent, "fibers", "[]", [](const Json& fibers) { return fibers == 0; });
    EXPECT_EQ(agent.call("steps"), Json::array());
  }
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(NamedFiberProcessTest, MyAgentMakesEachTurnOnceThoughItIsKilledAgainAndAgain) {
  replace(built::agent("seed-agents"), "seed-agents.so");
  give("my-agent", "options:\n  step_ms: 10\n");
  std::string id;
  for (int kills = 0; kills < 4; ++kills) {
    auto server = serve_agents();
    AgentClient agent(*server, "/agents/my-agent/a");
    if (kills == 0) id = agent.call("startResearch", R"([{"topic":"moss"}])").get<std::string>();
    ask_until(agent, "turns", "[\"" + id + "\"]",
              [kills](const Json& turns) { return turns.get<int>() > 4 * kills; });
    EXPECT_EQ(server->kill(), kKilled);
  }
  auto server = serve_agents();
  Json state;
  {
    AgentClient agent(*server, "/agents/my-agent/a");
    state = ask_until(agent, "result", "[]", [](const Json& now) { return !now.is_null(); });
  }
  const Json& result = state.at("researchResult");
  ASSERT_EQ(result.at("messages").size(), 40U);
  for (std::size_t turn = 0; turn < 20; ++turn) {
    EXPECT_EQ(result.at("messages").at(2 * turn + 1).at("content"),
              "turn " + std::to_string(turn) + " about moss");
  }
  EXPECT_EQ(result.at("summary"), "turn 19 about moss");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(NamedFiberProcessTest, ChatsAreRecoveredFirstAndInParallelAfterAKill) {
  replace(built::agent("seed-recovery-agents"), "seed-recovery-agents.so");
  give("chat-first-agent", "options:\n  step_ms: 60000\n");  // nothing ends before the kill
  const std::string path = "/agents/chat-first-agent/a";
  {
    auto server = serve_agents();
    AgentClient agent(*server, path);
    for (const char* const each : {R"(["summarize","work 1"])", R"(["summarize","work 2"])",
                                   R"(["handleChat","chat 1"])", R"(["handleChat","chat 2"])"})
      agent.call("begin", each);
    EXPECT_EQ(server->kill(), kKilled);
  }
  give("chat-first-agent", "options:\n  step_ms: 20\n");
  auto server = serve_agents();
  Json notes;
  {
    AgentClient agent(*server, path);
    notes = ask_until(agent, "notes", "[]", [](const Json& now) { return now.size() == 12; });
  }
  std::vector<std::string> begun;
  for (const Json& note : notes) {
    const auto text = note.get<std::string>();
    if (text.starts_with("recovering ")) begun.push_back(text.substr(11));
  }
  EXPECT_EQ(begun, (std::vector<std::string>{"chat 1", "chat 2", "work 1", "work 2"}));
  EXPECT_EQ(notes.at(1), "recovering chat 2") << "both at once: " << dump_json(notes);
  EXPECT_TRUE(notes.at(2).get<std::string>().starts_with("recovered chat")) << dump_json(notes);
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(NamedFiberProcessTest, WhatWasInterruptedMoreThanTwiceIsGivenUpByItsHook) {
  replace(built::agent("seed-recovery-agents"), "seed-recovery-agents.so");
  const std::string path = "/agents/patient-agent/a";
  auto server = serve_agents();
  const auto id = AgentClient(*server, path).call("begin").get<std::string>();
  for (int recoveries = 1; recoveries <= 2; ++recoveries) {
    EXPECT_EQ(server->kill(), kKilled);
    server = serve_agents();
    server->wait_for_log("fiber:recovery:handled");
    EXPECT_EQ(AgentClient(*server, path).call("status", "[\"" + id + "\"]"), "open");
  }
  EXPECT_EQ(server->kill(), kKilled);
  server = serve_agents();
  server->wait_for_log("Giving up on fiber " + id);
  {
    AgentClient agent(*server, path);
    ask_until(agent, "status", "[\"" + id + "\"]",
              [](const Json& status) { return status == "interrupted"; });
  }
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(NamedFiberProcessTest, AnOrchestratorReadsWhatItsSandboxLoggedWhileNoServerRan) {
  replace(built::agent("seed-recovery-agents"), "seed-recovery-agents.so");
  give("orchestrator-agent", "options:\n  step_ms: 5\n");
  const std::string path = "/agents/orchestrator-agent/a";
  put("session", "one\ntwo\n");
  {
    auto server = serve_agents();
    AgentClient agent(*server, path);
    agent.call("begin", dump_json(Json::array({{{"session_id", (root_ / "session").string()}}})));
    ask_until(agent, "logs", "[]", [](const Json& logs) { return logs.size() == 2; });
    EXPECT_EQ(server->kill(), kKilled);
  }
  put("session", "one\ntwo\nthree\nfour\n");
  auto server = serve_agents();
  {
    AgentClient agent(*server, path);
    ask_until(agent, "logs", "[]", [](const Json& logs) { return logs.size() == 4; });
    put("session", "one\ntwo\nthree\nfour\nfive\nexit\n");
    EXPECT_EQ(ask_until(agent, "logs", "[]", [](const Json& logs) { return logs.size() == 6; }),
              Json({"1 one", "2 two", "3 three, missed", "4 four, missed", "5 five", "6 exit"}));
  }
  EXPECT_EQ(server->stop(), kClean);
}

// ---- fibers that end the server -----------------------------------------------------------------

// One agent begins the fiber on request, and writes checkpoints on the way. The other one begins
// it, or takes it up, in each START.
class PoisonTest : public NamedFiberProcessTest,
                   public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Poisons, PoisonTest, ::testing::Values("poisoned", "eager"),
                         [](const auto& row) { return row.param; });

TEST_P(PoisonTest, IsDeadBeforeItsClassIsInQuarantineAndOthersGoOn) {
  const std::string agent = std::string("/agents/fragile/") + GetParam();
  replace(built::agent("fragile-1"), "fragile.so");
  {
    auto server = serve_agents();
    AgentClient(*server, "/agents/fragile/bystander").call("begin", R"(["steady"])");
    RawClient visitor(server->port());
    visitor.send("GET " + agent + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    if (agent.ends_with("poisoned")) AgentClient(*server, agent).begin("begin", R"(["poison"])");
    EXPECT_EQ(server->wait(), kCrashed) << "its first run";
  }
  // It may end before it is ready.
  EXPECT_EQ(serve({"--config", "hearth.yaml"})->wait(), kCrashed)
      << "its recovery, though nobody asks";
  auto server = serve_agents();
  server->wait_for_log("fiber:recovery:dead");
  EXPECT_TRUE(contains(server->log(), "fibers.max_crashes"));
  server->wait_for_log("steady is finished");
  EXPECT_EQ(AgentClient(*server, agent).call("dead"), 1);
  EXPECT_EQ(AgentClient(*server, "/agents/fragile/bystander").call("done").size(), 20U);
  EXPECT_EQ(AgentClient(*server, "/agents/fragile/bystander").call("dead"), 0);
  EXPECT_TRUE(lacks(server->log(), "class.quarantined"));
  EXPECT_EQ(server->stop(), kClean);
}

// A fiber that sleeps in the same agent.
class HealthyFiberTest : public NamedFiberProcessTest {
 protected:
  HealthyFiberTest() {
    replace(built::agent("fragile-1"), "fragile.so");
    give("fragile", "fibers:\n  retry_base: 1ms\n");
  }

  static constexpr const char* kAgent = "/agents/fragile/mixed";

  // Work that is begun in the agent, beside the sleeping fiber, crashes the server.
  void begin_with(ServerProcess& server, const std::string& method, const std::string& arguments) {
    AgentClient agent(server, kAgent);
    agent.call("begin", R"(["patient"])");  // joins the fiber that is there
    server.wait_for_log("patient sleeps");
    agent.begin(method, arguments);
    EXPECT_EQ(server.wait(), kCrashed);
  }
  // It is as healthy as before.
  void expect_patient(ServerProcess& server, int dead) {
    server.wait_for_log("patient sleeps");
    EXPECT_EQ(AgentClient(server, kAgent).call("dead"), dead);
    EXPECT_TRUE(lacks(server.log(), "class.quarantined"));
    EXPECT_EQ(server.stop(), kClean);
  }
};

class PoisonBesideTest : public HealthyFiberTest,
                         public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Poisons, PoisonBesideTest, ::testing::Values("poison", "offloading"),
                         [](const auto& row) { return row.param; });

TEST_P(PoisonBesideTest, IsDeadAloneBeforeItsClassIsInQuarantine) {
  begin_with(*serve_agents(), "begin", std::string("[\"") + GetParam() + "\"]");
  // It may end before it is ready.
  EXPECT_EQ(serve({"--config", "hearth.yaml"})->wait(), kCrashed) << "its recovery";
  auto server = serve_agents();
  server->wait_for_log("fiber:recovery:dead");
  expect_patient(*server, 1);
}

TEST_F(HealthyFiberTest, IsNotToBlameForAMethodThatCrashesAfterItsFirstWait) {
  for (int crash = 0; crash < 2; ++crash) begin_with(*serve_agents(), "crash_later", "[]");
  expect_patient(*serve_agents(), 0);
}

TEST_F(HealthyFiberTest, IsNotToBlameForAStartThatCrashes) {
  put("trap", "");
  {
    auto server = serve_agents();
    AgentClient agent(*server, kAgent);
    agent.call("begin", R"(["patient"])");
    server->wait_for_log("patient sleeps");
    agent.call("set_trap", dump_json(Json::array({(root_ / "trap").string()})));
    EXPECT_EQ(server->kill(), kKilled);
  }
  for (int crash = 0; crash < 2; ++crash) {
    EXPECT_EQ(serve({"--config", "hearth.yaml"})->wait(), kCrashed);
  }
  std::filesystem::remove(root_ / "trap");
  expect_patient(*serve_agents(), 0);
}

// Fibers that crash the server in the hook that plans their recovery, beside an older fiber that
// does not.
class PlannedFiberTest : public HealthyFiberTest {
 protected:
  void begin_and_kill(const std::string& poison) {
    auto server = serve_agents();
    AgentClient agent(*server, kAgent);
    for (const std::string& name : {std::string("patient"), poison}) {
      agent.call("begin", "[\"" + name + "\"]");
      server->wait_for_log(name + " sleeps");
    }
    EXPECT_EQ(server->kill(), kKilled);
  }
};

class DreadedFiberTest : public PlannedFiberTest,
                         public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Poisons, DreadedFiberTest, ::testing::Values("dreaded", "brooded_over"),
                         [](const auto& row) { return row.param; });

TEST_P(DreadedFiberTest, IsDeadAloneBeforeItsClassIsInQuarantine) {
  begin_and_kill(GetParam());
  for (const char* const why : {"asked for both", "asked for one", "asked for the same again"}) {
    EXPECT_EQ(serve({"--config", "hearth.yaml"})->wait(), kCrashed) << why;
  }
  auto server = serve_agents();
  server->wait_for_log("fiber:recovery:dead");
  expect_patient(*server, 1);
}

// The hook fails for several, and for each alone it does not.
TEST_F(PlannedFiberTest, NoneIsToBlameForAPlanForSeveral) {
  begin_and_kill("crowded");
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(serve({"--config", "hearth.yaml"})->wait(), kCrashed);
    auto server = serve_agents();
    server->wait_for_log("patient sleeps");
    server->wait_for_log("crowded sleeps");
    EXPECT_EQ(AgentClient(*server, kAgent).call("dead"), 0);
    EXPECT_EQ(server->kill(), kKilled);
  }
}

TEST_F(NamedFiberProcessTest, AFiberWhoseNameAVersionDoesNotKnowSleepsUntilOneComesThatDoes) {
  replace(built::agent("fragile-1"), "fragile.so");
  give("fragile", "idle_timeout: 50ms\n");
  auto server = serve_agents();
  {
    AgentClient agent(*server, "/agents/fragile/a");
    agent.call("begin", R"(["later"])");
    ask_until(agent, "done", "[]", [](const Json& done) { return done.size() > 2; });
  }
  replace(built::agent("fragile-2"), "fragile.so");
  server->wait_for_log("fiber:unknown");
  server->wait_for_log("agent.evicted class=Fragile agent=a reason=idle");
  replace(built::agent("fragile-3"), "fragile.so");
  server->wait_for_log("later is finished by 3.0.0");
  EXPECT_EQ(AgentClient(*server, "/agents/fragile/a").call("done").size(), 20U);
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(NamedFiberProcessTest, ItGoesOnAlsoIfItsAgentIsInMemoryWhenTheVersionComes) {
  replace(built::agent("fragile-1"), "fragile.so");
  auto server = serve_agents();
  AgentClient(*server, "/agents/fragile/a").call("begin", R"(["later"])");
  replace(built::agent("fragile-2"), "fragile.so");
  server->wait_for_log("fiber:unknown");
  replace(built::agent("fragile-3"), "fragile.so");
  server->wait_for_log("later is finished by 3.0.0");
  EXPECT_EQ(AgentClient(*server, "/agents/fragile/a").call("done").size(), 20U);
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(NamedFiberProcessTest, ItGoesOnAlsoIfTheVersionThatKnowsItCameWhileNoServerRan) {
  replace(built::agent("fragile-1"), "fragile.so");
  {
    auto server = serve_agents();
    AgentClient(*server, "/agents/fragile/a").call("begin", R"(["later"])");
    EXPECT_EQ(server->kill(), kKilled);
  }
  replace(built::agent("fragile-2"), "fragile.so");
  {
    auto server = serve_agents();
    server->wait_for_log("fiber:unknown");
    EXPECT_EQ(server->stop(), kClean);
  }
  replace(built::agent("fragile-3"), "fragile.so");
  auto server = serve_agents();
  server->wait_for_log("later is finished by 3.0.0");
  EXPECT_EQ(server->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing
