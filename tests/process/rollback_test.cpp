// A version that crashes the server: the earlier version serves after the restart, until an
// operator asks for the new one again. Settings: rollback_settings_test.cpp; changes of the file:
// rollback_files_test.cpp.
#include "process/rollback_fixture.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

TEST_F(RollbackTest, AVersionThatCrashesAtItsFirstCallIsTakenBack) {
  const auto supervisor = supervise({"--config", "hearth.yaml"});
  std::uint16_t port = wait_for_server(*supervisor, 1);
  replace_by_the_one_that_crashes();
  supervisor->wait_for_log("reload.done class=Crashes version=1.0.0");
  crash(port, "segv");
  port = wait_for_server(*supervisor, 2);
  EXPECT_EQ(request(port, "GET", "/agents/crashes/a?how=segv").body, "ok") << "the one before";
  expect_taken_back(*supervisor, "it ended the server (SIGSEGV in request) when it was tried");
  EXPECT_EQ(supervisor->stop(), kClean);
}

TEST_F(RollbackTest, SoIsOneThatCrashesWhileAgentsTryIt) {
  const auto supervisor = supervise({"--config", "hearth.yaml"});
  std::uint16_t port = wait_for_server(*supervisor, 1);
  // From now on it would crash in on_start, in the version that crashes.
  EXPECT_EQ(request(port, "GET", "/agents/crashes/a?how=loop").body, "ok");
  replace_by_the_one_that_crashes();
  port = wait_for_server(*supervisor, 2);
  EXPECT_EQ(request(port, "GET", "/agents/crashes/a").body, "ok");
  EXPECT_TRUE(lacks(supervisor->log(), "reload.done"));
  expect_taken_back(*supervisor, "it ended the server (SIGSEGV in start) when it was tried");
  EXPECT_EQ(supervisor->stop(), kClean);
}

TEST_F(RollbackTest, SoIsOneThatCrashesOnlyAsTheServerLoadsIt) {
  put("fault", "crash load");
  auto server = start();
  EXPECT_EQ(ask(*server, ""), "ok");
  replace(made_for_tests("faulty_when_served"));
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  server = start();
  EXPECT_EQ(ask(*server, "segv"), "ok");
  expect_taken_back(*server, "it ended the server (SIGSEGV in load) when it was tried");
  EXPECT_EQ(request(*server, "GET", "/agents/faulty/a").status, 400) << "nobody has this class";
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, SoIsOneThatHangsAndItsReleaseIsAnotherTry) {
  let_a_hang_end_the_server();
  auto server = start();
  replace_and_crash(*server, "hang");
  server = start();
  EXPECT_EQ(ask(*server, "hang"), "ok");
  expect_taken_back(*server, "it ended the server (hung in request) when it was tried");
  EXPECT_TRUE(contains(hearth({"quarantine", "release", "crashes"}), "version 1.0.0 is coming in"));
  server->wait_for_log("reload.done class=Crashes version=1.0.0");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AReleaseWhileNoServerRunsIsAnotherTryAtTheNextStart) {
  let_a_hang_end_the_server();
  auto server = start();
  replace_and_crash(*server, "hang");
  server = start();
  EXPECT_EQ(server->stop(), kClean);
  hearth({"quarantine", "release", "crashes"});
  configure("");
  server = start();
  EXPECT_TRUE(lacks(server->log(), "reload.taken_back"));
  expect_crash(*server);  // the new one
  expect_mended_start();  // it was on trial again
}

TEST_F(RollbackTest, TheVersionBeforeServesAtEveryStartUntilTheFileChanges) {
  auto server = start();
  EXPECT_EQ(ask(*server, ""), "ok");
  replace_and_crash(*server, "segv");
  for (int i = 0; i < 2; ++i) {
    server = start();
    EXPECT_EQ(ask(*server, "segv"), "ok");
    expect_taken_back(*server, "it ended the server (SIGSEGV in request) when it was tried");
    EXPECT_EQ(server->stop(), kClean);
  }
  server = start();
  replace(agent_library("crashes-mended"));
  wait_for_no_trial();
  EXPECT_EQ(ask(*server, "segv"), "ok");
  EXPECT_EQ(server->stop(), kClean);
  server = start();
  EXPECT_TRUE(lacks(server->log(), "reload.taken_back"));
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, SeveralVersionsInAMinuteGoBackOneByOne) {
  std::filesystem::remove(root_ / "plugins/crashes.so");
  install(agent_library("fragile-1"), "crashes.so");
  auto server = start();
  for (const char* version : {"2", "3"}) {
    replace(agent_library(std::string("fragile-") + version));
    server->wait_for_log("reload.done class=Fragile version=" + std::string(version));
  }
  for (const char* goes_on : {"2.0.0", "1.0.0"}) {
    EXPECT_THROW(AgentClient(*server, "/agents/fragile/a").call("crash_later"), std::runtime_error);
    EXPECT_EQ(server->wait().signal, SIGSEGV);
    server = start();
    const std::string served = "class.served class=Fragile version=";
    EXPECT_TRUE(contains(server->log(), served + goes_on));
  }
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, WhoAsksForAReloadTriesItAgain) {
  auto server = start();
  replace_and_crash(*server, "segv");
  server = start();
  EXPECT_TRUE(contains(hearth({"reload", "crashes"}), "1.0.0"));
  server->wait_for_log("reload.done class=Crashes version=1.0.0");
  expect_crash(*server);
  expect_mended_start();
}

