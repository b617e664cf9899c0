#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <string>

namespace hearth::testing {
namespace {

class ConfigurationTest : public ProcessTest {
 protected:
  ConfigurationTest() { install(bundled("counter"), "counter.so"); }

  [[nodiscard]] Said check(const std::string& file = "hearth.yaml") const {
    return say({"serve", "--config", file, "--check-config"});
  }
  // Five mistakes of five kinds.
  void put_five_mistakes() const {
    put("hearth.yaml",
        "lisen: \"127.0.0.1:0\"\n"
        "shards: 0\n"
        "limits:\n"
        "  max_frame: 4MB\n"
        "  call_timeout: 30\n"
        "log:\n"
        "  level: verbose\n");
  }
};

TEST_F(ConfigurationTest, AGoodOneIsOkAndNothingIsStarted) {
  put("hearth.yaml", "shards: 1\n");
  const Said checked = check();
  EXPECT_EQ(checked.ending, kClean);
  EXPECT_EQ(checked.out, "configuration ok\n");
  EXPECT_FALSE(std::filesystem::exists(root_ / "data"));
}

TEST_F(ConfigurationTest, FiveMistakesAreToldAtOnceEachAtItsPlace) {
  put_five_mistakes();
  const Said checked = check();
  EXPECT_EQ(checked.ending, kBadUsage);
  EXPECT_EQ(checked.out, "");
  EXPECT_TRUE(contains(checked.err,
                       "hearth.yaml:1:1: unknown key \"lisen\"; did you mean \"listen\"?\n",
                       "hearth.yaml:2:9: shards: ", "hearth.yaml:4:14: limits.max_frame: ",
                       "hearth.yaml:5:17: limits.call_timeout: ", "hearth.yaml:7:10: log.level: ",
                       "hearth: 5 mistakes in the configuration\n"));
}

TEST_F(ConfigurationTest, ATokenFileThatIsNamedMustBeThereAndHoldAToken) {
  put("etc/hearth.yaml", "admin: {token_file: token}\n");
  EXPECT_TRUE(
      contains(refused({"serve", "--config", "etc/hearth.yaml", "--check-config"}, kBadUsage),
               "admin.token_file: cannot open " + (root_ / "etc/token").string()));
  put("etc/token", "too short");
  EXPECT_EQ(check("etc/hearth.yaml").ending, kBadUsage);
  put("etc/token", "a-token-of-some-length\n");
  EXPECT_EQ(check("etc/hearth.yaml").ending, kClean);
  put("etc/hearth.yaml", "objects: {token_file: key}\n");
  EXPECT_TRUE(
      contains(refused({"serve", "--config", "etc/hearth.yaml", "--check-config"}, kBadUsage),
               "objects.token_file: cannot open"));
}

TEST_F(ConfigurationTest, AllClassesAsObjectsUnderTheDefaultLimitAreWarnedOf) {
  put("hearth.yaml", "shards: 1\nobjects: {all_classes: true}\n");
  const Said checked = check();
  EXPECT_EQ(checked.ending, kClean);
  EXPECT_EQ(checked.out, "configuration ok\n");
  EXPECT_TRUE(contains(checked.err, "hearth: warning: objects.all_classes"));
  const auto server = serve_ready({"--config", "hearth.yaml"});
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_TRUE(contains(server->log(), "config.doubtful"));
}

TEST_F(ConfigurationTest, AFiberThatMayBringItsClassIntoQuarantineIsWarnedOf) {
  put("hearth.yaml", "shards: 1\n");
  put("classes/counter.yaml", "class: Counter\nfibers: {max_crashes: 3}\n");
  const Said checked = check();
  EXPECT_EQ(checked.ending, kClean);
  EXPECT_TRUE(contains(checked.err, "classes/counter.yaml: with fibers.max_crashes: 3"));
  const auto server = serve_ready({"--config", "hearth.yaml"});
  server->wait_for_log("config.doubtful class=Counter");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(ConfigurationTest, TheCheckPrintsTheWarningsThatTheServerLogs) {
  std::filesystem::remove(root_ / "plugins/counter.so");
  put("key", "0123456789abcdef-of-objects\n");
  std::filesystem::permissions(root_ / "key", std::filesystem::perms{0644});
  put("hearth.yaml", "shards: 1\nobjects: {token_file: key}\n");
  put("classes/counter.yaml", "class: Counter\nobjects: true\nauth: {type: none}\n");
  put("classes/shop.yaml", "class: Shop\nauth: {type: jwt}\n");
  const Said checked = check();
  EXPECT_EQ(checked.ending, kClean);
  EXPECT_EQ(checked.out, "configuration ok\n");
  const auto server = serve_ready({"--config", "hearth.yaml"});
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_TRUE(contains(checked.err, "hearth: warning: "));
  for (const char* event : {"admin.token_readable", "class.objects_open",
                            "class.nobody_may_connect", "server.no_plugins"})
    for (const std::string& told : {checked.err, server->log()}) EXPECT_TRUE(contains(told, event));
}

TEST_F(ConfigurationTest, NoServerStartsOnAMistake) {
  put_five_mistakes();
  const Said server = say({"serve", "--config", "hearth.yaml"});
  EXPECT_EQ(server.ending, kBadUsage);
  EXPECT_EQ(server.out, "");
  EXPECT_FALSE(std::filesystem::exists(root_ / "data"));
}

TEST_F(ConfigurationTest, AFileThatIsNotThereIsAMistakeThatNamesIt) {
  EXPECT_TRUE(
      contains(refused({"serve", "--config", "gone.yaml"}, kBadUsage), "gone.yaml: cannot open"));
}

TEST_F(ConfigurationTest, AFlagWinsOverTheFileAndTheFileOverTheDefaults) {
  put("etc/hearth.yaml",
      "listen: \"192.0.2.1:9\"\n"  // no interface has it: it would not start
      "data: from-file\n"
      "plugins: [\"" +
          (root_ / "plugins").string() +
          "\"]\n"
          "shards: 3\n");
  const auto server = run(
      {"serve", "--config", "etc/hearth.yaml", "--listen", "127.0.0.1:0", "--log-format", "human"});
  server->wait_until_ready();
  EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_TRUE(std::filesystem::exists(root_ / "etc/from-file/host.db"));
  EXPECT_TRUE(contains(server->log(), "shards=3"));

  const auto flagged =
      serve_ready({"--config", "etc/hearth.yaml", "--data", "from-flag", "--shards", "1"});
  EXPECT_EQ(flagged->stop(), kClean);
  EXPECT_TRUE(std::filesystem::exists(root_ / "from-flag"));
  EXPECT_TRUE(contains(flagged->log(), "shards=1"));
}

TEST_F(ConfigurationTest, TheEffectiveOneIsPrintedAndNothingIsStarted) {
  put("hearth.yaml", "shards: 1\n");
  EXPECT_TRUE(contains(ask({"config", "--config", "hearth.yaml", "--log-level", "warn"}),
                       "hearth.yaml:1\n", "--log-level\n", "default\n"));
  EXPECT_FALSE(std::filesystem::exists(root_ / "data"));
  put_five_mistakes();
  EXPECT_TRUE(contains(refused({"config", "--config", "hearth.yaml"}, kBadUsage),
                       "hearth: 5 mistakes in the configuration\n"));
}

TEST_F(ConfigurationTest, ALogLevelSilencesWhatIsBelow) {
  const auto server = serve_ready({"--log-level", "error"});
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(server->log(), "");
}

TEST_F(ConfigurationTest, AClassFileThatNoLibraryNeedsIsAWarning) {
  put("hearth.yaml", "");
  put("classes/ghost.yaml", "class: ghost\n");
  const auto server = serve_ready({"--config", "hearth.yaml"});
  server->wait_for_log("class.not_found class=ghost");
  EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
}

TEST_F(ConfigurationTest, OptionsOfAClassFileReachItsAgents) {
  put("hearth.yaml", "");
  put("classes/counter.yaml", "class: counter\noptions:\n  start: 41\n");
  const auto server = serve_ready({"--config", "hearth.yaml"});
  EXPECT_EQ(increment(*server, "a"), R"({"count":42})");
}

TEST_F(ConfigurationTest, OptionsThatThePluginRefusesAreAClearErrorAndOthersAreServed) {
  install(bundled("echo-c"), "echo-c.so");
  put("hearth.yaml", "");
  put("classes/counter.yaml", "class: counter\noptions:\n  start: soon\n");
  const auto server = serve_ready({"--config", "hearth.yaml"});
  const Reply reply = request(*server, "GET", "/agents/counter/a");
  EXPECT_GE(reply.status, 500) << reply.body;
  EXPECT_TRUE(contains(reply.body, "\"error\""));
  AgentClient echo(server->port(), "/agents/echo-c/a");
}

TEST_F(ConfigurationTest, BadFlagsAreBadUsage) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{},
                                                                     {"serv"},
                                                                     {"serve", "--listen", "here"},
                                                                     {"serve", "--port", "1"},
                                                                     {"new", "../up"}}) {
    const Said said = say(arguments);
    EXPECT_EQ(said.ending, kBadUsage);
    EXPECT_EQ(said.out, "");
    EXPECT_NE(said.err, "");
  }
}

TEST_F(ConfigurationTest, HelpAndVersionAreAnswers) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"--help"}, {"serve", "--help"}, {"--version"}, {"version"}}) {
    const Said said = say(arguments);
    EXPECT_EQ(said.ending, kClean);
    EXPECT_NE(said.out, "");
    EXPECT_EQ(said.err, "");
  }
}

TEST_F(ConfigurationTest, EachFileThatIsNamedAndCannotBeUsedIsToldAtOnceAndNothingStarts) {
  put("hearth.yaml",
      "admin: {token_file: none-1}\nobjects: {token_file: none-2}\n"
      "tls: {certificate: none-3, key: none-3}\n"
      "auth: {type: jwt, token_file: none-4, keys_file: none-5, issuer: i, audience: [a]}\n"
      "egress: {ca_file: none-6}\n");
  for (const bool only_checks : {true, false}) {
    std::vector<std::string> arguments{"serve", "--config", "hearth.yaml", "--listen",
                                       "127.0.0.1:0"};
    if (only_checks) arguments.emplace_back("--check-config");
    const auto server = run(arguments);
    EXPECT_EQ(server->wait(), kBadUsage);
    for (const char* const setting : {"admin.token_file: ", "objects.token_file: ", "tls: ",
                                      "auth.token_file: ", "auth.keys_file: ", "egress.ca_file: "})
      EXPECT_NE(server->log().find(std::string("hearth: ") + setting), std::string::npos)
          << setting << '\n'
          << server->log();
    EXPECT_EQ(server->out(), "");
    EXPECT_FALSE(std::filesystem::exists(root_ / "data"));
  }
}

}  // namespace
}  // namespace hearth::testing
