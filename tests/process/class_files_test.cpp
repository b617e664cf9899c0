// Class files are edited while the server runs: clients stay, agents get other settings, and a
// mistake changes nothing.

#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

// One agent of the class counter, over a WebSocket.
class Client : public AgentClient {
 public:
  Client(const ServerProcess& server, const std::string& name,
         const std::string& agent_class = "counter")
      : AgentClient(server, "/agents/" + agent_class + "/" + name) {}

  int count() { return call("get").get<int>(); }
};

class ClassFilesTest : public ProcessTest {
 protected:
  ClassFilesTest() {
    put("hearth.yaml", "reload: {quiet_time: 50ms, trial_time: 5s}\n");
    put("classes/counter.yaml", "class: counter\noptions: {start: 1}\n");
    install(bundled("counter"), "counter.so");
  }
  ~ClassFilesTest() override {
    if (server_) server_->stop();
  }

  void start() { server_ = serve_ready({"--config", "hearth.yaml", "--log-level", "debug"}); }
  void start_without_a_watch() {
    put("hearth.yaml", "reload: {watch: false, trial_time: 5s}\n");
    start();
  }

  [[nodiscard]] Said reload(const std::string& more = "--wait") const {
    return say({"reload", "--config", "hearth.yaml", more});
  }
  [[nodiscard]] std::string plugins() const { return ask({"plugins", "--data", "data"}); }
  // The first frame that a client gets.
  [[nodiscard]] std::string first_frame(const std::string& path) const {
    AgentClient client(server_->port(), path);
    return client.read_text();
  }
  [[nodiscard]] bool logged(const std::string& text) const {
    return server_->log().find(text) != std::string::npos;
  }

  std::unique_ptr<ServerProcess> server_;
};

TEST_F(ClassFilesTest, AnEditedOptionHoldsForEachAgentAndNoClientNotices) {
  start();
  Client old(*server_, "old");
  EXPECT_EQ(old.count(), 1);
  EXPECT_EQ(old.call("increment"), 2);
  put("classes/counter.yaml", "class: counter\noptions: {start: 100}\n");
  server_->wait_for_log("config.done");
  EXPECT_TRUE(logged("config.changed class=Counter keys=options.start"));
  EXPECT_EQ(Client(*server_, "new").count(), 100);
  EXPECT_EQ(old.count(), 2) << "what was stored is there";
  (void)old.call("reset");
  EXPECT_EQ(old.count(), 100) << "the live one has them too, on the same socket";
}

TEST_F(ClassFilesTest, ALimitHoldsForALiveAgent) {
  start();
  Client client(*server_, "a");
  (void)client.call("increment");
  put("classes/counter.yaml", "class: counter\nidle_timeout: 100ms\noptions: {start: 1}\n");
  server_->wait_for_log("config.done");
  EXPECT_TRUE(logged("config.changed class=Counter keys=idle_timeout"));
  EXPECT_EQ(client.count(), 2);
  server_->wait_for_log("agent=a reason=idle");
  EXPECT_EQ(client.count(), 2) << "its client stays";
}

TEST_F(ClassFilesTest, OnlyTheClassesThatChangeAreTouched) {
  install(bundled("chat-room"), "chat-room.so");
  put("classes/room.yaml", "class: chat-room\n");
  start();
  Client client(*server_, "a");
  EXPECT_EQ(client.count(), 1);
  put("classes/counter.yaml", "# a remark\nclass: counter\noptions: {start: 1}\n");
  put("classes/room.yaml", "class: chat-room\nidle_timeout: 1h\n");
  server_->wait_for_log("config.done");
  EXPECT_EQ(client.count(), 1);
  EXPECT_FALSE(logged("reason=code_update"));
  EXPECT_FALSE(logged("config.changed class=Counter"));
}

TEST_F(ClassFilesTest, DurabilityChangesForALiveAgent) {
  start();
  Client client(*server_, "a");
  EXPECT_EQ(client.call("increment"), 2);
  put("classes/counter.yaml", "class: counter\ndurability: power\noptions: {start: 1}\n");
  server_->wait_for_log("config.done");
  EXPECT_EQ(client.call("increment"), 3);
  const std::string metrics = request(*server_, "GET", "/metrics").body;
  const std::string name = "\nhearth_sync_requests_total ";
  const std::size_t at = metrics.find(name);
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(std::stod(metrics.substr(at + name.size())), 0);
}

