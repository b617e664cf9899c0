#include "config/parse.hpp"

#include "config/config_files.hpp"
#include "config/server_file.hpp"
#include "support/built.hpp"

#include <stdexcept>
#include <string>

namespace hearth::config {
namespace {

namespace fs = std::filesystem;

class LoadConfigTest : public ConfigFilesTest {};

TEST_F(LoadConfigTest, FiveMistakesAreFiveDiagnosticsInOneRun) {
  put("server.yaml",
      "lisen: \"127.0.0.1:8787\"\n"
      "shards: 0\n"
      "limits:\n"
      "  max_frame: 4MB\n"
      "  call_timeout: 30\n"
      "log:\n"
      "  level: verbose\n");
  const auto lines = mistakes();
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0], "server.yaml:1:1: unknown key \"lisen\"; did you mean \"listen\"?");
  EXPECT_EQ(lines[1],
            "server.yaml:2:9: shards: expected auto or a whole number from 1 to 256, found \"0\"");
  EXPECT_EQ(lines[2],
            "server.yaml:4:14: limits.max_frame: expected a size such as 4096, 64KiB or 1MiB, "
            "found \"4MB\"");
  EXPECT_EQ(lines[3],
            "server.yaml:5:17: limits.call_timeout: expected a duration with its unit, such as "
            "30s, found \"30\"");
  EXPECT_EQ(lines[4],
            "server.yaml:7:10: log.level: expected trace, debug, info, warn or error, found "
            "\"verbose\"");
}

TEST_F(LoadConfigTest, MistakesOfAllFilesComeTogether) {
  put("server.yaml", "shards: many\n");
  put("classes/b.yaml", "class: b\nidle: 5s\n");
  put("classes/a.yml", "class: 1\n");
  put("classes/d.yaml", "class: [\n");
  const auto lines = mistakes();
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_TRUE(lines[0].starts_with("server.yaml:1:9: shards: ")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("classes/a.yml:1:8: class: ")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with("classes/b.yaml:2:1: unknown key \"idle\"")) << lines[2];
  EXPECT_TRUE(lines[3].starts_with("classes/d.yaml:")) << lines[3];
}

TEST_F(LoadConfigTest, WithoutAFileTheDefaultsStartAtTheCurrentDirectory) {
  put("classes/c.yaml", "class: c\nidle_timeout: 5s\n");
  const Config config = load_config(std::nullopt, path("")).value();
  EXPECT_EQ(config.server.data, path("data"));
  EXPECT_EQ(config.server.plugins, std::vector{path("plugins")});
  EXPECT_EQ(config.classes.at("c").settings.idle_timeout, std::chrono::seconds(5));
  EXPECT_FALSE(config.classes.contains("other"));

  const fs::path before = fs::current_path();
  fs::current_path(path(""));
  const LoadResult implicit = load_config(std::nullopt);
  fs::current_path(before);
  EXPECT_EQ(implicit.value().server.data, path("data"));
  EXPECT_TRUE(implicit.value().classes.contains("c"));
}

TEST_F(LoadConfigTest, TheServerFileAloneIsReadThoughClassFilesHaveMistakes) {
  put("server.yaml", "data: var\nclasses: classes\n");
  put("classes/a.yaml", "class: [\n");
  EXPECT_EQ(load_server_file(path("server.yaml")).value().data, path("var"));
  EXPECT_EQ(load_server_file(std::nullopt, path("")).value().data, path("data"));
  put("server.yaml", "lisen: x\nshards: 0\n");
  EXPECT_EQ(load_server_file(path("server.yaml")).error().size(), 2U);
  EXPECT_EQ(load_server_file(path("none.yaml")).error().size(), 1U);
}

TEST_F(LoadConfigTest, ClassFilesAloneAreReadWithAllTheirMistakes) {
  put("classes/a.yaml", "class: a\nidle_timeout: 5s\n");
  const auto right = load_class_files(path("classes"), true).value();
  EXPECT_EQ(right.at("a").settings.idle_timeout, std::chrono::seconds(5));
  EXPECT_EQ(right.at("a").file, path("classes/a.yaml"));
  put("classes/b.yaml", "class: a\n");
  put("classes/c.yaml", "class: c\nidle: 5s\n");
  const ClassFilesResult wrong = load_class_files(path("classes"), true);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().size(), 2U);
}

TEST_F(LoadConfigTest, ADirectoryOfClassFilesThatIsMissingIsAMistakeOnlyIfItMustExist) {
  EXPECT_TRUE(load_class_files(path("classes"), false).value().empty());
  const ClassFilesResult missing = load_class_files(path("classes"), true);
  ASSERT_FALSE(missing);
  EXPECT_TRUE(to_string(missing.error().front()).starts_with(path("classes").native() + ": "));
}

