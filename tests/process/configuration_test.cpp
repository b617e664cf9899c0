#include "process/process_fixture.hpp"

#include <string>
#include <utility>

namespace hearth::testing {
namespace {

class ConfigurationTest : public ProcessTest {
 protected:
  ConfigurationTest() { install(bundled("counter"), "counter.so"); }

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
  const auto check = run({"serve", "--config", "hearth.yaml", "--check-config"});
  EXPECT_EQ(check->wait(), kClean);
  EXPECT_EQ(check->out(), "configuration ok\n");
  EXPECT_FALSE(std::filesystem::exists(root_ / "data"));
}

TEST_F(ConfigurationTest, FiveMistakesAreToldAtOnceEachAtItsPlace) {
  put_five_mistakes();
  const auto check = run({"serve", "--config", "hearth.yaml", "--check-config"});
  EXPECT_EQ(check->wait(), kBadUsage);
  EXPECT_EQ(check->out(), "");
  for (const char* line : {
           "hearth.yaml:1:1: unknown key \"lisen\"; did you mean \"listen\"?\n",
           "hearth.yaml:2:9: shards: ",
           "hearth.yaml:4:14: limits.max_frame: ",
           "hearth.yaml:5:17: limits.call_timeout: ",
           "hearth.yaml:7:10: log.level: ",
           "hearth: 5 mistakes in the configuration\n",
       }) {
    EXPECT_NE(check->log().find(line), std::string::npos) << line << "\n" << check->log();
  }
}

TEST_F(ConfigurationTest, ATokenFileThatIsNamedMustBeThereAndHoldAToken) {
  put("etc/hearth.yaml", "admin: {token_file: token}\n");
  const auto check = [this] {
    auto checked = run({"serve", "--config", "etc/hearth.yaml", "--check-config"});
    return std::pair(checked->wait(), checked->log());
  };
  auto [missing, why] = check();
  EXPECT_EQ(missing, kBadUsage);
  EXPECT_NE(why.find("admin.token_file: cannot open " + (root_ / "etc/token").string()),
            std::string::npos)
      << why;
  put("etc/token", "too short");
  EXPECT_EQ(check().first, kBadUsage);
  put("etc/token", "a-token-of-some-length\n");
  EXPECT_EQ(check().first, kClean);
  put("etc/hearth.yaml", "objects: {token_file: key}\n");
  const auto [no_key, why_not] = check();
  EXPECT_EQ(no_key, kBadUsage);
  EXPECT_NE(why_not.find("objects.token_file: cannot open"), std::string::npos) << why_not;
}

TEST_F(ConfigurationTest, AllClassesAsObjectsUnderTheDefaultLimitAreWarnedOf) {
  put("hearth.yaml", "shards: 1\nobjects: {all_classes: true}\n");
  const auto check = run({"serve", "--config", "hearth.yaml", "--check-config"});
  EXPECT_EQ(check->wait(), kClean);
  EXPECT_EQ(check->out(), "configuration ok\n");
  EXPECT_NE(check->log().find("hearth: warning: objects.all_classes"), std::string::npos)
      << check->log();
  const auto server = serve_ready({"--config", "hearth.yaml"});
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_NE(server->log().find("config.doubtful"), std::string::npos) << server->log();
}

TEST_F(ConfigurationTest, AFiberThatMayBringItsClassIntoQuarantineIsWarnedOf) {
  put("hearth.yaml", "shards: 1\n");
  put("classes/counter.yaml", "class: Counter\nfibers: {max_crashes: 3}\n");
  const auto check = run({"serve", "--config", "hearth.yaml", "--check-config"});
  EXPECT_EQ(check->wait(), kClean);
  EXPECT_NE(check->log().find("classes/counter.yaml: with fibers.max_crashes: 3"),
            std::string::npos)
      << check->log();
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
  const auto check = run({"serve", "--config", "hearth.yaml", "--check-config"});
  EXPECT_EQ(check->wait(), kClean);
  EXPECT_EQ(check->out(), "configuration ok\n");
  const auto server = serve_ready({"--config", "hearth.yaml"});
  EXPECT_EQ(server->stop(), kClean);
  for (const char* event : {"admin.token_readable", "class.objects_open",
                            "class.nobody_may_connect", "server.no_plugins"}) {
    EXPECT_NE(check->log().find("hearth: warning: "), std::string::npos) << check->log();
    EXPECT_NE(check->log().find(event), std::string::npos) << event << check->log();
    EXPECT_NE(server->log().find(event), std::string::npos) << event << server->log();
  }
}

TEST_F(ConfigurationTest, NoServerStartsOnAMistake) {
  put_five_mistakes();
  const auto server = run({"serve", "--config", "hearth.yaml"});
  EXPECT_EQ(server->wait(), kBadUsage);
  EXPECT_EQ(server->out(), "");
  EXPECT_FALSE(std::filesystem::exists(root_ / "data"));
}

TEST_F(ConfigurationTest, AFileThatIsNotThereIsAMistakeThatNamesIt) {
  const auto server = run({"serve", "--config", "gone.yaml"});
  EXPECT_EQ(server->wait(), kBadUsage);
  EXPECT_NE(server->log().find("gone.yaml: cannot open"), std::string::npos) << server->log();
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
  EXPECT_NE(server->log().find("shards=3"), std::string::npos) << server->log();

  const auto flagged =
      serve_ready({"--config", "etc/hearth.yaml", "--data", "from-flag", "--shards", "1"});
  EXPECT_EQ(flagged->stop(), kClean);
  EXPECT_TRUE(std::filesystem::exists(root_ / "from-flag"));
  EXPECT_NE(flagged->log().find("shards=1"), std::string::npos) << flagged->log();
}

TEST_F(ConfigurationTest, TheEffectiveOneIsPrintedAndNothingIsStarted) {
  put("hearth.yaml", "shards: 1\n");
  const auto config = run({"config", "--config", "hearth.yaml", "--log-level", "warn"});
  EXPECT_EQ(config->wait(), kClean);
  for (const char* part : {"hearth.yaml:1\n", "--log-level\n", "default\n"}) {
    EXPECT_NE(config->out().find(part), std::string::npos) << part << "\n" << config->out();
  }
  EXPECT_FALSE(std::filesystem::exists(root_ / "data"));
  put_five_mistakes();
  const auto wrong = run({"config", "--config", "hearth.yaml"});
  EXPECT_EQ(wrong->wait(), kBadUsage);
  EXPECT_NE(wrong->log().find("hearth: 5 mistakes in the configuration\n"), std::string::npos);
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
  EXPECT_NE(reply.body.find("\"error\""), std::string::npos) << reply.body;
  RawClient echo(server->port());
  EXPECT_EQ(echo.upgrade("/agents/echo-c/a").status, 101);
}

TEST_F(ConfigurationTest, BadFlagsAreBadUsage) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{},
                                                                     {"serv"},
                                                                     {"serve", "--listen", "here"},
                                                                     {"serve", "--port", "1"},
                                                                     {"new", "../up"}}) {
    const auto process = run(arguments);
    EXPECT_EQ(process->wait(), kBadUsage);
    EXPECT_EQ(process->out(), "");
    EXPECT_NE(process->log(), "");
  }
}

TEST_F(ConfigurationTest, HelpAndVersionAreAnswers) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"--help"}, {"serve", "--help"}, {"--version"}, {"version"}}) {
    const auto process = run(arguments);
    EXPECT_EQ(process->wait(), kClean);
    EXPECT_NE(process->out(), "");
    EXPECT_EQ(process->log(), "");
  }
}

}  // namespace
}  // namespace hearth::testing