TEST_F(ClassFilesTest, AFileThatIsRemovedLeavesTheDefaults) {
  put("classes/room.yaml", "class: chat-room\n");
  start();
  EXPECT_EQ(Client(*server_, "a").count(), 1);
  fs::remove(root_ / "classes" / "counter.yaml");
  server_->wait_for_log("config.done");
  EXPECT_EQ(Client(*server_, "b").count(), 0);
}

TEST_F(ClassFilesTest, AMistakeChangesNothingAndIsShownUntilItIsMended) {
  start();
  Client client(*server_, "a");
  EXPECT_EQ(client.count(), 1);
  put("classes/counter.yaml", "class: counter\noptions: {start: 7}\nidle-timeout: 1s\n");
  server_->wait_for_log("config.refused");
  const std::string mistake = (root_ / "classes" / "counter.yaml").native() +
                              ":3:1: unknown key \"idle-timeout\"; did you mean \"idle_timeout\"?";
  EXPECT_TRUE(contains(plugins(), mistake));
  EXPECT_EQ(Client(*server_, "b").count(), 1);
  EXPECT_TRUE(contains(request(*server_, "GET", "/metrics").body, "hearth_config_refused_total 1"));
  put("classes/counter.yaml", "class: counter\noptions: {start: 7}\nidle_timeout: 1s\n");
  server_->wait_for_log("config.done");
  EXPECT_TRUE(lacks(plugins(), mistake));
  EXPECT_EQ(Client(*server_, "c").count(), 7);
}

TEST_F(ClassFilesTest, ALibraryThatComesAfterAMistakeIsServedAsBefore) {
  start();
  put("classes/counter.yaml", "class: [\n");
  server_->wait_for_log("config.refused");
  fs::remove(root_ / "plugins" / "counter.so");
  server_->wait_for_log("reload.removed");
  install(bundled("counter"), "counter.so");
  server_->wait_for_log("reload.done");
  EXPECT_EQ(Client(*server_, "a").count(), 1);
}

TEST_F(ClassFilesTest, ADirectoryThatIsRemovedChangesNothing) {
  start();
  Client client(*server_, "a");
  EXPECT_EQ(client.count(), 1);
  fs::remove_all(root_ / "classes");
  server_->wait_for_log("config.refused");
  EXPECT_EQ(Client(*server_, "b").count(), 1);
  put("classes/counter.yaml", "class: counter\noptions: {start: 3}\n");
  server_->wait_for_log("config.done");
  EXPECT_EQ(Client(*server_, "c").count(), 3);
}

TEST_F(ClassFilesTest, AnEmptyDirectoryInItsPlaceLeavesTheDefaultsIfAPersonAsks) {
  start_without_a_watch();
  fs::remove_all(root_ / "classes");
  fs::create_directory(root_ / "classes");
  server_->signal(SIGHUP);
  server_->wait_for_log("config.done");
  EXPECT_EQ(Client(*server_, "a").count(), 0) << "somebody has asked";
}

TEST_F(ClassFilesTest, AnEmptyDirectoryInItsPlaceIsAMistake) {
  start();
  fs::remove_all(root_ / "classes");
  fs::create_directory(root_ / "classes");
  server_->wait_for_log("there is no class file any more");
  EXPECT_EQ(Client(*server_, "a").count(), 1);
  EXPECT_TRUE(contains(plugins(), "there is no class file any more"));
}

TEST_F(ClassFilesTest, AMistakeKeepsNobodyFromTheQuarantine) {
  start();
  put("classes/counter.yaml", "class: [\n");
  EXPECT_EQ(ask({"quarantine", "list", "--config", "hearth.yaml"}), "no class is in quarantine\n");
}

TEST_F(ClassFilesTest, SettingsOnWhichAgentsFailAreTakenBack) {
  start();
  Client client(*server_, "a");
  EXPECT_EQ(client.call("increment"), 2);
  put("classes/counter.yaml", "class: counter\noptions: {strat: 5}\n");
  server_->wait_for_log("config.taken_back");
  EXPECT_EQ(client.count(), 2);
  EXPECT_EQ(Client(*server_, "b").count(), 1);
  EXPECT_TRUE(contains(plugins(),
                       "counter.yaml is refused by rule R1: class counter goes on with the "
                       "settings before: 1 of the first 1 agents could not start on it"));
}

TEST_F(ClassFilesTest, SettingsThatWereTakenBackStaySoAfterARestart) {
  start();
  Client client(*server_, "a");
  EXPECT_EQ(client.count(), 1);
  put("classes/counter.yaml", "class: counter\noptions: {strat: 5}\n");
  server_->wait_for_log("config.taken_back");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(server_->stop(), kClean);
    start();
    server_->wait_for_log("config.taken_back class=counter");
    EXPECT_EQ(Client(*server_, "b").count(), 1) << "as the settings before say";
    EXPECT_TRUE(contains(plugins(), "class counter goes on with the settings before",
                         "settings of counter: taken_back"));
  }
  put("classes/counter.yaml", "class: counter\noptions: {start: 5}\n");
  server_->wait_for_log("config.done class=Counter");
  EXPECT_EQ(Client(*server_, "c").count(), 5);
  EXPECT_TRUE(lacks(plugins(), "taken_back"));
}

TEST_F(ClassFilesTest, AFileWrittenInPlaceIsReadOnceItIsQuiet) {
  put("hearth.yaml", "reload: {quiet_time: 500ms}\n");
  start();
  {
    // Each unfinished content is valid: a class with the defaults. Writing takes longer than the
    // quiet time, but no pause is that long.
    std::ofstream file(root_ / "classes" / "counter.yaml", std::ios::trunc);
    file << "class: counter\n#" << std::flush;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (std::chrono::steady_clock::now() < end) {
      file << '#' << std::flush;
      EXPECT_TRUE(
          lacks(request(*server_, "GET", "/metrics").body, "hearth_config_changes_total 1"));
    }
    file << "\noptions:\n  start: 9\n";
  }
  server_->wait_for_log("config.done");
  EXPECT_EQ(Client(*server_, "a").count(), 9);
  EXPECT_FALSE(logged("config.refused"));
  const std::string& log = server_->log();
  EXPECT_EQ(log.find("config.changed"), log.rfind("config.changed")) << "read once";
}

TEST_F(ClassFilesTest, AHangupReadsThemAlsoWithoutAWatch) {
  start_without_a_watch();
  put("classes/counter.yaml", "class: counter\noptions: {start: 4}\n");
  server_->signal(SIGHUP);
  server_->wait_for_log("config.done");
  EXPECT_EQ(Client(*server_, "a").count(), 4);
}

TEST_F(ClassFilesTest, AReloadSaysWhatChangedAndWhatBecameOfIt) {
  start_without_a_watch();
  Client client(*server_, "a");
  EXPECT_EQ(client.count(), 1);
  const std::string file = (root_ / "classes" / "counter.yaml").native();
  put("classes/counter.yaml", "class: counter\noptions: {start: 4}\n");
  const Said changed = reload();
  EXPECT_EQ(changed.ending, kClean);
  EXPECT_TRUE(contains(changed.out,
                       file + ": new settings of Counter (options.start) are coming in\n",
                       file + ": all agents have them\n"));
  EXPECT_EQ(Client(*server_, "b").count(), 4);
  EXPECT_TRUE(lacks(reload().out, "counter.yaml")) << "nothing is new";
}

TEST_F(ClassFilesTest, AReloadThatIsRefusedOrTakenBackFails) {
  start_without_a_watch();
  Client client(*server_, "a");
  EXPECT_EQ(client.count(), 1);
  const std::string file = (root_ / "classes" / "counter.yaml").native();
  put("classes/counter.yaml", "class: counter\ndurability: disk\n");
  const Said refused = reload();
  EXPECT_EQ(refused.ending, kFailed);
  EXPECT_TRUE(contains(
      refused.out,
      "REFUSED: " + file + ":2:13: durability: expected process or power, found \"disk\"\n"));
  put("classes/counter.yaml", "class: counter\noptions: {strat: 5}\n");
  for (int i = 0; i < 2; ++i) {  // a person may try it again
    EXPECT_EQ(client.count(), 1);
    const Said taken_back = reload();
    EXPECT_EQ(taken_back.ending, kFailed);
    EXPECT_TRUE(
        contains(taken_back.out, file + ": FAILED: class counter goes on with the settings"));
  }
  EXPECT_EQ(client.count(), 1);
}

TEST_F(ClassFilesTest, AReloadOfOneClassLeavesTheSettingsOfOthersAlone) {
  install(bundled("chat-room"), "chat-room.so");
  start_without_a_watch();
  put("classes/counter.yaml", "class: counter\noptions: {start: 4}\n");
  put("classes/room.yaml", "class: chat-room\nidle_timeout: 1h\n");
  const Said said = reload("ChatRoom");
  EXPECT_EQ(said.ending, kClean);
  EXPECT_TRUE(contains(said.out, "new settings of ChatRoom (idle_timeout)"));
  EXPECT_TRUE(lacks(said.out, "counter"));
  EXPECT_EQ(Client(*server_, "a").count(), 1);
}

// ---- aliases ------------------------------------------------------------------------------------

TEST_F(ClassFilesTest, AnAliasReachesTheSameAgentOverHttpAndWebSocket) {
  put("classes/counter.yaml", "class: counter\naliases: [tally, adder]\n");
  start();
  EXPECT_TRUE(logged("path=\"/agents/counter, /agents/adder, /agents/tally\""));
  Client own(*server_, "a");
  EXPECT_EQ(own.call("increment"), 1);
  EXPECT_EQ(Client(*server_, "a", "tally").call("increment"), 2);
  EXPECT_EQ(request(*server_, "POST", "/agents/adder/a").body, R"({"count":3})");
  EXPECT_EQ(own.count(), 3);
  EXPECT_EQ(request(*server_, "GET", "/agents/taller/a").status, 400);
}

TEST_F(ClassFilesTest, AliasesComeAndGoWhileTheServerRuns) {
  start();
  Client client(*server_, "a");
  EXPECT_EQ(client.call("increment"), 2);
  EXPECT_EQ(request(*server_, "GET", "/agents/tally/a").status, 400);
  put("classes/counter.yaml", "class: counter\naliases: [tally]\noptions: {start: 1}\n");
  server_->wait_for_log("config.done");
  EXPECT_TRUE(logged("config.changed class=Counter keys=aliases"));
  Client alias(*server_, "a", "tally");
  EXPECT_EQ(alias.count(), 2);
  put("classes/counter.yaml", "class: counter\noptions: {start: 1}\n");
  server_->wait_for_log("config.done", 2);
  AgentClient stopped(server_->port(), "/agents/tally/a");
  EXPECT_EQ(stopped.read_frame().close_code(), 4404);
  EXPECT_EQ(alias.count(), 2) << "who is connected stays";
  EXPECT_FALSE(logged("reason=code_update")) << "no agent has moved";
}

TEST_F(ClassFilesTest, AnAliasThatIsAServedClassIsRefused) {
  install(bundled("chat-room"), "chat-room.so");
  start();
  const std::string file = (root_ / "classes" / "counter.yaml").native();
  put("classes/counter.yaml", "class: counter\naliases: [chat-room]\n");
  server_->wait_for_log("config.refused");
  const std::string mistake =
      file + ":2:11: aliases: \"chat-room\" already leads to the class \"ChatRoom\"";
  EXPECT_TRUE(contains(plugins(), mistake));
  put("classes/counter.yaml", "class: counter\naliases: [chat]\n");
  server_->wait_for_log("config.done");
  EXPECT_TRUE(lacks(plugins(), mistake));
}

TEST_F(ClassFilesTest, ALibraryWithAClassThatIsAnAliasIsRefusedUntilTheAliasIsGone) {
  put("classes/counter.yaml", "class: counter\naliases: [chat-room]\n");
  install(bundled("chat-room"), "chat-room.so");
  start();
  const std::string reason =
      "rule C1: its class ChatRoom is reached at /agents/chat-room/, which is an alias of the "
      "class "
      "counter: rename one";
  EXPECT_TRUE(contains(plugins(), reason));
  EXPECT_EQ(request(*server_, "POST", "/agents/chat-room/a").body, R"({"count":1})");
  put("classes/counter.yaml", "class: counter\n");
  server_->wait_for_log("config.done");
  EXPECT_EQ(reload().ending, kClean);
  EXPECT_TRUE(lacks(plugins(), reason));
  const Json frame = parse_json(first_frame("/agents/chat-room/a")).value();
  EXPECT_EQ(frame.at("agent"), "chat-room");
}

TEST_F(ClassFilesTest, ALibraryThatComesLaterTakesNoAliasFromTheClassThatHasIt) {
  put("classes/counter.yaml", "class: counter\naliases: [chat-room]\n");
  start();
  Client client(*server_, "a", "chat-room");
  EXPECT_EQ(client.call("increment"), 1);
  install(bundled("chat-room"), "chat-room.so");
  server_->wait_for_log("plugin.refused");
  EXPECT_TRUE(logged("rule=C1"));
  EXPECT_EQ(Client(*server_, "a", "chat-room").call("increment"), 2);
}

TEST_F(ClassFilesTest, TwoFilesWithOneAliasKeepTheServerFromStarting) {
  put("classes/counter.yaml", "class: counter\naliases: [tally]\n");
  put("classes/room.yaml", "class: chat-room\naliases: [tally]\n");
  const auto server = serve({"--config", "hearth.yaml"});
  EXPECT_EQ(server->wait(), kBadUsage);
  EXPECT_TRUE(contains(
      server->log(), "room.yaml:2:11: aliases: \"tally\" already leads to the class \"counter\""));
}

TEST_F(ClassFilesTest, AClassMayKeepItsIdentityFromThoseWhoConnectLater) {
  start();
  Client client(*server_, "a");
  EXPECT_EQ(client.count(), 1);
  EXPECT_EQ(parse_json(first_frame("/agents/counter/a")).value().at("type"), "cf_agent_identity");
  put("classes/counter.yaml", "class: counter\nsend_identity: false\noptions: {start: 1}\n");
  server_->wait_for_log("config.done");
  EXPECT_EQ(parse_json(first_frame("/agents/counter/a")).value().at("type"), "cf_agent_state");
  EXPECT_EQ(client.count(), 1) << "its client stays";
}

// A library and settings for its class, one after the other. A start of an agent blocks until a
// file is there.
class LibraryAndSettingsTest : public ClassFilesTest {
 protected:
  LibraryAndSettingsTest() {
    put("hearth.yaml", "reload: {quiet_time: 50ms, trial_time: 1m, trial_agents: 1}\n");
    settings("");
    replace("1");
    start();
  }

  void settings(const std::string& gate) const {
    put("classes/versioned.yaml", "class: Versioned\noptions: {gate: \"" + gate + "\"}\n");
  }
  [[nodiscard]] std::string gate() const { return (root_ / "gate").native(); }
  void open_the_gate() const { std::ofstream(gate()) << "open"; }
  void replace(const std::string& version) const {
    ProcessTest::replace(built::agent("versioned-" + version), "versioned.so");
  }
  // Settings with which agents cannot start are on trial as version 2 comes in, and fail with it.
  void let_both_fail() {
    settings(gate());
    server_->wait_for_log("config.changed class=Versioned keys=options.gate");
    replace("2");
    server_->wait_for_log("reload.begun class=Versioned version=2.0.0");
    EXPECT_TRUE(logged("config.put_off class=Versioned"));
    open_the_gate();
    server_->wait_for_log("reload.taken_back");
    // Then the settings alone. No agent is live to try them: the next agent that starts does.
    server_->wait_for_log("config.changed class=Versioned keys=options.gate", 2);
    (void)request(*server_, "GET", "/agents/versioned/three");
    server_->wait_for_log("config.taken_back");
  }
};

TEST_F(LibraryAndSettingsTest, ALibraryDoesNotProveSettingsThatAreOnTrial) {
  Client one(*server_, "one", "versioned");
  Client two(*server_, "two", "versioned");
  EXPECT_EQ(one.call("add"), 1);
  EXPECT_EQ(two.call("add"), 1);
  let_both_fail();
  EXPECT_FALSE(logged("config.done"));
  EXPECT_EQ(Client(*server_, "new", "versioned").call("version"), "1.0.0");
}

TEST_F(LibraryAndSettingsTest, ALibraryThatFailedWithBadSettingsIsTriedAgainWithMendedOnes) {
  Client one(*server_, "one", "versioned");
  Client two(*server_, "two", "versioned");
  EXPECT_EQ(one.call("add"), 1);
  EXPECT_EQ(two.call("add"), 1);
  let_both_fail();
  settings("");
  server_->wait_for_log("reload.done class=Versioned version=2.0.0");
  EXPECT_EQ(Client(*server_, "new", "versioned").call("version"), "2.0.0");
}

TEST_F(LibraryAndSettingsTest, ALibraryThatWasTakenBackIsTriedAgainIfAPersonAsks) {
  Client client(*server_, "one", "versioned");
  EXPECT_EQ(client.call("add"), 1);
  replace("bad");
  server_->wait_for_log("reload.taken_back");
  EXPECT_EQ(client.call("add"), 2);
  EXPECT_EQ(reload().ending, kFailed);
  server_->wait_for_log("reload.taken_back", 2);
  EXPECT_FALSE(logged("plugin.refused"));
}

TEST_F(LibraryAndSettingsTest, TheOnlyAgentIsWaitedForThoughItWasOnTrialAlready) {
  Client client(*server_, "one", "versioned");
  EXPECT_EQ(client.call("add"), 1);
  settings(gate());
  server_->wait_for_log("config.changed class=Versioned keys=options.gate");
  replace("2");
  server_->wait_for_log("reload.begun class=Versioned version=2.0.0");
  open_the_gate();
  server_->wait_for_log("agent.start_failed class=Versioned agent=one");  // with what was put off
  EXPECT_FALSE(logged("reload.done"));
  (void)request(*server_, "GET", "/agents/versioned/other");
  server_->wait_for_log("reload.taken_back");
}

}  // namespace
}  // namespace hearth::testing
