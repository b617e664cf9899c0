// Turns across kill -9: how often they are recovered, and what their clients hear.

#include "fault/fault_fixture.hpp"
#include "json/json.hpp"
#include "process/agent_client.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

// Reads all frames.
class TurnClient : public AgentClient {
 public:
  explicit TurnClient(const ServerProcess& server) : AgentClient(server, "/agents/talker/t") {}
  // The texts of the next frames that are of a session, or of the agent's own.
  std::string next() {
    for (;;) {
      const Json frame = parse_json(read_text()).value();
      if (frame.is_string()) return frame.get<std::string>();
      std::string type = text_member(frame, "type");
      if (type == "session.status_rescheduled") return text_member(frame, "reason");
      if (type.starts_with("session.")) return type;
    }
  }
};

class TurnKillTest : public FaultTest {
 protected:
  TurnKillTest() {
    std::filesystem::copy_file(built::agent("talker-agent"), root_ / "plugins/talker-agent.so");
    retry_after("10ms");
  }
  void retry_after(const std::string& base) const {
    put("classes/talker.yaml",
        "class: Talker\nfibers:\n  max_crashes: 0\n  retry_base: " + base + "\n");
  }
  // Another server, whose recovery is cut off before the turn runs.
  void recover_and_kill() {
    const auto server = serve_until("fiber.attempt.committed");
    kill_where_it_stops(*server, "fiber.attempt.committed");
  }
};

TEST_F(TurnKillTest, AFrameWithAnIdIsSentOnce) {
  auto server = serve_ledgers();
  {
    TurnClient client(*server);
    client.call("begin");
    server->wait_for_log("the turn runs");
    client.begin("say");
    EXPECT_EQ(client.next(), "hello");
    EXPECT_EQ(client.next(), "run 1");
  }
  EXPECT_EQ(server->kill(), kKilled);
  server = serve_ledgers();
  server->wait_for_log("the turn runs");
  TurnClient client(*server);
  client.begin("say");
  EXPECT_EQ(client.next(), "recovery 1 of 5") << "which began before it came";
  EXPECT_EQ(client.next(), "run 2");
  EXPECT_EQ(server->stop(), kClean);
}

// The wait after a recovery that was cut off is so long that a client is there when the next comes.
TEST_F(TurnKillTest, R1_AClientIsToldOfARecoveryThatNobodyAsksFor) {
  {
    const auto server = serve_ledgers();
    TurnClient(*server).call("begin");
    server->wait_for_log("the turn runs");
    EXPECT_EQ(server->kill(), kKilled);
  }
  retry_after("4s");
  recover_and_kill();
  const auto server = serve_ledgers();
  TurnClient client(*server);
  EXPECT_EQ(client.next(), "recovery 1 of 5") << "the last one before it came";
  EXPECT_EQ(client.next(), "recovery 2 of 5");
  server->wait_for_log("the turn runs");
  EXPECT_EQ(server->stop(), kClean);
}

// As above, the last wait is long.
TEST_F(TurnKillTest, R6_TheSixthRecoveryEndsTheTurn) {
  {
    const auto server = serve_ledgers();
    TurnClient(*server).call("begin");
    server->wait_for_log("the turn runs");
    EXPECT_EQ(server->kill(), kKilled);
  }
  for (int recovery = 1; recovery <= 3; ++recovery) recover_and_kill();
  retry_after("4s");
  recover_and_kill();
  {
    const auto server = serve_ledgers();
    TurnClient client(*server);
    EXPECT_EQ(client.next(), "recovery 4 of 5") << "the last one before it came";
    EXPECT_EQ(client.next(), "recovery 5 of 5");
    server->wait_for_log("the turn runs");
    EXPECT_EQ(server->kill(), kKilled);
  }
  const auto server = serve_ledgers();
  server->wait_for_log("fiber:recovery:dead");
  EXPECT_NE(server->log().find("fibers.max_turn_recoveries"), std::string::npos);
  EXPECT_EQ(server->log().find("the turn runs"), std::string::npos);
  TurnClient late(*server);
  EXPECT_EQ(late.next(), "session.error");
  EXPECT_EQ(late.next(), "session.status_idle");
  EXPECT_EQ(server->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing
