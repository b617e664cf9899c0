#include "cli/commands.hpp"
#include "json/json.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace hearth::cli {
namespace {

class ConfigCommandTest : public ::testing::Test {
 protected:
  ConfigCommandTest() {
    std::filesystem::create_directory(directory_.path() / "classes");
    put("hearth.yaml",
        "listen: \"127.0.0.1:99\"\nclasses: classes\nlimits:\n  max_frame: 1MiB\n"
        "admin: {token_file: token}\n");
    put("token", "this-is-a-very-secret-token\n");
    put("classes/room.yaml", "class: ChatRoom\nidle_timeout: 5s\noptions: {api_key: hunter2}\n");
    command_.config = directory_.path() / "hearth.yaml";
  }

  void put(std::string_view name, std::string_view text) const {
    std::ofstream(directory_.path() / name) << text;
  }

  // The line of a setting, with single spaces and the directory left out.
  [[nodiscard]] std::string line_of(const std::string& text, const std::string& key) const {
    std::size_t begin = text.find('\n' + key + ' ');
    if (begin == std::string::npos) return "no line";
    ++begin;
    std::string line;
    for (const char c : text.substr(begin, text.find('\n', begin) - begin)) {
      if (c != ' ' || line.back() != ' ') line += c;
    }
    const std::string prefix = directory_.path().string() + '/';
    for (auto at = line.find(prefix); at != std::string::npos; at = line.find(prefix)) {
      line.erase(at, prefix.size());
    }
    return line;
  }

  testing::TempDirectory directory_;
  ConfigCommand command_;
};

TEST_F(ConfigCommandTest, SaysEachValueAndWhereItIsFrom) {
  command_.shards = 2;
  const Answer said = answer(command_);
  EXPECT_EQ(said.status, kExitClean);
  EXPECT_EQ(line_of(said.text, "listen"), "listen 127.0.0.1:99 hearth.yaml:1");
  EXPECT_EQ(line_of(said.text, "limits.max_frame"), "limits.max_frame 1MiB hearth.yaml:4");
  EXPECT_EQ(line_of(said.text, "limits.max_body"), "limits.max_body 4MiB default");
  EXPECT_EQ(line_of(said.text, "shards"), "shards 2 --shards");
  EXPECT_EQ(line_of(said.text, "data"), "data data default");
  EXPECT_EQ(line_of(said.text, "idle_timeout"), "idle_timeout 5s classes/room.yaml:2");
}

TEST_F(ConfigCommandTest, ShowsTheServersRuleForNamesWhereItHolds) {
  put("hearth.yaml",
      "classes: classes\nauth:\n  type: jwt\n  name: \"{sub}\"\n  keys_file: keys\n"
      "  issuer: i\n  audience: [a]\n");
  const std::pair<std::string, std::string> cases[] = {
      {"", "auth.name {sub} hearth.yaml:4"},
      {"auth: {type: jwt}\n", "auth.name {sub} hearth.yaml:4"},
      {"auth: {type: none}\n", "auth.name default"},
      {"auth: {name: ''}\n", "auth.name classes/room.yaml:2"},
      {"auth: {name: \"{org}\"}\n", "auth.name {org} classes/room.yaml:2"},
  };
  command_.agent_class = "ChatRoom";
  for (const auto& [text, line] : cases) {
    put("classes/room.yaml", "class: ChatRoom\n" + text);
    EXPECT_EQ(line_of(answer(command_).text, "auth.name"), line) << text;
  }
}

TEST_F(ConfigCommandTest, AFlagWinsOverTheFile) {
  command_.listen = {.host = "::1", .port = 5};
  EXPECT_EQ(line_of(answer(command_).text, "listen"), "listen [::1]:5 --listen");
}

TEST_F(ConfigCommandTest, SecretsAreNotPrinted) {
  for (const bool json : {false, true}) {
    command_.json = json;
    const Answer said = answer(command_);
    EXPECT_EQ(said.text.find("hunter2"), std::string::npos);
    EXPECT_EQ(said.text.find("very-secret"), std::string::npos);
    EXPECT_NE(said.text.find("options.api_key"), std::string::npos);
  }
  command_.json = false;
  EXPECT_EQ(line_of(answer(command_).text, "options.api_key"),
            "options.api_key (not shown) classes/room.yaml:3");
  EXPECT_EQ(line_of(answer(command_).text, "admin.token_file"),
            "admin.token_file token hearth.yaml:5");
}

TEST_F(ConfigCommandTest, OneClassIsFoundHoweverItIsSpelled) {
  for (const char* name : {"ChatRoom", "chat-room"}) {
    command_.agent_class = name;
    const Answer said = answer(command_);
    EXPECT_TRUE(said.text.starts_with("The class \"ChatRoom\"\n")) << said.text;
    EXPECT_EQ(line_of(said.text, "idle_timeout"), "idle_timeout 5s classes/room.yaml:2");
    EXPECT_EQ(line_of(said.text, "listen"), "no line");
  }
  command_.agent_class = "other";
  EXPECT_EQ(line_of(answer(command_).text, "idle_timeout"), "idle_timeout 1m default");
}

TEST_F(ConfigCommandTest, AliasesAreAListWithTheLineThatTheyBeginIn) {
  put("classes/room.yaml", "class: ChatRoom\naliases:\n  - chat\n  - my-room\n");
  EXPECT_EQ(line_of(answer(command_).text, "aliases"), "aliases chat, my-room classes/room.yaml:3");
}

TEST_F(ConfigCommandTest, JsonHasTheSame) {
  command_.json = true;
  command_.log_level = LogLevel::kWarn;
  const Json said = parse_json(answer(command_).text).value();
  Json by_key = Json::object();
  for (const Json& each : said["server"]["settings"]) {
    by_key[each["key"].get<std::string>()] = each;
  }
  const std::string file = command_.config->string();
  EXPECT_EQ(said["server"]["file"], file);
  EXPECT_EQ(by_key["limits.max_frame"], Json({{"key", "limits.max_frame"},
                                              {"value", "1MiB"},
                                              {"from", "file"},
                                              {"file", file},
                                              {"line", 4}}));
  EXPECT_EQ(by_key["limits.max_waiting"],
            Json({{"key", "limits.max_waiting"}, {"value", 1000}, {"from", "default"}}));
  EXPECT_EQ(
      by_key["log.level"],
      Json({{"key", "log.level"}, {"value", "warn"}, {"from", "flag"}, {"flag", "--log-level"}}));
  ASSERT_EQ(said["classes"].size(), 1U);
  EXPECT_EQ(said["classes"][0]["class"], "ChatRoom");
}

TEST_F(ConfigCommandTest, MistakesAreToldAsCheckConfigTellsThem) {
  put("classes/room.yaml", "class: ChatRoom\nidle_timeout: 5\n");
  const Answer said = answer(command_);
  EXPECT_EQ(said.status, kExitBadUsage);
  EXPECT_NE(said.text.find("room.yaml:2:15: idle_timeout:"), std::string::npos);
  EXPECT_NE(said.text.find("hearth: 1 mistake in the configuration\n"), std::string::npos);
}

TEST_F(ConfigCommandTest, ShowsTheServersLimitsAndPagesWhereTheyHold) {
  put("hearth.yaml",
      "classes: classes\nlimits:\n  max_frame: 1MiB\n  call_timeout: 7s\n"
      "cors:\n  origins: [\"https://a.example\"]\n  max_age: 9s\n");
  struct Case {
    std::string file;
    std::string lines[4];
  };
  const std::string origins = "cors.origins https://a.example hearth.yaml:6";
  const std::string frame = "limits.max_frame 1MiB hearth.yaml:3";
  const std::string timeout = "limits.call_timeout 7s hearth.yaml:4";
  const std::string age = "cors.max_age 9s hearth.yaml:7";
  const Case cases[] = {
      {"", {frame, timeout, origins, age}},
      {"cors: {max_age: 8s}\n", {frame, timeout, origins, age}},
      {"limits: {max_frame: 2KiB}\ncors: {origins: [\"null\"]}\n",
       {"limits.max_frame 2KiB classes/room.yaml:2", timeout,
        "cors.origins null classes/room.yaml:3", "cors.max_age 24h default"}},
      {"limits: {call_timeout: 1s}\n",
       {frame, "limits.call_timeout 1s classes/room.yaml:2", origins, age}},
  };
  command_.agent_class = "ChatRoom";
  for (const auto& [file, lines] : cases) {
    put("classes/room.yaml", "class: ChatRoom\n" + file);
    const std::string text = answer(command_).text;
    for (const std::string& line : lines)
      EXPECT_EQ(line_of(text, line.substr(0, line.find(' '))), line) << file;
  }
  put("hearth.yaml", "classes: classes\n");
  put("classes/room.yaml", "class: ChatRoom\n");
  EXPECT_EQ(line_of(answer(command_).text, "limits.max_frame"), "limits.max_frame 4MiB default");
}

}  // namespace
}  // namespace hearth::cli
