#include "base/name_template.hpp"

#include <gtest/gtest.h>

#include <map>

namespace hearth {
namespace {

TEST(NameTemplateTest, HasItsBracesInPairs) {
  for (const char* const good : {"lobby", "{sub}", "{org_id}-{sub}", "a{header:x-user}b"})
    EXPECT_TRUE(is_name_template(good)) << good;
  for (const char* const bad : {"", "{", "}", "{}", "{a", "a}", "{{a}}", "{a}{", "{a b}", "{a}{b}"})
    EXPECT_FALSE(is_name_template(bad)) << bad;
  EXPECT_FALSE(is_name_template(std::string(kMaxTemplateBytes + 1, 'a')));
}

TEST(NameTemplateTest, IsFilledInOrNot) {
  const std::map<std::string, std::string, std::less<>> values{
      {"sub", "u1"}, {"org", "o{sub}"}, {"empty", ""}};
  const auto value = [&values](std::string_view name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
  EXPECT_EQ(expand_template("lobby", value), "lobby");
  EXPECT_EQ(expand_template("{org}-{sub}!", value), "o{sub}-u1!") << "a value is no template";
  EXPECT_EQ(expand_template("{nobody}", value), std::nullopt);
  EXPECT_EQ(expand_template("x{empty}", value), std::nullopt);
}

TEST(NameTemplateTest, DifferentValuesNeverGiveTheSameText) {
  struct Case {
    std::string text, first, second;
    std::optional<std::string> expanded;
  };
  const Case cases[] = {
      {"{a}-{b}", "a", "b-c", "a-b-c"},         {"{a}-{b}", "a-b", "c", std::nullopt},
      {"{a}--{b}", "x", "-y", "x---y"},         {"{a}--{b}", "x-", "y", std::nullopt},
      {"{a}--{b}", "x-y", "z", "x-y--z"},       {"{a}aba{b}", "xab", "y", std::nullopt},
      {"-{a}:{b}-", "-a-", "-b-", "--a-:-b--"},
  };
  for (const Case& each : cases) {
    const auto value = [&each](std::string_view name) {
      return std::optional(name == "a" ? each.first : each.second);
    };
    EXPECT_EQ(expand_template(each.text, value), each.expanded)
        << each.text << ' ' << each.first << ' ' << each.second;
  }
}

}  // namespace
}  // namespace hearth