TEST_F(LoadConfigTest, WithoutAnyFileEverythingHasADefault) {
  const Config config = load_config(std::nullopt, path("")).value();
  EXPECT_TRUE(config.classes.empty());
  EXPECT_EQ(config.server.net.port, 8787);
}

TEST_F(LoadConfigTest, PathsStartAtTheFileThatTheyStandIn) {
  put("etc/server.yaml", "data: ../var\nclasses: ../k\n");
  put("k/c.yaml", "class: c\n");
  const Config config = load_config(path("etc/server.yaml")).value();
  EXPECT_EQ(config.server.data, path("var"));
  EXPECT_EQ(config.server.plugins, std::vector{path("etc/plugins")});
  EXPECT_TRUE(config.classes.contains("c"));
}

TEST_F(LoadConfigTest, TwoSpellingsOfOneClassAreOneClass) {
  const auto first_letter = [](std::string_view name) { return std::string(name.substr(0, 1)); };
  put("classes/a.yaml", "class: room\n");
  put("classes/b.yaml", "class: roof\n");
  EXPECT_TRUE(load_class_files(path("classes"), true));
  const ClassFilesResult read = load_class_files(path("classes"), true, first_letter);
  ASSERT_FALSE(read);
  ASSERT_EQ(read.error().size(), 1U);
  EXPECT_EQ(read.error().front().message, "class: \"roof\" already has a file, \"" +
                                              path("classes/a.yaml").native() + "\", as \"room\"");
  EXPECT_FALSE(load_config(std::nullopt, path(""), first_letter));
}

TEST_F(LoadConfigTest, AnAliasOfAnotherClassesSegmentIsAMistakeWhicheverFileIsReadFirst) {
  const auto lower = [](std::string_view name) {
    return name == "Room" ? std::string("room") : std::string(name);
  };
  put("classes/a.yaml", "class: Room\naliases: [chat, hall]\n");
  put("classes/b.yaml", "class: lobby\naliases: [entry, room, chat]\n");
  put("classes/c.yaml", "class: hall\n");
  const ClassFilesResult read = load_class_files(path("classes"), true, lower);
  ASSERT_FALSE(read);
  ASSERT_EQ(read.error().size(), 3U);
  const auto line = [&](std::size_t i) { return to_string(read.error()[i]); };
  EXPECT_EQ(line(0), path("classes/b.yaml").native() +
                         ":2:18: aliases: \"room\" already leads to the class \"Room\"");
  EXPECT_EQ(line(1), path("classes/b.yaml").native() +
                         ":2:24: aliases: \"chat\" already leads to the class \"Room\"");
  EXPECT_EQ(line(2), path("classes/c.yaml").native() +
                         ":1:8: class: \"hall\" is an alias of the class \"Room\" in \"" +
                         path("classes/a.yaml").native() + "\": remove one of the two");
}

TEST_F(LoadConfigTest, TheCodeOfAClassIsAClassWithoutCode) {
  const auto lower = [](std::string_view name) {
    return name == "Room" ? std::string("room") : std::string(name);
  };
  constexpr const char* kForm =
      ":2:7: code: expected a name of up to 64 letters, digits, _ and -, the first a letter or _, "
      "found ";
  struct Row {
    std::string code;  // of the class a
    std::string mistake;
  };
  const std::vector<Row> table = {
      {"no-class-of-a-file", ""},
      {"Room", ""},
      {"a", ":2:7: code: the class \"a\" cannot name itself: leave `code` out"},
      {"b",
       ":2:7: code: the class \"a\" names \"b\", which runs the code of \"room\" itself: name "
       "that"},
      {"../b", std::string(kForm) + "\"../b\""},
      {"[b]", std::string(kForm) + "a list"},
  };
  put("classes/b.yaml", "class: b\ncode: room\n");
  put("classes/room.yaml", "class: Room\n");
  for (const auto& [code, mistake] : table) {
    put("classes/a.yaml", "class: a\ncode: " + code + "\n");
    const ClassFilesResult read = load_class_files(path("classes"), true, lower);
    EXPECT_EQ(load_config(std::nullopt, path(""), lower).has_value(), mistake.empty()) << code;
    if (mistake.empty()) {
      ASSERT_TRUE(read) << code;
      EXPECT_EQ(read->at("a").settings.code, code);
      continue;
    }
    ASSERT_FALSE(read) << code;
    ASSERT_EQ(read.error().size(), 1U) << code;
    EXPECT_EQ(to_string(read.error()[0]), path("classes/a.yaml").native() + mistake);
  }
}

