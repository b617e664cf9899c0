#include "plugins/check/check_child.hpp"

#include "plugins/admission/trial_process.hpp"
#include "support/built.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

namespace hearth::plugins {
namespace {

TEST(CheckChildTest, ASettingComesThroughAnArgument) {
  CheckSetting setting;
  setting.library = "/tmp/a \"b\".so";
  setting.directory = "/tmp/d";
  setting.seed = 0xffffffffffffffffULL;
  setting.options = R"({"a":"\u00e4"})";
  setting.methods = {"one", "two"};
  setting.may_call = false;
  setting.time = std::chrono::milliseconds(1234);
  const auto back = parse_setting(to_argument(setting)).value();
  EXPECT_EQ(back.library, setting.library);
  EXPECT_EQ(back.directory, setting.directory);
  EXPECT_EQ(back.seed, setting.seed);
  EXPECT_EQ(back.options, setting.options);
  EXPECT_EQ(back.methods, setting.methods);
  EXPECT_EQ(back.may_call, setting.may_call);
  EXPECT_EQ(back.time, setting.time);
}

TEST(CheckChildTest, AnythingElseIsAnError) {
  for (const char* const text : {"", "{", "{}", "[]", R"({"library":1})"})
    EXPECT_FALSE(parse_setting(text)) << text;
}

// What a child says of a library that keeps the contract when it cannot do its own part.
std::string verdict_of_child(const std::filesystem::path& directory, const std::string& id) {
  CheckSetting setting;
  setting.library = hearth::testing::built::zoo("good");
  setting.directory = directory;
  return run_trial({.program = hearth::testing::built::probe(),
                    .arguments = {kCheckArgument, id, to_argument(setting)},
                    .time_limit = std::chrono::seconds(10)})
      .verdict;
}

TEST(CheckChildTest, WhatTheCheckItselfCannotDoIsAnError) {
  const hearth::testing::TempDirectory directory;
  // In the place of an agent's database.
  const auto hash = std::to_string(std::hash<std::string>{}("complete"));
  std::filesystem::create_directory(directory.path() / ("agent-Zoo-" + hash + ".db"));
  struct {
    std::string what;
    std::filesystem::path directory;
  } const failures[] = {{"copy the library", directory.path() / "missing"},
                        {"open " + directory.path().native(), directory.path()}};
  for (const auto& [what, place] : failures) {
    const std::string verdict = verdict_of_child(place, "T303");
    EXPECT_NE(verdict.find(R"("reason":"the check itself failed: )"), std::string::npos) << verdict;
    EXPECT_NE(verdict.find(what), std::string::npos) << verdict;
    EXPECT_NE(verdict.find(R"("verdict":"error")"), std::string::npos) << verdict;
  }
}

TEST(CheckChildTest, BadArgumentsEndTheChildAtOnce) {
  EXPECT_EQ(run_plugin_check("T999", to_argument({})), 64);
  EXPECT_EQ(run_plugin_check("T101", "{"), 64);
}

}  // namespace
}  // namespace hearth::plugins
