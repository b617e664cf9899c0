#include "protocol/class_segment.hpp"

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
