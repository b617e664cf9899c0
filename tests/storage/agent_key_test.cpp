#include "storage/agent_key.hpp"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>

namespace hearth::storage {
namespace {

TEST(AgentKeyTest, AcceptsClassNamesThatAreSafeInAPath) {
  for (const char* name : {"Counter", "_", "a", "chat-room", "A1_b-2"})
    EXPECT_TRUE(is_class_name(name)) << name;
  EXPECT_TRUE(is_class_name(std::string(kMaxClassNameBytes, 'x')));
}

TEST(AgentKeyTest, RefusesClassNamesThatAreNot) {
  using std::string_literals::operator""s;
  for (const std::string& name : {""s, "."s, ".."s, "a/b"s, "-a"s, "1a"s, "a.b"s, "a b"s, "a\0b"s,
                                  "\xC3\xA4"s, std::string(kMaxClassNameBytes + 1, 'x')})
    EXPECT_FALSE(is_class_name(name)) << name;
}

TEST(AgentKeyTest, ComparesClassFirstAndThenTheNamesBytes) {
  EXPECT_EQ((AgentKey{"a", "b"}), (AgentKey{"a", "b"}));
  EXPECT_LT((AgentKey{"a", "z"}), (AgentKey{"b", "a"}));
  EXPECT_LT((AgentKey{"a", "a"}), (AgentKey{"a", "b"}));
}

TEST(AgentKeyTest, HashTellsClassFromName) {
  const std::hash<AgentKey> hash;
  EXPECT_EQ(hash({"a", "b"}), hash({"a", "b"}));
  EXPECT_NE(hash({"a", "b"}), hash({"b", "a"}));
  EXPECT_NE(hash({"a", ""}), hash({"", "a"}));
}

}  // namespace
}  // namespace hearth::storage