TEST_F(LoadConfigTest, TwoFilesForOneClassNameBoth) {
  put("server.yaml", "");
  put("classes/a.yaml", "class: c\n");
  put("classes/b.yaml", "idle_timeout: 5s\nclass: c\n");
  EXPECT_EQ(mistakes(), std::vector<std::string>{"classes/b.yaml:2:8: class: \"c\" already has a "
                                                 "file, \"classes/a.yaml\""});
}

TEST_F(LoadConfigTest, OtherFilesInTheDirectoryAreNotLookedAt) {
  put("server.yaml", "");
  put("classes/README.md", "not: [yaml");
  put("classes/.hidden.yaml", "not: [yaml");
  put("classes/c.yaml~", "not: [yaml");
  put("classes/below/c.yaml", "not: [yaml");
  put("classes/c.yml", "class: c\n");
  EXPECT_EQ(load().classes.size(), 1U);
}

TEST_F(LoadConfigTest, ADirectoryOfClassesMustExistOnlyWhenItIsNamed) {
  put("server.yaml", "");
  EXPECT_TRUE(mistakes().empty());
  EXPECT_EQ(server_mistake("data: d\nclasses: gone\n"),
            "server.yaml:2:10: classes: cannot read the directory \"gone\": No such file or "
            "directory");
  put("classes", "a file");
  EXPECT_EQ(server_mistake(""),
            "server.yaml: classes: cannot read the directory \"classes\": Not a directory");
}

TEST_F(LoadConfigTest, AServerFileThatCannotBeReadIsTheOnlyMistake) {
  put("classes/c.yaml", "class: [\n");
  EXPECT_EQ(mistakes(), std::vector<std::string>{"server.yaml: cannot open server.yaml: No such "
                                                 "file or directory"});
  fs::create_directory(path("server.yaml"));
  EXPECT_EQ(mistakes(), std::vector<std::string>{"server.yaml: cannot read server.yaml: it is not "
                                                 "a regular file"});
}

TEST_F(LoadConfigTest, AFileOfMoreThanAMegabyteIsRefusedUnread) {
  put("server.yaml", std::string(kMaxConfigFileBytes, '#'));
  EXPECT_TRUE(mistakes().empty());
  EXPECT_EQ(server_mistake(std::string(kMaxConfigFileBytes + 1, '#')),
            "server.yaml: cannot read server.yaml: it is longer than 1048576 bytes");
}

TEST_F(LoadConfigTest, EndlessMistakesAreCounted) {
  std::string text;
  for (int i = 0; i < 150; ++i) text += "zzzzzzzz" + std::to_string(i) + ": 1\n";
  put("server.yaml", text);
  const auto lines = mistakes();
  ASSERT_EQ(lines.size(), Report::kMaxDiagnostics + 1);
  EXPECT_EQ(lines.back(), "server.yaml: and 50 mistakes more");
}

TEST_F(LoadConfigTest, ADiagnosticIsOneLineWhateverTheFileIsCalled) {
  const Diagnostic diagnostic{.file = "a\nb\x1B", .at = {.line = 3, .column = 4}, .message = "m"};
  EXPECT_EQ(to_string(diagnostic), "a\\nb\\u001b:3:4: m");
}

TEST_F(LoadConfigTest, AnUncheckedMistakeThrowsItsText) {
  put("server.yaml", "shards: 0\n");
  EXPECT_THROW(static_cast<void>(load()), std::logic_error);
}

// The files that ship.
class ShippedConfigTest : public ::testing::Test {
 protected:
  const fs::path root_ = testing::built::sources();
};

TEST_F(ShippedConfigTest, LoadsAsItIs) {
  const LoadResult result = load_config(root_ / "config/hearth.yaml");
  if (!result) {
    for (const Diagnostic& diagnostic : result.error()) ADD_FAILURE() << to_string(diagnostic);
    return;
  }
  EXPECT_EQ(result->server.data, root_ / "data");
  EXPECT_EQ(result->server.plugins, std::vector{root_ / "build/release/plugins"});
  ASSERT_EQ(result->classes.size(), 10U);
  EXPECT_EQ(result->classes.at("counter").settings.options, R"({"start":0})");
  EXPECT_EQ(result->classes.at("chat-room").settings.options,
            R"({"history_limit":1000,"max_message_length":4000})");
  EXPECT_EQ(result->classes.at("echo-c").settings.options, "{}");
}

TEST_F(ShippedConfigTest, ShowsTheDefaultsWhereItDoesNotSayOtherwise) {
  const Config shipped = load_config(root_ / "config/hearth.yaml").value();
  ServerConfig defaults;
  defaults.data = shipped.server.data;  // where it is, is its own business
  defaults.plugins = shipped.server.plugins;
  defaults.classes = shipped.server.classes;
  const auto changed = changed_settings(server_settings(), defaults, shipped.server);
  EXPECT_EQ(changed, std::vector<std::string>{});
}

}  // namespace
}  // namespace hearth::config
