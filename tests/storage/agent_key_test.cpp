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

TEST(AgentKeyTest, OneBelowAnotherIsNamedByTheWayToIt) {
  const AgentKey inbox{"Inbox", "user-123"};
  EXPECT_FALSE(inbox.is_sub_agent());
  EXPECT_EQ(inbox.depth(), 0U);
  EXPECT_EQ(inbox.own_name(), "user-123");
  EXPECT_EQ(inbox.parent(), std::nullopt);
  EXPECT_EQ(inbox.root(), inbox);

  const AgentKey chat = inbox.child("Chat", "a/b");
  EXPECT_EQ(chat, (AgentKey{"Chat", "Inbox/user-123/a%2Fb"}));
  const AgentKey draft = chat.child("Draft", "100%");
  EXPECT_EQ(draft, (AgentKey{"Draft", "Inbox/user-123/Chat/a%2Fb/100%25"}));
  EXPECT_TRUE(draft.is_sub_agent());
  EXPECT_EQ(draft.depth(), 2U);
  EXPECT_EQ(draft.own_name(), "100%");
  EXPECT_EQ(draft.parent(), chat);
  EXPECT_EQ(chat.parent(), inbox);
  EXPECT_EQ(draft.root(), inbox);
  EXPECT_TRUE(draft.name.starts_with(chat.prefix_below()));
  EXPECT_TRUE(draft.name.starts_with(inbox.prefix_below()));
  EXPECT_FALSE(chat.child("Draft", "x").name.starts_with(inbox.child("Chat", "a").prefix_below()));
}

TEST(AgentKeyTest, TheNameOfARootIsKeptAsItIs) {
  // Clients write it encoded, and it is never decoded.
  const AgentKey root{"Room", "Room%201"};
  const AgentKey below = root.child("Chat", "x");
  EXPECT_EQ(below.parent(), root);
  EXPECT_EQ(below.root(), root);
  EXPECT_EQ(below.child("Chat", "y").root(), root);
}

TEST(AgentKeyTest, EveryNameComesBackFromTheKey) {
  for (const std::string name : {"a", "/", "//", "%", "%2F", "%25", "a b", "\u00e9", "..", "a/%/b"})
    EXPECT_EQ((AgentKey{"A", "r"}).child("B", name).child("C", name).own_name(), name);
}

TEST(AgentKeyTest, NamesOfSubAgentsHaveALengthAndNoControlCharacters) {
  for (const std::string& name : {std::string("chat/\u00e9"), std::string("..."), std::string(".a"),
                                  std::string(kMaxNameBytes, 'n'), std::string("%2e")})
    EXPECT_TRUE(is_sub_agent_name(name)) << name;
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string(kMaxNameBytes + 1, 'n'),
        std::string(kMaxNameBytes / 3 + 1, '/'), std::string("a\0b", 3), std::string("\x1f"),
        std::string("\xc2\x85"), std::string("\xff"), std::string("\xc2")})
    EXPECT_FALSE(is_sub_agent_name(name)) << name;
}

TEST(AgentKeyTest, NamesThatNoUrlCanReachAreNoNamesOfRoots) {
  for (const std::string& name : {std::string("a"), std::string("..."), std::string("u%2F1"),
                                  std::string(kMaxNameBytes, 'n')})
    EXPECT_TRUE(is_root_name(name)) << name;
  for (const std::string& name :
       {std::string(), std::string("."), std::string("%2e."), std::string("%2E%2e"),
        std::string(kMaxNameBytes + 1, 'n'), std::string("\x7f")})
    EXPECT_FALSE(is_root_name(name)) << name;
}

}  // namespace
}  // namespace hearth::storage
