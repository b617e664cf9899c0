#include "storage/agent_key.hpp"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>

namespace hearth::storage {
namespace {

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
