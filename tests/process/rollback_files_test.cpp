// Versions that crash the server, and changes of their file in the meantime.
#include "process/rollback_fixture.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

TEST_F(RollbackTest, AFileThatWasHalfWrittenWhenTheServerEndedCostsNothing) {
  auto server = start();
  replace_by_the_one_that_crashes(*server);
  server->kill();
  fs::resize_file(root_ / "plugins/crashes.so", fs::file_size(agent_library("crashes")) / 2);
  server = start();
  EXPECT_EQ(ask(*server, "segv"), "ok");
  EXPECT_TRUE(contains(server->log(), "rule=E2"));
  replace_by_the_one_that_crashes(*server);
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AFileThatMayNotBeReadCostsNothingAfterARestart) {
  auto server = start();
  EXPECT_EQ(ask(*server, ""), "ok");
  fs::permissions(root_ / "plugins/crashes.so", fs::perms{0666});
  put("plugins/other.so", "");  // what else is in the directory is looked at too
  server->wait_for_log("rule=F3");
  EXPECT_EQ(server->stop(), kClean);
  for (int i = 0; i < 2; ++i) {
    server = start();
    EXPECT_EQ(ask(*server, "segv"), "ok") << i;
    server->wait_for_log("reload.taken_back");
    EXPECT_EQ(server->stop(), kClean);
  }
  fs::permissions(root_ / "plugins/crashes.so", fs::perms{0644});
  server = start();
  EXPECT_EQ(ask(*server, "segv"), "ok");
  EXPECT_EQ(trials(), Json::array());
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AnotherVersionThatWasPutThereWhileNoServerRanIsOnTrialToo) {
  auto server = start_and_go_back();
  EXPECT_EQ(server->stop(), kClean);
  fs::remove(root_ / "plugins/crashes.so");
  put("fault", "crash load");
  install(made_for_tests("faulty_when_served"), "crashes.so");
  EXPECT_EQ(serve({"--config", "hearth.yaml"})->wait().signal, SIGSEGV);
  expect_mended_start();
}

TEST_F(RollbackTest, TheFirstOfTwoThatEndedTheServerIsNotTriedAgain) {
  auto server = start_and_go_back();
  put("fault", "crash load");
  replace(made_for_tests("faulty_when_served"));
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  server = start();
  replace_by_the_one_that_crashes();
  server->wait_for_log("it ended the server (SIGSEGV in request) when it was tried");
  EXPECT_EQ(ask(*server, "segv"), "ok");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AFileThatIsTakenAwayAndPutBackIsWhatItWas) {
  auto server = start_and_go_back();
  EXPECT_EQ(ask(*server, ""), "ok");
  fs::rename(root_ / "plugins/crashes.so", root_ / "elsewhere");
  server->wait_for_log("reload.removed");
  fs::rename(root_ / "elsewhere", root_ / "plugins/crashes.so");
  server->wait_for_log("reload.begun");
  EXPECT_EQ(ask(*server, "segv"), "ok") << "the version before";
  EXPECT_EQ(server->stop(), kClean);
  expect_mended_start();
}

TEST_F(RollbackTest, WhatComesInThePlaceOfAFileThatWasGoneIsOnTrial) {
  auto server = start();
  EXPECT_EQ(ask(*server, ""), "ok");
  fs::remove(root_ / "plugins/crashes.so");
  server->wait_for_log("reload.removed");
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.begun");
  expect_crash(*server);
  expect_mended_start();
}

TEST_F(RollbackTest, TheDirectoryMayBeSpelledInAnyWay) {
  auto server = start_and_go_back();
  EXPECT_EQ(server->stop(), kClean);
  fs::create_directory_symlink(root_ / "plugins", root_ / "linked");
  for (const std::string directory : {"./plugins", "data/../plugins/", "linked"}) {
    server = serve({"--config", "hearth.yaml", "--plugins", directory});
    server->wait_until_ready();
    EXPECT_EQ(ask(*server, "segv"), "ok") << directory;
    EXPECT_EQ(server->stop(), kClean);
  }
}

TEST_F(RollbackTest, WhoseFileIsAwayAfterTheCrashIsCondemnedAllTheSame) {
  auto server = start();
  replace_and_crash(*server, "segv");
  fs::rename(root_ / "plugins/crashes.so", root_ / "elsewhere");
  server = start();
  EXPECT_EQ(server->stop(), kClean);
  fs::rename(root_ / "elsewhere", root_ / "plugins/crashes.so");
  expect_mended_start();
}

TEST_F(RollbackTest, ANewerSchemaThatEnoughAgentsHaveHasNoWayBack) {
  configure(", trial_agents: 1");
  install_versioned();
  const auto server = start();
  EXPECT_EQ(version_of(*server), "1.0.0");
  replace(agent_library("versioned-schema"));
  server->wait_for_log("reload.done");
  wait_for_no_trial();
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, WithADamagedLedgerTheServerServesAndSaysWhatIsMissing) {
  put("data/versions.json", "no list\n");
  const auto server = start();
  EXPECT_TRUE(contains(server->log(), "server.versions_unknown"));
  replace_by_the_one_that_crashes(*server);
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, WhatComesInThePlaceOfAFileThatWasGoneIsJudgedByTheFirstThatWake) {
  install_versioned();
  const auto server = start();
  fs::remove(root_ / "plugins/crashes.so");
  server->wait_for_log("reload.removed");
  replace(agent_library("versioned-bad"));
  server->wait_for_log("reload.done class=Versioned version=4.0.0");
  for (const std::string name : {"b", "c", "d", "e", "f"})
    EXPECT_EQ(request(*server, "GET", "/agents/versioned/" + name).status, 503) << name;
  server->wait_for_log("reload.done class=Versioned version=1.0.0");
  EXPECT_EQ(version_of(*server), "1.0.0");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, NewSettingsDoNotProveANewerSchemaThatNoAgentHas) {
  install_versioned();
  fs::create_directory(root_ / "classes");
  const auto server = start();
  replace(agent_library("versioned-schema-bad"));
  server->wait_for_log("reload.done class=Versioned version=6.0.0");
  put("classes/versioned.yaml", "class: Versioned\noptions: {label: two}\n");
  server->wait_for_log("config.done");
  EXPECT_TRUE(lacks(hearth({"plugins"}), "current"));
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AfterARestartANewerSchemaIsProvenByTheFirstThatHaveItToo) {
  configure(", trial_agents: 1");
  install_versioned();
  auto server = start();
  replace(agent_library("versioned-schema"));
  server->wait_for_log("reload.done class=Versioned version=5.0.0");
  EXPECT_EQ(server->stop(), kClean);
  server = start();
  EXPECT_EQ(version_of(*server), "5.0.0");
  wait_for_no_trial();
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, IfTheVersionBeforeFailsTooTheNewOneGoesOnAtTheNextStartAsWell) {
  install_versioned();
  auto server = start();
  EXPECT_EQ(version_of(*server), "1.0.0");
  replace(agent_library("versioned-schema"));
  server->wait_for_log("reload.done class=Versioned version=5.0.0");
  EXPECT_TRUE(contains(hearth({"take-back", "versioned"}), "is being taken back"));
  server->wait_for_log("reload.taken_back", 2);  // the agent's data are too new for that
  EXPECT_EQ(version_of(*server), "5.0.0");
  const std::string said = hearth({"plugins"});
  EXPECT_TRUE(contains(said, "5.0.0"));
  EXPECT_TRUE(lacks(said, "refused"));
  EXPECT_EQ(server->stop(), kClean);
  server = start();
  EXPECT_EQ(version_of(*server), "5.0.0");
  EXPECT_EQ(server->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing
