// hearth serve --supervised: the server restarts soon after a crash, an error in the configuration
// is reported once, and no process is left behind.
#include "process/supervised_fixture.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace hearth::testing {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Whether a process that is not ours to wait for ends within kPatience.
bool ends(pid_t process) {
  const auto deadline = Clock::now() + ServerProcess::kPatience;
  while (::kill(process, 0) == 0) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

// Asks an agent over a WebSocket.
std::string call(std::uint16_t port, const std::string& agent, const std::string& method,
                 const std::string& arguments = "[]") {
  RawClient client(port);
  if (client.upgrade(agent).status != 101) throw std::runtime_error("not upgraded");
  client.send(RawClient::text_frame(R"({"type":"rpc","id":"1","method":")" + method +
                                    R"(","args":)" + arguments + "}"));
  std::string text;
  while (text.find("\"rpc\"") == std::string::npos) text = client.read_text();
  return text;
}

// How long a start takes depends on the machine. The supervisor must not add as much again: a wait,
// or a look once a second, would be more.
TEST_F(SupervisedTest, AServerThatIsKilledServesAgainAsSoonAsItCanStart) {
  install(bundled("counter"), "counter.so");
  const auto supervisor = supervise();
  std::uint16_t port = wait_for_server(*supervisor, 1);
  const milliseconds first = time_of_start(*supervisor);
  EXPECT_EQ(request(port, "POST", "/agents/counter/a").body, R"({"count":1})");
  const Clock::time_point killed = Clock::now();
  ASSERT_EQ(::kill(server_of(*supervisor), SIGKILL), 0);
  port = wait_for_server(*supervisor, 2);
  EXPECT_EQ(request(port, "POST", "/agents/counter/a").body, R"({"count":2})");
  const auto took = std::chrono::ceil<milliseconds>(Clock::now() - killed);
  const milliseconds second = time_of_start(*supervisor);
  EXPECT_LT(took, 2 * second);
  EXPECT_LT(second, 5 * first);
  RecordProperty("restart_ms", static_cast<int>(took.count()));
  EXPECT_EQ(last_value(*supervisor, "supervisor.restart cause="), "SIGKILL");
  EXPECT_EQ(last_value(*supervisor, " wait_ms="), "0");
  EXPECT_EQ(supervisor->stop(), kClean);
}

TEST_F(SupervisedTest, FibersGoOnInTheNewServer) {
  install(bundled("worker-c"), "worker-c.so");
  const auto supervisor = supervise();
  std::uint16_t port = wait_for_server(*supervisor, 1);
  const std::string started = call(port, "/agents/worker-c/a", "run", "[40,5]");
  ASSERT_TRUE(contains(started, R"("success":true)"));
  ASSERT_EQ(::kill(server_of(*supervisor), SIGKILL), 0);
  wait_for_server(*supervisor, 2);
  supervisor->wait_for_log("agent=a text=\"run-1 is finished\"");
  EXPECT_EQ(supervisor->stop(), kClean);
}

TEST_F(SupervisedTest, SigtermAndSigintStopBothCleanly) {
  install(bundled("counter"), "counter.so");
  for (const int number : {SIGTERM, SIGINT}) {
    const auto supervisor = supervise();
    wait_for_server(*supervisor, 1);
    const pid_t server = server_of(*supervisor);
    supervisor->signal(number);
    EXPECT_EQ(supervisor->wait(), kClean);
    EXPECT_TRUE(contains(supervisor->log(), "server.stopped"));
    EXPECT_EQ(::kill(server, 0), -1) << "it is gone, and was reaped";
  }
}

TEST_F(SupervisedTest, AMistakeInTheConfigurationIsSaidOnceAndIsTheEnd) {
  put("hearth.yaml", "listen: nowhere\n");
  const auto supervisor = supervise({"--config", "hearth.yaml"});
  EXPECT_EQ(supervisor->wait(), kBadUsage);
  const std::string& log = supervisor->log();
  const std::size_t first = log.find("1 mistake in the configuration");
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("1 mistake in the configuration", first + 1), std::string::npos) << log;
}

TEST_F(SupervisedTest, AMistakeThatWasMadeWhileTheServerRanIsWaitedForToBeMended) {
  put("hearth.yaml", "classes: classes\n");
  put("classes/counter.yaml", "class: counter\n");
  const auto supervisor = supervise({"--config", "hearth.yaml"});
  wait_for_server(*supervisor, 1);
  put("classes/counter.yaml", "class: counter\nidle_timeout: soon\n");
  supervisor->wait_for_log("config.refused");
  ASSERT_EQ(::kill(server_of(*supervisor), SIGKILL), 0);
  supervisor->wait_for_log("supervisor.restart cause=\"status 2\"");
  put("classes/counter.yaml", "class: counter\n");
  wait_for_server(*supervisor, 2);
  EXPECT_EQ(supervisor->stop(), kClean);
}

TEST_F(SupervisedTest, AServerThatNeverBecameReadyIsNotTriedForEver) {
  put("data", "no directory\n");
  const auto supervisor = supervise();
  EXPECT_EQ(supervisor->wait(), kFailed);
  EXPECT_TRUE(lacks(supervisor->log(), "supervisor.restart"));
}

TEST_F(SupervisedTest, RepeatedCrashesArePacedAndASignalEndsTheWait) {
  const auto supervisor = supervise();
  wait_for_server(*supervisor, 1);
  ASSERT_EQ(::kill(server_of(*supervisor), SIGKILL), 0);
  wait_for_server(*supervisor, 2);
  ASSERT_EQ(::kill(server_of(*supervisor), SIGKILL), 0);
  supervisor->wait_for_log("wait_ms=1000");
  supervisor->signal(SIGTERM);
  EXPECT_EQ(supervisor->wait(), kClean);
}

TEST_F(SupervisedTest, AHangupBeforeTheServerListensForItDoesNotEndIt) {
  const auto supervisor = supervise();
  supervisor->wait_for_log("supervisor.started");
  supervisor->signal(SIGHUP);
  wait_for_server(*supervisor, 1);
  supervisor->wait_for_log("server.reload");
  EXPECT_EQ(supervisor->stop(), kClean);
  EXPECT_TRUE(lacks(supervisor->log(), "supervisor.restart"));
}

TEST_F(SupervisedTest, WhoeverStartsItMayIgnoreTheEndsOfChildren) {
  ::signal(SIGCHLD, SIG_IGN);  // inherited
  const auto supervisor = supervise();
  ::signal(SIGCHLD, SIG_DFL);
  wait_for_server(*supervisor, 1);
  ASSERT_EQ(::kill(server_of(*supervisor), SIGKILL), 0);
  wait_for_server(*supervisor, 2);
  EXPECT_EQ(supervisor->stop(), kClean);
}

TEST_F(SupervisedTest, TheServerStopsWhenItsSupervisorIsKilled) {
  const auto supervisor = supervise();
  wait_for_server(*supervisor, 1);
  const pid_t server = server_of(*supervisor);
  supervisor->signal(SIGKILL);
  EXPECT_TRUE(ends(server));
  supervisor->wait();
  EXPECT_TRUE(contains(supervisor->log(), "server.stopped"));
}

}  // namespace
}  // namespace hearth::testing
