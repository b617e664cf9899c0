#include "extensions/callee.hpp"

#include "extensions/agent_router.hpp"

#include <hearth/ext/call.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::extensions {
namespace {

using storage::AgentKey;

// Classes Inbox (at inbox), Chat, Draft and Sub. Letter is expected and not loaded.
class NamedClasses final : public AgentRouter {
 public:
  [[nodiscard]] Result<std::string> class_name(std::string_view named) const override {
    if (named == "inbox") return std::string("Inbox");
    if (named == "chat") return std::string("Chat");
    for (const std::string_view known : {"Inbox", "Chat", "Draft", "Sub"}) {
      if (named == known) return std::string(named);
    }
    if (named == "Letter") return Error{Errc::kUnavailable, "the class is not loaded"};
    return Error{Errc::kNotFound, "there is no class " + std::string(named)};
  }
  std::unique_ptr<RemoteOperation> call(AgentCall /*call*/) override { return nullptr; }
};

class CalleeTest : public ::testing::Test {
 protected:
  // "Draft Inbox/ann/Chat/c/d", or the code of the error.
  [[nodiscard]] std::string found(std::string_view agent_class, std::string_view name,
                                  const AgentKey* asked_by = nullptr, std::uint32_t flags = 0) {
    const auto callee = callee_of({.key = caller_, .asked_by = asked_by, .router = &classes_},
                                  {.flags = flags, .agent_class = agent_class, .name = name});
    if (!callee) return std::string(to_string(callee.error().code));
    return callee->agent_class + " " + callee->name;
  }

