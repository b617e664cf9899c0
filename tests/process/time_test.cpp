// A server's calls of the kernel's timers, and its delays when the machine is suspended.

#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <csignal>
#include <fstream>
#include <set>
#include <string>

namespace hearth::testing {
namespace {

class TimeTest : public ProcessTest {
 protected:
  TimeTest() {
    install(built::agent("durable-agent"), "durable-agent.so");
    install(built::agent("steps-agent"), "steps-agent.so");
    put("classes/durable-agent.yaml", "class: durable-agent\nidle_timeout: 50ms\n");
  }

  [[nodiscard]] std::unique_ptr<ServerProcess> serve_recorded(int ahead = 0) const {
    auto server = serve_under(
        {"env", "LD_PRELOAD=" + built::time_recorder().string(), "TIME_RECORD=" + record_.string(),
         "TIME_SUSPENSION=7200", "TIME_AHEAD=" + std::to_string(ahead)},
        {"--shards", "1", "--log-level", "debug"});
    server->wait_until_ready();
    return server;
  }
  // How often the shard has set a timer of the kernel's.
  [[nodiscard]] int alarms() const {
    std::ifstream file(record_);
    int count = 0;
    for (std::string thread; std::getline(file, thread);)
      if (thread == "hearth-shard") ++count;
    return count;
  }
  static Json wait_for_journal(AgentClient& agent, std::size_t lines) {
    return soon([&] { return agent.call("journal"); },
                [&](const Json& journal) { return journal.size() >= lines; });
  }

  const std::filesystem::path record_ = root_ / "timers";
};

TEST_F(TimeTest, StepsThatSleepForNoTimeSetNoTimer) {
  const auto server = serve_recorded();
  AgentClient agent(*server, "/agents/steps-agent/a");
  agent.call("walk", "[10]");
  const int before = alarms();
  agent.call("walk", "[2000]");
  EXPECT_LE(alarms() - before, 200) << "those of the sockets, and not of the steps";
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(TimeTest, DelaysGoOnWhileTheMachineIsSuspendedOfLiveAgentsAsOfColdOnes) {
  const auto server = serve_recorded();
  AgentClient live(*server, "/agents/durable-agent/live");
  live.call("begin", R"(["sleep",null,{"steps":1,"ms":3600000}])");  // keeps it in memory
  live.call("later", R"(["note",3600000,"delay"])");
  {
    AgentClient cold(*server, "/agents/durable-agent/cold");
    cold.call("later", R"(["note",3600000,"delay"])");
  }
  server->wait_for_log("agent.evicted class=DurableAgent agent=cold");
  server->signal(SIGRTMIN);
  server->wait_for_log("agent.started class=DurableAgent agent=cold", 2);
  EXPECT_EQ(wait_for_journal(live, 3).get<std::set<std::string>>(),
            (std::set<std::string>{"delay", "sleep 1", "told sleep completed"}));
  AgentClient cold(*server, "/agents/durable-agent/cold");
  EXPECT_EQ(wait_for_journal(cold, 1), Json::array({"delay"}));
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(TimeTest, AClockThatIsSetBackWhileTheServerIsDownProlongsNoDelay) {
  auto server = serve_recorded(86'400);
  {
    AgentClient cold(*server, "/agents/durable-agent/cold");
    cold.call("later", R"(["note",3600000,"delay"])");
  }
  server->wait_for_log("agent.evicted class=DurableAgent agent=cold");
  server->kill();
  server = serve_recorded();
  server->wait_for_log("agent.started class=DurableAgent agent=cold");
  server->wait_for_log("agent.evicted class=DurableAgent agent=cold");
  server->signal(SIGRTMIN);  // two hours later
  AgentClient cold(*server, "/agents/durable-agent/cold");
  EXPECT_EQ(wait_for_journal(cold, 1), Json::array({"delay"}));
  EXPECT_EQ(server->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing
