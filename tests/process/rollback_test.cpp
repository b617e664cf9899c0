// A version that crashes the server: the earlier version serves after the restart, until an
// operator asks for the new one again.
#include "base/files.hpp"
#include "process/agent_client.hpp"
#include "process/supervised_fixture.hpp"
#include "support/built.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

class RollbackTest : public SupervisedTest {
 protected:
  RollbackTest() {
    install(agent_library("crashes-mended"), "crashes.so");
    configure("");
  }

  static fs::path agent_library(const std::string& name) { return built::agent(name); }
  // Another class, in the same place.
  void install_versioned() const {
    fs::remove(root_ / "plugins/crashes.so");
    install(agent_library("versioned-1"), "crashes.so");
  }
  // A server that has gone back, by the crash of the version that crashes.
  [[nodiscard]] std::unique_ptr<ServerProcess> start_and_go_back() const {
    auto server = start();
    replace_by_the_one_that_crashes();
    server->wait_for_log("reload.done");
    crash(*server, "segv");
    EXPECT_EQ(server->wait().signal, SIGSEGV);
    return start();
  }
  // `more`: further settings of reloads.
  void configure(const std::string& more, const std::string& limits = "") const {
    put("hearth.yaml", "limits: {" + limits + "}\nreload: {quiet_time: 20ms" + more + "}\n");
  }
  // Only for tests of a hang: a crash with a record that the disk delays would count as a hang.
  void let_a_hang_end_the_server() const { configure("", "hard_hang: 400ms"); }
  [[nodiscard]] std::unique_ptr<ServerProcess> start() const {
    auto server = serve({"--config", "hearth.yaml"});
    server->wait_until_ready();
    return server;
  }
  // As `mv` does.
  void replace(const fs::path& library) const {
    fs::copy_file(library, root_ / "plugins/.new");
    fs::rename(root_ / "plugins/.new", root_ / "plugins/crashes.so");
  }
  void replace_by_the_one_that_crashes() const { replace(agent_library("crashes")); }

  static std::string ask(const ServerProcess& server, const std::string& how) {
    return request(server, "GET", "/agents/crashes/a?how=" + how).body;
  }
  static Json version_of(const ServerProcess& server) {
    return AgentClient(server, "/agents/versioned/a").call("version");
  }
  // What does not answer any more.
  template <class Server>
  static void crash(const Server& server, const std::string& how) {
    EXPECT_THROW((void)request(server, "GET", "/agents/crashes/a?how=" + how), std::runtime_error);
  }
  std::string hearth(std::vector<std::string> arguments) const {
    const auto process = run(std::move(arguments));
    process->wait();
    return process->out() + process->log();
  }
  // What the ledger knows of places.
  [[nodiscard]] std::string trials() const {
    const auto ledger =
        parse_json(read_file(root_ / "data/versions.json", 1U << 20U).value()).value();
    return dump_json(ledger.at("places"));
  }
  // Until a version is proven.
  void wait_for_no_trial() const {
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    while (trials() != "[]") {
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error(trials());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  void expect_taken_back(ServerProcess& server, const std::string& reason) const {
    server.wait_for_log("reload.taken_back");
    const std::string& log = server.log();
    const std::size_t at = log.rfind("reload.taken_back");
    const std::string line = log.substr(at, log.find('\n', at) - at);
    EXPECT_NE(line.find(reason), std::string::npos) << line;
    EXPECT_NE(line.find("hearth reload"), std::string::npos) << line;
    const std::string list = hearth({"plugins"});
    EXPECT_NE(list.find(reason), std::string::npos) << list;
    EXPECT_NE(list.find("1.0.1"), std::string::npos) << list;
  }
};

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
  EXPECT_EQ(supervisor->log().find("reload.done"), std::string::npos);
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
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done");
  crash(*server, "hang");
  server->wait();
  server = start();
  EXPECT_EQ(ask(*server, "hang"), "ok");
  expect_taken_back(*server, "it ended the server (hung in request) when it was tried");
  const std::string said = hearth({"quarantine", "release", "crashes"});
  EXPECT_NE(said.find("version 1.0.0 is coming in"), std::string::npos) << said;
  server->wait_for_log("reload.done class=Crashes version=1.0.0");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AReleaseWhileNoServerRunsIsAnotherTryAtTheNextStart) {
  let_a_hang_end_the_server();
  auto server = start();
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done");
  crash(*server, "hang");
  server->wait();
  server = start();
  EXPECT_EQ(server->stop(), kClean);
  hearth({"quarantine", "release", "crashes"});
  configure("");
  server = start();
  EXPECT_EQ(server->log().find("reload.taken_back"), std::string::npos) << server->log();
  crash(*server, "segv");
  EXPECT_EQ(server->wait().signal, SIGSEGV) << "the new one";
  server = start();
  EXPECT_EQ(ask(*server, "segv"), "ok") << "it was on trial again";
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, TheVersionBeforeServesAtEveryStartUntilTheFileChanges) {
  auto server = start();
  EXPECT_EQ(ask(*server, ""), "ok");
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done");
  crash(*server, "segv");
  EXPECT_EQ(server->wait().signal, SIGSEGV);
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
  EXPECT_EQ(server->log().find("reload.taken_back"), std::string::npos) << server->log();
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, WhoAsksForAReloadTriesItAgain) {
  auto server = start();
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done");
  crash(*server, "segv");
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  server = start();
  const std::string said = hearth({"reload", "crashes"});
  EXPECT_NE(said.find("1.0.0"), std::string::npos) << said;
  server->wait_for_log("reload.done class=Crashes version=1.0.0");
  crash(*server, "segv");
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  server = start();
  EXPECT_EQ(ask(*server, "segv"), "ok");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AVersionIsShownAsOnTrialUntilItIsProven) {
  configure(", probation: 10s");
  auto server = start();
  EXPECT_NE(hearth({"plugins"}).find("current"), std::string::npos);
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done");
  const std::string said = hearth({"plugins"});
  EXPECT_NE(said.find("on_trial"), std::string::npos) << said;
  EXPECT_EQ(said.find("current"), std::string::npos) << said;
  EXPECT_EQ(server->stop(), kClean);
  configure(", probation: 0s");
  server = start();
  wait_for_no_trial();
  EXPECT_NE(hearth({"plugins"}).find("current"), std::string::npos);
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AVersionThatIsProvenStays) {
  configure(", probation: 0s");
  auto server = start();
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done");
  wait_for_no_trial();
  crash(*server, "segv");
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  server = start();
  crash(*server, "segv");
  EXPECT_EQ(server->wait().signal, SIGSEGV) << "there is no way back";
}

// ---- settings of a class ------------------------------------------------------------------------

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
    EXPECT_NE(server.log().find(reason), std::string::npos) << server.log();
    const std::string list = hearth({"plugins"});
    EXPECT_NE(list.find("class Crashes goes on with the settings before: " + reason),
              std::string::npos)
        << list;
    EXPECT_NE(list.find("settings of crashes: taken_back"), std::string::npos) << list;
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
  EXPECT_NE(hearth({"plugins"}).find("settings of crashes: on_trial"), std::string::npos);
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
  EXPECT_EQ(hearth({"plugins"}).find("taken_back"), std::string::npos);
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
  const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
  while (hearth({"plugins"}).find("on_trial") != std::string::npos)
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  crash(*server, "");
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  server = start();
  EXPECT_EQ(server->log().find("config.taken_back"), std::string::npos) << server->log();
  crash(*server, "");
  EXPECT_EQ(server->wait().signal, SIGSEGV) << "there is no way back";
}

// ---- which version is to blame ------------------------------------------------------------------

TEST_F(RollbackTest, AKillIsNobodysFaultAndTheTrialGoesOn) {
  auto server = start();
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done");
  server->signal(SIGKILL);
  EXPECT_EQ(server->wait().signal, SIGKILL);
  server = start();
  crash(*server, "segv");
  EXPECT_EQ(server->wait().signal, SIGSEGV) << "the new one serves";
  server = start();
  EXPECT_EQ(ask(*server, "segv"), "ok") << "and was still on trial";
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AfterARestartTheTrialEndsAsWell) {
  auto server = start();
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_NE(trials(), "[]");
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
  EXPECT_NE(server->log().find("reload.taken_back"), std::string::npos) << server->log();
  // The whole file, and the server has no reason against it.
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done class=Crashes version=1.0.0");
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
  EXPECT_NE(server->log().find("5 of the first 5 agents that woke could not start on it"),
            std::string::npos);
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
  server->signal(SIGKILL);
  server->wait();
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
  const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
  while (other.call("attempts", R"(["hold"])") == 0)
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  replace(agent_library("versioned-picky"));
  server->wait_for_log("reload.begun class=Versioned version=4.1.0");
  while (version_of(*server) != "4.1.0") ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  // Before the second answer the trial has been looked at, and is over.
  for (int i = 0; i < 2; ++i) hearth({"reload", "versioned"});
  for (const std::string name : {"b", "c", "d", "e", "f"})
    EXPECT_EQ(request(*server, "GET", "/agents/versioned/" + name).status, 503) << name;
  EXPECT_EQ(server->log().find("reload.done"), std::string::npos) << "one is on its way";
  put("until", "");
  EXPECT_EQ(busy.answer().value("result", Json()), "1.0.0");
  server->wait_for_log("reload.done class=Versioned version=1.0.0");
  EXPECT_EQ(version_of(*server), "1.0.0") << "it has left the version that failed";
  server->signal(SIGKILL);
  server->wait();
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
  EXPECT_EQ(server->log().find("reload.taken_back"), std::string::npos) << server->log();
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
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done class=Crashes version=1.0.0");
  for (const std::string name : {"b", "c"})
    EXPECT_EQ(request(*server, "GET", "/agents/crashes/" + name).body, "ok");
  wait_for_no_trial();
  EXPECT_EQ(server->log().find("reload.taken_back"), std::string::npos) << server->log();
  EXPECT_EQ(server->stop(), kClean);
}

// ---- changes of the file ------------------------------------------------------------------------

TEST_F(RollbackTest, AFileThatWasHalfWrittenWhenTheServerEndedCostsNothing) {
  auto server = start();
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done");
  server->signal(SIGKILL);
  server->wait();
  fs::resize_file(root_ / "plugins/crashes.so", fs::file_size(agent_library("crashes")) / 2);
  server = start();
  EXPECT_EQ(ask(*server, "segv"), "ok");
  EXPECT_NE(server->log().find("rule=E2"), std::string::npos) << server->log();
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done class=Crashes version=1.0.0");
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
  EXPECT_EQ(trials(), "[]");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, AnotherVersionThatWasPutThereWhileNoServerRanIsOnTrialToo) {
  auto server = start_and_go_back();
  EXPECT_EQ(server->stop(), kClean);
  fs::remove(root_ / "plugins/crashes.so");
  put("fault", "crash load");
  install(made_for_tests("faulty_when_served"), "crashes.so");
  EXPECT_EQ(serve({"--config", "hearth.yaml"})->wait().signal, SIGSEGV);
  server = start();
  EXPECT_EQ(ask(*server, "segv"), "ok");
  EXPECT_EQ(server->stop(), kClean);
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
  server = start();
  EXPECT_EQ(ask(*server, "segv"), "ok");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(RollbackTest, WhatComesInThePlaceOfAFileThatWasGoneIsOnTrial) {
  auto server = start();
  EXPECT_EQ(ask(*server, ""), "ok");
  fs::remove(root_ / "plugins/crashes.so");
  server->wait_for_log("reload.removed");
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.begun");
  crash(*server, "segv");
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  server = start();
  EXPECT_EQ(ask(*server, "segv"), "ok");
  EXPECT_EQ(server->stop(), kClean);
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
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done");
  crash(*server, "segv");
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  fs::rename(root_ / "plugins/crashes.so", root_ / "elsewhere");
  server = start();
  EXPECT_EQ(server->stop(), kClean);
  fs::rename(root_ / "elsewhere", root_ / "plugins/crashes.so");
  server = start();
  EXPECT_EQ(ask(*server, "segv"), "ok");
  EXPECT_EQ(server->stop(), kClean);
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
  EXPECT_NE(server->log().find("server.versions_unknown"), std::string::npos) << server->log();
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done");
  EXPECT_EQ(server->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing
