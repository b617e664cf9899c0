#include "cli/command_line.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::cli {
namespace {

Command parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "hearth");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

ServeCommand parse_serve(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "serve");
  return std::get<ServeCommand>(parse(std::move(arguments)));
}

// The text of a mistake; fails the test if there is no mistake.
std::string mistake(std::vector<const char*> arguments) {
  const Command command = parse(std::move(arguments));
  const auto* answer = std::get_if<Answer>(&command);
  if (answer == nullptr || answer->status != kExitBadUsage) return "no mistake";
  EXPECT_TRUE(answer->text.ends_with('\n'));
  return answer->text;
}

Answer clean_answer(std::vector<const char*> arguments) {
  const Answer answer = std::get<Answer>(parse(std::move(arguments)));
  EXPECT_EQ(answer.status, kExitClean);
  return answer;
}

TEST(CommandLineTest, ServeAloneLeavesEverythingToTheFileAndTheDefaults) {
  const ServeCommand serve = parse_serve({});
  EXPECT_FALSE(serve.config || serve.listen || serve.data || serve.shards || serve.log_level ||
               serve.log_format || serve.check_config);
  EXPECT_TRUE(serve.plugins.empty());
}

TEST(CommandLineTest, ServeTakesEveryFlag) {
  const ServeCommand serve = parse_serve(
      {"--config", "a.yaml", "--listen", "[::1]:0", "--data", "d", "--plugins", "p", "--plugins=q",
       "--shards", "3", "--log-level", "warn", "--log-format", "json", "--check-config"});
  EXPECT_EQ(serve.config, "a.yaml");
  EXPECT_EQ(serve.listen, (config::ListenAddress{.host = "::1", .port = 0}));
  EXPECT_EQ(serve.data, "d");
  EXPECT_EQ(serve.plugins, (std::vector<std::filesystem::path>{"p", "q"}));
  EXPECT_EQ(serve.shards, 3U);
  EXPECT_EQ(serve.log_level, LogLevel::kWarn);
  EXPECT_EQ(serve.log_format, LogFormat::kJson);
  EXPECT_TRUE(serve.check_config);
}

TEST(CommandLineTest, ConfigTakesTheFlagsOfServe) {
  const auto config = std::get<ConfigCommand>(
      parse({"config", "--config", "a.yaml", "--listen", "[::1]:0", "--class", "Room", "--json"}));
  EXPECT_EQ(config.config, "a.yaml");
  EXPECT_EQ(config.listen, (config::ListenAddress{.host = "::1", .port = 0}));
  EXPECT_EQ(config.agent_class, "Room");
  EXPECT_TRUE(config.json);
  EXPECT_EQ(config.reference, "");
  EXPECT_EQ(std::get<ConfigCommand>(parse({"config", "--reference", "class"})).reference, "class");
  EXPECT_NE(mistake({"config", "--supervised"}), "no mistake");
}

TEST(CommandLineTest, DevServesTheBuildWithTheFlagsOfServe) {
  const auto dev = std::get<DevCommand>(parse({"dev", "--data", "dev", "--listen", "[::1]:0"}));
  EXPECT_EQ(dev.data, "dev");
  EXPECT_EQ(dev.child_arguments,
            (std::vector<std::string>{"serve", "--data", "dev", "--listen", "[::1]:0", "--plugins",
                                      "build/served", "--show-failures"}));
}

TEST(CommandLineTest, TheChildOfASupervisorGetsAllArgumentsButThat) {
  const ServeCommand serve = parse_serve({"--data", "d", "--supervised", "--shards", "3"});
  EXPECT_TRUE(serve.supervised);
  EXPECT_EQ(serve.child_arguments,
            (std::vector<std::string>{"serve", "--data", "d", "--shards", "3"}));
  EXPECT_EQ(parse_serve({"--supervisor-descriptor", "3"}).supervisor_descriptor, 3);
  EXPECT_EQ(parse_serve({}).supervisor_descriptor, -1);
  EXPECT_EQ(clean_answer({"serve", "--help"}).text.find("--supervisor-descriptor"),
            std::string::npos);
}

TEST(CommandLineTest, QuarantineIsListedOrReleased) {
  const auto list = std::get<QuarantineCommand>(parse({"quarantine", "list", "--data", "d"}));
  EXPECT_EQ(list.data, "d");
  EXPECT_EQ(list.release, "");
  const auto release =
      std::get<QuarantineCommand>(parse({"quarantine", "release", "Room", "--config", "c"}));
  EXPECT_EQ(release.release, "Room");
  EXPECT_EQ(release.config, "c");
  EXPECT_NE(mistake({"quarantine"}), "no mistake");
  EXPECT_NE(mistake({"quarantine", "release"}), "no mistake");
}

TEST(CommandLineTest, CommandsThatAskAServerTakeTheirFlags) {
  using What = AdminCommand::What;
  const auto asked = [](const std::vector<const char*>& arguments) {
    return std::get<AdminCommand>(parse(arguments));
  };
  EXPECT_EQ(asked({"plugins"}).what, What::kPlugins);
  EXPECT_FALSE(asked({"plugins"}).all);
  EXPECT_TRUE(asked({"plugins", "--all"}).all);
  EXPECT_EQ(asked({"reload"}).agent_class, "");
  EXPECT_FALSE(asked({"reload"}).wait);
  EXPECT_TRUE(asked({"reload", "--wait"}).wait);
  const AdminCommand reload =
      asked({"reload", "counter", "--data", "d", "--config", "c.yaml", "--json"});
  EXPECT_EQ(reload.what, What::kReload);
  EXPECT_EQ(reload.agent_class, "counter");
  EXPECT_EQ(reload.data, "d");
  EXPECT_EQ(reload.config, "c.yaml");
  EXPECT_TRUE(reload.json);
  const AdminCommand agents = asked({"agents", "counter", "--after", "a", "--limit", "5"});
  EXPECT_EQ(agents.what, What::kAgents);
  EXPECT_EQ(agents.after, "a");
  EXPECT_EQ(agents.limit, 5U);
  EXPECT_EQ(asked({"agents", "counter"}).limit, 100U);
  const AdminCommand methods = asked({"methods", "counter"});
  EXPECT_EQ(methods.what, What::kMethods);
  EXPECT_EQ(methods.agent_class, "counter");
  EXPECT_NE(mistake({"methods"}).find("CLASS"), std::string::npos);
  const AdminCommand evict = asked({"evict", "counter", "first"});
  EXPECT_EQ(evict.what, What::kEvict);
  EXPECT_EQ(evict.agent_class, "counter");
  EXPECT_EQ(evict.name, "first");
  EXPECT_NE(mistake({"agents"}).find("CLASS"), std::string::npos);
  EXPECT_NE(mistake({"evict", "counter"}).find("NAME"), std::string::npos);
  const AdminCommand call = asked({"call", "counter", "a/b", "increment", "[5]"});
  EXPECT_EQ(call.what, What::kCall);
  EXPECT_EQ(call.name, "a/b");
  EXPECT_EQ(call.method, "increment");
  EXPECT_EQ(call.arguments, "[5]");
  EXPECT_EQ(asked({"call", "counter", "a", "get"}).arguments, "");
  EXPECT_NE(mistake({"call", "counter", "a"}).find("METHOD"), std::string::npos);

  const AdminCommand destroy = asked({"destroy", "counter", "first"});
  EXPECT_EQ(destroy.what, What::kDestroy);
  EXPECT_EQ(destroy.agent_class, "counter");
  EXPECT_EQ(destroy.name, "first");
  EXPECT_FALSE(destroy.yes);
  EXPECT_TRUE(asked({"destroy", "--yes", "counter", "first"}).yes);
  EXPECT_NE(mistake({"destroy", "counter"}).find("NAME"), std::string::npos);
  EXPECT_TRUE(mistake({"agents", "counter", "--limit", "0"})
                  .starts_with("hearth: --limit: expected a whole number from 1 to 1000"));
}

TEST(CommandLineTest, RepairTakesADirectoryAndForgetsNothingUnlessItIsTold) {
  const auto plain = std::get<RepairCommand>(parse({"repair"}));
  EXPECT_FALSE(plain.forget_missing);
  EXPECT_FALSE(plain.data || plain.config);
  const auto whole = std::get<RepairCommand>(
      parse({"repair", "--forget-missing", "--data", "d", "--config", "c"}));
  EXPECT_TRUE(whole.forget_missing);
  EXPECT_EQ(whole.data, "d");
  EXPECT_EQ(whole.config, "c");
  EXPECT_NE(mistake({"repair", "all"}), "no mistake");
}

TEST(CommandLineTest, EachWrongValueNamesItsFlagAndWhatIsExpected) {
  EXPECT_TRUE(
      mistake({"serve", "--listen", "here"}).starts_with("hearth: --listen: expected HOST:PORT"));
  EXPECT_TRUE(
      mistake({"serve", "--shards", "0"})
          .starts_with("hearth: --shards: expected a whole number from 1 to 256, found \"0\""));
  EXPECT_TRUE(mistake({"serve", "--shards", "257"}).starts_with("hearth: --shards: "));
  EXPECT_TRUE(mistake({"serve", "--log-level", "loud"})
                  .starts_with("hearth: --log-level: expected trace, debug, info, warn or error"));
  EXPECT_TRUE(mistake({"serve", "--log-format", "xml"})
                  .starts_with("hearth: --log-format: expected auto, human or json"));
}

TEST(CommandLineTest, WhatItDoesNotKnowIsAMistake) {
  EXPECT_NE(mistake({"serv"}).find("serv"), std::string::npos);
  EXPECT_NE(mistake({"serve", "--port", "1"}).find("--port"), std::string::npos);
  EXPECT_NE(mistake({"serve", "plugins"}).find("plugins"), std::string::npos);
  EXPECT_NE(mistake({"serve", "--plugins", "p", "q"}).find('q'), std::string::npos);
  EXPECT_NE(mistake({"serve", "--data"}).find("--data"), std::string::npos);
  EXPECT_NE(mistake({"new"}).find("NAME"), std::string::npos);
}

TEST(CommandLineTest, NoCommandAtAllShowsTheHelpAsAMistake) {
  EXPECT_EQ(mistake({}), clean_answer({"--help"}).text);
}

TEST(CommandLineTest, HelpSaysWhatItIsForAndNamesEveryCommand) {
  const std::string help = clean_answer({"--help"}).text;
  for (const char* word :
       {"stateful agents", "serve", "new", "version", "Examples:", "README.md"}) {
    EXPECT_NE(help.find(word), std::string::npos) << word;
  }
}

TEST(CommandLineTest, NoLineOfTheHelpIsWiderThanATerminal) {
  for (const auto& arguments : std::vector<std::vector<const char*>>{{"--help"},
                                                                     {"serve", "--help"},
                                                                     {"new", "--help"},
                                                                     {"plugins", "--help"},
                                                                     {"reload", "--help"},
                                                                     {"agents", "--help"},
                                                                     {"evict", "--help"}}) {
    const std::string help = clean_answer(arguments).text;
    for (std::size_t at = 0; at < help.size();) {
      const std::size_t end = help.find('\n', at);
      EXPECT_LE(end - at, 120U) << help.substr(at, end - at);
      at = end + 1;
    }
  }
}

TEST(CommandLineTest, HelpOfServeExplainsEveryFlag) {
  const std::string help = clean_answer({"serve", "--help"}).text;
  for (const char* flag : {"--config", "--listen", "--data", "--plugins", "--shards", "--log-level",
                           "--log-format", "--check-config"}) {
    EXPECT_NE(help.find(flag), std::string::npos) << flag;
  }
}

TEST(CommandLineTest, TheVersionIsAnAnswerBothWays) {
  const std::string version = clean_answer({"--version"}).text;
  EXPECT_TRUE(version.starts_with("hearth ")) << version;
  EXPECT_NE(version.find("\nplugin ABI "), std::string::npos);
  EXPECT_NE(version.find("\nbuilt with "), std::string::npos);
  EXPECT_EQ(clean_answer({"version"}).text, version);
}

TEST(CommandLineTest, ANewProjectIsWrittenBelowTheCurrentDirectoryUnlessToldOtherwise) {
  EXPECT_EQ(std::get<NewCommand>(parse({"new", "greeter"})).directory, "greeter");
  const NewCommand elsewhere = std::get<NewCommand>(parse({"new", "greeter", "--dir", "/srv/g"}));
  EXPECT_EQ(elsewhere.name, "greeter");
  EXPECT_EQ(elsewhere.directory, "/srv/g");
}

TEST(CommandLineTest, ACheckTakesEveryFlag) {
  const CheckCommand plain = std::get<CheckCommand>(parse({"check", "it.so"}));
  EXPECT_EQ(plain.library, "it.so");
  EXPECT_FALSE(plain.json || plain.only_failed || plain.data || plain.options);
  EXPECT_TRUE(!plain.calls_nothing && plain.methods.empty() && plain.excluded.empty());
  EXPECT_EQ(plain.time_limit, std::chrono::seconds(10));

  const CheckCommand all = std::get<CheckCommand>(parse(
      {"check",        "--json",     "--only-failed", "--data",    "d",         "--seed", "7",
       "--time-limit", "2s",         "--options",     "{\"a\":1}", "--call",    "one",    "--call",
       "two",          "--no-calls", "--exclude",     "E9",        "--exclude", "T106",   "--only",
       "T303",         "it.so"}));
  EXPECT_TRUE(all.json && all.only_failed);
  EXPECT_EQ(all.data, "d");
  EXPECT_EQ(all.seed, 7U);
  EXPECT_EQ(all.time_limit, std::chrono::seconds(2));
  EXPECT_EQ(all.options, "{\"a\":1}");
  EXPECT_EQ(all.methods, (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(all.calls_nothing);
  EXPECT_EQ(all.excluded, (std::vector<std::string>{"E9", "T106"}));
  EXPECT_EQ(all.only, std::vector<std::string>{"T303"});
  EXPECT_EQ(all.library, "it.so");
}

TEST(CommandLineTest, ACheckNeedsALibraryAndUnderstandableValues) {
  EXPECT_NE(mistake({"check"}).find("LIB"), std::string::npos);
  EXPECT_NE(mistake({"check", "--time-limit", "soon", "it.so"}).find("--time-limit"),
            std::string::npos);
  EXPECT_NE(mistake({"check", "--seed", "x", "it.so"}).find("--seed"), std::string::npos);
}

TEST(CommandLineTest, APathThatIsEmptyIsAMistakeOfItsFlag) {
  const std::vector<std::vector<const char*>> all = {
      {"--data", "serve", "--data", ""},
      {"--plugins", "serve", "--plugins", ""},
      {"--config", "config", "--config", ""},
      {"--data", "repair", "--data", ""},
      {"--data", "plugins", "--data", ""},
      {"--data", "check", "it.so", "--data", ""},
      {"--dir", "new", "greeter", "--dir", ""},
      {"DIR", "backup", ""},
      {"LIB", "check", ""},
  };
  for (const auto& each : all) {
    const std::string said = mistake({each.begin() + 1, each.end()});
    EXPECT_TRUE(said.starts_with(std::string("hearth: ") + each.front())) << said;
    EXPECT_NE(said.find("is empty"), std::string::npos) << said;
  }
}

// A script's variable that is empty must not widen what its command does.
TEST(CommandLineTest, AnEmptyTextIsAMistakeOfItsFlagAndDoesNotStandForAll) {
  const std::vector<std::vector<const char*>> all = {
      {"--agent", "restore", "backups", "--replace", "--agent", ""},
      {"--agent", "audit", "--agent", ""},
      {"--class", "audit", "--class", ""},
      {"--class", "config", "--class", ""},
      {"CLASS", "reload", ""},
      {"CLASS", "stuck", ""},
      {"CLASS", "operations", ""},
      {"NAME", "operations", "counter", ""},
      {"AGENT", "tail", ""},
      {"--trace", "tail", "--trace", ""},
      {"--state", "queue", "list", "counter/a", "--state", ""},
      {"--result", "resolve", "counter", "a", "op", "completed", "--result", ""},
      {"--only", "check", "it.so", "--only", ""},
  };
  for (const auto& each : all) {
    const std::string said = mistake({each.begin() + 1, each.end()});
    EXPECT_TRUE(said.starts_with(std::string("hearth: ") + each.front() + ": is empty")) << said;
  }
  const Command paging = parse({"agents", "counter", "--after", ""});  // as a script's loop begins
  EXPECT_TRUE(std::holds_alternative<AdminCommand>(paging));
}

}  // namespace
}  // namespace hearth::cli
