// Libraries that crash the server: it names the library, restarts, and does not serve that library
// for ever.
#include "process/supervised_fixture.hpp"
#include "support/built.hpp"
#include "support/exposition.hpp"

#include <filesystem>
#include <string>

namespace hearth::testing {
namespace {

class ContainmentTest : public SupervisedTest {
 protected:
  ContainmentTest() {
    install(bundled("counter"), "counter.so");
    install(agent_library("crashes"), "crashes.so");
  }

  static std::filesystem::path agent_library(const std::string& name) { return built::agent(name); }

  // Asks the agent to end the server, and waits for that.
  static Ending crash(ServerProcess& server, const std::string& how) {
    RawClient client(server.port());
    client.send("GET /agents/crashes/a?how=" + how + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return server.wait();
  }

  // Crashes a server so, starts another one, and expects that to know why.
  void expect_known(const std::string& how, const Ending& ending, const std::string& reason,
                    const std::string& call) {
    auto server = serve_ready();
    EXPECT_EQ(crash(*server, how), ending) << how << "\n" << server->log();
    EXPECT_TRUE(contains(server->log(), "the server ends (" + reason + ") in a call into"));
    server = serve_ready();
    EXPECT_EQ(increment(*server, how), R"({"count":1})");
    EXPECT_EQ(server->stop(), kClean);
    const std::string told = line_of(server->log(), "server.crashed_before");
    const std::string library = (root_ / "plugins/crashes.so").string();
    EXPECT_TRUE(contains(told, "reason=" + reason, "library=" + library, "class=Crashes",
                         "generation=", "event_kind=" + call, "agent=a "));
    // A job is none of the agent's events.
    EXPECT_EQ(told.find(" call=") != std::string::npos, call != "offload") << told;
    EXPECT_EQ(told.find(" trace=00-") != std::string::npos, call != "offload") << told;
    EXPECT_EQ(told.find(" method=GET ") != std::string::npos, call == "request") << told;
    const std::size_t stack = told.find(" stack=");
    ASSERT_NE(stack, std::string::npos) << told;
    EXPECT_NE(told.find(how == "overflow" ? "overflow(int)" : "crash(", stack), std::string::npos)
        << told;
    EXPECT_NE(told.find(", crashes.cpp:", stack), std::string::npos) << "no lines: " << told;
    // It is told once.
    server = serve_ready();
    EXPECT_EQ(server->stop(), kClean);
    EXPECT_EQ(line_of(server->log(), "server.crashed_before"), "no server.crashed_before");
    // What is tested here is not whether it has happened too often.
    std::filesystem::remove(root_ / "data/versions.json");
  }

  static Ending by_signal(int signal) { return {.status = -1, .signal = signal}; }
};

TEST_F(ContainmentTest, ANullPointer) {
  expect_known("segv", by_signal(SIGSEGV), "SIGSEGV", "request");
}

TEST_F(ContainmentTest, AStackThatIsUsedUp) {
  expect_known("overflow", by_signal(SIGSEGV), "SIGSEGV", "request");
}

TEST_F(ContainmentTest, AnAbort) {
  expect_known("abort", by_signal(SIGABRT), "SIGABRT", "request");
}

TEST_F(ContainmentTest, ATrapAndADivisionByZero) {
  expect_known("ill", by_signal(SIGILL), "SIGILL", "request");
  expect_known("fpe", by_signal(SIGFPE), "SIGFPE", "request");
}

TEST_F(ContainmentTest, ACrashInAJobOnAnotherThread) {
  expect_known("thread", by_signal(SIGSEGV), "SIGSEGV", "offload");
}

TEST_F(ContainmentTest, ACallOfExitIsNoCleanEnd) {
  for (const char* how : {"exit", "_exit", "quick_exit"})
    expect_known(how, {.status = 4, .signal = 0}, "exit", "request");
}

TEST_F(ContainmentTest, ASupervisorStartsAServerAgainThatALibraryEndedWithStatusZero) {
  const auto supervisor = supervise();
  std::size_t starts = 0;
  for (const std::string how : {"vanish", "stop"}) {
    RawClient client(wait_for_server(*supervisor, ++starts));
    client.send("GET /agents/crashes/a?how=" + how + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    supervisor->wait_for_log("supervisor.restart cause=\"status 0\"", starts);
  }
  wait_for_server(*supervisor, ++starts);
  EXPECT_EQ(supervisor->stop(), kClean);
}

TEST_F(ContainmentTest, ASupervisorDoesNotStopForASignalOfALibrary) {
  const auto supervisor = supervise();
  const std::uint16_t port = wait_for_server(*supervisor, 1);
  EXPECT_EQ(request(port, "GET", "/agents/crashes/a?how=stop_above").body, "ok");
  // Comes behind the signal of the library.
  ASSERT_EQ(::kill(server_of(*supervisor), SIGKILL), 0);
  wait_for_server(*supervisor, 2);
  EXPECT_EQ(supervisor->stop(), kClean);
}

TEST_F(ContainmentTest, ACallThatDoesNotReturnIsToldAndThenEndsTheServer) {
  put("hearth.yaml", "limits:\n  soft_hang: 100ms\n  hard_hang: 600ms\n");
  auto server = serve_ready({"--config", "hearth.yaml"});
  EXPECT_EQ(crash(*server, "hang"), (Ending{.status = 3, .signal = 0})) << server->log();
  const std::string slow = line_of(server->log(), "agent.call_slow");
  EXPECT_TRUE(contains(slow, "class=Crashes agent=a event_kind=request"));
  const std::size_t stack = slow.find(" stack=");
  ASSERT_NE(stack, std::string::npos) << slow;
  EXPECT_NE(slow.find("crashes", stack), std::string::npos) << "not in the library: " << slow;
  server = serve_ready();
  EXPECT_EQ(server->stop(), kClean);
  const std::string told = line_of(server->log(), "server.crashed_before");
  EXPECT_TRUE(
      contains(told, "reason=hung", "class=Crashes agent=a event_kind=request method=GET call="));
  EXPECT_NE(told.find("crash(", told.find(" stack=")), std::string::npos) << told;
}

TEST_F(ContainmentTest, ASupervisorStartsAServerAgainThatHungAndItsClassIsInQuarantine) {
  put("hearth.yaml", "limits:\n  hard_hang: 300ms\n");
  const auto supervisor = supervise({"--config", "hearth.yaml"});
  RawClient client(wait_for_server(*supervisor, 1));
  client.send("GET /agents/crashes/a?how=hang HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::uint16_t port = wait_for_server(*supervisor, 2);
  EXPECT_EQ(last_value(*supervisor, "supervisor.restart cause="), "\"status");
  EXPECT_TRUE(answers(request(port, "GET", "/agents/crashes/a"), 503, "quarantine"));
  EXPECT_EQ(request(port, "POST", "/agents/counter/a").body, R"({"count":1})");
  EXPECT_TRUE(contains(line_of(supervisor->log(), "class.quarantined"), "reason=hung"));
  EXPECT_EQ(supervisor->stop(), kClean);
}

TEST_F(ContainmentTest, TheRecordsOfTheLastTwentyCrashesAreKept) {
  std::filesystem::create_directories(root_ / "data/crashes");
  std::filesystem::permissions(root_ / "data", std::filesystem::perms{0700});
  for (int i = 10; i < 35; ++i) put("data/crashes/00000000000" + std::to_string(i) + ".crash", "");
  auto server = serve_ready();
  crash(*server, "segv");
  server = serve_ready();
  EXPECT_EQ(server->stop(), kClean);
  const auto count = std::distance(std::filesystem::directory_iterator(root_ / "data/crashes"),
                                   std::filesystem::directory_iterator());
  EXPECT_EQ(count, 20);
}

// ---- quarantine ---------------------------------------------------------------------------------

TEST_F(ContainmentTest, AClassThatCrashesAgainAndAgainIsNotServedAndTheOthersAre) {
  const auto supervisor = supervise();
  std::uint16_t port = wait_for_server(*supervisor, 1);
  // The agent crashes at each start, and its alarm wakes it at each start of the server: no client
  // is needed.
  EXPECT_EQ(request(port, "GET", "/agents/crashes/a?how=loop").status, 200);
  supervisor->wait_for_log("class.quarantined");
  const std::string quarantined = line_of(supervisor->log(), "class.quarantined");
  EXPECT_TRUE(contains(quarantined, "class=Crashes"));
  // The ready line of the server that knows.
  const std::string before = supervisor->log().substr(0, supervisor->log().find(quarantined));
  port = wait_for_server(*supervisor, times_in(before, "server.ready address=") + 1);

  EXPECT_TRUE(answers(request(port, "GET", "/agents/crashes/b"), 503, "quarantine"));
  EXPECT_EQ(request(port, "POST", "/agents/counter/a").body, R"({"count":1})");
  EXPECT_EQ(request(port, "GET", "/readyz").body,
            R"({"classes":["counter"],"status":"ready","storage":"ok"})");
  EXPECT_EQ(supervisor->stop(), kClean);
  const std::string& log = supervisor->log();
  EXPECT_EQ(log.find("supervisor.restart", log.find("class.quarantined")), std::string::npos)
      << log;
}

class QuarantineTest : public ContainmentTest {
 protected:
  // Crashes four servers, and expects that the fifth does not serve the class.
  void quarantine() {
    for (int i = 0; i < 4; ++i) {
      const auto server = serve_ready();
      ASSERT_EQ(crash(*server, "segv"), by_signal(SIGSEGV));
    }
    const auto server = serve_ready();
    EXPECT_EQ(request(*server, "GET", "/agents/crashes/b").status, 503);
    EXPECT_EQ(server->stop(), kClean);
    EXPECT_TRUE(contains(server->log(), "class.quarantined class=Crashes",
                         "class.not_served class=Crashes"));
    EXPECT_TRUE(lacks(server->log(), "class.served class=Crashes"));
  }
  // All that a command prints that succeeds.
  [[nodiscard]] std::string printed(const std::vector<std::string>& arguments) const {
    const Said said = say(arguments);
    EXPECT_EQ(said.ending, kClean) << said.err;
    return said.all();
  }
};

TEST_F(QuarantineTest, AFileWithOtherContentIsServed) {
  quarantine();
  replace(agent_library("crashes-mended"), "crashes.so");
  const auto server = serve_ready();
  EXPECT_EQ(request(*server, "GET", "/agents/crashes/b?how=segv").body, "ok");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(QuarantineTest, AFileWithOtherContentIsServedWhileTheServerRuns) {
  quarantine();
  const auto server = serve_ready();
  const auto figure = [&server] {
    return Exposition(request(*server, "GET", "/metrics").body).value("hearth_classes_quarantined");
  };
  EXPECT_EQ(request(*server, "GET", "/agents/crashes/b").status, 503);
  EXPECT_EQ(figure(), 1);
  replace(agent_library("crashes-mended"), "crashes.so");
  server->wait_for_log("reload.done");
  EXPECT_EQ(request(*server, "GET", "/agents/crashes/b?how=segv").body, "ok");
  EXPECT_EQ(figure(), 0);
  // The old content is still known: the agents stay on their version.
  replace(agent_library("crashes"), "crashes.so");
  server->wait_for_log("plugin.refused");
  EXPECT_TRUE(contains(line_of(server->log(), "plugin.refused"), "quarantine"));
  EXPECT_EQ(request(*server, "GET", "/agents/crashes/b?how=segv").body, "ok");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(QuarantineTest, ItsLibraryIsNotShownAsCurrent) {
  quarantine();
  const auto server = serve_ready();
  const std::string said = printed({"plugins"});
  const std::size_t row = said.find("\ncrashes");
  ASSERT_NE(row, std::string::npos) << said;
  const std::string line = said.substr(row + 1, said.find('\n', row + 1) - row - 1);
  EXPECT_TRUE(contains(line, "quarantined"));
  EXPECT_TRUE(lacks(line, "current"));
  EXPECT_TRUE(contains(said, "current")) << "the other one: " << said;
  EXPECT_TRUE(says({"quarantine", "release", "crashes"}, kClean));
  EXPECT_TRUE(lacks(printed({"plugins"}), "quarantined"));
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(QuarantineTest, IsListedAndReleasedWhileNoServerRuns) {
  EXPECT_TRUE(says({"quarantine", "list"}, kFailed, "no data directory"));
  quarantine();
  const std::string listed = printed({"quarantine", "list", "--data", "data"});
  EXPECT_TRUE(listed.starts_with("Crashes  since 20")) << listed;
  EXPECT_TRUE(contains(listed, "SIGSEGV in request"));
  EXPECT_TRUE(printed({"quarantine", "list", "--json"})
                  .starts_with(R"({"quarantined":[{"call":"request","class":"Crashes")"));
  EXPECT_TRUE(says({"quarantine", "release", "Counter"}, kFailed, "is not in quarantine"));
  EXPECT_TRUE(says({"quarantine", "release", "crashes"}, kClean));
  EXPECT_EQ(printed({"quarantine", "list"}), "no class is in quarantine\n");
  const auto server = serve_ready();
  EXPECT_EQ(request(*server, "GET", "/agents/crashes/b").body, "ok");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(QuarantineTest, IsReleasedAndServedAtOnceByAServerThatRuns) {
  quarantine();
  const auto server = serve_ready();
  EXPECT_TRUE(printed({"quarantine", "list"}).starts_with("Crashes  since 20"));
  EXPECT_EQ(request(*server, "GET", "/agents/crashes/b").status, 503);
  EXPECT_TRUE(says({"quarantine", "release", "Counter"}, kFailed, "is not in quarantine"));
  EXPECT_EQ(printed({"quarantine", "release", "crashes"}),
            "the class \"Crashes\" is released and served again\n");
  EXPECT_EQ(request(*server, "GET", "/agents/crashes/b").body, "ok");
  EXPECT_EQ(printed({"quarantine", "list"}), "no class is in quarantine\n");
  server->wait_for_log("class.released class=Crashes");
  server->wait_for_log("actor=administrator");
  EXPECT_EQ(server->stop(), kClean);
  // The next server knows it as well.
  const auto next = serve_ready();
  EXPECT_EQ(request(*next, "GET", "/agents/crashes/b").body, "ok");
  EXPECT_EQ(next->stop(), kClean);
}

TEST_F(QuarantineTest, ContentThatIsReleasedReplacesWhatIsServedInItsPlace) {
  quarantine();
  replace(agent_library("crashes-mended"), "crashes.so");
  const auto server = serve_ready();
  replace(agent_library("crashes"), "crashes.so");
  server->wait_for_log("plugin.refused");
  EXPECT_TRUE(says({"quarantine", "release", "Crashes"}, kClean, "is coming in"));
  server->wait_for_log("reload.done");
  EXPECT_EQ(crash(*server, "segv"), by_signal(SIGSEGV)) << "the mended one does not crash";
}

TEST_F(QuarantineTest, AReleaseWhoseLibraryIsRefusedHasFailed) {
  quarantine();
  replace(agent_library("crashes-mended"), "crashes.so");
  const auto server = serve_ready();
  std::filesystem::copy_file(agent_library("crashes"), root_ / "plugins/.new");
  std::filesystem::permissions(root_ / "plugins/.new", std::filesystem::perms{0666});
  std::filesystem::rename(root_ / "plugins/.new", root_ / "plugins/crashes.so");
  server->wait_for_log("plugin.refused");
  const Said refused = say({"quarantine", "release", "Crashes"});
  EXPECT_EQ(refused.ending, kFailed);
  EXPECT_TRUE(
      refused.all().starts_with("the class \"Crashes\" is released; its library is refused\n"))
      << refused.all();
  EXPECT_TRUE(contains(refused.all(), "crashes.so: REFUSED: "));
  EXPECT_EQ(printed({"quarantine", "list"}), "no class is in quarantine\n");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(QuarantineTest, AClassThatNoLibraryHasIsReleasedAllTheSame) {
  quarantine();
  std::filesystem::remove(root_ / "plugins/crashes.so");
  const auto server = serve_ready();
  EXPECT_EQ(printed({"quarantine", "release", "Crashes"}),
            "the class \"Crashes\" is released; no library has it now\n");
  EXPECT_EQ(server->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing
