#include "protocol/class_segment.hpp"

#include "base/names.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

namespace hearth::protocol {
namespace {

TEST(ClassSegmentTest, FollowsTheRuleOfTheClients) {
  const std::vector<std::pair<std::string_view, std::string_view>> table{
      {"Counter", "counter"},
      {"MyAgent", "my-agent"},
      {"myAgent", "my-agent"},
      {"LOUD_AGENT", "loud-agent"},
      {"SUB", "sub"},
      {"Sub_", "sub"},
      {"A1B", "a1b"},
      {"AIAssistant", "a-i-assistant"},
      {"HTTPServer", "h-t-t-p-server"},
      {"ChatAgentV2", "chat-agent-v2"},
      {"My_Agent", "my--agent"},
      {"_Private", "--private"},
  };
  for (const auto& [name, segment] : table) EXPECT_EQ(kebab_case(name), segment) << name;
}

TEST(ClassSegmentTest, LeavesKebabNamesAlone) {
  for (const std::string_view name : {"my-agent", "a", "chat-room-2", "a--b"}) {
    EXPECT_EQ(kebab_case(name), name);
  }
}

// A client asks for kebab_case() of its class name: an alias that this changes could not be
// reached.
TEST(ClassSegmentTest, LeavesEachAliasAlone) {
  constexpr std::string_view kLetters = "aZ0-_.";
  std::size_t aliases = 0;
  for (const char first : kLetters) {
    for (const char second : kLetters) {
      for (const char third : kLetters) {
        const std::string text = {first, second, third};
        if (!is_class_alias(text)) continue;
        ++aliases;
        EXPECT_EQ(kebab_case(text), text);
      }
    }
  }
  EXPECT_EQ(aliases, 6U);  // an `a`, any of `a0-`, one of `a0`
}

TEST(ClassSegmentTest, StripsOneDashOnlyAtTheEnd) {
  EXPECT_EQ(kebab_case("Sub__"), "sub-");
  EXPECT_EQ(kebab_case("LOUD_"), "loud-");  // all capitals: nothing is stripped
  EXPECT_EQ(kebab_case("sub-"), "sub");
}

TEST(ClassSegmentTest, StripsOneDashOnlyAtTheFront) {
  EXPECT_EQ(kebab_case("-Agent"), "-agent");
  EXPECT_EQ(kebab_case("_PRIVATE"), "-private");
}

TEST(ClassSegmentTest, NamesWithoutLettersAreNotInCapitals) {
  EXPECT_EQ(kebab_case("42"), "42");
  EXPECT_EQ(kebab_case("4_2_"), "4-2");
  EXPECT_EQ(kebab_case(""), "");
}

TEST(ClassSegmentTest, KeepsOtherBytesAsTheyAre) {
  EXPECT_EQ(kebab_case("CaféAgent"), "café-agent");
}

}  // namespace
}  // namespace hearth::protocol
