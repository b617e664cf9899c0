// Settings of a class that crash the server: the earlier settings hold after the restart.
#include "process/rollback_fixture.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace hearth::testing {
namespace {

// The class Crashes, whose settings can end the server as an agent starts.
class SettingsRollbackTest : public RollbackTest {
 protected:
  SettingsRollbackTest() {
    replace_by_the_one_that_crashes();
    settings("");
  }

  void settings(const std::string& at_start) const {
    put("classes/crashes.yaml", "class: Crashes\noptions: {at_start: \"" + at_start + "\"}\n");
  }
  void expect_settings_taken_back(ServerProcess& server) const {
    const std::string reason = "an agent ended the server (SIGSEGV in start) when they were tried";
    server.wait_for_log("config.taken_back class=Crashes");
    EXPECT_TRUE(contains(server.log(), reason));
    EXPECT_TRUE(contains(hearth({"plugins"}),
                         "class Crashes goes on with the settings before: " + reason,
                         "settings of crashes: taken_back"));
    EXPECT_EQ(hearth({"quarantine", "list"}), "no class is in quarantine\n");
  }
};

TEST_F(SettingsRollbackTest, SettingsOnTrialWhoseAgentsEndTheServerAreTakenBackByTheNextStart) {
  auto server = start();
  EXPECT_EQ(ask(*server, ""), "ok");
  settings("segv");  // the agent that lives tries them
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  server = start();
  EXPECT_EQ(ask(*server, ""), "ok") << "with the settings before";
  expect_settings_taken_back(*server);
  EXPECT_EQ(server->stop(), kClean);
  server = start();
  EXPECT_EQ(ask(*server, ""), "ok") << "at every start";
  expect_settings_taken_back(*server);
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(SettingsRollbackTest, OneCallThatHangsOnSettingsOnTrialLeavesTheClassOutOfQuarantine) {
  let_a_hang_end_the_server();
  auto server = start();
  settings("hang");
  server->wait_for_log("config.done class=Crashes");
  EXPECT_TRUE(contains(hearth({"plugins"}), "settings of crashes: on_trial"));
  crash(*server, "");  // the first agent that wakes
  server->wait();
  server = start();
  EXPECT_EQ(ask(*server, ""), "ok");
  server->wait_for_log("config.taken_back class=Crashes");
  EXPECT_EQ(hearth({"quarantine", "list"}), "no class is in quarantine\n");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(SettingsRollbackTest, SettingsThatWereTakenBackAreTriedAgainOnceTheFileOrAPersonSaysSo) {
  auto server = start();
  EXPECT_EQ(ask(*server, ""), "ok");
  settings("segv");
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  server = start();
  EXPECT_EQ(ask(*server, ""), "ok");
  hearth({"reload"});
  EXPECT_EQ(server->wait().signal, SIGSEGV) << "a person has asked for it";
  server = start();
  expect_settings_taken_back(*server);
  EXPECT_EQ(ask(*server, ""), "ok");
  settings("nothing");
  server->wait_for_log("config.done class=Crashes");
  EXPECT_TRUE(lacks(hearth({"plugins"}), "taken_back"));
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(SettingsRollbackTest, WhoWasLockedOutStaysSoWhenSettingsAreTakenBack) {
  put("tokens", "0123456789abcdef\n");
  put("hearth.yaml", "reload: {quiet_time: 20ms}\nauth: {token_file: tokens}\n");
  auto server = start();
  EXPECT_EQ(ask(*server, ""), "ok");
  put("classes/crashes.yaml",
      "class: Crashes\noptions: {at_start: \"segv\"}\nauth: {type: token}\n");
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  for (int i = 0; i < 2; ++i) {
    server = start();
    expect_settings_taken_back(*server);
    EXPECT_EQ(request(*server, "GET", "/agents/crashes/a?how=").status, 401);
    EXPECT_EQ(request(*server, "GET", "/agents/crashes/a?how=&token=0123456789abcdef").body, "ok");
    EXPECT_EQ(server->stop(), kClean);
  }
}

TEST_F(SettingsRollbackTest, SettingsThatAreProvenStay) {
  configure(", probation: 0s");
  auto server = start();
  settings("segv");
  server->wait_for_log("config.done class=Crashes");
  (void)soon([this] { return Json(hearth({"plugins"})); },
             [](const Json& told) { return lacks(told.get<std::string>(), "on_trial"); });
  expect_crash(*server, "");
  server = start();
  EXPECT_TRUE(lacks(server->log(), "config.taken_back"));
  expect_crash(*server, "");  // there is no way back
}

}  // namespace
}  // namespace hearth::testing
