// A server whose stderr is a pipe that is full and never read.

#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include <signal.h>

namespace hearth::testing {
namespace {

constexpr int kFrames = 5'000;

class UnreadLogTest : public ProcessTest {
 protected:
  UnreadLogTest() { install(built::agent("probe-agent"), "probe-agent.so"); }

  // Two bad frames each time: the class logs the first, the host the second.
  static void send_bad_frames(const ServerProcess& server, const std::string& agent) {
    AgentClient client(server.port(), "/agents/probe-agent/" + agent);
    std::string frames;
    for (int i = 0; i < kFrames / 2; ++i) {
      frames += RawClient::text_frame("throw");
      frames += RawClient::text_frame(R"({"type":"rpc","id":"x","method":")" +
                                      std::string(500, 'm') + R"(","args":[]})");
    }
    ASSERT_TRUE(client.send(frames));
    ASSERT_TRUE(client.send(
        RawClient::text_frame(R"({"type":"rpc","id":"last","method":"add","args":[1,2]})")));
    while (client.read_text().find(R"("id":"last")") == std::string::npos) {
    }
  }
};

TEST_F(UnreadLogTest, AServerWhoseLogIsNotReadAnswersAndStops) {
  auto server = serve({"--log-level", "trace"});
  server->block_log();
  server->wait_until_ready();
  for (const std::string agent : {"a", "b", "c"}) send_bad_frames(*server, agent);
  EXPECT_EQ(request(*server, "GET", "/healthz").status, 200);
  EXPECT_EQ(server->stop(), kClean);
}

// The signal stays the verdict although the crash's line on stderr cannot be written.
TEST_F(UnreadLogTest, ASupervisorWhoseLogIsNotReadRestartsACrashedServer) {
  auto supervisor = serve({"--supervised"});
  supervisor->block_log();
  supervisor->wait_until_ready();
  const std::string pid = std::to_string(supervisor->pid());
  pid_t server = -1;
  ASSERT_TRUE(std::ifstream("/proc/" + pid + "/task/" + pid + "/children") >> server);
  ASSERT_EQ(::kill(server, SIGABRT), 0);
  supervisor->wait_until_ready(2);
  EXPECT_EQ(request(*supervisor, "GET", "/healthz").status, 200);
  EXPECT_EQ(supervisor->stop(), kClean);
}

TEST_F(UnreadLogTest, BadFramesCauseFewLines) {
  auto server = serve_ready();
  send_bad_frames(*server, "a");
  EXPECT_EQ(server->stop(), kClean);
  const auto lines = std::ranges::count(server->log(), '\n');
  EXPECT_LT(lines, 200) << server->log().substr(0, 4000);
}

}  // namespace
}  // namespace hearth::testing