TEST_F(RollbackTest, AVersionIsShownAsOnTrialUntilItIsProven) {
  configure(", probation: 10s");
  auto server = start();
  EXPECT_TRUE(contains(hearth({"plugins"}), "current"));
  replace_by_the_one_that_crashes(*server);
  const std::string said = hearth({"plugins"});
  EXPECT_TRUE(contains(said, "on_trial"));
  EXPECT_TRUE(lacks(said, "current"));
  EXPECT_EQ(server->stop(), kClean);
  configure(", probation: 0s");
  server = start();
  wait_for_no_trial();
  EXPECT_TRUE(contains(hearth({"plugins"}), "current"));
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AVersionThatIsProvenStays) {
  configure(", probation: 0s");
  auto server = start();
  replace_by_the_one_that_crashes(*server);
  wait_for_no_trial();
  expect_crash(*server);
  server = start();
  expect_crash(*server);  // there is no way back
}

// ---- which version is to blame ------------------------------------------------------------------

TEST_F(RollbackTest, AKillIsNobodysFaultAndTheTrialGoesOn) {
  auto server = start();
  replace_by_the_one_that_crashes(*server);
  server->signal(SIGKILL);
  EXPECT_EQ(server->wait().signal, SIGKILL);
  server = start();
  expect_crash(*server);  // the new one serves
  expect_mended_start();  // and was still on trial
}

TEST_F(RollbackTest, AfterARestartTheTrialEndsAsWell) {
  auto server = start();
  replace_by_the_one_that_crashes(*server);
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_NE(trials(), Json::array());
  configure(", probation: 10ms");
  server = start();
  wait_for_no_trial();
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AFileThatIsRefusedKeepsNobodyFromTheVersionBeforeEvenAfterARestart) {
  auto server = start();
  EXPECT_EQ(ask(*server, ""), "ok");
  const fs::path half = root_ / "plugins/.half";
  fs::copy_file(agent_library("crashes"), half);
  fs::resize_file(half, fs::file_size(half) / 2);
  fs::rename(half, root_ / "plugins/crashes.so");
  server->wait_for_log("plugin.refused");
  EXPECT_EQ(server->stop(), kClean);
  server = start();
  EXPECT_EQ(ask(*server, "segv"), "ok");
  EXPECT_TRUE(contains(server->log(), "reload.taken_back"));
  // The whole file, and the server has no reason against it.
  replace_by_the_one_that_crashes(*server);
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AVersionThatWasTakenBackWhileTheServerRanIsNotServedByTheNextOne) {
  install_versioned();
  auto server = start();
  EXPECT_EQ(version_of(*server), "1.0.0");
  replace(agent_library("versioned-bad"));
  server->wait_for_log("reload.taken_back");
  EXPECT_EQ(server->stop(), kClean);
  server = start();
  EXPECT_EQ(version_of(*server), "1.0.0");
  EXPECT_EQ(server->stop(), kClean);
}

// ---- no agent is in memory when it comes --------------------------------------------------------

TEST_F(RollbackTest, TheFirstAgentsThatWakeJudgeAVersionThatNobodyCouldTry) {
  install_versioned();
  auto server = start();
  replace(agent_library("versioned-bad"));
  server->wait_for_log("reload.done class=Versioned version=4.0.0");
  for (const std::string name : {"b", "c", "d", "e", "f"})
    EXPECT_EQ(request(*server, "GET", "/agents/versioned/" + name).status, 503) << name;
  server->wait_for_log("reload.taken_back");
  server->wait_for_log("reload.done class=Versioned version=1.0.0");
  EXPECT_EQ(version_of(*server), "1.0.0");
  EXPECT_TRUE(contains(server->log(), "5 of the first 5 agents that woke could not start on it"));
  EXPECT_EQ(server->stop(), kClean);
  server = start();
  EXPECT_EQ(version_of(*server), "1.0.0") << "after a restart too";
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, SoDoTheyIfOnlySomeLived) {
  install_versioned();
  const auto server = start();
  AgentClient client(*server,
                     "/agents/versioned/a");  // lives, and starts on the version that follows
  EXPECT_EQ(client.call("version"), "1.0.0");
  replace(agent_library("versioned-picky"));
  server->wait_for_log("reload.done class=Versioned version=4.1.0");
  EXPECT_EQ(client.call("version"), "4.1.0");
  for (const std::string name : {"b", "c", "d", "e"})
    EXPECT_EQ(request(*server, "GET", "/agents/versioned/" + name).status, 503) << name;
  server->wait_for_log("reload.done class=Versioned version=1.0.0");
  EXPECT_EQ(client.call("version"), "1.0.0");
  server->kill();
}

