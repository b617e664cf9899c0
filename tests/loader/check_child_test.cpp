#include "loader/check_child.hpp"

#include <gtest/gtest.h>

namespace hearth::loader {
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
  const auto back = parse_setting(to_argument(setting));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->library, setting.library);
  EXPECT_EQ(back->directory, setting.directory);
  EXPECT_EQ(back->seed, setting.seed);
  EXPECT_EQ(back->options, setting.options);
  EXPECT_EQ(back->methods, setting.methods);
  EXPECT_EQ(back->may_call, setting.may_call);
  EXPECT_EQ(back->time, setting.time);
}

TEST(CheckChildTest, AnythingElseIsAnError) {
  for (const char* const text : {"", "{", "{}", "[]", R"({"library":1})"})
    EXPECT_FALSE(parse_setting(text)) << text;
}

TEST(CheckChildTest, BadArgumentsEndTheChildAtOnce) {
  EXPECT_EQ(run_plugin_check("T999", to_argument({})), 64);
  EXPECT_EQ(run_plugin_check("T101", "{"), 64);
}

}  // namespace
}  // namespace hearth::loader