  NamedClasses classes_;
  AgentKey caller_{"Chat", "Inbox/ann/c"};
};

// A name may come from a client: none leads past a parent that is not the caller's.
TEST_F(CalleeTest, P1_AWayStaysInTheCallersTree) {
  struct Way {
    std::string_view agent_class, name, found;
  };
  for (const auto& [agent_class, name, expected] : {
           Way{"Draft", "Inbox/ann/Chat/c/d", "Draft Inbox/ann/Chat/c/d"},  // its child
           Way{"Chat", "Inbox/ann/c", "Chat Inbox/ann/c"},                  // itself
           Way{"Chat", "Inbox/ann/other", "Chat Inbox/ann/other"},          // its sibling
           Way{"Chat", "Inbox/bob/c", "forbidden"},
           Way{"Chat", "Inbox/Ann/c", "forbidden"},
           Way{"Inbox", "Chat/ann/c", "forbidden"},
           Way{"Chat", "inbox/bob/c", "forbidden"},
           Way{"Draft", "Inbox/bob/Chat/c/d", "forbidden"},
           Way{"Draft", "Chat/c/d", "forbidden"},
           Way{"Draft", "Sub/ann/d", "forbidden"},
       })
    EXPECT_EQ(found(agent_class, name), expected) << agent_class << " " << name;
  caller_ = {"Inbox", "ann"};
  EXPECT_EQ(found("Chat", "Inbox/ann/c"), "Chat Inbox/ann/c") << "a root has a tree too";
  EXPECT_EQ(found("Chat", "Inbox/bob/c"), "forbidden");
}

TEST_F(CalleeTest, P1_TheAgentThatHasCalledIsAnsweredWhereverItIs) {
  const AgentKey asked_by{"Draft", "Inbox/bob/Chat/c/d"};
  EXPECT_EQ(found("Draft", asked_by.name, &asked_by), "Draft Inbox/bob/Chat/c/d");
  EXPECT_EQ(found("Draft", "inbox/bob/chat/c/d", &asked_by), "Draft Inbox/bob/Chat/c/d");
  EXPECT_EQ(found("Draft", "Inbox/bob/Chat/c/e", &asked_by), "forbidden");
  EXPECT_EQ(found("Chat", "Inbox/bob/c", &asked_by), "forbidden") << "what is above it is not it";
  EXPECT_EQ(found("Chat", asked_by.name, &asked_by), "forbidden") << "one of another class";
}

TEST_F(CalleeTest, P2_AllSpellingsOfAWayAreOneAgent) {
  for (const std::string_view name :
       {"Inbox/ann/Chat/c/d", "inbox/ann/Chat/c/d", "inbox/ann/chat/c/d"})
    EXPECT_EQ(found("Draft", name), "Draft Inbox/ann/Chat/c/d") << name;
  EXPECT_EQ(found("chat", "inbox/ann/c"), "Chat Inbox/ann/c") << "its own class too";
}

TEST_F(CalleeTest, P2_ClassesOfAWayAreOnesThatThereAre) {
  for (const std::string_view name : {"NoSuchClass/ann/d", "Inbox/ann/NoSuchClass/p/d"})
    EXPECT_EQ(found("Draft", name), "not_found") << name;
  EXPECT_EQ(found("NoSuchClass", "Inbox/ann/d"), "not_found");
  EXPECT_EQ(found("Draft", "Inbox/ann/sub/p/d"), "not_found") << "as it stands in URLs";
  EXPECT_EQ(found("Draft", "Inbox/ann/Letter/p/d"), "unavailable");
}

TEST_F(CalleeTest, P2_WhatIsNoWayIsInvalid) {
  std::string deep = "Inbox/ann";
  for (unsigned above = 1; above <= AgentKey::kMaxDepth; ++above) deep += "/Chat/c";
  const std::string long_name = "Inbox/ann/" + std::string(513, 'd');
  for (const std::string& name : std::vector<std::string>{
           "/", "//", "//d", "a/b", "Inbox//d", "/ann/d", "Inbox/ann/", "Inbox/ann//c/d",
           "Inbox/ann/Chat//d", "Inbox/ann/Chat/c", "Inbox/ann/Chat/c/", "Inbox/ann/d\n",
           "no class!/ann/d", "Inbox/ann/a%2fb", "Inbox/ann/a%", "Inbox/ann/%41", long_name})
    EXPECT_EQ(found("Draft", name), "invalid_argument") << name;
  EXPECT_EQ(found("Draft", deep + "/d"), "invalid_argument") << "too many stand above it";
  EXPECT_EQ(found("Draft", "Inbox/ann/a%2Fb"), "Draft Inbox/ann/a%2Fb");
  EXPECT_EQ(found("Draft", "Inbox/ann/50%25"), "Draft Inbox/ann/50%25");
}

TEST_F(CalleeTest, ARootIsReachedByAll) {
  EXPECT_EQ(found("chat", "c"), "chat c") << "whoever calls it finds the class";
  EXPECT_EQ(found("Chat", "a%2fb"), "Chat a%2fb") << "as it stands in URLs";
  EXPECT_EQ(found("Chat", ""), "invalid_argument");
}

TEST_F(CalleeTest, AnAgentMakesRootsAndItsOwnChildren) {
  const auto must_exist = [this](const AgentKey& callee) {
    return must_exist_already(caller_, callee);
  };
  EXPECT_FALSE(must_exist({"Chat", "c"}));
  EXPECT_FALSE(must_exist({"Draft", "Inbox/ann/Chat/c/d"}));
  EXPECT_FALSE(must_exist(caller_));
  EXPECT_TRUE(must_exist({"Chat", "Inbox/ann/other"}));
  EXPECT_TRUE(must_exist({"Draft", "Inbox/ann/Chat/other/d"}));
  EXPECT_TRUE(must_exist({"Line", "Inbox/ann/Chat/c/Draft/d/l"}));
}

TEST_F(CalleeTest, AHostWithoutOtherAgentsTakesClassesAsTheyAreNamed) {
  const auto callee = callee_of({.key = caller_}, {.agent_class = "Draft", .name = "Inbox/ann/d"});
  ASSERT_TRUE(callee);
  EXPECT_EQ(callee->name, "Inbox/ann/d");
}

}  // namespace
}  // namespace hearth::extensions