TEST_F(RollbackTest, SoDoThoseThatWakeWhileOthersAreStillOnTheirWay) {
  configure(", policy: drain, trial_agents: 1");
  install_versioned();
  const auto server = start();
  EXPECT_EQ(version_of(*server), "1.0.0");  // idle: this one tries the version that follows
  const std::string until = (root_ / "until").string();
  AgentClient busy(*server, "/agents/versioned/busy");
  AgentClient other(*server, "/agents/versioned/busy");
  busy.begin("hold", dump_json(Json::array({until})));
  (void)soon([&] { return other.call("attempts", R"(["hold"])"); },
             [](const Json& attempts) { return attempts > 0; });
  replace(agent_library("versioned-picky"));
  server->wait_for_log("reload.begun class=Versioned version=4.1.0");
  (void)soon([&] { return version_of(*server); },
             [](const Json& found) { return found == "4.1.0"; });
  // Before the second answer the trial has been looked at, and is over.
  for (int i = 0; i < 2; ++i) hearth({"reload", "versioned"});
  for (const std::string name : {"b", "c", "d", "e", "f"})
    EXPECT_EQ(request(*server, "GET", "/agents/versioned/" + name).status, 503) << name;
  EXPECT_TRUE(lacks(server->log(), "reload.done")) << "one is on its way";
  put("until", "");
  EXPECT_EQ(busy.result(), "1.0.0");
  server->wait_for_log("reload.done class=Versioned version=1.0.0");
  EXPECT_EQ(version_of(*server), "1.0.0") << "it has left the version that failed";
  server->kill();
}

TEST_F(RollbackTest, AnAgentThatTriesAgainAndAgainIsOneThatFails) {
  configure(", probation: 1s");
  install_versioned();
  auto server = start();
  EXPECT_EQ(version_of(*server), "1.0.0");
  replace(agent_library("versioned-picky"));
  server->wait_for_log("reload.done class=Versioned version=4.1.0");
  EXPECT_EQ(version_of(*server), "4.1.0");
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(request(*server, "GET", "/agents/versioned/b").status, 503) << i;
  wait_for_no_trial();
  EXPECT_TRUE(lacks(server->log(), "reload.taken_back"));
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AVersionThatCannotMigrateThoseThatWakeIsTakenBack) {
  install_versioned();
  auto server = start();
  const std::vector<std::string> names{"b", "c", "d", "e", "f"};
  for (const std::string& name : names)
    EXPECT_EQ(AgentClient(*server, "/agents/versioned/" + name).call("add"), 1);
  EXPECT_EQ(server->stop(), kClean);
  server = start();  // all are cold
  replace(agent_library("versioned-schema-bad"));
  server->wait_for_log("reload.done class=Versioned version=6.0.0");
  for (const std::string& name : names)
    EXPECT_EQ(request(*server, "GET", "/agents/versioned/" + name).status, 503) << name;
  server->wait_for_log("reload.done class=Versioned version=1.0.0");
  for (const std::string& name : names)
    EXPECT_EQ(AgentClient(*server, "/agents/versioned/" + name).call("add"), 2);
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, WithFewerAgentsTheEndOfItsProbationDecides) {
  configure(", probation: 3s");
  install_versioned();
  const auto server = start();
  replace(agent_library("versioned-bad"));
  server->wait_for_log("reload.done class=Versioned version=4.0.0");
  EXPECT_EQ(request(*server, "GET", "/agents/versioned/b").status, 503);
  server->wait_for_log("reload.done class=Versioned version=1.0.0");
  EXPECT_EQ(version_of(*server), "1.0.0");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AVersionOnWhichTheFirstOnesStartIsProvenWhenItsProbationEnds) {
  configure(", probation: 500ms, trial_agents: 2");
  const auto server = start();
  replace_by_the_one_that_crashes(*server);
  for (const std::string name : {"b", "c"})
    EXPECT_EQ(request(*server, "GET", "/agents/crashes/" + name).body, "ok");
  wait_for_no_trial();
  EXPECT_TRUE(lacks(server->log(), "reload.taken_back"));
  EXPECT_EQ(server->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing
